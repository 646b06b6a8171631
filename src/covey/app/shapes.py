"""What is asked and what is answered: the types that validate requests, and from which OpenAPI is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from covey.core import merges, overlaps, permits, questions, runs, sessions, signals, tasks
from covey.core.alerts import Alert
from covey.core.leases import Lease
from covey.core.mail import Message, Reading
from covey.core.needs import Policy
from covey.core.spending import Used

FORMS: dict[str, str] = {}
"""What each pattern asks for, in words."""


def _form(pattern: str, words: str, *, min_length: int | None = None, max_length: int | None = None) -> Meta:
    """Return what a text has to look like from end to end; `$` would let a line break stand at its end."""
    whole = rf"^{pattern}\Z"
    FORMS[whole] = words
    return Meta(pattern=whole, min_length=min_length, max_length=max_length)


_NAME = "must be letters, digits, - and _, beginning with a letter or digit"
_LINE = "must not have a line break or a control character in it"


Name = Annotated[str, _form(r"[A-Za-z0-9][A-Za-z0-9_-]*", _NAME, min_length=1, max_length=64)]
Title = Annotated[str, _form(r"[^\x00-\x1f\x7f]+", _LINE, min_length=1, max_length=500)]
Line = Annotated[str, _form(r"[^\x00-\x1f\x7f]+", _LINE, min_length=1, max_length=2000)]
Body = Annotated[str, Meta(max_length=262_144)]
Glob = Annotated[str, Meta(min_length=1, max_length=1000)]
Globs = Annotated[list[Glob], Meta(max_length=200)]
TaskId = Annotated[
    str, _form(r"[A-Z0-9]{1,5}-[1-9][0-9]*", "must be the id of a task, such as AF-1", min_length=1, max_length=64)
]
TaskIds = Annotated[list[TaskId], Meta(max_length=500)]
Checks = Annotated[list[Line], Meta(max_length=50)]
Priority = Annotated[int, Meta(ge=-1_000_000, le=1_000_000)]
Money = Annotated[float, Meta(ge=0, le=1_000_000)]
Fence = Annotated[int, Meta(ge=1, le=2**53)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Seq = Annotated[int, Meta(ge=0, le=2**53)]
Commit = Annotated[str, _form(r"[0-9a-f]{7,64}", "must be the hash of a commit")]
Branch = Annotated[
    str, _form(r"[^\x00-\x20\x7f~^:?*\[\\]+", "must be the name of a branch", min_length=1, max_length=250)
]
Key = Annotated[str, _form(r"[^\x00-\x1f\x7f]+", _LINE, min_length=1, max_length=500)]


Json = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]


class Asked(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a request carries; a field that we do not know is an error."""


class Nothing(Asked, frozen=True, kw_only=True):
    """A request that carries nothing."""


class AddTask(Asked, frozen=True, kw_only=True):
    """A new task; ids in `needs_any` are needs that it goes on without when they are dropped."""

    title: Title
    body: Body = ""
    kind: tasks.Kind = tasks.Kind.CHANGE
    status: Literal["backlog", "todo"] = "todo"
    assignee: Name | None = None
    role: Name | None = None
    priority: Priority = 0
    needs: TaskIds = []
    needs_any: TaskIds = []
    parent: TaskId | None = None
    scope: Globs = []
    do_not_touch: Globs = []
    overlap: bool = False
    done_when: Checks = []
    budget: Money | None = None
    batch: Name | None = None
    note: Line | None = None


class EditTask(Asked, frozen=True, kw_only=True):
    """Changes to a task: what is left out stays, null clears."""

    title: Title | UnsetType = UNSET
    body: Body | UnsetType = UNSET
    kind: tasks.Kind | UnsetType = UNSET
    status: Literal["backlog", "todo"] | UnsetType = UNSET
    assignee: Name | UnsetType | None = UNSET
    role: Name | UnsetType | None = UNSET
    priority: Priority | UnsetType = UNSET
    needs: TaskIds | UnsetType = UNSET
    needs_any: TaskIds | UnsetType = UNSET
    parent: TaskId | UnsetType | None = UNSET
    scope: Globs | UnsetType = UNSET
    do_not_touch: Globs | UnsetType = UNSET
    overlap: bool | UnsetType = UNSET
    done_when: Checks | UnsetType = UNSET
    budget: Money | UnsetType | None = UNSET
    batch: Name | UnsetType | None = UNSET
    note: Line | UnsetType = UNSET


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


