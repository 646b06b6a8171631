"""Every noun of the log, registered once.

From its entry here follow the catalogue of events, the fold of the log, the tables of the store, the topics of the
stream, who sees its events and which of their texts no export has, which long texts are still needed, the hint when one
is not found, and the reference pages. A row that keeps all that its
first event says inherits from that event, and begins as `begun` says. An event that was read from the log holds only
what was written, and its class the defaults: so `vars` of it makes a row with the same defaults, and is of no use for
`replace`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, field
from enum import StrEnum
from functools import cached_property
from types import UnionType
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args

from covey.core import events, overlaps
from covey.core.board import scheduling, tasks
from covey.core.board.needs import Policy
from covey.core.costs import spending
from covey.core.fleet import fleet_state, runs, sessions
from covey.core.leases import leases
from covey.core.merging import gates, landings, merges
from covey.core.merging.queue import queue_status
from covey.core.people import alerts, comments, devices, mail, permits, proposals, questions
from covey.errors import NotFound
from covey.values import dataclass


class Record(Protocol):
    """Any dataclass: what an event says, or a row."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Payload = Record
Row = Record
R = TypeVar("R", bound=Record)
Tables = dict[str, dict[Any, Any]]
"""The rows of every table, by name of the table and key; the key is a tuple if it has several columns."""
Step = Callable[[Tables, str, int, Any, float, str], None]
"""Takes an event into the tables: the subject, the number in the log, the payload, when, and who did it."""


class Audience(StrEnum):
    """Which sessions see what an event says."""

    EVERYONE = "every session"
    CONCERNED = "those concerned"
    OWNER = "the owner"


MAIL, PROMPTS = "mail", "prompts"
"""What has to be asked for to be part of an export."""


@dataclass(frozen=True)
class LongText:
    """A column of a noun in which a text may stand that is kept aside by its hash, and how long that is needed."""

    column: str
    task: str = ""
    """The column that names the task until whose end it is."""
    young: str = ""
    """The column that says since when it is there, if it is kept only while that is recent."""
    removed: str = ""
    """The column that ends all need of it."""
    is_sure: bool = False
    """No older version ever removed one too soon, so that one which is missing is damage."""


# What is found by, beside the rows that events tell of


@dataclass(frozen=True)
class NeedRow:
    """One edge of the needs graph."""

    task: str
    need: str
    policy: Policy


@dataclass(frozen=True)
class ResourceRow:
    """One resource of a lease that is live or waits, and the text under which it is found."""

    lease: str
    resource: str
    found: str


@dataclass(frozen=True)
class CountRow:
    """How many tasks stand in a status."""

    status: tasks.Status
    tasks: int


@dataclass(frozen=True)
class IdRow:
    """The last number that was given under a prefix."""

    prefix: str
    last: int


