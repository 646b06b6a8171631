"""Pushing: what landed goes to a remote; what others have pushed meanwhile comes in through the gate first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from covey.app import train
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core.landings import Landing
from covey.errors import CoveyError
from covey.git import pushing
from covey.git.pushing import Behind, Failed, Pushed
from covey.loops.desk import Desk
from covey.store import rows

FIRST, MOST = 5.0, 300.0
"""Seconds until a push that failed is tried again, at first and at most."""
TOLD_AFTER = 2
"""Failures in a row after which a person is told: one that passes by itself is nothing to tell."""

log = logging.getLogger("covey.queue")


@dataclass
class Pusher:
    """Brings a branch of a remote to where ours is, and knows what the remote has that we have not."""

    desk: Desk
    tell: Callable[[], None]
    """Says that the remote has something that we lack."""
    behind: str | None = None
    """What the remote's branch holds and ours does not: it has to land here, tested, before we can push."""
    _failures: int = 0
    _not_before: float = 0.0
    _told: str = ""
    _task: asyncio.Task[None] | None = None

    def begin(self, branch: str, remote: str, commit: str) -> None:
        """Begin to push what landed, beside the queue, unless that is under way or has to wait."""
        is_busy = self._task is not None and not self._task.done()
        if remote and not is_busy and self.behind is None and self.desk.awake() >= self._not_before:
            self._task = asyncio.ensure_future(self._try(branch, remote, commit))

    async def rest(self, seconds: float) -> None:
        """Wait some time for the end of what is under way."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=seconds)

    async def _try(self, branch: str, remote: str, commit: str) -> None:
        try:
            await self.push(branch, remote, commit)
        except CoveyError as error:
            await self.failed(error.message)
        except Exception:
            log.exception("pushing failed")
            await self.failed("covey failed in a way that nobody has foreseen; the log of the daemon tells.")

    async def push(self, branch: str, remote: str, commit: str) -> None:
        """Push what landed, if it has not been pushed."""
        unpushed = await self.desk.read(lambda call: _unpushed(call, branch, remote))
        if not unpushed:
            return
        project = self.desk.project
        expected = await self.desk.read(lambda call: _last_pushed(call, branch, remote))
        outcome = await self.desk.aside(lambda: pushing.push(project, remote, branch, commit, expected))
        match outcome:
            case Pushed():
                await self.desk.write(lambda call: _note(call, unpushed, remote))
                self._failures, self._told = 0, ""
            case Behind(theirs):
                self.behind = theirs
                self.tell()
            case Failed(why):
                await self.failed(why)

    def caught_up(self) -> None:
        """Push again at once: we hold what the remote has."""
        self.behind = None
        self._not_before = 0.0

    async def cannot_take(self, why: str) -> None:
        """Ask the remote again later: what it has cannot come in now."""
        self.behind = None
        self._failures = max(self._failures, TOLD_AFTER - 1)
        await self.failed(why)

    async def failed(self, why: str) -> None:
        """Try again later, and tell a person once."""
        log.warning("what landed was not pushed: %s", why)
        self._failures += 1
        self._not_before = self.desk.awake() + min(FIRST * 2 ** (self._failures - 1), MOST)
        if self._failures < TOLD_AFTER or self._told:
            return
        self._told = why
        message = f"{why} What landed stays here, and is pushed when the remote takes it."
        try:
            await self.desk.write(lambda call: alert(call, "not_pushed", message, None, None))
        except CoveyError as error:
            log.warning("nobody could be told: %s", error)


def _unpushed(call: Call, branch: str, remote: str) -> list[Landing]:
    """Return the landings that came after the last one that was pushed, the oldest first."""
    last = _last(call, branch, remote)
    where = "WHERE branch = ? AND ordinal > ? ORDER BY ordinal"
    return call.tx.find(rows.LANDINGS, where, (branch, 0 if last is None else last.ordinal))


def _last_pushed(call: Call, branch: str, remote: str) -> str | None:
    last = _last(call, branch, remote)
    return None if last is None else last.commit


def _last(call: Call, branch: str, remote: str) -> Landing | None:
    where = "WHERE branch = ? AND remote = ? ORDER BY ordinal DESC LIMIT 1"
    return next(iter(call.tx.find(rows.LANDINGS, where, (branch, remote))), None)


def _note(call: Call, landings: list[Landing], remote: str) -> None:
    for landing in landings:
        now = call.tx.get(rows.LANDINGS, landing.id)
        if now is not None and now.pushed is None:
            train.pushed(call, now, remote)
