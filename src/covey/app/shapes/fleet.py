"""What is asked and answered about sessions, their terminals and runs, and what the watchdog thinks of them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from covey.app.history.log import EventRow
from covey.app.shapes.board import SessionWait
from covey.app.shapes.forms import Answered, Asked, Limit, Name, TaskId, completed, fields_of, form
from covey.core.fleet import runs, sessions
from covey.core.people.permits import PermissionLevel


class NewSession(Asked, frozen=True, kw_only=True):
    """A session from outside, which without `wip` holds any number of tasks, or with an `agent` one that covey runs.

    `permissions`: what that agent may do without asking, instead of what the settings say.
    """

    name: Name
    role: Name | None = None
    wip: Annotated[int, Meta(ge=1, le=1000)] | None = None
    agent: Name | None = None
    permissions: PermissionLevel | None = None


class AddSessions(Asked, frozen=True, kw_only=True):
    """Sessions that covey runs: those of `names`, or `count` ones with names that are free; all of them or none.

    Without an `agent` they have the one of the settings. With `start` they work the board at once.
    """

    count: Annotated[int, Meta(ge=1, le=1000)] | None = None
    names: Annotated[list[Name], Meta(max_length=1000)] = field(default_factory=list)
    agent: Name | None = None
    role: Name | None = None
    permissions: PermissionLevel | None = None
    start: bool = False


class RemoveSession(Asked, frozen=True, kw_only=True):
    """Whether a session at work is removed too; its work is kept either way."""

    force: bool = False


class SendText(Asked, frozen=True, kw_only=True):
    """What is typed to the program of a session."""

    text: Annotated[str, Meta(min_length=1, max_length=65_536)]


class AgentRow(Struct, frozen=True):
    """An agent by its name; `absent`: why its program cannot be run, null if it can."""

    name: str
    absent: str | None


class Offer(Struct, frozen=True, kw_only=True):
    """What new sessions can be: agents, those that can be run first; names that are free; and how many more may be.

    `agent`: which one new sessions should have, the settings' own if it can be run. `permissions`: what the settings
    let agents do without asking. `stopped`: sessions that could be started; `stopped_together`: those of them that were
    stopped last by one word for all, and can be brought back by one.
    """

    agent: str
    agents: list[AgentRow]
    permissions: PermissionLevel
    names: list[str]
    room: int
    most: int
    stopped: list[str]
    stopped_together: list[str]


@completed(fields_of(sessions.Session, "ordinal", "attached", "until"))
class SessionRow(Answered, frozen=True, kw_only=True):
    """A session with what it holds and when it was last heard of."""

    name: str


class SessionFull(SessionRow, frozen=True, kw_only=True):
    """A session with the tasks that it holds, its run, when it was last heard of, and what it did last.

    `memory`: bytes that its run took when last weighed, 0 if it never was; `cost`, `tokens`, `unpriced`: today's.
    """

    tasks: list[str]
    run: str | None
    seen: float | None
    last_action: EventRow | None
    memory: int
    cost: float
    tokens: int
    unpriced: int


class Token(Struct, frozen=True):
    """A session's token; it is shown once, and a new one makes the old ones worthless."""

    session: str
    token: str
    proof: str = ""
    """What the daemon proves itself with to whoever has the token; for COVEY_PROOF."""


class ClueRow(Struct, frozen=True):
    """One piece of evidence: where it comes from, what it says, and how many seconds old it is."""

    source: str
    text: str
    age: float


class Moment(Struct, frozen=True):
    """A state in which a session was, since when, and for what evidence."""

    at: float
    state: str
    evidence: str


class Why(Struct, frozen=True, kw_only=True):
    """What the watchdog thinks of a session: its state, the rule that decided, the evidence, and what came before.

    `waits`: why it is not at work, null if it is.
    """

    session: str
    state: sessions.SessionState
    evidence: str | None
    since: float
    until: float | None
    rule: str | None
    action: str | None
    clues: list[ClueRow]
    run: str | None
    task: str | None
    history: list[Moment]
    waits: SessionWait | None


class TerminalRow(Struct, frozen=True):
    """The run that has a terminal, whether a person has taken it over, and the command that shows it.

    `used`: it is open before somebody now. `can_attach`: it has a terminal, or its conversation can go on in one.
    """

    run: str | None
    person: bool
    command: list[str]
    used: bool = False
    can_attach: bool = False


class ReadLogs(Asked, frozen=True, kw_only=True):
    """Which run (default: the last), from which byte on; a negative `since` counts from the end.

    Without `raw`, what an agent says in a structured stream is answered as a transcript of whole lines.
    """

    run: Annotated[str, form(r"(run|gate)-[0-9]+", "must be the id of a run, such as run-12")] | None = None
    since: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0
    raw: bool = False


class ListRuns(Asked, frozen=True, kw_only=True):
    """Which runs, the newest first."""

    session: Name | None = None
    task: TaskId | None = None
    limit: Limit = 50


class RunRow(Answered, frozen=True, kw_only=True):
    """One start of an agent program; `cost` is in dollars, without those of `unpriced` tokens."""

    id: str
    session: str
    task: str
    fence: int
    agent: str
    base: str | None
    conversation: str | None
    ending: str | None
    outcome: runs.Outcome | None
    code: int | None
    what: str | None
    commit: str | None
    begun: float
    ended: float | None
    cost: float
    tokens: int
    unpriced: int


class Logs(Struct, frozen=True):
    """A part of what a run printed, where the next part begins, and whether it may still print more.

    It is as it was printed, or a `transcript`; secrets are taken out of both.
    """

    run: str
    text: str
    next: int
    alive: bool
    transcript: bool
