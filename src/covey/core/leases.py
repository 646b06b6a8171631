"""The life of a lease: the right to write some paths, or to use a named resource, until a time.

A resource is a path glob (`src/auth/**`), a name (`port:3000`, `db:main`), or `repo:`, which covers every path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from covey.core import globs
from covey.errors import Invalid, Refused

REPO = "repo:"
_NAMED = re.compile(r"[a-z][a-z0-9_-]*:[\w./@+-]{0,200}\Z")
MOST = 64
"""Resources that one lease may cover."""


class State(StrEnum):
    """Whether a lease is in force."""

    LIVE = "live"
    GIVEN = "given"
    EXPIRED = "expired"


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of one holder to some resources."""

    id: str
    holder: str
    resources: tuple[str, ...]
    shared: bool = False
    ttl: float = 3600.0
    task: str | None = None
    reason: str | None = None
    fence: int = 0
    state: State = State.LIVE
    taken: float = 0.0
    ended: float | None = None


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A holder took a lease."""

    holder: str
    resources: tuple[str, ...]
    shared: bool = False
    ttl: float = 3600.0
    task: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Given:
    """The holder gave the lease back, or a person took it."""

    by: str


@dataclass(frozen=True)
class Expired:
    """The holder was silent for the lease's time to live."""

    why: str


Event = Taken | Given | Expired


def resource(text: str) -> str:
    """Return a resource in its one spelling, or refuse it."""
    text = text.removeprefix("path:")
    if ":" in text.split("/", 1)[0]:
        if not _NAMED.match(text) or text.startswith("path:") or (text.startswith(REPO) and text != REPO):
            raise Invalid(
                f"{text[:80]!r} is no name of a resource.",
                hint="Names look like port:3000, db:main or repo: itself.",
            )
        return text
    return globs.compile(text).pattern


def index(name: str) -> str:
    """Return the text under which a resource is found: a name as it is, a glob by its literal prefix."""
    if is_path(name):
        return "/" + globs.compile(name).prefix
    return "/" if name == REPO else name


def is_path(name: str) -> bool:
    """Say whether a resource is a path glob."""
    return ":" not in name.split("/", 1)[0]


def collide(one: str, other: str) -> bool:
    """Say whether two resources have something in common."""
    if is_path(one) and is_path(other):
        return globs.intersect(one, other)
    if REPO in (one, other):
        return one == other or is_path(one) or is_path(other)
    return one == other


def take(wish: Taken, others: Iterable[Lease], left: Callable[[Lease], float] = lambda lease: lease.ttl) -> Taken:
    """Grant a lease that collides with no live lease of another holder; `left` says how long one still lives."""
    if not 1 <= len(wish.resources) <= MOST:
        raise Invalid(f"A lease covers 1 to {MOST} resources, not {len(wish.resources)}.")
    for lease in others:
        clash = conflict(wish, lease)
        if clash is not None:
            raise _refusal(*clash, lease, left(lease))
    return wish


def _refusal(mine: str, theirs: str, lease: Lease, left: float) -> Refused:
    task = f" for {lease.task}" if lease.task else ""
    common = _in_common(mine, theirs)
    return Refused(
        f"{mine} meets {theirs} of {lease.id}{common}, which {lease.holder} holds{task}; "
        f"it ends after another {in_words(left)} of silence.",
        hint=f"Wait, ask {lease.holder} (covey mail send {lease.holder} ...), or go on without the lease.",
    )


def _in_common(mine: str, theirs: str) -> str:
    """Return an example of what two globs share, where it can be found at once."""
    if mine == theirs or not (is_path(mine) and is_path(theirs)) or len(mine) + len(theirs) > 200:
        return ""
    path = globs.witness(mine, theirs)
    return f" (for example {path})" if path not in (None, mine, theirs) else ""


def in_words(seconds: float) -> str:
    """Return a span of time as people say it."""
    for size, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def conflict(wish: Taken, lease: Lease) -> tuple[str, str] | None:
    """Return the two resources that meet, if this live lease stands in the way of a wish."""
    if lease.holder == wish.holder or lease.state is not State.LIVE or (lease.shared and wish.shared):
        return None
    pairs = ((mine, theirs) for mine in wish.resources for theirs in lease.resources)
    return next((pair for pair in pairs if collide(*pair)), None)


def give(lease: Lease, by: str, *, owner: bool) -> Given:
    """End a lease that its holder, or the person in charge, gives back."""
    hold(lease, None if owner else by, None)
    return Given(by)


def hold(lease: Lease, session: str | None, fence: int | None) -> None:
    """Refuse who does not hold this live lease under this fence."""
    if lease.state is not State.LIVE:
        raise Refused(f"{lease.id} has ended: it was {lease.state}.", hint="Take the lease again.")
    if session is not None and lease.holder != session:
        raise Refused(f"{lease.id} is held by {lease.holder}, not by {session}.")
    if fence is not None and fence != lease.fence:
        raise Refused(f"{lease.id} has the fence {lease.fence}, not {fence}.")


def first(lease_id: str, seq: int, event: Taken, at: float) -> Lease:
    """Return the lease that a Taken event begins."""
    return Lease(
        id=lease_id,
        holder=event.holder,
        resources=event.resources,
        shared=event.shared,
        ttl=event.ttl,
        task=event.task,
        reason=event.reason,
        fence=seq,
        taken=at,
    )


def apply(lease: Lease, event: Event, at: float) -> Lease:
    """Return the lease as it is after `event`. Never refuses."""
    match event:
        case Taken():
            return first(lease.id, lease.fence, event, at)
        case Given():
            return replace(lease, state=State.GIVEN, ended=at)
        case Expired():
            return replace(lease, state=State.EXPIRED, ended=at)
