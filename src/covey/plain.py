"""Foreign text, fit for a terminal; every command starts with this module, so it imports next to nothing."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")


_POSES = (
    r"(?i)<(?=\||[/!?]?[\w:.-]{0,40}?(?:system|user|human|assistant|tool|function|hook|command|reminder|instruction"
    r"|prompt|context|antml|result|covey|owner|mail))"
)
"""The begin of a tag by which programs tell a model who speaks."""
_ODD = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""What a terminal obeys or does not show: control characters but tab and line end, directions, and unseen letters."""


def defused(text: str) -> str:
    """Return a text in which no tag begins that tells a model who speaks."""
    return re.sub(_POSES, "&lt;", text) if "<" in text else text


def escaped(text: str) -> str:
    """Return JSON in which all that a terminal would obey, or hide, is written as an escape."""
    if text.isascii() and "\x7f" not in text:  # what is below a space is an escape already
        return text
    return re.sub(_ODD, _escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def plain(text: str) -> str:
    """Return a text, all in one line, without colours and without what would move the cursor of a terminal."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if text.isprintable():
        return text
    text = re.sub(r"\r?\n|\t", " ", text)
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def first_line(text: str, limit: int = 100) -> str:
    """Return the beginning of a text, fit for a line."""
    line = plain(text.strip().partition("\n")[0])
    return line if len(line) <= limit else line[: limit - 1] + "…"
