"""Remote: what landed is pushed, and what others have pushed meanwhile comes in through the gate first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from covey.app.context import Call
from covey.core.fleet.sessions import COVEY
from covey.core.merging import landings
from covey.core.merging.landings import Landing
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError
from covey.git.landing import push_main
from covey.git.landing.push_main import Behind, Failed, Pushed
from covey.loops.merge_queue.foreign_commits import ForeignCommit, ForeignCommits, ForeignOutcome
from covey.loops.merge_queue.main_branch import MainBranch, MainPosition
from covey.loops.merge_queue.queue_state import RestartQueue, holds_now
from covey.loops.runtime import Runtime
from covey.values import dataclass

FIRST_RETRY_S, MAX_RETRY_S = 5.0, 300.0
"""Seconds until a push that failed is tried again, at first and at most."""
FAILURES_BEFORE_ALERT = 2
"""Failures in a row after which a person is told: one that passes by itself is not worth telling."""

log = logging.getLogger("covey.queue")


@dataclass
class RemoteSync:
    """Keeps main and the remote's branch together: brings the remote to where ours is, and in what it has beyond."""

    runtime: Runtime
    main: MainBranch
    foreign: ForeignCommits
    is_idle: Callable[[], bool]
    """Says whether the queue has nothing else to do."""
    tell: Callable[[], None]
    """Says that the remote has something that we lack."""
    behind: str | None = None
    """What the remote's branch holds and ours does not: it has to land here, tested, before we can push."""
    _refused: tuple[str, str] = ("", "")
    """What the remote has that failed the gate here, and where our main was then."""
    _failures: int = 0
    _not_before: float = 0.0
    _told: str = ""
    _pushing: asyncio.Task[None] | None = None

    async def push(self) -> None:
        """Push what landed, beside the queue; what the remote has beyond that lands here first, tested with ours."""
        config = self.runtime.app.context.config
        at = await self.main.look() if config.merge.push else None
        if at is None:
            return
        if self.behind is not None and await self.main.is_in(self.behind, at.main):
            self._caught_up()  # somebody else brought it in: it is not merged once more
        if self.behind is None:
            is_busy = self._pushing is not None and not self._pushing.done()
            if not is_busy and self.runtime.awake() >= self._not_before:
                self._pushing = asyncio.ensure_future(self._try_push(config.target, config.merge.push, at.main))
        elif at.main == at.head:
            holds = await self.runtime.read(holds_now)
            if not (holds.is_paused or holds.is_frozen):
                await self.bring_in(at, self.behind)

    async def rest(self, seconds: float) -> None:
        """Wait some time for the end of a push that is under way."""
        if self._pushing is not None:
            await asyncio.wait([self._pushing], timeout=seconds)

    # Pushing

    async def _try_push(self, branch: str, remote: str, commit: str) -> None:
        """Push what landed, if it has not been pushed; what fails is tried again later."""
        project = self.runtime.project
        try:
            unpushed, expected = await self.runtime.read(lambda call: _unpushed(call, branch, remote))
            if not unpushed:
                return
            match await self.runtime.in_background(lambda: push_main.push(project, remote, branch, commit, expected)):
                case Pushed():
                    await self.runtime.write(lambda call: _note(call, unpushed, remote))
                    self._failures, self._told = 0, ""
                case Behind(theirs):
                    self.behind = theirs
                    self.tell()
                case Failed(why):
                    await self._failed(why)
        except CoveyError as error:
            await self._failed(error.message)
        except Exception:
            log.exception("pushing failed")
            await self._failed("Unexpected error; see the daemon log.")

    async def _failed(self, why: str) -> None:
        """Try again later, and tell a person once."""
        log.warning("what landed was not pushed: %s", why)
        self._failures += 1
        self._not_before = self.runtime.awake() + min(FIRST_RETRY_S * 2 ** (self._failures - 1), MAX_RETRY_S)
        if self._failures < FAILURES_BEFORE_ALERT or self._told:
            return
        self._told = why
        message = f"{why} What landed stays here, and is pushed when the remote takes it."
        await self.runtime.tell(log, AlertKind.NOT_PUSHED, message)

    # Bringing in

    async def bring_in(self, at: MainPosition, theirs: str) -> None:
        """Land what the remote has, tested together with ours; then a new epoch begins on it."""
        config = self.runtime.app.context.config
        remote = config.merge.push
        fails = f"The gate fails with what {remote} has at {theirs[:12]}."
        foreign = ForeignCommit(remote, theirs, f"Merge {config.target} of {remote}\n", is_local=False)
        is_tested = self.foreign.find(foreign, at.head) is not None
        if self._is_refused(at, theirs) and not is_tested:
            await self._cannot_take(fails)
            return
        taken = await self.foreign.take(at, foreign)
        match taken.outcome:
            case ForeignOutcome.TESTING:
                return
            case ForeignOutcome.LANDED:
                self._caught_up()
                raise RestartQueue("the remote's commits have landed")
            case ForeignOutcome.FAILED:
                self._refused = (theirs, at.head)
        await self._cannot_take(taken.why or fails)

    def _caught_up(self) -> None:
        """Push again at once: we hold what the remote has."""
        self.behind = None
        self._not_before = 0.0

    async def _cannot_take(self, why: str) -> None:
        """Ask the remote again later: what it has cannot come in now."""
        self.behind = None
        self._failures = max(self._failures, FAILURES_BEFORE_ALERT - 1)
        await self._failed(why)

    def _is_refused(self, at: MainPosition, theirs: str) -> bool:
        """Say whether what failed is not to be tested again: on the same main, or while others wait for a gate."""
        commit, head = self._refused
        return commit == theirs and (head == at.head or not self.is_idle())


def _unpushed(call: Call, branch: str, remote: str) -> tuple[list[Landing], str | None]:
    """Return the landings that came after the last one that was pushed, the oldest first, and the commit of that."""
    last = call.tx.last_pushed(branch, remote)
    if last is None:
        return call.tx.landings_after(branch, 0), None
    return call.tx.landings_after(branch, last.ordinal), last.commit


def _note(call: Call, unpushed: list[Landing], remote: str) -> None:
    for landing in unpushed:
        now = call.tx.get(Landing, landing.id)
        if now is not None and now.pushed is None:
            call.tx.advance(now, landings.Pushed(remote), COVEY)
