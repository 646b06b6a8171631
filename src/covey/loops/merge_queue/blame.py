"""Blame: which merge was being handled when something went wrong, and who is told of what goes wrong repeatedly."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import field

from covey.app.merging import sendback
from covey.core.people.alerts import AlertKind
from covey.git.preflight import can_write
from covey.loops.runtime import Runtime, going_on
from covey.values import dataclass

MAX_STUMBLES = 3
"""Times that the same thing goes wrong before a person is told, or a merge is given up."""

log = logging.getLogger("covey.queue")


@dataclass
class Blame:
    """Counts what goes wrong, finds the merge that causes it, and tells a person once."""

    runtime: Runtime
    suspects: set[str] = field(default_factory=set)
    """Merges one of which made something go wrong: until all of them are through, each is handled alone."""
    _handled: tuple[str, ...] = ()
    """The merges that are being read, built or landed at this moment."""
    _last: tuple[str, int] = ("", 0)
    """What went wrong last, and how often in a row."""
    _told: set[str] = field(default_factory=set)
    """What a person was told since something landed."""

    @contextlib.contextmanager
    def handling(self, merges: tuple[str, ...]) -> Iterator[None]:
        """Note which merges are handled: an error that leaves this block may be their fault."""
        self._handled = merges
        yield
        self._handled = ()  # not after an error: then `count` looks at them

    def nothing_failed(self) -> None:
        """Note that a whole round went well."""
        self._last = ("", 0)

    def nobody(self) -> None:
        """Note that no merge is to blame for what has just happened."""
        self._handled = ()

    def has_landed(self) -> None:
        """Note that the queue goes on: whatever stops it later is news again."""
        self._told.clear()

    async def count(self, what: str, *, is_ours: bool = False) -> None:
        """Count an error against the merge that was being handled; one that causes errors repeatedly is given up.

        Of several merges nobody knows which one it was: from now on each of them is handled alone. A full disk, or a
        git that does not work at all, is not a merge's fault.
        """
        handled, self._handled = self._handled, ()
        with going_on(log, f"{handled} could not be blamed"):
            if is_ours or not handled or not await self.runtime.in_git_thread(lambda: can_write(self.runtime.project)):
                return
            if len(handled) > 1:
                self.suspects |= {*handled}
                return
            (merge,) = handled
            await self.runtime.write(lambda call: sendback.stumbled(call, merge, what, MAX_STUMBLES))

    async def rest_after(self, what: str, rest_seconds: float, free_times: int = 0) -> None:
        """Rest after something went wrong more than `free_times` times in a row, and tell a person if it goes on."""
        times = self._last[1] + 1 if self._last[0] == what else 1
        self._last = (what, times)
        if times > free_times:
            await asyncio.sleep(rest_seconds)
        if times == free_times + MAX_STUMBLES and what not in self._told:
            self._told.add(what)
            message = f"The merge queue cannot go on: {what} It is tried again and again; nothing is lost."
            await self.runtime.tell(log, AlertKind.QUEUE_STUCK, message)
