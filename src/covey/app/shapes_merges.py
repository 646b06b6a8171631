"""What is asked and answered about merges, gates, landings and the queue as a whole."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from covey.app.shapes import Asked, Body, Branch, Commit, Limit, Line, MergeRow, Priority, RunRow, Title
from covey.core import gates, landings, tasks
from covey.core.merges import Merge

Path = Annotated[str, Meta(min_length=1, max_length=4096)]


class QueueBranch(Asked, frozen=True, kw_only=True):
    """A branch from outside that shall land: its last commit by its whole hash, and the task that is made of it."""

    branch: Branch
    commit: Commit
    title: Title
    body: Body = ""
    priority: Priority = 0


class Perhaps(Asked, frozen=True, kw_only=True):
    """Why, if there is something to say."""

    reason: Line | None = None


class Revert(Asked, frozen=True, kw_only=True):
    """Why work shall leave main again; with `reopen`, its task is open again once it has left."""

    reason: Line | None = None
    reopen: bool = False


class ListLandings(Asked, frozen=True, kw_only=True):
    """How many moves of main, the newest first."""

    limit: Limit = 50


class ListFlakes(Asked, frozen=True, kw_only=True):
    """How many tests, those that flaked last first."""

    limit: Limit = 200


class ReadGate(Asked, frozen=True, kw_only=True):
    """From which byte on; a negative one counts from the end."""

    since: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0


class AskWhy(Asked, frozen=True, kw_only=True):
    """A line of a file: its text, the commit that brought it, and the task and merge that are known of that."""

    path: Path
    commit: Commit
    text: Annotated[str, Meta(max_length=16_384)] = ""
    task: Annotated[str, Meta(max_length=64)] | None = None
    merge: Annotated[str, Meta(max_length=64)] | None = None


class MergeLine(MergeRow, frozen=True, kw_only=True):
    """One entry of the merge queue as it stands in the train: its place, what tests it now, and for what it waits.

    `person`: it goes on only when a person has done something.
    """

    title: str
    place: int | None
    gate: str | None
    waits: str | None
    person: bool

    @staticmethod
    def of(
        merge: Merge,
        *,
        title: str = "",
        place: int | None = None,
        gate: str | None = None,
        waits: str | None = None,
        person: bool = False,
    ) -> MergeLine:
        """Return a merge as it is answered, with its place in the train."""
        own = {name: value for name, value in merge.__dict__.items() if name != "ordinal"}
        return MergeLine(**own, title=title, place=place, gate=gate, waits=waits, person=person)


class GateRow(Struct, frozen=True, kw_only=True):
    """One test of one tree, and how it ended."""

    id: str
    base: str
    commit: str
    merges: tuple[str, ...]
    purpose: str
    slot: int
    state: gates.State
    why: str | None
    code: int | None
    step: str
    seconds: float | None
    cpu: float | None
    failures: tuple[str, ...]
    fingerprint: str
    summary: str
    started: float
    ended: float | None

    @staticmethod
    def of(gate: gates.Gate) -> GateRow:
        """Return a gate as it is answered."""
        return GateRow(**{name: getattr(gate, name) for name in GateRow.__struct_fields__})


class LandingRow(Struct, frozen=True, kw_only=True):
    """One move of main: from which commit to which, with which merges, after which gate, and where it was pushed."""

    id: str
    branch: str
    before: str
    commit: str
    merges: tuple[str, ...]
    gate: str | None
    untested: bool
    made: float
    remote: str | None
    pushed: float | None

    @staticmethod
    def of(landing: landings.Landing) -> LandingRow:
        """Return a landing as it is answered."""
        return LandingRow(**{name: getattr(landing, name) for name in LandingRow.__struct_fields__})


class FlakeRow(Struct, frozen=True):
    """A test that failed and then passed on the very same tree: how often, first and last, and where it failed."""

    test: str
    times: int
    first: float
    last: float
    gate: str


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
    """Why a merge is where it is, in sentences, and what can be done about it."""

    merge: str
    task: str
    state: str
    because: list[str]
    next: list[str]


class QueueRow(Struct, frozen=True, kw_only=True):
    """How the queue stands: what keeps it from testing (paused, halted) or from moving main (frozen), and why."""

    strategy: str
    slots: int
    branch: str
    base: str | None
    proven: bool
    paused: bool
    frozen: bool
    halted: str | None
    gates: tuple[str, ...]
    paused_why: str | None
    paused_by: str | None
    paused_since: float | None
    frozen_why: str | None
    frozen_by: str | None
    frozen_since: float | None


class QueueFull(QueueRow, frozen=True, kw_only=True):
    """The train at a glance: the gates that run, what wants to land in its order, and what came of the last ones.

    `rejected` of the last `ended` merges failed. `gate_seconds` is what a gate takes, if one has ended. `troubles` are
    what else keeps work from landing or from reaching the remote, in sentences.
    """

    checked: bool
    troubles: list[str]
    fleet_paused: bool
    running: list[GateRow]
    merges: list[MergeLine]
    landed_hour: int
    ended: int
    rejected: int
    gate_seconds: float | None
    last: LandingRow | None


class Passage(Struct, frozen=True, kw_only=True):
    """A place in the transcript of a run: the number of its line, when that was said if it is known, and what is near.

    `exact`: the very text of the line was written there; else it is the last use of a tool on the file.
    """

    run: str
    session: str
    line: int
    at: float | None
    exact: bool
    lines: list[str]


class WhyTask(Struct, frozen=True, kw_only=True):
    """The task for which a line was written."""

    id: str
    title: str
    body: str
    done_when: tuple[str, ...]
    status: tasks.Status


class LineWhy(Struct, frozen=True, kw_only=True):
    """Where a line comes from: its merge, task, run, gate and landing, who approved it, and where it was written."""

    commit: str
    merge: MergeRow | None
    task: WhyTask | None
    run: RunRow | None
    model: str | None
    gate: GateRow | None
    landing: LandingRow | None
    approved_by: str | None
    passage: Passage | None
