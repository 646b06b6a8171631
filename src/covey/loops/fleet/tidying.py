"""Clearing away what has had its time: sessions that are removed, old rescues, old output, and stray batches."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from covey.app import fleet as verbs
from covey.app import questions
from covey.app import runs as life
from covey.app.verbs import Call
from covey.core import batches
from covey.core.runs import Run
from covey.core.sessions import Session
from covey.errors import CoveyError, Refused
from covey.git.rescue import Rescued, expire
from covey.git.rescue_git import SCRATCH
from covey.loops import tree
from covey.loops.desk import Desk
from covey.loops.rescues import note_rescue, put_in_safety, set_aside
from covey.store import rows

STRAYS_EVERY = 30.0
QUESTIONS_EVERY = 1.0
EXPIRE_EVERY = 6 * 3600.0
SCRATCH_FOR = 3600.0
"""Seconds after which what a killed rescue left is nobody's any more."""

log = logging.getLogger("covey.fleet")


@dataclass
class Tidier:
    """Removes sessions, and sweeps now and then."""

    desk: Desk
    _swept: float = -1e9
    _asked: float = -1e9
    _expired: float = -1e9

    async def remove(self, session: Session) -> None:
        """Put a session's work in safety, then end it and all that is left of it."""
        desk = self.desk
        rescued, is_safe = await desk.beside(lambda: self._put_in_safety(session.name))
        past = await desk.read(lambda call: call.tx.last_runs("session", session.name, 10_000))
        if rescued is not None and not rescued.again:
            await desk.write(lambda call: note_rescue(call, session.name, rescued, None))
        await desk.beside(lambda: self._clear(session, past, is_safe=is_safe))

        def part(call: Call) -> None:
            now = call.tx.session(session.name)
            if now is not None and not now.removed:
                verbs.part(call, now)

        await desk.write(part)

    def _put_in_safety(self, name: str) -> tuple[Rescued | None, bool]:
        """Rescue what a session leaves, or keep its worktree aside; say whether what is left may go."""
        try:
            return put_in_safety(self.desk, name, None, "it was removed", for_good=True), True
        except (CoveyError, OSError) as error:
            log.warning("the worktree of %s could not be rescued: %s", name, error)
        try:
            return set_aside(self.desk, name, None, "it was removed, and could not be rescued", for_good=True), True
        except (CoveyError, OSError) as error:
            log.warning("the worktree of %s stays where it is: %s", name, error)
        return None, False

    def _clear(self, session: Session, past: list[Run], *, is_safe: bool) -> None:
        """Remove what is left of a session; what cannot be removed is left, and the session goes all the same."""
        desk = self.desk
        with _tolerated(session.name):
            if is_safe:
                desk.worktrees.remove(session.name)
        with _tolerated(session.name):
            config = desk.app.house.config
            main = tree.begin(desk.project, config.target, config.project.main) or config.target
            for task in dict.fromkeys(run.task for run in past):
                with _tolerated(session.name):  # somebody looks at it; then it is theirs
                    desk.worktrees.drop_empty_branch(life.branch_of(task), main)
        for run in past:
            with _tolerated(session.name):
                desk.runner.forget(run.id)

    async def sweep(self) -> None:
        """Now and then clear away what has had its time."""
        now = self.desk.awake()
        if now - self._swept >= STRAYS_EVERY:
            self._swept = now
            await self._disband_strays()
        if now - self._asked >= QUESTIONS_EVERY:
            self._asked = now
            if await self.desk.read(lambda call: bool(call.tx.questions_over(call.tx.now))):
                await self.desk.write(questions.expire)
        if now - self._expired >= EXPIRE_EVERY:
            self._expired = now
            await self._expire_rescues()
            await self._expire_runs()

    async def _expire_rescues(self) -> None:
        """Let rescues go whose session ended long ago."""
        gone = await self.desk.read(lambda call: {one.name: one.updated for one in _removed(call)})
        project, wall = self.desk.project, self.desk.wall()
        for rescued in await self.desk.beside(lambda: expire(project, gone.get, wall)):
            log.info("%s has had its time", rescued.name)
            if rescued.aside is not None:
                aside = Path(rescued.aside)
                await self.desk.beside(partial(self.desk.worktrees.drop_aside, aside))

    async def _expire_runs(self) -> None:
        """Let go of what runs and gates printed that ended long ago; the log keeps what came of them."""
        days = self.desk.app.house.config.log.keep_days
        alive = await self.desk.read(lambda call: {run.id for run in call.tx.open_runs()})
        folder, old = self.desk.project.state / "runs", self.desk.wall() - days * 86_400
        await self.desk.beside(lambda: tree.expire(folder, alive, old))
        await self.desk.beside(self.desk.worktrees.clear_old)  # what was left when the machine went down
        await self.desk.beside(lambda: tree.clear(self.desk.project.state / SCRATCH, self.desk.wall() - SCRATCH_FOR))

    async def _disband_strays(self) -> None:
        """Give tasks of a run that has lost all its sessions back to the board."""

        def strays(call: Call) -> list[str]:
            old = call.tx.now - STRAYS_EVERY * 2
            sql = "SELECT DISTINCT batch FROM tasks WHERE batch IS NOT NULL AND updated < ?"
            alive = {session.batch for session in call.tx.run_sessions()}
            closed = "status NOT IN ('done', 'dropped')"
            found = [name for (name,) in call.tx.db.rows(f"{sql} AND {closed}", (old,)) if batches.is_of_run(name)]
            return [name for name in found if name not in alive]

        for name in await self.desk.read(strays):
            await self.desk.write(partial(verbs.disband, name=name))


@contextlib.contextmanager
def _tolerated(session: str) -> Iterator[None]:
    """Go on with a removal, whatever one step of it meets."""
    try:
        yield
    except Refused:
        pass
    except (CoveyError, OSError) as error:
        log.warning("something of %s could not be removed: %s", session, error)


def _removed(call: Call) -> list[Session]:
    return call.tx.find(rows.SESSIONS, "WHERE kind = 'run' AND removed = 1")
