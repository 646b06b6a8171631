"""The rules of history: how events, transcripts and actions are told to people."""