@dataclass(frozen=True)
class Folded(Generic[R]):
    """A table that follows from the log: its row, its key, and columns that are computed from the row."""

    name: str
    row: type[R]
    key: tuple[str, ...] = ("id",)
    computed: Mapping[str, Callable[[R], str | int | float | None]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Noun(Generic[R]):
    """A thing with a life: its events, the rows that they make, and how it is shown."""

    name: str
    events: Mapping[str, type[Any]]
    """By the second word of their kind, which is for ever; the first one begins a row, unless `begins` names others."""
    rows: Folded[R] | None = None
    begins: tuple[type[Any], ...] | None = None
    first: Callable[[str, int, Any, float, str], R] | None = None
    """Returns the row that such an event begins: its subject, its number, what it says, when and by whom."""
    apply: Callable[[R, Any, float, str], R] | None = None
    """Returns the row as it is after another event."""
    blank: Callable[[], R] | None = None
    """Returns the row as it is before its first event, for a noun that exists exactly once."""
    besides: Mapping[type[Any], Step] = field(default_factory=dict)
    """How events are taken in that change other tables than `rows`."""
    also: tuple[Folded[Any], ...] = ()
    """Those other tables."""
    topic: str = "log"
    """What a page that follows the stream is told to read again."""
    audience: Audience = Audience.EVERYONE
    audiences: Mapping[str, Audience] = field(default_factory=dict)
    """Those of events, by their second word, that have another one."""
    concerns: Callable[[Any], Collection[str | None]] = lambda row: (row.session,)
    """Returns the sessions, or the addresses of mail, whose business a row is."""
    private: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """By the second word of an event: what has to be asked for to have these fields of it in an export."""
    texts: tuple[LongText, ...] = ()
    word: str = ""
    """What one of them is called, if not by the noun."""
    listed: str = ""
    """The command that lists them."""

    @property
    def tables(self) -> tuple[Folded[Any], ...]:
        """Return every table that follows from its events."""
        return (*(() if self.rows is None else (self.rows,)), *self.also)

    @cached_property
    def beginnings(self) -> tuple[type[Any], ...]:
        """Return the events that begin a row."""
        return tuple(self.events.values())[:1] if self.begins is None else self.begins

    def take_in(self, tables: Tables, subject: str, seq: int, event: Any, at: float, by: str) -> None:
        """Take one of its events into the tables."""
        if type(event) in self.besides:
            self.besides[type(event)](tables, subject, seq, event, at, by)
        elif self.rows is not None:
            rows = tables[self.rows.name]
            if type(event) in self.beginnings:
                rows[subject] = first(self.rows.row, subject, seq, event, at, by)
            else:
                assert self.apply is not None
                before = rows[subject] if self.blank is None or subject in rows else self.blank()
                rows[subject] = self.apply(before, event, at, by)


def words(union: UnionType, other: Mapping[type[Any], str] | None = None) -> dict[str, type[Any]]:
    """Return the events of a noun by the second word of their kinds: HandedIn is `handed_in`, but for `other` names."""
    named = {event: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event.__name__).lower() for event in get_args(union)}
    return {word: event for event, word in {**named, **(other or {})}.items()}


def begun(row: Callable[..., R], at: str, by: str = "") -> Callable[[str, int, Any, float, str], R]:
    """Return how a row begins that keeps all that its first event says: with a name, a number, a time, and by whom."""

    def first(subject: str, seq: int, event: Any, moment: float, actor: str) -> R:
        return row(id=subject, ordinal=seq, **{at: moment}, **({by: actor} if by else {}), **vars(event))

    return first


def whoever(make: Callable[..., R]) -> Callable[..., R]:
    """Return a step in a life for which it does not matter who took it."""
    return lambda *told: make(*told[:-1])


def _nothing(tables: Tables, subject: str, seq: int, event: Any, at: float, by: str) -> None:
    """Take in an event that changes no row."""


def _crossed(tables: Tables, lease: str, seq: int, event: leases.Crossed, at: float, by: str) -> None:
    for row in leases.crossings(lease, event, at):
        tables["crossings"].setdefault((row.lease, row.task, row.path), row)


def _read(tables: Tables, message: str, seq: int, event: mail.Read, at: float, by: str) -> None:
    readings, key = tables["readings"], (message, event.reader)
    readings[key] = mail.read(message, readings.get(key), event, at)


def _flaked(tables: Tables, gate: str, seq: int, event: gates.Flaked, at: float, by: str) -> None:
    flakes = tables["flakes"]
    for test in event.tests:
        flakes[test] = gates.flakes(flakes.get(test), test, gate, at)


def _spent(tables: Tables, run: str, seq: int, event: spending.Counted, at: float, by: str) -> None:
    spends, key = tables["spends"], (run, event.model, event.day)
    spends[key] = spending.add(spends.get(key) or spend_row(tables["runs"][run], event), event)


def _heated(tables: Tables, path: str, seq: int, event: overlaps.FileEvent, at: float, by: str) -> None:
    files = tables["hot_files"]
    before = files[path] if isinstance(event, overlaps.Cooled) else files.get(path)
    files[path] = overlaps.heat(path, before, event, at)


def spend_row(run: runs.Run, event: spending.Counted) -> spending.Spend:
    """Return the empty row into which an event of a run is counted."""
    return spending.Spend(
        run=run.id, model=event.model, day=event.day, session=run.session, task=run.task, agent=run.agent
    )


def resource_rows(lease: leases.Lease) -> Iterable[ResourceRow]:
    """Yield the rows under which a lease that is live, or waits, is found."""
    for resource in lease.resources:
        yield ResourceRow(lease.id, resource, leases.index(resource))


