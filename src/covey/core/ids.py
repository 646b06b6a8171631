"""Readable ids: AF-1 for the first task of auth-fix, unique by a counter per prefix, never reused."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[A-Za-z0-9]+")
_TASK = re.compile(r"[A-Z0-9]{1,5}-[1-9][0-9]{0,9}\Z")


def prefix(assignee: str | None, role: str | None) -> str:
    """Return the letters before the number: from the assignee, else the role, else T."""
    words = _WORDS.findall(assignee or role or "")
    if not words:
        return "T"
    if len(words) == 1:
        return str(words[0][:5].upper())
    return "".join(word[0] for word in words)[:5].upper()


def task_id(letters: str, number: int) -> str:
    """Return the id of the task with this number under its prefix."""
    return f"{letters}-{number}"


def split(task: str) -> tuple[str, int]:
    """Return prefix and number of a task's id."""
    letters, _, number = task.rpartition("-")
    return letters, int(number)


def is_task_id(value: str) -> bool:
    """Say whether a text could be a task's id."""
    return _TASK.match(value) is not None
