"""What a conversation has heard of its task, part by part: what is new is told at its next start, and only that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from covey.hashes import sha256

if TYPE_CHECKING:
    from covey.core.board.tasks import Task

Facts = tuple[tuple[str, str], ...]
"""The parts of a task by their names, each with a digest of what was said; an empty one if that was not all of it."""
ROLE, NEEDS = "role", "needs"
DIGEST_CHARS = 16
GONE = {
    "body": "It says nothing but its title now.",
    "scope": "You may write everywhere now.",
    "do_not_touch": "Nothing is forbidden to be touched any more.",
    "done_when": "There is no list of checks any more.",
}
"""What is said of a part that is empty now."""


def of_words(told: Task, body: str) -> dict[str, str]:
    """Return the parts of a task that people write, each with its digest."""
    lists = {"scope": told.scope, "do_not_touch": told.do_not_touch, "done_when": told.done_when}
    words = {"title": told.title, "body": body, "kind": told.kind, **{name: list(each) for name, each in lists.items()}}
    remarks = {note_name(number): [note.by, note.text] for number, note in enumerate(told.notes, 1)}
    return {name: digest(value) for name, value in (words | remarks).items()}


def note_name(number: int) -> str:
    """Return the name of a note, counted from 1: notes are only ever added."""
    return f"note {number}"


def left_name(ref: str) -> str:
    """Return the name of what a run left uncommitted, kept under this ref."""
    return f"left {ref}"


def digest(value: object) -> str:
    """Return a short text that is another one for everything else that is said."""
    said = json.dumps(value, ensure_ascii=True)
    return sha256(said.encode()).hexdigest()[:DIGEST_CHARS]


def after(heard: Facts, more: Iterable[tuple[str, str]]) -> Facts:
    """Return what was heard after more of it was: what was said last counts."""
    return tuple((dict(heard) | dict(more)).items())


def news(now: Mapping[str, str], heard: Facts) -> set[str]:
    """Return the names of the parts that were never heard as they are now."""
    known = dict(heard)
    return {name for name, said in now.items() if known.get(name) != said}
