"""How many runs of an agent there may be at once, and when the next may start: what its provider bears, and we do."""

from __future__ import annotations

from dataclasses import field, replace

from covey.core.board.waiting import Cause
from covey.core.figures import size
from covey.core.fleet.signals import Trouble
from covey.values import dataclass

BURST_S = 15.0
"""Seconds in which several refusals are one."""
CALM_S = 60.0
"""Seconds without a refusal after which one run more is tried."""
MAX_LIMIT_S = 8 * 86_400.0
"""Seconds that a provider's limit may last, so that a time which makes no sense stops nobody for ever."""
RETRY_AFTER_S = {Trouble.KEY: 300.0, Trouble.CREDIT: 300.0}
"""Troubles that every run of the agent would meet, and seconds until one tries again."""


@dataclass(frozen=True)
class Pace:
    """What is known of one agent's provider; times are the watcher's."""

    limit: float | None = None
    """The most runs at once; None as long as nothing was refused."""
    cut: float | None = None
    """When it was last lowered."""
    grown: float | None = None
    closed: float | None = None
    """Until when nothing starts at all."""
    why: str = ""
    started: float | None = None
    """When a run last started."""


@dataclass(frozen=True)
class Wait:
    """Why a run does not start now, and until when, if that is known."""

    why: str
    until: float | None = None
    news: bool = False
    """A person may want to know, if it lasts."""
    cause: Cause = field(default=Cause.OTHER, compare=False)

    @property
    def lasts(self) -> bool:
        """Say whether it stays the same while its words change."""
        return self.cause in (Cause.PLACE, Cause.MEMORY, Cause.IN_REVIEW)


def refused(pace: Pace, at: float, running: int, trouble: Trouble, what: str, until: float | None = None) -> Pace:
    """Return the pace after a provider refused one of `running` runs; `until`: when it takes requests again."""
    if trouble in RETRY_AFTER_S or until is not None:
        end = until if until is not None else at + RETRY_AFTER_S[trouble]
        pace = replace(pace, closed=max(end, pace.closed or end), why=what)
    if trouble not in (Trouble.LIMIT, Trouble.OVERLOAD) or (pace.cut is not None and at - pace.cut < BURST_S):
        return pace
    before = running if pace.limit is None else min(pace.limit, max(running, 1))
    return replace(pace, limit=max(before / 2, 1.0), cut=at, grown=at, why=what)


def believed(until: float | None, wall: float) -> float | None:
    """Return a reset that a provider named, None if it is over, or so far ahead that it makes no sense."""
    return until if until is not None and wall < until < wall + MAX_LIMIT_S else None


def calm(pace: Pace, at: float, running: int) -> Pace:
    """Return the pace after some time has passed: one run more for every calm minute in which the limit was used."""
    if pace.closed is not None and at >= pace.closed:
        pace = replace(pace, closed=None)
    if pace.limit is None or pace.grown is None or at - pace.grown < CALM_S:
        return pace
    if running + 1 < pace.limit:
        return replace(pace, limit=None, cut=None, grown=None, why="")  # nothing has come near it for a while
    return replace(pace, limit=pace.limit + 1, grown=at)


def why_wait(
    pace: Pace, *, at: float, running: int, gap: float = 0.0, free: int | None = None, needs: int = 0, reserve: int = 0
) -> Wait | None:
    """Say why no run starts now beside those `running`, None if one may.

    `gap`: seconds between two starts; of the memory that is `free`, if anybody knows, a run `needs` some, and some is
    held in `reserve`: all three in bytes.
    """
    if pace.closed is not None and at < pace.closed:
        return Wait(pace.why, pace.closed, news=True, cause=Cause.PROVIDER)
    if pace.limit is not None and running >= max(int(pace.limit), 1):
        why = f"{running} runs are as many as its provider bears at the moment: {pace.why}"
        return Wait(why, cause=Cause.CONCURRENCY)
    if free is not None and running > 0 and free - needs < reserve:
        why = f"{size(free)} of memory are free, and one more run takes about {size(needs)}"
        return Wait(why, news=True, cause=Cause.MEMORY)
    if pace.started is not None and at - pace.started < gap:
        return Wait("starts are staggered", pace.started + gap, cause=Cause.STAGGER)
    return None


def backoff(failures: int, first: float, most: float, chance: float) -> float:
    """Return the seconds to wait after so many failures in a row; `chance`, from 0 to 1, spreads them by a fifth."""
    whole = min(first * 2.0 ** min(max(failures - 1, 0), 32), most)
    return min(whole * (0.9 + 0.2 * chance), most)
