"""Budgets: what a run may spend is set aside before it starts, so that no limit is passed by many at once."""

from __future__ import annotations

from enum import StrEnum

from covey.values import dataclass

MIN_SHARE_LEFT = 0.05
"""The share of a limit that must be left: with less, a run would only be cut off."""
FIRST_RUN_SHARE = 0.1
"""The share of the largest limit that a run gets when nothing is known about earlier ones."""


class Scope(StrEnum):
    """What a limit is on."""

    RUN = "run"
    TASK = "task"
    SESSION = "session"
    DAY = "day"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that may be spent, in one unit; 0 is no limit."""

    run: float = 0.0
    task: float = 0.0
    session: float = 0.0
    day: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Books:
    """What was spent, and what is set aside for runs that are open, in the same unit."""

    task: float = 0.0
    session: float = 0.0
    day: float = 0.0
    aside: float = 0.0
    """Set aside today for all open runs; a session and a task have no other run."""
    usual: float = 0.0
    """The most that one of the last runs has spent."""
    call: float = 0.0
    """What one call of the agent's model usually costs; 0 if nobody knows."""


@dataclass(frozen=True)
class RunAllowance:
    """A run may start, and spend this much; None: as much as it likes."""

    amount: float | None


@dataclass(frozen=True)
class LimitUsedUp:
    """No run may start: this limit is used up, or others have it set aside."""

    scope: Scope
    limit: float
    left: float
    waits: bool = False
    """Others have set it aside, and give back what they do not need."""
    call: float = 0.0
    """What one call usually costs, if that is more than is left."""


def grant(limits: Limits, books: Books) -> RunAllowance | LimitUsedUp:
    """Return what a run may spend, or which limit is in its way."""
    left = {
        Scope.TASK: (limits.task, limits.task - books.task),
        Scope.SESSION: (limits.session, limits.session - books.session),
        Scope.DAY: (limits.day, limits.day - books.day),
    }
    set_limits = {scope: pair for scope, pair in left.items() if pair[0] > 0}
    for scope, (limit, rest) in set_limits.items():
        if rest < MIN_SHARE_LEFT * limit:
            return LimitUsedUp(scope, limit, max(rest, 0.0))
        if rest < min(books.call, limit):  # of a limit that is whole, a first call shows what it comes to
            return LimitUsedUp(scope, limit, rest, call=books.call)
    if not set_limits and limits.run <= 0:
        return RunAllowance(None)
    wanted = _wanted(limits, books)
    amount = min([wanted, *(rest for _, rest in set_limits.values())])
    if Scope.DAY in set_limits:
        limit, rest = set_limits[Scope.DAY]
        if rest - books.aside < amount:
            if books.aside > 0:
                return LimitUsedUp(Scope.DAY, limit, max(rest - books.aside, 0.0), waits=True)
            amount = rest
    return RunAllowance(amount)


def _wanted(limits: Limits, books: Books) -> float:
    """Return what a run is given if nothing is in its way."""
    if limits.run > 0:
        return limits.run
    if limits.task > 0:
        return limits.task
    most = max(limits.session, limits.day)
    return max(books.usual * 2, books.call * 2, most * FIRST_RUN_SHARE)


def is_over(granted: float | None, spent: float, next_call: float) -> bool:
    """Say whether a run has to end: with its next call it would have spent more than it was granted."""
    return granted is not None and spent > 0 and spent + next_call > granted


def is_own(granted: float | None, limit: float) -> bool:
    """Say whether a run was granted all that any run may spend, and not a share of what others may spend too."""
    return granted is not None and 0 < limit <= granted
