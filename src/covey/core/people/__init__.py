"""The rules between people and agents: mail, questions, permits, rights, and what waits for a person."""
