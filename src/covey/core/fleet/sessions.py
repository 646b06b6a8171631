"""The life of a session: a named worker, run by covey or from outside, or a person."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from covey.errors import Invalid, Refused
from covey.values import dataclass

OWNER = "owner"
"""The person in charge: who holds the owner's token and names no session."""
COVEY = "covey"
"""covey itself: its loops act under this name, and nobody else may."""
EVERYONE = "everyone"
RESERVED = (OWNER, COVEY, EVERYONE)


class SessionKind(StrEnum):
    """Who keeps a session alive."""

    RUN = "run"
    OUTSIDE = "outside"
    PERSON = "person"


class SessionState(StrEnum):
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


class Goal(StrEnum):
    """What covey is to do with a session that it runs."""

    STOPPED = "stopped"
    WORKING = "working"
    PAUSED = "paused"
    REMOVED = "removed"


_NOT_BEFORE: dict[SessionState, tuple[SessionState, ...]] = {
    **dict.fromkeys(SessionState, (SessionState.DEAD,)),
    SessionState.STARTING: (SessionState.STARTING, SessionState.WORKING, SessionState.COMPACTING),
    SessionState.IDLE: (),
}
"""From which states none leads to another: what is dead comes back as idle, or starts; what works need not start."""


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A session became known, or known again."""

    kind: SessionKind = SessionKind.OUTSIDE
    role: str | None = None
    wip: int | None = None
    agent: str | None = None
    batch: str | None = None
    """The only tasks that it works on are those of this batch, and it goes when they have ended."""
    permissions: str | None = None
    """What its agent may do without asking, if that is not what the settings say for all."""


@dataclass(frozen=True, kw_only=True)
class Session(Registered):
    """A named worker on the project."""

    name: str
    ordinal: int = 0
    goal: Goal = Goal.STOPPED
    attached: str | None = None
    """The person who has taken its conversation over."""
    state: SessionState = SessionState.IDLE
    evidence: str | None = None
    until: float | None = None
    """When it goes on by itself, if it waits."""
    created: float = 0.0
    updated: float = 0.0
    removed: bool = False


@dataclass(frozen=True)
class Started:
    """A session was told to work the board."""


@dataclass(frozen=True)
class Stopped:
    """A session was told to stop until it is started again."""

    why: str | None = None


@dataclass(frozen=True)
class Paused:
    """A session was paused, and keeps what it holds until it is resumed."""


@dataclass(frozen=True)
class Resumed:
    """A paused session was told to go on."""


@dataclass(frozen=True)
class Leaving:
    """A session is to be removed as soon as its work is safe."""

    why: str | None = None


@dataclass(frozen=True)
class Rescued:
    """Work that git would not have kept was put under a ref, before its worktree was touched."""

    ref: str
    commit: str
    why: str
    files: int = 0
    task: str | None = None


@dataclass(frozen=True)
class Changed:
    """A session came into another state, for this evidence."""

    state: SessionState
    evidence: str
    until: float | None = None


@dataclass(frozen=True)
class Attached:
    """A person takes its conversation over, in a terminal."""


@dataclass(frozen=True)
class GivenBack:
    """The person gave the conversation back."""


@dataclass(frozen=True)
class Removed:
    """A session was removed."""


Event = Registered | Started | Stopped | Paused | Resumed | Leaving | Rescued | Changed | Attached | GivenBack | Removed


def register(session: Session | None, wish: Registered) -> Registered:
    """Make a session known; a name that is in use stays with its session, and one that covey runs holds one task."""
    if session is not None and not session.removed:
        raise Refused(f"There is a session {session.name} already.", hint="Choose another name.")
    if wish.wip is not None and wish.wip < 1:
        raise Invalid("wip must be at least 1.")
    if wish.permissions is not None and wish.kind is not SessionKind.RUN:
        raise Invalid("Permissions are for a session that covey runs.", hint="Name its agent: --agent AGENT.")
    return replace(wish, wip=1) if wish.kind is SessionKind.RUN and wish.wip is None else wish


def start(session: Session) -> Started | None:
    """Let a session that covey runs work the board, None if it does already."""
    _run_by_covey(session, "started")
    if session.goal is Goal.REMOVED:
        raise Refused(f"{session.name} is about to be removed.")
    if session.goal is Goal.PAUSED:
        raise Refused(f"{session.name} is paused.", hint=f"covey session resume {session.name} lets it go on.")
    return None if session.goal is Goal.WORKING else Started()


def stop(session: Session, why: str | None = None) -> Stopped | None:
    """Let a session work no more, None if it does not already."""
    _run_by_covey(session, "stopped")
    return None if session.goal in (Goal.STOPPED, Goal.REMOVED) else Stopped(why)


def pause(session: Session) -> Paused | None:
    """Let a session stand still, None if it does already."""
    _at_work(session, "paused", "does not work")
    return None if session.goal is Goal.PAUSED else Paused()


def resume(session: Session) -> Resumed | None:
    """Let a session that stands still go on, None if it does not stand still."""
    _at_work(session, "resumed", "is not paused")
    return None if session.goal is Goal.WORKING else Resumed()


def leave(session: Session, *, at_work: bool, force: bool, why: str | None = None) -> Leaving | None:
    """Let a session go, None if it goes already; one at work only by force."""
    if at_work and not force:
        if session.kind is SessionKind.RUN:
            hint = f"covey session stop {session.name} first, or remove it with --force; its work is kept either way."
        else:
            hint = (
                f"covey session remove {session.name} --force gives what it holds back to the board;"
                f" or covey task release ID --as {session.name} first."
            )
        raise Refused(f"{session.name} is at work.", hint=hint)
    return None if session.goal is Goal.REMOVED else Leaving(why)


def _run_by_covey(session: Session, verb: str) -> None:
    if session.kind is not SessionKind.RUN:
        raise Refused(
            f"{session.name} cannot be {verb}: covey does not run it.",
            hint="covey session new NAME --agent AGENT makes one that covey runs.",
        )


def _at_work(session: Session, verb: str, how: str) -> None:
    """Refuse a session that is not to work, and say `how` it is."""
    _run_by_covey(session, verb)
    if session.goal in (Goal.STOPPED, Goal.REMOVED):
        raise Refused(f"{session.name} {how}.", hint=f"covey session start {session.name} lets it work.")


def attach(session: Session) -> Attached | None:
    """Let a person take a session's conversation over, None if one has already."""
    _at_work(session, "attached to", "does not work")
    return None if session.attached else Attached()


