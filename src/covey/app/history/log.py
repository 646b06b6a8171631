"""The verbs that read the log: events and alerts."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Raw

from covey.app.context import Call
from covey.app.shapes.history.log import AlertRow, EventRow, ListAlerts, ListEvents
from covey.app.verbs import verb
from covey.core.events import Event, noun
from covey.core.nouns import BY_NAME, KINDS, Audience, missing
from covey.core.people.comments import Comment
from covey.core.people.mail import Message, addresses
from covey.core.people.rights import PARTLY
from covey.core.people.visibility import AUDIENCES, visible
from covey.errors import Invalid


@verb("log.list", "GET /api/log", ListEvents, list[EventRow], may=PARTLY)
def list_events(call: Call, asked: ListEvents) -> list[EventRow]:
    """List events in the order of the log, filtered; a session sees of others only what it needs."""
    check_kind(asked.kind)
    check_origin(call, asked.origin)
    found = call.tx.events(**{name: getattr(asked, name) for name in asked.__struct_fields__})
    return [event_row(for_eyes_of(call, event)) for event in found]


def check_origin(call: Call, log: str | None) -> None:
    """Refuse a log that was never imported, and any but ours to a session."""
    if log is None:
        return
    call.only_owner("read the logs of other origins")
    if call.tx.end_of_origin(log) is None:
        raise missing("imported log", log)


def check_kind(kind: str | None) -> None:
    """Refuse a kind of event that there is not; one that ends in a dot stands for all of its noun."""
    if kind is None or kind in KINDS or (kind.endswith(".") and any(name.startswith(kind) for name in KINDS)):
        return
    import difflib  # only a typo needs it

    asked = kind.removesuffix(".")
    near = difflib.get_close_matches(asked, [*KINDS, *{noun(name) for name in KINDS}], 1, 0.6)
    raise Invalid(
        f"There is no kind of event {asked!r}.",
        hint=f"Did you mean {near[0]}?" if near else "Kinds look like task.claimed; task. stands for all of a task.",
    )


def for_eyes_of(call: Call, event: Event) -> Event:
    """Return an event as who asks may see it."""
    if call.who.session is None:
        return event
    return visible(event, call.who.session, _concerned(call, event, call.who.session))


def _concerned(call: Call, event: Event, viewer: str) -> Collection[str]:
    """Return the names of the sessions whose business an event is; of a message to many, the viewer if it gets it."""
    match noun(event.kind):
        case "session":
            return (event.subject,)
        case "mail":
            message = call.tx.get(Message, event.subject)
            if message is None:
                return ()
            to = viewer if message.to in addresses(viewer, call.known(viewer).role) else message.to
            return (message.sender, to)
        case "comment":
            comment = call.tx.get(Comment, event.subject)
            return () if comment is None or comment.to is None else (comment.to,)
    kept = BY_NAME[noun(event.kind)].rows
    if kept is None or AUDIENCES[event.kind] is not Audience.CONCERNED:
        return ()
    row = call.tx.get(kept.row, event.subject)
    return () if row is None or row.session is None else (row.session,)


@verb("alert.list", "GET /api/alerts", ListAlerts, list[AlertRow], may=PARTLY)
def list_alerts(call: Call, asked: ListAlerts) -> list[AlertRow]:
    """List the alerts, the newest first; a session sees its own."""
    return [AlertRow.of(alert) for alert in call.tx.last_alerts(asked.limit, call.who.session)]


def event_row(event: Event) -> EventRow:
    """Return an event as it is answered."""
    return EventRow.of(event, data=Raw(event.data), prev=event.prev.hex())
