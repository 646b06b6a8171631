"""Moments as calendars show them; every command starts with this module, so it imports next to nothing."""

from __future__ import annotations

import time


def calendar(pattern: str, moment: float, *, utc: bool = False) -> str:
    """Return a moment as a calendar shows it, and one that no calendar has as its number of seconds."""
    try:
        return time.strftime(pattern, time.gmtime(moment) if utc else time.localtime(moment))
    except (ValueError, OverflowError, OSError):
        return f"@{moment:.0f}"
