"""The verbs that read the log: events, the same told in sentences, and alerts."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from covey.app.context import Call
from covey.app.shapes.forms import ONE_LINE, Answered, Asked, Json, Limit, Name, Seq, TaskId, completed, fields_of, form
from covey.app.verbs import verb
from covey.core.events import Event, noun
from covey.core.nouns import AUDIENCES, BY_NAME, KINDS, Audience, missing
from covey.core.people.alerts import Alert
from covey.core.people.mail import addresses
from covey.core.people.rights import PARTLY, visible
from covey.errors import Invalid

Kinds = Annotated[str, Meta(max_length=1000)]
Moment = Annotated[float, Meta(ge=0, le=1e11)]


class ListEvents(Asked, frozen=True, kw_only=True):
    """A part of the log; a kind that ends in a dot takes all of its kind, `newest` the last that fit."""

    after: Seq = 0
    before: Seq | None = None
    kind: (
        Annotated[str, form(r"[a-z_]+\.[a-z_]*", "must be a kind of event, such as task.claimed", max_length=64)] | None
    ) = None
    subject: Annotated[str, form(r"[^\x00-\x1f\x7f]+", ONE_LINE, min_length=1, max_length=200)] | None = None
    actor: Name | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Limit = 200
    newest: bool = False
    origin: Annotated[str, form(r"[0-9a-f]{32}", "must be the id of a log")] | None = None


class ListTrail(ListEvents, frozen=True, kw_only=True):
    """A part of the log: `session` and `task` take all that has to do with one.

    `kinds` are several kinds with commas between them, `without` are those that are left out.
    """

    session: Name | None = None
    task: TaskId | None = None
    kinds: Kinds | None = None
    without: Kinds | None = None


class ListAlerts(Asked, frozen=True, kw_only=True):
    """A part of the alerts, the newest first."""

    limit: Limit = 100


class EventRow(Answered, frozen=True, kw_only=True):
    """One event of the log; `prev` is the hash of the one before, in hex."""

    seq: int
    time: float
    actor: str
    kind: str
    subject: str
    data: Json
    key: str | None
    prev: str


@completed(fields_of(Event, "data", "key", "prev"))
class TrailRow(Answered, frozen=True, kw_only=True):
    """One event as a sentence, and the task that it has to do with, if it is one."""

    seq: int
    text: str
    task: str | None = None


@completed(fields_of(Alert, "ordinal"))
class AlertRow(Answered, frozen=True, kw_only=True):
    """Something a person should know."""

    id: str


@verb("log.list", "GET /api/log", ListEvents, list[EventRow], may=PARTLY)
def list_events(call: Call, asked: ListEvents) -> list[EventRow]:
    """List events in the order of the log, filtered; a session sees of others only what it needs."""
    return [event_row(event) for event in _found(call, asked, _kinds(asked.kind), [])]


@verb("trail.list", "GET /api/trail", ListTrail, list[TrailRow], may=PARTLY)
def tell(call: Call, asked: ListTrail) -> list[TrailRow]:
    """Tell events in sentences in the order of the log, filtered; a session sees of others only what it needs."""
    if asked.origin is not None and (asked.session is not None or asked.task is not None):
        raise Invalid("Only our own log knows what belongs to a session or a task.", hint="Ask by actor or subject.")
    found = _found(call, asked, _kinds(asked.kinds) + _kinds(asked.kind), _kinds(asked.without))
    tasks = {} if asked.origin is not None else call.tx.tasks_of({event.subject for event in found})
    return [_told(event, tasks) for event in found]


def _kinds(text: str | None) -> list[str]:
    return [kind for kind in (text or "").split(",") if kind]


def _found(call: Call, asked: ListEvents, kinds: list[str], without: list[str]) -> list[Event]:
    """Return events as who asks may see them; a kind that there is not is refused, and a log that was not imported."""
    for kind in (*kinds, *without):
        _check_kind(kind)
    if asked.origin is not None:
        call.only_owner("read the logs of other origins")
        if call.tx.end_of_origin(asked.origin) is None:
            raise missing("imported log", asked.origin)
    wanted = {name: getattr(asked, name) for name in asked.__struct_fields__ if name != "kind"}
    return [for_eyes_of(call, event) for event in call.tx.events(**wanted | {"kinds": kinds, "without": without})]


def _check_kind(kind: str) -> None:
    """Refuse a kind of event that there is not; one that ends in a dot stands for all of its noun."""
    if kind in KINDS or (kind.endswith(".") and any(name.startswith(kind) for name in KINDS)):
        return
    import difflib  # only a typo needs it

    asked = kind.removesuffix(".")
    near = difflib.get_close_matches(asked, [*KINDS, *{noun(name) for name in KINDS}], 1, 0.6)
    raise Invalid(
        f"There is no kind of event {asked!r}.",
        hint=f"Did you mean {near[0]}?" if near else "Kinds look like task.claimed; task. stands for all of a task.",
    )


def for_eyes_of(call: Call, event: Event) -> Event:
    """Return an event as who asks may see it; what was sent to many is the business of each who gets it."""
    viewer = call.who.session
    if viewer is None:
        return event
    told = BY_NAME[noun(event.kind)]
    concerned: list[str | None] = []
    if told.rows is not None and AUDIENCES[event.kind] is Audience.CONCERNED:
        row, own = call.tx.get(told.rows.row, event.subject), addresses(viewer, call.known(viewer).role)
        concerned = [] if row is None else [viewer if to in own else to for to in told.concerns(row)]
    return visible(event, viewer, concerned)


@verb("alert.list", "GET /api/alerts", ListAlerts, list[AlertRow], may=PARTLY)
def list_alerts(call: Call, asked: ListAlerts) -> list[AlertRow]:
    """List the alerts, the newest first; a session sees its own."""
    return [AlertRow.of(alert) for alert in call.tx.last_alerts(asked.limit, call.who.session)]


def event_row(event: Event) -> EventRow:
    """Return an event as it is answered."""
    return EventRow(  # written out: pages of the log have thousands
        seq=event.seq,
        time=event.time,
        actor=event.actor,
        kind=event.kind,
        subject=event.subject,
        data=Raw(event.data),
        key=event.key,
        prev=event.prev.hex(),
    )


def _told(event: Event, tasks: dict[str, str]) -> TrailRow:
    from covey.core.history.activity import sentence  # few verbs tell events, and most start with this module

    data = msgspec.json.decode(event.data)
    named = data.get("task")
    task = named if isinstance(named, str) else tasks.get(event.subject)
    task = event.subject if event.kind.startswith("task.") else task
    return TrailRow.of(event, text=sentence(event.kind, event.actor, event.subject, data), task=task)
