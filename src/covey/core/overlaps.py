"""Overlaps of open branches: what two tasks write at the same place, and the files at which it happens again and again.

found > changed > gone        heated > cooled, for a file
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from covey.core.board.tasks import Status, Task
from covey.core.figures import some
from covey.core.quotes import named, title
from covey.values import dataclass

MAIN = "main"
"""The other side of an overlap with main, whatever that branch is called."""
NEAR_LINES = 3
"""Lines between two changes up to which they are next to each other."""
MAX_FILES = 100
"""Files that an overlap names."""
MAX_NAMED_OVERLAPS = 10
"""Files, and overlaps, that a message names one by one."""
MAX_TITLE_BYTES = 80
"""Bytes of a title in a message."""
WHOLE_FILE_END = 2**40
"""The end of a change that has no lines: of a picture, say."""


class OverlapLevel(StrEnum):
    """How close two branches come to each other."""

    FILE = "file"
    """Both change a file, at places far apart."""
    HUNK = "hunk"
    """Both change the same lines, or ones next to each other, and git can still merge them."""
    CONFLICT = "conflict"
    """git cannot merge them."""

    @property
    def is_close(self) -> bool:
        """Say whether somebody should know of it."""
        return self is not OverlapLevel.FILE


_LEVEL_RANKS = {level: number for number, level in enumerate(OverlapLevel)}


@dataclass(frozen=True)
class Hunk:
    """What a change does to a file: it replaces the lines between two boundaries by as many others."""

    start: int
    end: int
    lines: int = 0
    text: str = ""
    """Tells one replacement from another."""


@dataclass(frozen=True)
class Meeting:
    """How close two branches come, and in which files."""

    level: OverlapLevel
    files: tuple[str, ...]


@dataclass(frozen=True)
class Collision:
    """Two branches came close in a file."""

    path: str
    one: str
    other: str
    at: float


@dataclass(frozen=True, kw_only=True)
class Found:
    """Two branches came to overlap."""

    one: str
    other: str
    level: OverlapLevel
    files: tuple[str, ...] = ()
    """Where they come closest."""


@dataclass(frozen=True, kw_only=True)
class Overlap(Found):
    """Two open tasks whose branches meet; `one` is the older task, `other` the younger, or main itself."""

    id: str
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
class Changed:
    """Two branches that overlap do so at another level, or in other files."""

    level: OverlapLevel
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gone:
    """Two branches no longer overlap."""

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
    return Overlap(id=overlap_id, found=at, changed=at, **vars(event))


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


# How close two branches come


def near(one: Sequence[Hunk], other: Sequence[Hunk]) -> bool:
    """Say whether two changes of the same file touch the same lines, or ones next to each other.

    Both are in order. The same change on both sides is not a conflict.
    """
    ends = [hunk.end for hunk in other]
    for hunk in one:
        at = bisect_left(ends, hunk.start - NEAR_LINES)
        while at < len(other) and other[at].start - hunk.end <= NEAR_LINES:
            if other[at] != hunk:
                return True
            at += 1
    return False


def shifted(hunks: Iterable[Hunk], moves: Sequence[Hunk]) -> list[Hunk]:
    """Return changes of a file as changes of what the file became by other changes, in order."""
    return [replace(hunk, start=_start(hunk.start, moves), end=_end(hunk.end, moves)) for hunk in hunks]


def _start(place: int, moves: Sequence[Hunk]) -> int:
    by = 0
    for move in moves:
        if move.end > place or move.start == place:
            return min(place, move.start) + by
        by += move.lines - (move.end - move.start)
    return place + by


def _end(place: int, moves: Sequence[Hunk]) -> int:
    by = 0
    for move in moves:
        if move.start > place:
            break
        if move.end > place:
            return move.start + move.lines + by
        by += move.lines - (move.end - move.start)
    return place + by


def meeting(shared: Collection[str], close: Collection[str], conflicts: Collection[str]) -> Meeting | None:
    """Return how close two branches come that share some files; None if they keep out of each other's way."""
    for level, files in ((OverlapLevel.CONFLICT, conflicts), (OverlapLevel.HUNK, close), (OverlapLevel.FILE, shared)):
        if files:
            return Meeting(level, tuple(sorted(files)[:MAX_FILES]))
    return None


