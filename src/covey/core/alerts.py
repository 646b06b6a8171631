"""Something a person should know, once per transition."""

from __future__ import annotations

from covey.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert, as it was raised."""

    id: str
    ordinal: int
    type: str
    message: str
    session: str | None = None
    task: str | None = None
    raised: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Raised:
    """covey has something to tell a person."""

    type: str
    message: str
    session: str | None = None
    task: str | None = None


def first(alert_id: str, seq: int, event: Raised, at: float) -> Alert:
    """Return the alert that a Raised event begins."""
    return Alert(
        id=alert_id,
        ordinal=seq,
        type=event.type,
        message=event.message,
        session=event.session,
        task=event.task,
        raised=at,
    )
