"""The worktrees of gates, one for each slot: brought to a commit for each gate, and removed when nobody needs them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from covey.app.merging import gate_logs
from covey.core.texts import redact
from covey.errors import ToolFailed, Unavailable
from covey.git.worktrees.worktree_records import Replaced
from covey.loops.gates.gate_outcomes import CHECKOUT, GateUnderWay, Outcome, failed_at
from covey.loops.runtime import Runtime

WORKTREE = ".gate-"
UNWRITTEN = ("unable to write", "write error", "No space left", "Disk quota exceeded")
"""What git says when the disk takes no more: no tree is to blame for that."""

log = logging.getLogger("covey.gates")


class GateWorktrees:
    """The pool of worktrees in which gates run."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._putting_away: dict[int, asyncio.Future[None]] = {}
        """Worktrees that are just being removed, by slot."""

    def check_out(self, test: GateUnderWay, name: str) -> Outcome | None:
        """Bring a worktree to the commit of a gate; return how the gate ended if no checkout can hold it."""
        try:
            test.path = self._bring(test, name)
        except ToolFailed:
            self.runtime.worktrees.remove(name)
            self.runtime.worktrees.gate(name, test.config.target)  # If that fails too, no change is to blame.
            try:
                test.path = self._bring(test, name)
            except ToolFailed as error:
                if any(word in error.message for word in UNWRITTEN):
                    raise Unavailable(error.message, hint="Make room on the disk.") from error
                return failed_at(CHECKOUT, redact(f"git cannot check it out: {error.message}")[:500])
        return None

    def _bring(self, test: GateUnderWay, name: str) -> Path:
        changed = None if test.lent is None else test.lent.changed
        kept = None if test.layered else self.runtime.project.state / gate_logs.FOLDER / f"{name}.index"
        if kept is not None:
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        worktrees = self.runtime.worktrees
        try:
            return worktrees.gate(name, test.order.commit, changed=changed, kept=kept)
        except Replaced as error:  # by a check that ran there without a room, or a backup was restored
            self._give_up(name, error)
            return worktrees.gate(name, test.order.commit, changed=changed, kept=kept)

    async def wait_for(self, slot: int) -> None:
        """Wait until the worktree of a slot is gone, if it is just being removed."""
        if slot in self._putting_away:
            await asyncio.wait([self._putting_away[slot]])

    async def put_away(self, is_used: Callable[[int], bool]) -> None:
        """Remove the worktrees, unless a gate runs in them."""
        for each in await self.runtime.in_git_thread(self.runtime.worktrees.list):
            number = each.name.removeprefix(WORKTREE) if each.name.startswith(WORKTREE) else ""
            # Looked at for each: a try may begin at any time, and waits for its place if that is just removed.
            if number.isdigit() and not is_used(slot := int(number)):
                removing = asyncio.ensure_future(self.runtime.in_git_thread(partial(self._put_away, each.name)))
                self._putting_away[slot] = removing
                try:
                    await asyncio.shield(removing)
                finally:
                    del self._putting_away[slot]

    def _put_away(self, name: str) -> None:
        try:
            self.runtime.worktrees.remove(name)
        except Replaced as error:
            self._give_up(name, error, for_good=True)

    def _give_up(self, name: str, why: Replaced, *, for_good: bool = False) -> None:
        """Let go of a worktree that is not what covey made; what of it is covey's holds nobody's work, and goes."""
        log.warning("the worktree %s is given up: %s", name, why)
        aside = self.runtime.worktrees.set_aside(name, for_good=for_good)
        if aside is not None and aside.has_moved:
            self.runtime.worktrees.drop_aside(aside.path)
