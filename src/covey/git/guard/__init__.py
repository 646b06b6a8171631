"""The guard: hooks that reach a session's git, and what it is about to commit."""
