"""The agent that ships with covey: plays the script in a task's body, for demos and tests; no model, no key."""

from __future__ import annotations

import sys
from pathlib import Path

from covey.agents.custom import Declared

PLAYER = Path(__file__).with_name("player.py")

# Isolated and without site, so that neither the worktree nor the user's packages count, and it starts in milliseconds.
agent = Declared("scripted", (sys.executable, "-I", "-S", str(PLAYER), "{body_file}", "{task}", "{title}"))
"""Joins by entry point, like anyone's."""
