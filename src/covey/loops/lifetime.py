"""The end of a daemon that a command started for itself: it goes when nobody needs it any more, and not before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from covey.app.clock import Clock
from covey.app.context import Call
from covey.app.fleet.fleet_verbs import waits_for_person
from covey.core.figures import some
from covey.core.fleet.sessions import Goal, SessionKind
from covey.core.merging.merges import MergeState
from covey.errors import CoveyError
from covey.git.project import Project
from covey.loops.runtime import Runtime
from covey.store.engine.lock import NeedLock

LOOK_EVERY = 0.25
PAGE_ABSENCE_S = 300.0
"""Seconds for which a page may be away and still counts: it rests while nobody looks, and asks once a minute."""
MAX_SESSION_NAMES = 3
ON_THE_WAY = (MergeState.QUEUED, MergeState.TESTING, MergeState.PASSED)

log = logging.getLogger("covey.lifetime")


class Lifetime:
    """Knows who needs this daemon, and ends one that was started only for as long as that."""

    def __init__(
        self, project: Project, clock: Clock, *, while_needed: bool, page_at: Callable[[], float | None]
    ) -> None:
        self._project = project
        self._clock = clock
        self._while_needed = while_needed
        self._page_at = page_at
        self._lock = NeedLock(project.needed)

    def reasons(self, call: Call) -> list[str]:
        """Return for whom the daemon stays, besides commands that run at this moment."""
        page_at = self._page_at()
        return reasons(
            kept=not self._while_needed or self._project.kept.exists(),
            page_away=None if page_at is None else self._clock.now().awake - page_at,
            sessions=_at_work(call),
            branches=_on_the_way(call),
        )

    async def until_unneeded(self, runtime: Runtime) -> None:
        """Return when nobody needs this daemon; from then on whoever comes waits until it is gone, to start its own."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._page_at()  # one that leaves us now was there until now
            if not self._while_needed or not self._lock.try_alone():
                continue
            try:
                stays_for = await runtime.read(self.reasons)
            except CoveyError as error:
                log.warning("it cannot be told who needs this daemon: %s", error)
                stays_for = [error.message]
            if not stays_for:
                log.info("nobody needs this daemon any more")
                return
            self._lock.give()


def reasons(*, kept: bool, page_away: float | None, sessions: Sequence[str], branches: int) -> list[str]:
    """Return for whom a daemon stays, each in a few words; for nobody, if none are left.

    `kept`: it was started to stay, or a person has asked for that since; `page_away`: seconds since a page, or whoever
    else follows what happens, was last there; `sessions`: those that are to work, or still have something alive;
    `branches`: work of people that is on its way to main by itself.
    """
    found = ["covey up, covey open or the like"] if kept else []
    if page_away is not None and page_away <= PAGE_ABSENCE_S:
        found.append("an open page")
    if sessions:
        found.append(f"the sessions at work ({some(sessions, MAX_SESSION_NAMES)})")
    if branches:
        found.append(f"the queue ({branches} of yours on the way to main)")
    return found


def _at_work(call: Call) -> tuple[str, ...]:
    """Return the sessions that covey runs which are to work, or have not come to rest yet."""
    alive = {run.session for run in call.tx.open_runs()}
    return tuple(each.name for each in call.tx.run_sessions() if each.goal is not Goal.STOPPED or each.name in alive)


def _on_the_way(call: Call) -> int:
    """Return how many merges go on by themselves that people handed in, not sessions that covey runs."""
    queue = call.tx.standing()
    if queue.paused or queue.halted or queue.frozen or call.tx.fleet().paused:
        return 0
    moving = [each for each in call.tx.open_merges() if each.state in ON_THE_WAY and not waits_for_person(call, each)]
    authors = {each.session: call.tx.session(each.session) for each in moving}
    return sum((author := authors[each.session]) is None or author.kind is not SessionKind.RUN for each in moving)