NOUNS: tuple[Noun[Any], ...] = (
    Noun(
        name="task",
        events=words(tasks.Event),
        rows=Folded("tasks", tasks.Task, computed={"lane": scheduling.waiting_line, "line": scheduling.line}),
        first=tasks.add, apply=tasks.apply,
        also=(
            Folded("needs", NeedRow, ("task", "need")),
            Folded("counts", CountRow, ("status",)),
            Folded("ids", IdRow, ("prefix",)),
        ),
        private={"added": (PROMPTS, ("body",)), "edited": (PROMPTS, ("body",))},
        texts=(LongText("body", task="id", is_sure=True), LongText("result", task="id", is_sure=True)),
        topic="board", listed="covey task list",
    ),
    Noun(
        name="session",
        events=words(sessions.Event) | {"token_minted": events.Minted},
        rows=Folded("sessions", sessions.Session, ("name",)),
        first=whoever(sessions.first), apply=sessions.apply,
        besides={events.Minted: _nothing},
        audiences={"changed": Audience.CONCERNED, "rescued": Audience.CONCERNED},  # its evidence: what it was told
        concerns=lambda row: (row.name,),
        topic="sessions", listed="covey session list",
    ),
    Noun(
        name="run",
        events=words(runs.Event, {spending.Counted: "spent"}),
        rows=Folded("runs", runs.Run),
        first=begun(runs.Run, "begun"), apply=whoever(runs.apply),
        besides={spending.Counted: _spent},
        also=(Folded("spends", spending.Spend, ("run", "model", "day")),),
        topic="runs", audience=Audience.CONCERNED,
    ),
    Noun(
        name="fleet",
        events=words(fleet_state.Event),
        rows=Folded("fleet", fleet_state.Fleet),
        begins=(),
        apply=fleet_state.apply,
        blank=fleet_state.Fleet,
        topic="fleet",
    ),
    Noun(
        name="question",
        events=words(questions.Event),
        rows=Folded("questions", questions.Question),
        first=begun(questions.Question, "asked"), apply=questions.apply,
        private={"answered": (MAIL, ("text",))},
        topic="questions", audience=Audience.CONCERNED, listed="covey inbox",
    ),
    Noun(
        name="permit",
        events=words(permits.Event),
        rows=Folded("permits", permits.Permit),
        first=begun(permits.Permit, "granted", "by"), apply=permits.apply,
        topic="permits", listed="covey permit list",
    ),
    Noun(
        name="proposal",
        events=words(proposals.Event),
        rows=Folded("proposals", proposals.Proposal),
        first=begun(proposals.Proposal, "made"), apply=proposals.apply,
        private={"made": (PROMPTS, ("asked", "was"))},
        topic="proposals", audience=Audience.CONCERNED, listed="covey proposal list",
    ),
    Noun(
        name="device",
        events=words(devices.Event),
        rows=Folded("devices", devices.Device),
        first=begun(devices.Device, "invited"), apply=whoever(devices.apply),
        topic="devices", audience=Audience.OWNER,
    ),
    Noun(
        name="lease",
        events=words(leases.Event),
        rows=Folded("leases", leases.Lease),
        begins=(leases.Taken, leases.Waiting),
        first=whoever(leases.first), apply=whoever(leases.apply),
        besides={leases.Crossed: _crossed},
        also=(
            Folded("lease_resources", ResourceRow, ("lease", "resource")),
            Folded("crossings", leases.Crossing, ("lease", "task", "path")),
        ),
        topic="leases", listed="covey lease list",
    ),
    Noun(
        name="mail",
        events=words(mail.Event),
        rows=Folded("messages", mail.Message),
        first=begun(mail.Message, "sent", "sender"),
        besides={mail.Read: _read, mail.Acked: _read, mail.Delivered: _read},
        also=(Folded("readings", mail.Reading, ("message", "reader")),),
        concerns=lambda row: (row.sender, row.to),
        private={"sent": (MAIL, ("subject", "text"))}, texts=(LongText("text", young="sent"),),
        topic="mail", audience=Audience.CONCERNED, word="message", listed="covey mail inbox --all",
    ),
    Noun(
        name="comment",
        events=words(comments.Event),
        rows=Folded("comments", comments.Comment),
        first=begun(comments.Comment, "written", "author"), apply=whoever(comments.apply),
        audiences=dict.fromkeys(("written", "edited", "removed"), Audience.OWNER),  # a draft; what was sent is mail
        concerns=lambda row: (row.to,),
        private={"written": (MAIL, ("text",)), "edited": (MAIL, ("text",))},
        texts=(LongText("text", task="task", young="written", removed="removed"),),
        topic="comments", audience=Audience.CONCERNED,
    ),
    Noun(
        name="overlap",
        events=words(overlaps.Event),
        rows=Folded("overlaps", overlaps.Overlap),
        first=lambda subject, seq, event, at, by: overlaps.first(subject, event, at), apply=whoever(overlaps.apply),
        besides={overlaps.Heated: _heated, overlaps.Cooled: _heated},
        also=(Folded("hot_files", overlaps.HotFile, ("path",)),),
        topic="overlaps",
    ),
    Noun(
        name="merge",
        events=words(merges.Event),
        rows=Folded("merges", merges.Merge),
        first=whoever(merges.first), apply=whoever(merges.apply),
        topic="merges", listed="covey merge list",
    ),
    Noun(
        name="queue",
        events=words(queue_status.Event),
        rows=Folded("queue", queue_status.QueueStatus),
        begins=(),
        apply=queue_status.apply,
        blank=queue_status.QueueStatus,
        topic="merges",
    ),
    Noun(
        name="gate",
        events=words(gates.Event),
        rows=Folded("gates", gates.Gate),
        first=whoever(gates.first), apply=whoever(gates.apply),
        besides={gates.Flaked: _flaked},
        also=(Folded("flakes", gates.Flake, ("test",)),),
        topic="merges",
    ),
    Noun(
        name="landing",
        events=words(landings.Event),
        rows=Folded("landings", landings.Landing),
        first=begun(landings.Landing, "made"), apply=whoever(landings.apply),
        topic="merges",
    ),
    Noun(
        name="alert",
        events={"raised": alerts.Raised},
        rows=Folded("alerts", alerts.Alert),
        first=begun(alerts.Alert, "raised"),
        topic="alerts", audience=Audience.CONCERNED,
    ),
    Noun(
        name="log",
        events=words(events.LogEvent),
        audience=Audience.OWNER,
    ),
    Noun(name="daemon", events=words(events.DaemonEvent)),
)  # fmt: skip
NOUN_OF: dict[type[Any], Noun[Any]] = {noun.rows.row: noun for noun in NOUNS if noun.rows is not None}
BY_NAME: dict[str, Noun[Any]] = {noun.name: noun for noun in NOUNS}
KINDS: dict[str, type[Any]] = {f"{noun.name}.{word}": event for noun in NOUNS for word, event in noun.events.items()}
NAMES: dict[type[Any], str] = {event: kind for kind, event in KINDS.items()}
AUDIENCES: dict[str, Audience] = {
    f"{noun.name}.{word}": noun.audiences.get(word, noun.audience) for noun in NOUNS for word in noun.events
}
PRIVATE: dict[str, tuple[str, tuple[str, ...]]] = {
    f"{noun.name}.{word}": kept for noun in NOUNS for word, kept in noun.private.items()
}
TABLES: tuple[Folded[Any], ...] = tuple(table for noun in NOUNS for table in noun.tables)


def first(row: type[R], subject: str, seq: int, event: Payload, at: float, by: str = "") -> R:
    """Return the row that an event begins."""
    noun: Noun[R] = NOUN_OF[row]
    assert noun.first is not None
    return noun.first(subject, seq, event, at, by)


def missing(what: str, name: str) -> NotFound:
    """Return the error for a thing, or one of a noun, that is not there, with the command that lists what is."""
    noun = next((noun for noun in NOUNS if what in (noun.name, noun.word)), Noun(name=what, events={}))
    hint = f"{noun.listed} shows what there is." if noun.listed else ""
    return NotFound(f"There is no {noun.word or noun.name} {name[:80]!r}.", hint=hint)
