"""Foreign text, fit for a terminal; every command starts with this module, so it imports next to nothing."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")


def plain(text: str) -> str:
    """Return a text without colours and without what would move the cursor of a terminal."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def first_line(text: str, limit: int = 100) -> str:
    """Return the beginning of a text, fit for a line."""
    line = plain(text.strip().partition("\n")[0])
    return line if len(line) <= limit else line[: limit - 1] + "…"