class ListTasks(Asked, frozen=True, kw_only=True):
    """A page of the board."""

    status: tasks.Status | None = None
    session: Name | None = None
    limit: Limit = 200
    after: TaskId | None = None


class Claim(Asked, frozen=True, kw_only=True):
    """Who claims; `overlap` goes on although another task may write the same files."""

    session: Name | None = None
    overlap: bool = False


class Held(Asked, frozen=True, kw_only=True):
    """Whose claim, under which fence."""

    session: Name | None = None
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


class Because(Asked, frozen=True, kw_only=True):
    """Why."""

    reason: Line


class NewSession(Asked, frozen=True, kw_only=True):
    """A session from outside, which without `wip` holds any number of tasks, or with an `agent` one that covey runs."""

    name: Name
    role: Name | None = None
    wip: Annotated[int, Meta(ge=1, le=1000)] | None = None
    agent: Name | None = None


class RemoveSession(Asked, frozen=True, kw_only=True):
    """Whether a session at work is removed too; its work is kept either way."""

    force: bool = False


class SendText(Asked, frozen=True, kw_only=True):
    """What is typed to the program of a session."""

    text: Annotated[str, Meta(min_length=1, max_length=65_536)]


class ReadLogs(Asked, frozen=True, kw_only=True):
    """Which run (default: the last), from which byte on; a negative `since` counts from the end.

    Without `raw`, what an agent says in a structured stream is answered as a transcript of whole lines.
    """

    run: Annotated[str, _form(r"(run|gate)-[0-9]+", "must be the id of a run, such as run-12")] | None = None
    since: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0
    raw: bool = False


class ListRuns(Asked, frozen=True, kw_only=True):
    """Which runs, the newest first."""

    session: Name | None = None
    task: TaskId | None = None
    limit: Limit = 50


Day = Annotated[str, _form(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "must be a day, such as 2026-01-31")]


class ListCosts(Asked, frozen=True, kw_only=True):
    """By what costs are summed, and which: from a day on, until a day, of a task, of a session."""

    by: Literal["task", "session", "agent", "model", "day", "run"] = "task"
    since: Day | None = None
    until: Day | None = None
    task: TaskId | None = None
    session: Name | None = None
    limit: Limit = 200


class StartBatch(Asked, frozen=True, kw_only=True):
    """Sessions for the tasks of a batch; with `all`, every task that waits or is about to land joins it first."""

    name: Name
    sessions: Annotated[int, Meta(ge=1, le=1000)]
    agent: Name | None = None
    all: bool = False


class TakeLease(Asked, frozen=True, kw_only=True):
    """A lease on path globs or names such as port:3000; `ttl` in seconds.

    With `wait` it stands in line where others hold it. With `beats` it lives by its own renewals alone. `within` are
    the leases under which the command runs that asks.
    """

    resources: Annotated[list[Glob], Meta(min_length=1, max_length=64)]
    session: Name | None = None
    shared: bool = False
    ttl: Annotated[float, Meta(ge=1, le=604_800)] | None = None
    task: TaskId | None = None
    reason: Line | None = None
    wait: bool = False
    beats: bool = False
    within: Annotated[list[Annotated[str, Meta(max_length=40)]], Meta(max_length=20)] = []


class ListLeases(Asked, frozen=True, kw_only=True):
    """Which leases; with `waiting`, those too that are waited for."""

    session: Name | None = None
    waiting: bool = False


class ListQuestions(Asked, frozen=True, kw_only=True):
    """Which questions."""

    state: questions.State | None = None
    session: Name | None = None
    limit: Limit = 200


class AskQuestion(Asked, frozen=True, kw_only=True):
    """What an agent asks the person in charge, and the answers that it proposes."""

    text: Annotated[str, Meta(min_length=1, max_length=4000)]
    choices: Annotated[list[Title], Meta(max_length=20)] = []
    session: Name | None = None


class AnswerQuestion(Asked, frozen=True, kw_only=True):
    """What is decided, in words if need be; `about`: the part of a command that is allowed always."""

    decision: questions.Decision
    text: Annotated[str, Meta(max_length=16_384)] = ""
    about: Annotated[str, Meta(max_length=16_384)] | None = None


class ListPermits(Asked, frozen=True, kw_only=True):
    """Which permits; without `all`, those in force."""

    all: bool = False