def judge(before: Overlap | None, now: Meeting | None, one: str, other: str) -> PairEvent | None:
    """Return what has become of the overlap of two tasks, None if nothing has."""
    known = before if before is not None and before.gone is None else None
    if now is None:
        return None if known is None else Gone("they keep out of each other's way")
    if known is None:
        return Found(one=one, other=other, level=now.level, files=now.files)
    if (known.level, known.files) == (now.level, now.files):
        return None
    return Changed(level=now.level, files=now.files)


def news(before: Overlap | None, event: PairEvent) -> tuple[str, ...]:
    """Return the files to tell both sides about: they are closer there than they have been so far."""
    if isinstance(event, Gone) or not event.level.is_close:
        return ()
    if before is None or before.gone is not None or _LEVEL_RANKS[event.level] > _LEVEL_RANKS[before.level]:
        return event.files
    if event.level is before.level is OverlapLevel.CONFLICT:
        return tuple(path for path in event.files if path not in before.files)
    return ()


# Hot files


def collided(before: Overlap | None, event: PairEvent) -> tuple[str, ...]:
    """Return the files in which two branches came close by an event, and were not before."""
    if isinstance(event, Gone) or not event.level.is_close:
        return ()
    if before is None or before.gone is not None or not before.level.is_close:
        return event.files
    return tuple(path for path in event.files if path not in before.files)


def count(known: Sequence[Collision], new: Iterable[Collision], within: float) -> list[Collision]:
    """Return the new collisions that count beside those known.

    A quarrel of two tasks comes up once more when one of them has landed and the other meets it on main.
    """
    counted: list[Collision] = []
    for each in new:
        if each.other == MAIN:
            past = (old for old in [*known, *counted] if old.path == each.path and old.at >= each.at - within)
            if any(each.one in (old.one, old.other) for old in past):
                continue
        counted.append(each)
    return counted


def hot(
    collisions: Iterable[Collision], now: float, within: float, least: int, files: Mapping[str, HotFile]
) -> dict[str, int]:
    """Return the files that collided often enough within some seconds, with how often."""
    counts: dict[str, int] = {}
    for each in collisions:
        cooled = files[each.path].cooled if each.path in files else None
        if each.at > now - within and (cooled is None or each.at > cooled):
            counts[each.path] = counts.get(each.path, 0) + 1
    return {path: number for path, number in counts.items() if number >= least}


def is_hot(file: HotFile, now: float, quiet: float) -> bool:
    """Say whether a file still counts as hot: its last collision is less than some seconds ago."""
    return file.cooled is None and now < file.last + quiet


# What sessions are told


@dataclass(frozen=True)
class News:
    """What the session of one task is told: which other came close, and where; None is main."""

    other: Task | None
    level: OverlapLevel
    files: tuple[str, ...]


def text(task: Task, found: Sequence[News], main: str) -> str:
    """Return what the session of a task is told."""
    lines = [_sentence(task, each, main) for each in found[:MAX_NAMED_OVERLAPS]]
    if len(found) > MAX_NAMED_OVERLAPS:
        lines.append(f"And {len(found) - MAX_NAMED_OVERLAPS} more tasks.")
    return "\n".join([*lines, _advice(task, found, main)])


def _sentence(task: Task, found: News, main: str) -> str:
    files = some([named(path) for path in found.files], MAX_NAMED_OVERLAPS)
    mine = task.id if task.status is Status.DOING else f"{task.id}, which you handed in,"
    if found.other is None:
        return f"{mine} conflicts with what is on {main} by now, in: {files}."
    other = f"{found.other.id} ({title(found.other.title, MAX_TITLE_BYTES)})"
    who = "nobody at the moment" if found.other.session is None else found.other.session
    handed_in = found.other.status in (Status.REVIEW, Status.MERGING)
    by = f"{other}, which {who} has handed in" if handed_in else f"{other}, at which {who} is at work"
    if found.level is OverlapLevel.CONFLICT:
        return f"{mine} conflicts with {by}: git cannot merge the two, in: {files}."
    return f"{mine} changes the same lines as {by}, or ones next to them, in: {files}."


def _advice(task: Task, found: Sequence[News], main: str) -> str:
    who = next((each.other.session for each in found if each.other is not None and each.other.session), None)
    if all(each.other is None for each in found):
        return f"Merge {main} into your branch now, while the conflict is small, resolve it, and commit."
    talk = "" if who is None else f' Talk to whom it concerns: covey mail send {who} "...".'
    if task.status is not Status.DOING:
        return f"covey overlap {task.id} shows both.{talk}"
    return f"covey overlap {task.id} shows both. Keep your change there small, and do not undo the other's.{talk}"
