"""Claude Code, with and without a terminal."""
