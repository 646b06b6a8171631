"""The life of a lease: the right to write some paths, or to use a named resource, until a time.

A resource is a path glob (`src/auth/**`), a name (`port:3000`, `db:main`), or `repo:`, which covers every path.
A path without wildcards whose name looks like that of a file (`src/auth.py`: a dot stands inside it) meets globs only
as that file, as if there could be no folder of this name, unless they name the folder themselves (`src/auth.py/**`).

waiting > live > given | expired        A lease that is free at once begins as live.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from covey.core import globs
from covey.core.board.needs import Node, find_cycle
from covey.core.figures import span
from covey.core.quotes import named
from covey.errors import Invalid, Refused
from covey.values import dataclass

REPO = "repo:"
_RESOURCE = re.compile(r"[a-z][a-z0-9_-]*:[\w./@+-]{0,200}\Z")
MAX_RESOURCES = 64
"""Resources that one lease may cover."""
LANE = "lane:"
LANE_CAPACITY = 2
"""How many may be in a lane at once, if the settings do not say."""
RENEW_WITHIN_S = 30.0
"""Seconds of silence after which a lease ends that lives by its own renewals alone."""


class LeaseState(StrEnum):
    """Whether a lease is in force."""

    WAITING = "waiting"
    LIVE = "live"
    GIVEN = "given"
    EXPIRED = "expired"


class Origin(StrEnum):
    """How a lease came about."""

    HAND = "hand"
    SCOPE = "scope"
    """By the scope of a task that was claimed."""
    EDIT = "edit"
    """By the first edit of a file that nobody held."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Who wants which resources, and on which terms."""

    holder: str
    resources: tuple[str, ...]
    shared: bool = False
    ttl: float = 3600.0
    task: str | None = None
    reason: str | None = None
    origin: Origin = Origin.HAND
    beats: bool = False
    """It lives by its own renewals alone, and not by its holder's signs of life."""
    within: tuple[str, ...] = ()
    """The leases under which a command runs that asked for this one: those end only after its turn."""


@dataclass(frozen=True, kw_only=True)
class Lease(Wish):
    """The right of one holder to some resources."""

    id: str
    fence: int = 0
    state: LeaseState = LeaseState.LIVE
    taken: float = 0.0
    """When it came into force; of one that waits, when it was asked for."""
    ended: float | None = None


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Somebody wrote a path while another held a lease on it."""

    lease: str
    task: str
    """For which it was written; of a session without a task, its name after an `@`."""
    path: str
    session: str
    how: str
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Taken(Wish):
    """A holder took a lease."""


@dataclass(frozen=True, kw_only=True)
class Waiting(Wish):
    """Somebody waits in line for a lease that others hold, or wait for before it."""


@dataclass(frozen=True)
class Granted:
    """A lease that was waited for came into force."""


@dataclass(frozen=True)
class Given:
    """The holder gave the lease back, or a person took it."""

    by: str


@dataclass(frozen=True)
class Expired:
    """The holder was silent for the lease's time to live, or has no use for it any more."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """A session wrote into what another holds; the lease itself stays as it is."""

    session: str
    task: str
    paths: tuple[str, ...]
    how: str


Event = Taken | Waiting | Granted | Given | Expired | Crossed
Room = Callable[[str], int]
"""How many may hold a resource at once."""


def resource(text: str) -> str:
    """Return a resource in its one spelling, or refuse it."""
    text = text.removeprefix("path:")
    if ":" in text.split("/", 1)[0]:
        if not _RESOURCE.match(text) or text.startswith("path:") or (text.startswith(REPO) and text != REPO):
            raise Invalid(
                f"{text[:80]!r} is not the name of a resource.",
                hint="Names look like port:3000, db:main or repo: itself.",
            )
        return text
    return globs.compile(text).pattern


def index(name: str) -> str:
    """Return the text under which a resource is found: a name, or a glob by its literal prefix, in lower case.

    Lower case, so that a path is found too that differs from the glob only in case.
    """
    if is_path(name):
        return "/" + globs.compile(name).prefix.casefold()
    return "/" if name == REPO else name.casefold()


def is_path(name: str) -> bool:
    """Say whether a resource is a path glob."""
    return ":" not in name.split("/", 1)[0]


def collide(one: str, other: str) -> bool:
    """Say whether two resources have something in common."""
    if is_path(one) and is_path(other):
        return _paths_meet(one, other)
    if REPO in (one, other):
        return one == other or is_path(one) or is_path(other)
    return one == other


def _paths_meet(one: str, other: str) -> bool:
    for path, glob in ((globs.plain(one), other), (globs.plain(other), one)):
        if path is not None and names_file(path):
            return globs.matches(glob, path) or globs.compile(glob).prefix.startswith(f"{path}/")
    return globs.intersect(one, other)


def names_file(path: str) -> bool:
    """Say whether a path looks like that of a file and not of a folder: a dot stands inside its last name."""
    return "." in path.rpartition("/")[2][1:-1]


def room_of(capacity: Mapping[str, int]) -> Room:
    """Return how many may hold each resource, by the settings: one, or two in a lane that they do not mention."""
    return lambda name: capacity.get(name, LANE_CAPACITY if name.startswith(LANE) else 1)


def _one(name: str) -> int:
    return 1


def take(
    wish: Taken,
    others: Iterable[Lease],
    left: Callable[[Lease], float] = lambda lease: lease.ttl,
    room: Room = _one,
) -> Taken:
    """Grant a lease that meets nobody's; `left` says how long another still lives. Who waits comes first too."""
    if not 1 <= len(wish.resources) <= MAX_RESOURCES:
        raise Invalid(f"A lease covers 1 to {MAX_RESOURCES} resources, not {len(wish.resources)}.")
    met = meets(wish, others, room)
    if met:
        mine, theirs, lease = met[0]
        raise _refusal(mine, theirs, lease, left(lease))
    return wish


