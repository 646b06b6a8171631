"""What is asked and answered about the board: its tasks, who takes them, their import, and why they wait."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator
from dataclasses import fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs
from msgspec.structs import force_setattr

from covey.app.shapes.forms import (
    Answered,
    As,
    Asked,
    Body,
    Branch,
    Checks,
    Commit,
    Fence,
    Globs,
    Key,
    Limit,
    Line,
    Money,
    Name,
    Priority,
    TaskId,
    TaskIds,
    Title,
    completed,
    fields_of,
)
from covey.core.board import tasks
from covey.core.board.needs import Policy
from covey.core.board.waiting import Cause

_FORMS = {str: Line, int: Priority, float: Money, tuple[str, ...]: Annotated[tuple[Line, ...], Meta(max_length=50)]}
"""What a field has to look like that the core keeps in such a type, if the request does not write it out."""
_ONLY_WHOLE = ("body", "done_when", "budget", "key")
"""What a task is added with and its row does not show; web/page/js/rules/task_fields.js has all that is not in rows."""


def _arms(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _any_of(arms: Iterable[Any]) -> Any:
    return functools.reduce(operator.or_, arms)


def _added() -> Iterator[tuple[str, Any, Any]]:
    """Yield what the core adds a task with, each in the form that it has in a request."""
    hints = get_type_hints(tasks.TaskSpec)
    for each in fields(tasks.TaskSpec):
        if each.name != "key":  # only an import names it
            yield each.name, _any_of(_FORMS.get(arm, arm) for arm in _arms(hints[each.name])), each.default


def _edited() -> Iterator[tuple[str, Any, Any]]:
    """Yield what can be changed of a task, in the form in which it is added; null clears what a task need not have."""
    for each in structs.fields(AddTask):
        if each.name != "for_session":
            arms = [arm for arm in _arms(each.type) if arm is not NoneType]
            yield each.name, _any_of([*arms, UnsetType, *([None] if each.name in tasks.CLEARABLE else [])]), UNSET


@completed(_added())
class AddTask(Asked, frozen=True, kw_only=True):
    """A new task; ids in `needs_any` are needs that it goes on without when they are dropped.

    `session` is another word for `assignee`.
    """

    title: Title
    body: Body = ""
    kind: tasks.Kind = tasks.Kind.CHANGE
    status: Literal["backlog", "todo"] = "todo"
    assignee: Name | None = None
    role: Name | None = None
    priority: Priority = 0
    needs: TaskIds = field(default_factory=list)
    needs_any: TaskIds = field(default_factory=list)
    parent: TaskId | None = None
    scope: Globs = field(default_factory=list)
    do_not_touch: Globs = field(default_factory=list)
    overlap: bool = False
    done_when: Checks = field(default_factory=list)
    budget: Money | None = None
    batch: Name | None = None
    note: Line | None = None
    for_session: Name | None = field(default=None, name="session")

    def __post_init__(self) -> None:
        """Let it be for the session that is named either way."""
        named = self.for_session
        if named is not None and self.assignee not in (None, named):
            raise ValueError(f"session and assignee are one field, and {named} is not {self.assignee}")
        if named is not None:
            force_setattr(self, "assignee", named)
            force_setattr(self, "for_session", None)


@completed(_edited())
class EditTask(Asked, frozen=True, kw_only=True):
    """Changes to a task: what is left out stays, null clears."""

    def named(self) -> dict[str, Any]:
        """Return the fields that are not left out."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}


class MoveTask(Asked, frozen=True, kw_only=True):
    """Where a task shall stand: right above a task, right below one, between the two, or `to` an end of its column.

    It gets the priority that it needs to stand there, which `priority` can name.
    """

    above: TaskId | None = None
    below: TaskId | None = None
    to: Literal["first", "last"] | None = None
    priority: Priority | None = None


class BulkTasks(Asked, frozen=True, kw_only=True):
    """What shall happen to some tasks, to all of them or to none: `changes`, or `drop` with a reason, or `reopen`."""

    ids: Annotated[list[TaskId], Meta(min_length=1, max_length=1000)]
    changes: EditTask | None = None
    drop: Line | None = None
    reopen: bool = False


class ListTasks(Asked, frozen=True, kw_only=True):
    """A page of the board: `session` holds or held a task, `assignee` is whom it is for.

    `open`: only tasks that are neither done nor dropped; false: only those that are.
    """

    status: tasks.Status | None = None
    session: Name | None = None
    assignee: Name | None = None
    open: bool | None = None
    limit: Limit = 200
    after: TaskId | None = None


