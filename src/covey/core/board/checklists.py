"""Checklists in Markdown: the tasks that a TODO.md spells out, and its boxes ticked.

## Heading
- [ ] title
  more about it
  * [x] a part of it, done already
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from textwrap import dedent

from covey.values import dataclass

_ITEM = re.compile(
    r"(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])(?P<gap>[ \t]+)\[(?P<box>[ xX])\](?:[ \t]+(?P<title>.*))?\Z"
)
_HEADING = re.compile(r" {0,3}(?P<level>#{1,6})(?:[ \t]+(?P<title>.*?))?(?:[ \t]+#+)?[ \t]*\Z")
_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>.*)\Z")


@dataclass(frozen=True, kw_only=True)
class ChecklistItem:
    """One box of a checklist; `key` tells it from every other, and stays while titles and headings above do."""

    line: int
    box: int
    title: str
    ticked: bool
    body: str
    key: str
    parent: int | None


@dataclass
class _Draft:
    """An item whose body is still being read; all that its key has so far are the headings above it."""

    item: ChecklistItem
    indent: int
    content: int
    body: list[str]


def parse(text: str) -> list[ChecklistItem]:
    """Return the items of a checklist in their order; `parent` is the place of the one that an item is nested in."""
    items: list[ChecklistItem] = []
    seen: dict[str, int] = {}
    for draft in _drafts(text):
        item = draft.item
        above = item.key if item.parent is None else items[item.parent].key
        path = f"{above} / {item.title}".removeprefix(" / ")
        seen[path] = seen.get(path, 0) + 1
        key = path if seen[path] == 1 else f"{path} ({seen[path]})"
        while key != path and key in seen:
            seen[path] += 1
            key = f"{path} ({seen[path]})"
        seen.setdefault(key, 1)
        items.append(replace(item, body=_text(draft.body), key=key))
    return items


def tick(text: str, keys: Collection[str]) -> str:
    """Return the text with the boxes of these keys ticked and every other character as it was."""
    boxes = {item.box for item in parse(text) if item.key in keys and not item.ticked}
    letters = list(text)
    for box in boxes:
        letters[box] = "x"
    return "".join(letters)


def _with_heading(above: list[tuple[int, str]], found: re.Match[str]) -> list[tuple[int, str]]:
    """Return the headings that a line stands under after one more: those of its level or below it end there."""
    level = len(found["level"])
    return [*(entry for entry in above if entry[0] < level), (level, (found["title"] or "").strip())]


def _drafts(text: str) -> list[_Draft]:
    drafts: list[_Draft] = []
    open_items: list[int] = []
    headings: list[tuple[int, str]] = []
    body_of: _Draft | None = None
    fence = ""
    for number, (offset, line) in enumerate(_lines(text), 1):
        fenced, fence = bool(fence), _fence(line, fence)
        heading = None if fenced or fence else _HEADING.match(line)
        item = None if fenced or fence else _ITEM.match(line)
        if heading is not None:
            headings = _with_heading(headings, heading)
            open_items, body_of = [], None
        elif item is not None:
            draft = _draft(item, number, offset, headings)
            while open_items and drafts[open_items[-1]].indent >= draft.indent:
                open_items.pop()
            body_of = draft if draft.item.title else None  # a box without words is a line that somebody meant to fill
            if body_of is not None:
                body_of.item = replace(body_of.item, parent=open_items[-1] if open_items else None)
                open_items.append(len(drafts))
                drafts.append(body_of)
        else:
            if line.strip():
                around = (drafts[i] for i in reversed(open_items) if drafts[i].indent < _column(line))
                body_of = next(around, None)
            if body_of is not None:
                body_of.body.append(_cut(line, body_of.content))
    return drafts


def _text(body: list[str]) -> str:
    """Return a body; one that stands right below its item may be aligned with the title, after a gap it is code."""
    text = "\n".join(body)
    return (dedent(text) if body and body[0].strip() else text).strip("\n")


def _draft(item: re.Match[str], number: int, offset: int, headings: list[tuple[int, str]]) -> _Draft:
    before = f"{item['indent']}{item['mark']}{item['gap']}"
    made = ChecklistItem(
        line=number,
        box=offset + item.start("box"),
        title=(item["title"] or "").strip(),
        ticked=item["box"] != " ",
        body="",
        key=" / ".join(title for _, title in headings if title),
        parent=None,
    )
    return _Draft(made, len(item["indent"].expandtabs(4)), len(before.expandtabs(4)), [])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its place in the text; only a line feed ends one."""
    start = 1 if text.startswith("\ufeff") else 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, text[start:end].removesuffix("\r")
        start = end + 1


def _fence(line: str, fence: str) -> str:
    """Return the mark of the code block that is open after a line, or nothing."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return "" if found["mark"][0] == "`" and "`" in found["info"] else found["mark"]
    closes = found["mark"].startswith(fence) and not found["info"].strip()
    return "" if closes else fence


def _column(line: str) -> int:
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip(" "))


def _cut(line: str, columns: int) -> str:
    """Return a line of a body without the indentation of its item."""
    if _column(line) == 0:
        return line.rstrip()
    wide = line.expandtabs(4) if "\t" in line[: len(line) - len(line.lstrip())] else line
    return wide[min(columns, _column(line)) :].rstrip()
