"""What is asked and answered about leases."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from covey.app.shapes.forms import Answered, As, Asked, Glob, Line, Name, TaskId, completed, fields_of
from covey.core.leases.leases import Lease


class TakeLease(As, frozen=True, kw_only=True):
    """A lease on path globs or names such as port:3000; `ttl` in seconds.

    With `wait` it stands in line where others hold it. With `beats` it lives by its own renewals alone. `within` are
    the leases under which the command runs that asks.
    """

    resources: Annotated[list[Glob], Meta(min_length=1, max_length=64)]
    shared: bool = False
    ttl: Annotated[float, Meta(ge=1, le=604_800)] | None = None
    task: TaskId | None = None
    reason: Line | None = None
    wait: bool = False
    beats: bool = False
    within: Annotated[list[Annotated[str, Meta(max_length=40)]], Meta(max_length=20)] = field(default_factory=list)


class ListLeases(Asked, frozen=True, kw_only=True):
    """Which leases; with `waiting`, those too that are waited for."""

    session: Name | None = None
    waiting: bool = False


@completed(fields_of(Lease))
class LeaseFull(Answered, frozen=True, kw_only=True):
    """A lease, with the time at which it ends if its holder stays silent, or with what it waits for."""

    id: str
    until: float | None
    behind: tuple[str, ...]
