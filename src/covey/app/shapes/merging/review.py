"""What is asked and answered about a review: what work changes, and what it would conflict with."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from covey.app.shapes.forms import Answered, Asked, Path
from covey.core.board import tasks
from covey.core.merging import merges


class ReadDiff(Asked, frozen=True, kw_only=True):
    """Which part: one file, from a line of its patch on, with more around; `working`: also what is not committed."""

    path: Path | None = None
    since: Annotated[int, Meta(ge=0, le=2**31)] = 0
    context: Annotated[int, Meta(ge=0, le=100_000)] = 3
    working: bool = False


class ReadTogether(Asked, frozen=True, kw_only=True):
    """The tasks whose work is put together in this order, parted by commas; of one file as with one task."""

    tasks: Annotated[str, Meta(min_length=1, max_length=2000)]
    path: Path | None = None
    since: Annotated[int, Meta(ge=0, le=2**31)] = 0
    context: Annotated[int, Meta(ge=0, le=100_000)] = 3


class DiffFile(Answered, frozen=True, kw_only=True):
    """One file that differs: `patch` has its hunks, null if it is binary or has no room; `next` is where to go on.

    `tasks` are those of several that change it, `written` the lines of each, from and to, where they are more than one.
    """

    path: str
    old_path: str | None
    status: str
    plus: int
    minus: int
    binary: bool
    mode: str
    old_mode: str | None
    patch: str | None
    cut: bool
    next: int | None
    shortened: int
    tasks: list[str] = field(default_factory=list)
    written: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


class TaskDiff(Struct, frozen=True, kw_only=True):
    """What the work for a task changes, or has changed on main; without a `tip` there is none yet.

    `merge` is the last one by which it was handed in; `dirty`: something in its worktree is not committed.
    """

    task: str
    branch: str
    merge: str | None
    base: str | None
    tip: str | None
    landed: bool
    dirty: bool
    working: bool
    files: list[DiffFile]
    plus: int
    minus: int
    more: int


class ReviewRow(Struct, frozen=True, kw_only=True):
    """Work that can be looked at: how much it changes, and whether git could not merge it as things are.

    Without a `tip` nothing is committed yet. `conflicts` are the tasks, or main, with which it conflicts as the radar
    saw it last; `waits`: its merge waits for a person's word.
    """

    task: str
    merge: str | None
    session: str | None
    waits: bool
    tip: str | None
    plus: int
    minus: int
    files: int
    conflicts: list[str]


class DiffPart(Struct, frozen=True, kw_only=True):
    """One of several tasks: the files that it changes, and those in which it cannot be put together with the others."""

    task: str
    title: str
    status: tasks.Status
    tip: str | None
    files: list[str]
    conflicts: list[str]
    message: str


class Together(Struct, frozen=True, kw_only=True):
    """What main would be with the work of several tasks in it, without that which conflicts."""

    tasks: list[DiffPart]
    base: str
    tip: str
    files: list[DiffFile]
    plus: int
    minus: int
    more: int


class MeetingRow(Struct, frozen=True, kw_only=True):
    """Another task whose open work changes the same files: at the same lines, or so that git cannot merge both."""

    task: str
    title: str
    status: tasks.Status
    session: str | None
    merge: str | None
    state: merges.MergeState | None
    shared: list[str]
    close: list[str]
    conflicts: list[str]


class Conflicts(Struct, frozen=True, kw_only=True):
    """What the work for a task would conflict with: files in which it does with main, and other open work."""

    task: str
    tip: str
    main: str
    conflicts: list[str]
    others: list[MeetingRow]
