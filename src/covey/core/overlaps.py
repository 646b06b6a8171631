"""Overlaps of open branches: what two tasks write at the same place, and the files at which it happens again and again.

found > changed > gone        heated > cooled, for a file
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Level(StrEnum):
    """How close two branches come to each other."""

    FILE = "file"
    """Both change a file, at places far apart."""
    HUNK = "hunk"
    """Both change the same lines, or ones next to each other, and git can still merge them."""
    CONFLICT = "conflict"
    """git cannot merge them."""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Two open tasks whose branches meet; `one` is the older task, `other` the younger, or main itself."""

    id: str
    one: str
    other: str
    level: Level
    files: tuple[str, ...] = ()
    """Where they come closest."""
    found: float = 0.0
    changed: float = 0.0
    gone: float | None = None


@dataclass(frozen=True, kw_only=True)
class HotFile:
    """A file at which tasks collide again and again."""

    path: str
    collisions: int
    since: float = 0.0
    last: float = 0.0
    cooled: float | None = None


@dataclass(frozen=True, kw_only=True)
class Found:
    """Two branches came to overlap."""

    one: str
    other: str
    level: Level
    files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Changed:
    """Two branches that overlap do so at another level, or in other files."""

    level: Level
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gone:
    """Two branches overlap no more."""

    why: str


@dataclass(frozen=True)
class Heated:
    """A file has become hot, or collided once more while it was."""

    collisions: int


@dataclass(frozen=True)
class Cooled:
    """A hot file has been quiet for long enough."""


PairEvent = Found | Changed | Gone
FileEvent = Heated | Cooled
Event = PairEvent | FileEvent


def name(one: str, other: str) -> str:
    """Return the name of the overlap of two tasks."""
    return f"{one} {other}"


def first(overlap_id: str, event: Found, at: float) -> Overlap:
    """Return the overlap that a Found event begins."""
    return Overlap(
        id=overlap_id, one=event.one, other=event.other, level=event.level, files=event.files, found=at, changed=at
    )


def apply(overlap: Overlap, event: PairEvent, at: float) -> Overlap:
    """Return the overlap as it is after `event`. Never refuses."""
    match event:
        case Found():
            return first(overlap.id, event, at)
        case Changed():
            return replace(overlap, level=event.level, files=event.files, changed=at)
        case Gone():
            return replace(overlap, gone=at)


def heat(path: str, before: HotFile | None, event: FileEvent, at: float) -> HotFile:
    """Return a hot file as it is after `event`."""
    match event:
        case Heated(collisions):
            hot = before is not None and before.cooled is None
            since = before.since if before is not None and hot else at
            return HotFile(path=path, collisions=collisions, since=since, last=at)
        case Cooled():
            assert before is not None
            return replace(before, cooled=at)
