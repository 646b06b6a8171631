"""What is asked and answered about the log and its alerts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from covey.app.shapes.forms import ONE_LINE, Answered, Asked, Json, Limit, Name, Seq, form


class ListEvents(Asked, frozen=True, kw_only=True):
    """A part of the log; a kind that ends in a dot takes all of its kind, `newest` the last that fit."""

    after: Seq = 0
    before: Seq | None = None
    kind: (
        Annotated[str, form(r"[a-z_]+\.[a-z_]*", "must be a kind of event, such as task.claimed", max_length=64)] | None
    ) = None
    subject: Annotated[str, form(r"[^\x00-\x1f\x7f]+", ONE_LINE, min_length=1, max_length=200)] | None = None
    actor: Name | None = None
    since: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    until: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    limit: Limit = 200
    newest: bool = False
    origin: Annotated[str, form(r"[0-9a-f]{32}", "must be the id of a log")] | None = None


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


class AlertRow(Answered, frozen=True, kw_only=True):
    """Something a person should know."""

    id: str
    type: str
    session: str | None
    message: str
    task: str | None
    raised: float
