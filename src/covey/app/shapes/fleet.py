"""What is asked and answered about the fleet as a whole, and its batches."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from covey.app.shapes.forms import Asked, Name


class StartBatch(Asked, frozen=True, kw_only=True):
    """Sessions for the tasks of a batch; with `all`, every task that waits or is about to land joins it first."""

    name: Name
    sessions: Annotated[int, Meta(ge=1, le=1000)]
    agent: Name | None = None
    all: bool = False


class StartFleet(Asked, frozen=True, kw_only=True):
    """Brings back those that were stopped together last; with `all`, every session that is stopped."""

    all: bool = False


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
