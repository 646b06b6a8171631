"""Hooks: what agent programs ask at each step of their work, and how that reaches the daemon."""
