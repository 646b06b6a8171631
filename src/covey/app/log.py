"""The verbs that read the log: events, alerts, and the project at a glance."""

from __future__ import annotations

from dataclasses import replace

from msgspec import Raw

from covey.app.shapes.log import AlertRow, EventRow, ListAlerts, ListEvents
from covey.app.verbs import Call, missing, verb
from covey.core.comments import Edited, Written
from covey.core.events import KINDS, Event, noun
from covey.core.mail import Sent, addresses
from covey.errors import Invalid
from covey.store import rows
from covey.store.rows import decode_payload, encode_payload


@verb("log.list", "GET /api/log", ListEvents, list[EventRow])
def list_events(call: Call, asked: ListEvents) -> list[EventRow]:
    """List events in the order of the log, filtered; a session sees the text of its own mail only, and of no draft."""
    check_kind(asked.kind)
    check_origin(call, asked.origin)
    found = call.tx.events(**{name: getattr(asked, name) for name in asked.__struct_fields__})
    return [event_row(for_eyes_of(call, event)) for event in found]


def check_origin(call: Call, log: str | None) -> None:
    """Refuse a log that was never imported, and any but ours to a session."""
    if log is None:
        return
    call.only_owner("read the logs of other origins")
    if not call.tx.db.rows("SELECT 1 FROM origins WHERE log = ?", (log,)):
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
    """Return an event without the text of a message that was sent to others, or of a draft of the owner's."""
    if call.who.session is None or event.actor == call.who.session:
        return event
    if event.kind in ("comment.written", "comment.edited"):
        return _without_draft(call, event)
    if event.kind != "mail.sent":
        return event
    sent = decode_payload(event.kind, event.data)
    assert isinstance(sent, Sent)
    if sent.to in addresses(call.who.session, call.known(call.who.session).role):
        return event
    return replace(event, data=encode_payload(replace(sent, subject=None, text="")))


def _without_draft(call: Call, event: Event) -> Event:
    comment = call.tx.get(rows.COMMENTS, event.subject)
    if comment is not None and comment.sent is not None:
        return event
    said = decode_payload(event.kind, event.data)
    hidden = replace(said, text="", quote="") if isinstance(said, Written) else Edited("")
    return replace(event, data=encode_payload(hidden))


@verb("alert.list", "GET /api/alerts", ListAlerts, list[AlertRow])
def list_alerts(call: Call, asked: ListAlerts) -> list[AlertRow]:
    """List the alerts, the newest first."""
    return [AlertRow.of(alert) for alert in call.tx.find(rows.ALERTS, "ORDER BY ordinal DESC LIMIT ?", (asked.limit,))]


def event_row(event: Event) -> EventRow:
    """Return an event as it is answered."""
    return EventRow(
        seq=event.seq,
        time=event.time,
        actor=event.actor,
        kind=event.kind,
        subject=event.subject,
        data=Raw(event.data),
        key=event.key,
        prev=event.prev.hex(),
    )
