"""The life of a session: a named worker, run by covey or from outside, or a person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from covey.errors import Invalid, Refused

OWNER = "owner"
"""The person in charge: who holds the owner's token and names no session."""
COVEY = "covey"
"""covey itself: its loops act under this name, and nobody else may."""
EVERYONE = "everyone"
RESERVED = (OWNER, COVEY, EVERYONE)


class Kind(StrEnum):
    """Who keeps a session alive."""

    RUN = "run"
    OUTSIDE = "outside"
    PERSON = "person"


class State(StrEnum):
    """What a session is doing, as its evidence says."""

    STARTING = "starting"
    WORKING = "working"
    IDLE = "idle"
    NEEDS_YOU = "needs-you"
    LIMITED = "limited"
    COMPACTING = "compacting"
    PAUSED = "paused"
    STALLED = "stalled"
    DEAD = "dead"


AWAKE = (State.WORKING, State.IDLE, State.NEEDS_YOU, State.LIMITED, State.COMPACTING, State.STALLED)
_FROM: dict[State, tuple[State, ...]] = {
    State.STARTING: (State.IDLE, State.PAUSED, State.DEAD),
    State.WORKING: (State.STARTING, *AWAKE, State.PAUSED),
    State.IDLE: (State.STARTING, *AWAKE, State.PAUSED, State.DEAD),
    State.NEEDS_YOU: (State.STARTING, *AWAKE),
    State.LIMITED: (State.STARTING, *AWAKE),
    State.COMPACTING: (State.WORKING, State.IDLE),
    State.PAUSED: (State.STARTING, *AWAKE),
    State.STALLED: (State.STARTING, *AWAKE),
    State.DEAD: (State.STARTING, *AWAKE, State.PAUSED),
}


@dataclass(frozen=True, kw_only=True)
class Session:
    """A named worker on the project."""

    name: str
    ordinal: int = 0
    kind: Kind = Kind.OUTSIDE
    role: str | None = None
    wip: int | None = None
    state: State = State.IDLE
    evidence: str | None = None
    created: float = 0.0
    updated: float = 0.0
    removed: bool = False


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A session became known, or known again."""

    kind: Kind = Kind.OUTSIDE
    role: str | None = None
    wip: int | None = None


@dataclass(frozen=True)
class Changed:
    """A session came into another state, for this evidence."""

    state: State
    evidence: str


@dataclass(frozen=True)
class Removed:
    """A session is no more."""


Event = Registered | Changed | Removed


def register(session: Session | None, kind: Kind, role: str | None, wip: int | None) -> Registered:
    """Make a session known; a name that is in use stays with its session."""
    if session is not None and not session.removed:
        raise Refused(f"There is a session {session.name} already.", hint="Choose another name.")
    if wip is not None and wip < 1:
        raise Invalid("wip must be at least 1.")
    return Registered(kind=kind, role=role, wip=1 if kind is Kind.RUN and wip is None else wip)


def change(session: Session, state: State, evidence: str) -> Changed | None:
    """Bring a session into a state, None if it is there already; the same state twice is one event."""
    if session.state is state:
        return None
    if session.removed:
        raise Refused(f"{session.name} is removed.")
    if session.state not in _FROM[state]:
        raise Refused(f"{session.name} cannot go from {session.state} to {state}.")
    return Changed(state, evidence)


def remove(session: Session) -> Removed:
    """End a session that does not work."""
    if session.removed:
        raise Refused(f"{session.name} is removed already.")
    return Removed()


def may_take(session: Session, holding: int) -> None:
    """Refuse a session that is at its limit of tasks at work."""
    if session.wip is not None and holding >= session.wip:
        tasks = "one task" if holding == 1 else f"{holding} tasks"
        raise Refused(
            f"{session.name} holds {tasks} and may hold no more.",
            hint="Hand in or release what it holds first.",
        )


def first(name: str, seq: int, event: Registered, at: float) -> Session:
    """Return the session that a Registered event begins."""
    return Session(name=name, ordinal=seq, kind=event.kind, role=event.role, wip=event.wip, created=at, updated=at)


def apply(session: Session, event: Event, at: float) -> Session:
    """Return the session as it is after `event`. Never refuses."""
    match event:
        case Registered():
            return first(session.name, session.ordinal, event, at)
        case Changed(state, evidence):
            return replace(session, state=state, evidence=evidence, updated=at)
        case Removed():
            return replace(session, state=State.DEAD, removed=True, updated=at)