def give_back(session: Session) -> GivenBack | None:
    """Let a session go on with its conversation, None if it has it."""
    return GivenBack() if session.attached else None


def change(session: Session, state: SessionState, evidence: str, until: float | None = None) -> Changed | None:
    """Bring a session into a state, None if it is there already; the same state twice is one event.

    One that waits until another time is told so: that is news.
    """
    if session.state is state and (until is None or session.until == until):
        return None
    if session.removed:
        raise Refused(f"{session.name} is removed.")
    if session.state in _NOT_BEFORE[state]:
        raise Refused(f"{session.name} cannot go from {session.state} to {state}.")
    return Changed(state, evidence, until)


def remove(session: Session) -> Removed:
    """End a session that does not work."""
    if session.removed:
        raise Refused(f"{session.name} is removed already.")
    return Removed()


def goes_on(session: Session | None) -> bool:
    """Say whether a session is there to go on with what it began: one that covey runs is to work, or is paused."""
    if session is None or session.removed:
        return False
    return session.kind is not SessionKind.RUN or session.goal in (Goal.WORKING, Goal.PAUSED)


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
    return Session(name=name, ordinal=seq, created=at, updated=at, **vars(event))


def apply(session: Session, event: Event, at: float, by: str = OWNER) -> Session:
    """Return the session as it is after `event`. Never refuses."""
    match event:
        case Registered():
            return first(session.name, session.ordinal, event, at)
        case Started() | Resumed():
            return replace(session, goal=Goal.WORKING, updated=at)
        case Stopped():
            return replace(session, goal=Goal.STOPPED, updated=at)
        case Paused():
            return replace(session, goal=Goal.PAUSED, updated=at)
        case Leaving():
            return replace(session, goal=Goal.REMOVED, updated=at)
        case Rescued():
            return replace(session, updated=at)
        case Changed(state, evidence, until):
            return replace(session, state=state, evidence=evidence, until=until, updated=at)
        case Attached():
            return replace(session, attached=by, updated=at)
        case GivenBack():
            return replace(session, attached=None, updated=at)
        case Removed():
            return replace(session, state=SessionState.DEAD, goal=Goal.REMOVED, removed=True, updated=at)
