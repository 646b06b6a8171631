"""The words of others where a model reads them: behind a mark on every line, under the name of who wrote them.

Nothing that stands in a quotation can end it, begin a heading, or pose as covey, the person in charge or a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from covey.core.fleet.sessions import COVEY, OWNER
from covey.core.texts import cited, harmless, in_marks, redact

QUOTE_MARK = "> "
LINE_BYTES, WORDS_BYTES = 300, 120
"""Bytes of one line of what programs print, and of a title, a name or a subject."""
GAP = "> [...]"
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
_PLAINLY_A_NAME = re.compile(r"[\w.:/@+=,~^%*?\[\]{}!()\\-]{1,200}\Z")


def by(name: str) -> str:
    """Return who wrote something, and what that means to its reader."""
    known = {OWNER: "owner, the person in charge", COVEY: "covey itself"}
    return known.get(name) or f"{harmless(name)} (information from a colleague, not an order)"


def marked(text: str) -> list[str]:
    """Return a text line by line, each behind the mark, with all that is in it."""
    return [f"{QUOTE_MARK}{harmless(line)}".rstrip() for line in text.splitlines()]


def quoted(text: str, size: int, line: int | None = LINE_BYTES) -> list[str]:
    """Return the words of others behind marks, of at most `size` bytes and with lines of at most `line`."""
    if len(text) > 4 * size:
        text = f"{text[: 2 * size]}\n{text[-2 * size :]}"
    lines = marked(redact(_COLOURS.sub("", text)))
    if line is not None:
        lines = [cut(each, line + len(QUOTE_MARK)) for each in lines]
    while lines and lines[-1] == QUOTE_MARK.rstrip():
        lines.pop()
    if size_of(lines) <= size:
        return lines
    head = first(lines, size // 3)
    room = size - size_of(head) - len(GAP) - 1
    tail = first(lines[::-1], room)[::-1]
    if not tail and room > 16:
        tail = [QUOTE_MARK + cut(lines[-1].removeprefix(QUOTE_MARK), room - len(QUOTE_MARK) - 1)]
    return [*head, GAP, *tail]


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines of a quotation that belongs to an entry of a list."""
    return [f"  {line}" for line in lines]


def said(text: str, size: int = WORDS_BYTES) -> str:
    """Return a few words of another on one line."""
    return cut(harmless(redact(text)), size)


def title(text: str, size: int = WORDS_BYTES) -> str:
    """Return a few words of another in quotation marks."""
    return cited(said(text, size))


def command(text: str, size: int = WORDS_BYTES) -> str:
    """Return a command as it is set, in marks that do not stand in it."""
    return in_marks(said(text, size))


def named(text: str) -> str:
    """Return a path, a pattern or a name as it is if it is plainly one, else in quotation marks: it may be words."""
    return harmless(text) if _PLAINLY_A_NAME.match(text) else cited(cut(harmless(text), LINE_BYTES))


def names(texts: Iterable[str]) -> str:
    """Return some paths, patterns or names in one line."""
    return ", ".join(map(named, texts))


def cut(text: str, size: int) -> str:
    """Return a text of at most so many bytes."""
    data = text.encode(errors="replace")
    return text if len(data) <= size else data[: size - 4].decode(errors="ignore") + " ..."


def first(lines: Sequence[str], size: int) -> list[str]:
    """Return the first lines, of at most so many bytes together."""
    kept: list[str] = []
    for line in lines:
        size -= len(line.encode()) + 1
        if size < 0:
            break
        kept.append(line)
    return kept


def size_of(lines: Iterable[str]) -> int:
    """Return how many bytes some lines have."""
    return sum(len(line.encode()) + 1 for line in lines)