class GrantPermit(Asked, frozen=True, kw_only=True):
    """What is allowed: a command or its first words; with another `tool`, what that is used for (empty: anything)."""

    tool: Title = permits.SHELL
    about: Annotated[str, Meta(max_length=16_384)] = ""


class SendMail(Asked, frozen=True, kw_only=True):
    """A message to a session, role:NAME, everyone or owner; with `wake` a session that covey runs is told at once."""

    to: Annotated[
        str,
        _form(
            r"(role:)?[A-Za-z0-9][A-Za-z0-9_-]*",
            "must be a session, role:NAME, everyone or owner",
            min_length=1,
            max_length=80,
        ),
    ]
    text: Annotated[str, Meta(min_length=1, max_length=65_536)]
    session: Name | None = None
    subject: Title | None = None
    task: TaskId | None = None
    wants_ack: bool = False
    wake: bool = False


class Inbox(Asked, frozen=True, kw_only=True):
    """Whose mail, and whether also what was read."""

    session: Name | None = None
    all: bool = False
    limit: Limit = 200
    after: Seq = 0


class As(Asked, frozen=True, kw_only=True):
    """Who asks."""

    session: Name | None = None


class Land(Asked, frozen=True, kw_only=True):
    """The commit on main that holds the work."""

    commit: Annotated[str, _form(r"[0-9a-f]{40}([0-9a-f]{24})?", "must be the whole hash of a commit")]


class ListOverlaps(Asked, frozen=True, kw_only=True):
    """Which overlaps: those of one task, or all."""

    task: TaskId | None = None


class ListMerges(Asked, frozen=True, kw_only=True):
    """Which merges; without `all`, those that have not ended."""

    all: bool = False
    limit: Limit = 200


class ListEvents(Asked, frozen=True, kw_only=True):
    """A part of the log; a kind that ends in a dot takes all of its kind, `newest` the last that fit."""

    after: Seq = 0
    before: Seq | None = None
    kind: (
        Annotated[str, _form(r"[a-z_]+\.[a-z_]*", "must be a kind of event, such as task.claimed", max_length=64)]
        | None
    ) = None
    subject: Annotated[str, _form(r"[^\x00-\x1f\x7f]+", _LINE, min_length=1, max_length=200)] | None = None
    actor: Name | None = None
    since: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    until: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    limit: Limit = 200
    newest: bool = False
    origin: Annotated[str, _form(r"[0-9a-f]{32}", "must be the id of a log")] | None = None


class ListAlerts(Asked, frozen=True, kw_only=True):
    """A part of the alerts, the newest first."""

    limit: Limit = 100


class TaskRow(Struct, frozen=True, kw_only=True):
    """A task as the board shows it; `ready` says that nothing else has to end before it.

    The board is ordered by `priority`, the largest first, then by `rank`, the smallest first.
    """

    id: str
    title: str
    status: tasks.Status
    session: str | None
    kind: tasks.Kind
    assignee: str | None
    role: str | None
    priority: int
    rank: float
    needs: list[str]
    needs_any: list[str]
    parent: str | None
    scope: tuple[str, ...]
    do_not_touch: tuple[str, ...]
    overlap: bool
    fence: int
    ready: bool
    reason: str | None
    commit: str | None
    failed_tries: int
    created: float
    updated: float
    claimed: float | None
    ended: float | None
    batch: str | None


class TaskFull(TaskRow, frozen=True, kw_only=True):
    """A task with all that is known of it; `until` is when an outside session's claim ends if it stays silent.

    `cost` is in dollars, without those of `unpriced` tokens; `reverted` is what took its work out of main again.
    """

    body: str
    done_when: tuple[str, ...]
    budget: float | None
    key: str | None
    tries: tuple[tasks.Try, ...]
    notes: tuple[tasks.Note, ...]
    result: str | None
    front: str | None
    unmet: int
    open_children: int
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


class ImportAnswer(Struct, frozen=True):
    """What an import did: the ids by key."""

    added: dict[str, str]
    updated: dict[str, str]
    unchanged: dict[str, str]


class SessionRow(Struct, frozen=True, kw_only=True):
    """A session with what it holds and when it was last heard of."""

    name: str
    kind: sessions.Kind
    state: sessions.State
    role: str | None
    wip: int | None
    agent: str | None
    batch: str | None
    goal: sessions.Goal
    evidence: str | None
    created: float
    updated: float
    removed: bool


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


