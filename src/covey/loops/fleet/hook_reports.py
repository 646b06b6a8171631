"""What hooks report of a run: the one way by which they reach the fleet's memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from covey import files
from covey.agents.agent import Sight, terminal_of
from covey.core.fleet.runs import TMUX, Run
from covey.core.fleet.signals import Compacts, Signal, Works
from covey.core.leases.hooks import Hook, Moment
from covey.loops.fleet.fleet_memory import FleetMemory
from covey.loops.fleet.run_launch import SEEN
from covey.loops.runtime import Runtime

BRINGS_MAIL = (Moment.USER_PROMPT, Moment.AFTER_TOOL, Moment.STOP)
"""The steps at which an agent is told its mail, so that none has to be typed."""

log = logging.getLogger("covey.hooks")


@dataclass
class HookReports:
    """Takes in what hooks report; a run that is over is not remembered again."""

    runtime: Runtime
    memory: FleetMemory

    def overhear(self, run: Run, hook: Hook) -> None:
        """Take in what a run says by a hook; one without a terminal says the same in its stream."""
        watched = self.memory.runs.get(run.id)
        if watched is None:
            return
        if hook.moment in BRINGS_MAIL and not hook.sub:
            watched.hooked = True
        if run.runner == TMUX and terminal_of(run, self.runtime.agent(run.agent)) is not None:
            watched.overheard += signals_of(hook)

    def commit_checked(self, run: Run, refused: str | None) -> None:
        """Take in why the last commit that a run tried was refused, None if it was not."""
        watched = self.memory.runs.get(run.id)
        if watched is not None:
            watched.refused = refused

    def is_at_prompt(self, run: Run) -> bool:
        """Say whether the screen of a run shows a prompt that waits, and so no dialog any more."""
        watched = self.memory.runs.get(run.id)
        return watched is not None and watched.sight is Sight.READY

    async def note_asked(self, run: Run, call: str) -> None:
        """Note that covey was asked before a tool was used, so that what it was not asked about can be told later."""
        seen = self.runtime.project.run_folder(run.id) / SEEN
        try:
            await self.runtime.in_run_thread(partial(files.append, seen, f"{call}\n"))
        except OSError as error:
            log.warning("a hook of %s could not be noted: %s", run.id, error)


def signals_of(hook: Hook) -> list[Signal]:
    """Return what a hook says of a run; that it ends or calls for a person does not show that its model answers."""
    match hook.moment:
        case Moment.BEFORE_COMPACT:
            return [Compacts()]
        case Moment.NOTIFICATION | Moment.SESSION_END:
            return []
        case _:
            return [Works()]