def meets(wish: Wish, others: Iterable[Lease], room: Room = _one) -> list[tuple[str, str, Lease]]:
    """Return what stands in the way of a lease: each of its resources with that of another that leaves no room."""
    found: list[tuple[str, str, Lease]] = []
    near = [lease for lease in others if _is_rival(wish, lease)]
    for mine in wish.resources:
        places = room(mine)
        # In a lane each takes a place of its own: else who shares would fill it before one who waits.
        rivals = near if places > 1 else [lease for lease in near if not (lease.shared and wish.shared)]
        met = [(mine, theirs, lease) for lease in rivals for theirs in lease.resources if collide(mine, theirs)]
        if len(met) >= places:
            found += met
    return found


def _is_rival(wish: Wish, lease: Lease) -> bool:
    if lease.state not in (LeaseState.LIVE, LeaseState.WAITING):
        return False
    if isinstance(wish, Lease) and (
        lease.id == wish.id or (lease.state is LeaseState.WAITING and lease.fence > wish.fence)
    ):
        return False  # itself, or one that came later
    return lease.holder != wish.holder or (wish.beats and lease.beats)


def stuck(waits: Mapping[Node, Sequence[tuple[int, Sequence[Node]]]]) -> set[Node]:
    """Return the holders that wait for each other in a circle, or for such ones.

    `waits`: for each who waits, for each resource, how many may hold it and who holds it or is before in line.
    """
    free: set[Node] = set()
    found = True
    while found:
        able = {
            holder
            for holder, needs in waits.items()
            if holder not in free
            and all(sum(other in waits and other not in free for other in others) < room for room, others in needs)
        }
        free |= able
        found = bool(able)
    return set(waits) - free


def circle(start: Node, waits: Mapping[Node, Sequence[tuple[int, Sequence[Node]]]]) -> list[Node]:
    """Return the shortest circle of holders through one of them, itself first; empty if there is none."""

    def before(holder: Node) -> list[Node]:
        return [name for _, others in waits.get(holder, ()) for name in others]

    found = find_cycle(start, before(start), lambda holders: {each: before(each) for each in holders})
    return (found or [])[:-1]


def _refusal(mine: str, theirs: str, lease: Lease, left: float) -> Refused:
    task = f" for {lease.task}" if lease.task else ""
    common = _in_common(mine, theirs)
    mine, theirs = named(mine), named(theirs)
    if lease.state is LeaseState.WAITING:
        return Refused(
            f"{mine} meets {theirs} of {lease.id}{common}, for which {lease.holder} waits{task}.",
            hint="Wait in line behind it (--wait), or go on without the lease.",
        )
    ends = "it ends with that task" if is_tied(lease) else f"it ends after another {span(left)} of silence"
    return Refused(
        f"{mine} meets {theirs} of {lease.id}{common}, which {lease.holder} holds{task}; {ends}.",
        hint=f"Wait (--wait), ask {lease.holder} (covey mail send {lease.holder} ...), or go on without the lease.",
    )


def is_tied(lease: Lease) -> bool:
    """Say whether a lease came with a task, and ends with it and not by silence."""
    return lease.origin is not Origin.HAND and lease.task is not None


def _in_common(mine: str, theirs: str) -> str:
    """Return an example of what two globs share, where it can be found at once."""
    if mine == theirs or not (is_path(mine) and is_path(theirs)) or len(mine) + len(theirs) > 200:
        return ""
    path = globs.witness(mine, theirs)
    return "" if path is None or path in (mine, theirs) else f" (for example {named(path)})"


def hold(lease: Lease, session: str | None, fence: int | None) -> None:
    """Refuse unless the caller holds this live lease under this fence."""
    if lease.state not in (LeaseState.LIVE, LeaseState.WAITING):
        raise Refused(f"{lease.id} has ended: it was {lease.state}.", hint="Take the lease again.")
    if session is not None and lease.holder != session:
        raise Refused(f"{lease.id} is held by {lease.holder}, not by {session}.")
    if fence is not None and fence != lease.fence:
        raise Refused(f"{lease.id} has the fence {lease.fence}, not {fence}.")


def first(lease_id: str, seq: int, event: Wish, at: float) -> Lease:
    """Return the lease that a Taken or Waiting event begins."""
    state = LeaseState.LIVE if isinstance(event, Taken) else LeaseState.WAITING
    return Lease(id=lease_id, fence=seq, state=state, taken=at, **vars(event))


def apply(lease: Lease, event: Event, at: float) -> Lease:
    """Return the lease as it is after `event`. Never refuses."""
    match event:
        case Taken() | Waiting():
            return first(lease.id, lease.fence, event, at)
        case Granted():
            return replace(lease, state=LeaseState.LIVE, taken=at)
        case Given():
            return replace(lease, state=LeaseState.GIVEN, ended=at)
        case Expired():
            return replace(lease, state=LeaseState.EXPIRED, ended=at)
        case Crossed():
            return lease  # kept in rows of their own, by path


def crossings(lease_id: str, event: Crossed, at: float) -> list[Crossing]:
    """Return the rows that an event of crossing makes; they last as long as the lease does."""
    task = crosser(event.task, event.session)
    return [
        Crossing(lease=lease_id, task=task, path=path, session=event.session, how=event.how, at=at)
        for path in event.paths
    ]


def crosser(task: str, session: str) -> str:
    """Return under which name it is kept who crossed a lease: a task, or a session that had none."""
    return task or f"@{session}"  # no task has such a name