class RunRow(Struct, frozen=True, kw_only=True):
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

    @staticmethod
    def of(run: runs.Run, used: Used) -> RunRow:
        """Return a run as it is answered, with what it has used so far."""
        own = {name: getattr(run, name) for name in RunRow.__struct_fields__ if name not in _SPENT}
        return RunRow(**own, **spent(used))


_SPENT = ("cost", "tokens", "unpriced")


def spent(used: Used) -> dict[str, Any]:
    """Return what was used as the fields of an answer."""
    return {"cost": used.cost, "tokens": used.tokens, "unpriced": used.unpriced}


class CostRow(Struct, frozen=True, kw_only=True):
    """What the runs of one task, session, agent, model or day cost; `cost` is without that of `unpriced` tokens."""

    key: str
    runs: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    tokens: int
    cost: float
    unpriced: int


class Costs(Struct, frozen=True):
    """Costs, the largest first, and their sum; `without_price`: the models that have none, `more`: rows left out."""

    rows: list[CostRow]
    total: CostRow
    without_price: list[str]
    more: int


class SpentToday(Struct, frozen=True, kw_only=True):
    """What was used today in all, and what may be, if there is a limit."""

    day: str
    cost: float
    tokens: int
    unpriced: int
    without_price: list[str]
    budget: float | None
    budget_tokens: int | None


class Logs(Struct, frozen=True):
    """A part of what a run printed, where the next part begins, and whether it may still print more.

    It is as it was printed, or a `transcript`; secrets are taken out of both.
    """

    run: str
    text: str
    next: int
    alive: bool
    transcript: bool


class FleetRow(Struct, frozen=True):
    """Whether the whole fleet stands still, since when and by whose word."""

    paused: bool
    by: str | None
    since: float | None


class BatchRow(Struct, frozen=True):
    """A batch: its sessions, and those of its tasks that have not ended."""

    name: str
    sessions: list[str]
    tasks: list[str]
    over: bool


class Token(Struct, frozen=True):
    """A session's token; it is shown once, and a new one makes the old ones worthless."""

    session: str
    token: str


class LeaseFull(Struct, frozen=True, kw_only=True):
    """A lease, with the time at which it ends if its holder stays silent."""

    id: str
    holder: str
    resources: tuple[str, ...]
    shared: bool
    ttl: float
    task: str | None
    reason: str | None
    origin: str
    beats: bool
    within: tuple[str, ...]
    fence: int
    state: str
    taken: float
    ended: float | None
    until: float | None
    behind: tuple[str, ...] = ()

    @staticmethod
    def of(lease: Lease, until: float | None, behind: tuple[str, ...] = ()) -> LeaseFull:
        """Return a lease as it is answered; `behind`: the leases that it waits for."""
        return LeaseFull(**lease.__dict__, until=until, behind=behind)


class ReadingRow(Struct, frozen=True):
    """What became of a message with one who got it: when it was read, seen in its conversation, acknowledged."""

    reader: str
    read: float
    delivered: float | None
    acked: float | None


class MessageFull(Struct, frozen=True, kw_only=True):
    """A message as one reader sees it; `waits` says why who shall be woken is not, `readers` whom it has reached."""

    id: str
    seq: int
    sender: str
    to: str
    subject: str | None
    text: str
    task: str | None
    wants_ack: bool
    sent: float
    wake: bool
    read: float | None
    delivered: float | None
    acked: float | None
    waits: str | None = None
    readers: list[ReadingRow] = []

    @staticmethod
    def of(message: Message, text: str, reading: Reading | None, waits: str | None = None) -> MessageFull:
        """Return a message as it is answered."""
        values = {**message.__dict__, "text": text, "seq": message.ordinal}
        del values["ordinal"]
        done = Reading(message.id, "", 0.0) if reading is None else reading
        read = None if reading is None else reading.read
        return MessageFull(**values, read=read, delivered=done.delivered, acked=done.acked, waits=waits)


class QuestionRow(Struct, frozen=True, kw_only=True):
    """A question, when it is denied if nobody answers, and what was decided."""

    id: str
    session: str
    task: str | None
    run: str | None
    wants: signals.Wants
    text: str
    tool: str
    about: str
    choices: tuple[str, ...]
    state: questions.State
    decision: questions.Decision | None
    answer: str | None
    by: str | None
    told: bool
    asked: float
    until: float | None
    ended: float | None

    @staticmethod
    def of(question: questions.Question) -> QuestionRow:
        """Return a question as it is answered."""
        return QuestionRow(**{name: getattr(question, name) for name in QuestionRow.__struct_fields__})


