"""The life of a proposal: what a session asks beyond its rights, until a person accepts or declines it."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from covey.errors import Refused
from covey.values import dataclass


class ProposalState(StrEnum):
    """Where a proposal stands."""

    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, kw_only=True)
class Made:
    """A session asked for something that only a person may do."""

    session: str
    verb: str
    target: str | None = None
    """What stands in the path of the request: the task that it is about, if it is about one."""
    asked: str = "{}"
    """The body of the request, as JSON."""
    why: str = ""
    basis: int = 0
    """The last event of the target when this was proposed: a later one means that it has changed since."""
    was: str = "{}"
    """What the request would change, as it was then: fields and their values, as JSON."""


@dataclass(frozen=True, kw_only=True)
class Proposal(Made):
    """A request of a session that waits for a person: the verb, what it is asked, and why it needs one."""

    id: str
    ordinal: int
    state: ProposalState = ProposalState.OPEN
    reason: str | None = None
    by: str | None = None
    made: float = 0.0
    ended: float | None = None


@dataclass(frozen=True)
class Accepted:
    """A person did what was proposed; the events of that stand before this one."""


@dataclass(frozen=True)
class Declined:
    """A person will not do it."""

    reason: str | None = None


@dataclass(frozen=True)
class Withdrawn:
    """The session does not want it any more."""


Event = Made | Accepted | Declined | Withdrawn


def end(proposal: Proposal, event: Accepted | Declined | Withdrawn) -> Accepted | Declined | Withdrawn:
    """Return how a proposal ends, or refuse to end it twice."""
    if proposal.state is not ProposalState.OPEN:
        raise Refused(f"{proposal.id} was {proposal.state} already.", hint="covey proposal list shows what is open.")
    return event


def apply(proposal: Proposal, event: Accepted | Declined | Withdrawn, at: float, by: str) -> Proposal:
    """Return the proposal as it is after `event`. Never refuses."""
    match event:
        case Accepted():
            return replace(proposal, state=ProposalState.ACCEPTED, by=by, ended=at)
        case Declined(reason):
            return replace(proposal, state=ProposalState.DECLINED, reason=reason, by=by, ended=at)
        case Withdrawn():
            return replace(proposal, state=ProposalState.WITHDRAWN, by=by, ended=at)
