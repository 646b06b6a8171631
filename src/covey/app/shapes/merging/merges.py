"""What is asked and answered about merges, and about the queue as a whole."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from covey.app.shapes.forms import (
    Answered,
    Asked,
    Body,
    Branch,
    Commit,
    Limit,
    Line,
    Priority,
    Title,
    completed,
    fields_of,
    form,
)
from covey.app.shapes.merging.gates import GateRow, LandingRow
from covey.core.board import tasks
from covey.core.merging.merges import Merge
from covey.core.merging.queue.queue_status import QueueStatus


class ListMerges(Asked, frozen=True, kw_only=True):
    """Which merges; without `all`, those that have not ended."""

    all: bool = False
    limit: Limit = 200


class Land(Asked, frozen=True, kw_only=True):
    """The commit on main that holds the work."""

    commit: Annotated[str, form(r"[0-9a-f]{40}([0-9a-f]{24})?", "must be the whole hash of a commit")]


class QueueBranch(Asked, frozen=True, kw_only=True):
    """A branch from outside that shall land: its last commit by its whole hash, and the task that is made of it."""

    branch: Branch
    commit: Commit
    title: Title
    body: Body = ""
    priority: Priority = 0


class Revert(Asked, frozen=True, kw_only=True):
    """Why work shall leave main again; with `reopen`, its task is open again once it has left."""

    reason: Line | None = None
    reopen: bool = False


@completed(fields_of(Merge, "ordinal"))
class MergeRow(Answered, frozen=True, kw_only=True):
    """One entry of the merge queue."""

    id: str


class MergeLine(MergeRow, frozen=True, kw_only=True):
    """One entry of the merge queue as it stands in the train: its place, what tests it now, and for what it waits.

    `waits_for`: `waits` names what it waits for, and is no reason. `person`: it goes on only when a person has done
    something. `stuck`: it waits since the whole queue cannot go on.
    """

    title: str
    place: int | None
    gate: str | None
    waits: str | None
    waits_for: bool
    stuck: bool
    person: bool


class MergeFull(MergeLine, frozen=True, kw_only=True):
    """A merge with all that is known of it; `gates` are those that it was in, the newest first.

    `group` came with the same landing. `cost` is that of its task, without that of `unpriced` tokens.
    """

    task_status: tasks.Status
    agent: str | None
    approved_by: str | None
    gates: list[GateRow]
    landed_by: LandingRow | None
    group: list[str]
    reverted_by: str | None
    cost: float
    tokens: int
    unpriced: int


class MergeWhy(Struct, frozen=True, kw_only=True):
    """Why a merge is where it is, in sentences, and what can be done about it; `retry`: to try it again would help."""

    merge: str
    task: str
    state: str
    because: list[str]
    next: list[str]
    retry: bool


# The queue as a whole


@completed(fields_of(QueueStatus, "id", "rate", "began"))
class QueueRow(Answered, frozen=True, kw_only=True):
    """How the queue stands: what keeps it from testing (paused, halted) or from moving main (frozen), and why."""

    branch: str


class QueueFull(QueueRow, frozen=True, kw_only=True):
    """The train at a glance: the gates that run, what wants to land in its order, and what came of the last ones.

    `rejected` of the last `ended` merges failed. `gate_seconds` is what a gate takes, if one has ended. `troubles` are
    what else keeps work from landing or from reaching the remote, `limits` from what a gate is not kept here, in
    sentences.
    """

    checked: bool
    troubles: list[str]
    limits: list[str]
    fleet_paused: bool
    running: list[GateRow]
    merges: list[MergeLine]
    landed_hour: int
    ended: int
    rejected: int
    gate_seconds: float | None
    last: LandingRow | None