class PermitRow(Struct, frozen=True, kw_only=True):
    """What every agent may do here without asking."""

    id: str
    tool: str
    about: str
    by: str
    granted: float
    revoked: float | None

    @staticmethod
    def of(permit: permits.Permit) -> PermitRow:
        """Return a permit as it is answered."""
        return PermitRow(**{name: getattr(permit, name) for name in PermitRow.__struct_fields__})


class MergeRow(Struct, frozen=True, kw_only=True):
    """One entry of the merge queue."""

    id: str
    task: str
    session: str
    branch: str
    commit: str | None
    state: merges.State
    approved: bool
    candidate: str | None
    onto: str | None
    untested: bool
    run: str | None
    landed: str | None
    landing: str | None
    reverts: str | None
    priority: int
    needs: tuple[str, ...]
    paths: tuple[str, ...]
    against: tuple[str, ...]
    reason: str | None
    cause: str
    fingerprint: str
    queued: float
    ended: float | None

    @staticmethod
    def of(merge: merges.Merge) -> MergeRow:
        """Return a merge as it is answered."""
        return MergeRow(**{name: value for name, value in merge.__dict__.items() if name != "ordinal"})


class EventRow(Struct, frozen=True, kw_only=True):
    """One event of the log; `prev` is the hash of the one before, in hex."""

    seq: int
    time: float
    actor: str
    kind: str
    subject: str
    data: Json
    key: str | None
    prev: str


class AlertRow(Struct, frozen=True, kw_only=True):
    """Something a person should know."""

    id: str
    type: str
    session: str | None
    message: str
    task: str | None
    raised: float

    @staticmethod
    def of(alert: Alert) -> AlertRow:
        """Return an alert as it is answered."""
        return AlertRow(**{name: value for name, value in alert.__dict__.items() if name != "ordinal"})


class ProjectStatus(Struct, frozen=True, kw_only=True):
    """The project at a glance."""

    version: str
    project: str
    log: str
    seq: int
    counts: dict[str, int]
    sessions: list[SessionFull]
    leases: int
    unread: int
    merges: int
    questions: int
    paused: bool
    memory: int
    """Bytes that all runs took when they were last weighed."""
    today: SpentToday


class OverlapRow(Struct, frozen=True, kw_only=True):
    """Two open tasks whose branches overlap, with their titles and who is at work on them; `other` may be main."""

    id: str
    one: str
    other: str
    level: overlaps.Level
    files: tuple[str, ...]
    found: float
    changed: float
    one_title: str | None
    one_session: str | None
    other_title: str | None
    other_session: str | None

    @staticmethod
    def of(overlap: overlaps.Overlap, known: dict[str, tasks.Task]) -> OverlapRow:
        """Return an overlap as it is answered."""
        one, other = known.get(overlap.one), known.get(overlap.other)
        values = {name: value for name, value in overlap.__dict__.items() if name != "gone"}
        return OverlapRow(
            **values,
            one_title=one.title if one else None,
            one_session=one.session if one else None,
            other_title=other.title if other else None,
            other_session=other.session if other else None,
        )


class HotFileRow(Struct, frozen=True, kw_only=True):
    """A file at which tasks collide again and again: how often lately, since when it is hot, and the last time."""

    path: str
    collisions: int
    since: float
    last: float

    @staticmethod
    def of(file: overlaps.HotFile) -> HotFileRow:
        """Return a hot file as it is answered."""
        return HotFileRow(path=file.path, collisions=file.collisions, since=file.since, last=file.last)


class Overlaps(Struct, frozen=True, kw_only=True):
    """The open branches that overlap, and the files that are hot."""

    overlaps: list[OverlapRow]
    hot: list[HotFileRow]


class Problem(Struct, frozen=True):
    """What is wrong in one sentence, and what to do about it."""

    error: str
    hint: str


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
    """What the watchdog thinks of a session: its state, the rule that decided, the evidence, and what came before."""

    session: str
    state: sessions.State
    evidence: str | None
    since: float
    until: float | None
    rule: str | None
    action: str | None
    clues: list[ClueRow]
    run: str | None
    task: str | None
    history: list[Moment]


class TerminalRow(Struct, frozen=True):
    """The run that has a terminal, whether a person has taken it over, and the command that shows it.

    `used`: it is open before somebody now.
    """

    run: str | None
    person: bool
    command: list[str]
    used: bool = False
