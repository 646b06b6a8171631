"""What is asked and answered about proposals."""

from __future__ import annotations

from msgspec import Struct

from covey.app.shapes.forms import Asked, Json, Limit, Line
from covey.core import proposals


class ListProposals(Asked, frozen=True, kw_only=True):
    """Which proposals; without `all`, those that are open."""

    all: bool = False
    limit: Limit = 200


class AcceptProposal(Asked, frozen=True, kw_only=True):
    """With `anyway`, also if what it is about has changed since."""

    anyway: bool = False


class DeclineProposal(Asked, frozen=True, kw_only=True):
    """Why not, if there is something to say of it."""

    reason: Line | None = None


class ProposedChange(Struct, frozen=True):
    """One field of what is proposed: how it was then and is now, if there is something to change, and how it would be.

    `to` is whole; of `was` and `now` a person is shown the beginning.
    """

    field: str
    was: str
    now: str
    to: str


class ProposalRow(Struct, frozen=True, kw_only=True):
    """What a session asks a person to do; `stale`: what it is about has changed since.

    `asked` is the body of the request, `changes` the same field by field.
    """

    id: str
    session: str
    verb: str
    target: str | None
    what: str
    why: str
    asked: Json
    changes: list[ProposedChange]
    stale: bool
    state: proposals.State
    reason: str | None
    by: str | None
    made: float
    ended: float | None
