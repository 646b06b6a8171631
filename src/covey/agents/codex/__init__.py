"""Codex, with and without a terminal."""