@completed(fields_of(tasks.TaskSpec, *_ONLY_WHOLE))
class TaskRow(Answered, frozen=True, kw_only=True):
    """A task as the board shows it; `ready` says that nothing else has to end before it.

    The board is ordered by `priority`, the largest first, then by `rank`, the smallest first. `lane` is in which it
    waits: one session's (`s:NAME`), one batch's (`b:NAME`), one role's (`r:NAME`), or anyone's (empty).
    """

    id: str
    title: str
    status: tasks.Status
    session: str | None
    rank: float
    needs: list[str]
    needs_any: list[str]
    fence: int
    ready: bool
    reason: str | None
    commit: str | None
    failed_tries: int
    sent_back: int
    created: float
    updated: float
    claimed: float | None
    ended: float | None
    added_by: str
    lane: str


@completed(fields_of(tasks.Task, "ordinal", "forgiven"))
class TaskFull(TaskRow, frozen=True, kw_only=True):
    """A task with all that is known of it; `until` is when an outside session's claim ends if it stays silent.

    `author` is who wrote the words of it, `result_by` who handed the result in; `cost` is in dollars, without those of
    `unpriced` tokens; `reverted` is what took its work out of main again.
    """

    body: str
    result: str | None
    result_by: str | None
    until: float | None
    reverted: str | None
    cost: float
    tokens: int
    unpriced: int


class Edge(Struct, frozen=True):
    """One need of a task, or one task that needs it."""

    id: str
    title: str
    status: tasks.Status
    policy: Policy


class Deps(Struct, frozen=True):
    """What a task waits for, what waits for it, and its family."""

    id: str
    needs: list[Edge]
    needed_by: list[Edge]
    parent: str | None
    children: list[str]


# Taking a task, and giving it back


class Claim(As, frozen=True, kw_only=True):
    """Who claims; `overlap` goes on although another task may write the same files."""

    overlap: bool = False


class Held(As, frozen=True, kw_only=True):
    """Whose claim, under which fence."""

    fence: Fence | None = None


class HandIn(Held, frozen=True, kw_only=True):
    """The work that is handed in: a commit on its branch, and the text of a result."""

    result: Body | None = None
    commit: Commit | None = None
    branch: Branch | None = None


class Release(Held, frozen=True, kw_only=True):
    """Why the task goes back, if anything went wrong."""

    reason: Line | None = None


class Block(Held, frozen=True, kw_only=True):
    """What a person has to decide."""

    reason: Line


# Imports

Keys = Annotated[list[Key], Meta(max_length=500)]


class ImportedTask(EditTask, frozen=True, kw_only=True):
    """A task of an import; `key` makes it the same task next time, needs may name keys, what is left out stays."""

    key: Key
    title: Title
    needs: Keys | UnsetType = UNSET
    needs_any: Keys | UnsetType = UNSET
    parent: Key | UnsetType | None = UNSET


class ImportTasks(Asked, frozen=True, kw_only=True):
    """A part of an import."""

    tasks: Annotated[list[ImportedTask], Meta(min_length=1, max_length=1000)]


class ImportAnswer(Struct, frozen=True):
    """What an import did: the ids by key."""

    added: dict[str, str]
    updated: dict[str, str]
    unchanged: dict[str, str]


# Why nothing happens


class Wait(Struct, frozen=True, kw_only=True):
    """Why a task waits, or a session idles: its cause, a sentence, until when if that is known, and what to do.

    `person`: only a person can change it; `command`: how, empty if there is nothing to do but wait.
    """

    cause: Cause
    text: str
    until: float | None
    person: bool
    command: str


class TaskWait(Wait, frozen=True, kw_only=True):
    """Why one task waits."""

    task: str


class SessionWait(Wait, frozen=True, kw_only=True):
    """Why one session is not at work."""

    session: str


class LaneWait(Wait, frozen=True, kw_only=True):
    """Why the tasks of some lanes wait: how many, since when, the first of them, and the sessions that it is about."""

    lanes: list[str]
    count: int
    since: float
    tasks: list[str]
    sessions: list[str]


class Waits(Struct, frozen=True, kw_only=True):
    """Why nothing happens: the tasks of a page of the board that wait, all that are ready by lane, idle sessions."""

    tasks: list[TaskWait]
    lanes: list[LaneWait]
    sessions: list[SessionWait]


class Told(Struct, frozen=True):
    """A sentence that says why something waits, and until when if that is known."""

    text: str
    until: float | None


class WaitsNow(Struct, frozen=True):
    """Why tasks that are ready wait: in the largest lanes, and in other words for some tasks near their heads."""

    lanes: dict[str, Told]
    tasks: dict[str, Told]


class TaskShown(TaskFull, frozen=True, kw_only=True):
    """A task whole, with why it waits, null if it does not; a session is not told that of the others."""

    waits: Wait | None
