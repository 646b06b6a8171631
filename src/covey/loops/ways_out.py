"""Noticing what left the machine: what a run pushed or sent that nobody had allowed is told, whatever its agent is."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from covey.app import ways_out
from covey.core.pushes import Push
from covey.core.runs import Run
from covey.errors import CoveyError
from covey.git import pushes_seen
from covey.loops.desk import Desk

NOTED = "Its reflog says so. Look at what the remote has now: covey cannot take it back."
SEEN = "The remote has what was made in that run. If you pushed it yourself, all is well."

log = logging.getLogger("covey.fleet")


@dataclass
class RemoteWatch:
    """Looks at the remotes after a run has ended, in nobody's way: a push leaves no trace here that has to be true."""

    desk: Desk
    looks: set[asyncio.Task[None]] = field(default_factory=set)
    """What is under way."""

    def begin(self, run: Run, base: str | None, head: str | None, told: list[Push]) -> None:
        """Begin to look whether a remote has what a run made; what was `told` of it already is not told again."""
        if base is not None and head is not None and base != head:
            look = asyncio.ensure_future(self._look(run, base, head, told))
            self.looks.add(look)
            look.add_done_callback(self.looks.discard)

    async def _look(self, run: Run, base: str, head: str, told: list[Push]) -> None:
        try:
            found = await self.desk.aside(lambda: self._seen(base, head))
            known = {(push.remote, ref.lstrip("+")) for push in told for ref in push.refs}
            fresh = [
                Push(push.remote, refs)
                for push in found
                if (refs := tuple(ref for ref in push.refs if (push.remote, ref) not in known))
            ]
            if fresh:
                await self.desk.write(lambda call: ways_out.tell_pushed(call, run.session, run.task, fresh, SEEN))
        except (CoveyError, OSError) as error:
            log.warning("the remotes could not be looked at after %s: %s", run.id, error)

    def _seen(self, base: str, head: str) -> list[Push]:
        project, target = self.desk.project, self.desk.app.house.config.target
        remotes = pushes_seen.remotes(project)
        commits = pushes_seen.made(project, base, head, target) if remotes else set()
        return pushes_seen.seen(project, remotes, commits) if commits else []
