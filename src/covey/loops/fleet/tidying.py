"""Ending what nobody ends: sessions that are removed, questions whose time is over, and stray batches."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from covey.app.context import Call
from covey.app.fleet import fleet_verbs as verbs
from covey.app.people import questions
from covey.core.fleet import batches
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import Session
from covey.errors import CoveyError, Refused
from covey.git.identity import task_branch
from covey.git.rescue.rescue import Rescued
from covey.git.worktrees import task_branches
from covey.loops.fleet.rescues import note_rescue, put_in_safety, set_aside
from covey.loops.runtime import Runtime

STRAYS_EVERY = 30.0
QUESTIONS_EVERY = 1.0

log = logging.getLogger("covey.fleet")


@dataclass
class Tidier:
    """Removes sessions, and looks now and then for what nobody ends."""

    runtime: Runtime
    _swept: float = -1e9
    _asked: float = -1e9

    async def remove(self, session: Session) -> None:
        """Put a session's work in safety, then end it and all that is left of it."""
        runtime = self.runtime
        rescued, is_safe = await runtime.in_git_thread(lambda: self._put_in_safety(session.name))
        past = await runtime.read(lambda call: call.tx.last_runs(10_000, session=session.name))
        await runtime.write(lambda call: note_rescue(call, session.name, rescued, None))
        await runtime.in_git_thread(lambda: self._clear(session, past, is_safe=is_safe))

        def part(call: Call) -> None:
            now = call.tx.session(session.name)
            if now is not None and not now.removed:
                verbs.part(call, now)

        await runtime.write(part)

    def _put_in_safety(self, name: str) -> tuple[Rescued | None, bool]:
        """Rescue what a session leaves, or keep its worktree aside; say whether what is left may go."""
        try:
            return put_in_safety(self.runtime, name, None, "it was removed", for_good=True), True
        except (CoveyError, OSError) as error:
            log.warning("the worktree of %s could not be rescued: %s", name, error)
        try:
            return set_aside(self.runtime, name, None, "it was removed, and could not be rescued", for_good=True), True
        except (CoveyError, OSError) as error:
            log.warning("the worktree of %s stays where it is: %s", name, error)
        return None, False

    def _clear(self, session: Session, past: list[Run], *, is_safe: bool) -> None:
        """Remove what is left of a session; what cannot be removed is left, and the session goes all the same."""
        runtime = self.runtime
        with _tolerated(session.name):
            if is_safe:
                runtime.worktrees.remove(session.name)
        with _tolerated(session.name):
            config = runtime.app.context.config
            main = task_branches.begin(runtime.project, config.target, config.project.main) or config.target
            for task in dict.fromkeys(run.task for run in past):
                with _tolerated(session.name):  # somebody looks at it; then it is theirs
                    runtime.worktrees.drop_empty_branch(task_branch(task), main)
        for run in past:
            with _tolerated(session.name):
                runtime.runner.forget(run.id)

    async def sweep(self) -> None:
        """Now and then end questions whose time is over, and batches that have lost all their sessions."""
        now = self.runtime.awake()
        if now - self._swept >= STRAYS_EVERY:
            self._swept = now
            await self._disband_strays()
        if now - self._asked >= QUESTIONS_EVERY:
            self._asked = now
            if await self.runtime.read(lambda call: bool(call.tx.questions_over(call.tx.now))):
                await self.runtime.write(questions.expire)

    async def _disband_strays(self) -> None:
        """Give tasks of a run that has lost all its sessions back to the board."""

        def strays(call: Call) -> list[str]:
            old = call.tx.now - STRAYS_EVERY * 2
            alive = {session.batch for session in call.tx.run_sessions()}
            return [name for name in call.tx.quiet_batches(old) if batches.is_of_run(name) and name not in alive]

        for name in await self.runtime.read(strays):
            await self.runtime.write(partial(verbs.disband, name=name))


@contextlib.contextmanager
def _tolerated(session: str) -> Iterator[None]:
    """Go on with a removal, whatever one step of it meets."""
    try:
        yield
    except Refused:
        pass
    except (CoveyError, OSError) as error:
        log.warning("something of %s could not be removed: %s", session, error)
