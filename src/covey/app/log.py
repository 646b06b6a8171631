"""The verbs that read the log: events, alerts, and the project at a glance."""

from __future__ import annotations

from msgspec import Raw

from covey.app import shapes
from covey.app.shapes import AlertRow, EventRow
from covey.app.verbs import Call, missing, verb
from covey.core.events import Event
from covey.store import rows


@verb("log.list", "GET /api/log", shapes.ListEvents, list[EventRow])
def list_events(call: Call, asked: shapes.ListEvents) -> list[EventRow]:
    """List events in the order of the log, filtered."""
    values = {name: getattr(asked, name) for name in asked.__struct_fields__ if name != "origin"}
    if asked.origin is None:
        return [event_row(event) for event in call.tx.events(**values)]
    if not call.tx.db.rows("SELECT 1 FROM origins WHERE log = ?", (asked.origin,)):
        raise missing("imported log", asked.origin)
    return [event_row(event) for event in call.tx.events(**values, origin=asked.origin)]


@verb("alert.list", "GET /api/alerts", shapes.ListAlerts, list[AlertRow])
def list_alerts(call: Call, asked: shapes.ListAlerts) -> list[AlertRow]:
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
