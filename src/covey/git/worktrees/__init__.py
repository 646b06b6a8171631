"""Worktrees and checkouts: made, used again, looked at, removed."""
