"""The one cleaner of a daemon: now and then it removes what has had its time, by the rules of core/history."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from covey.app.app import App
from covey.app.history import cleanup
from covey.app.history.leftovers import FOUND_ON_DISK
from covey.core.history.retention import RULES, Cleaner
from covey.store.engine.pruning import prune
from covey.store.tx import Tx

FORGET_EVERY_S = 600.0
FIRST_CLEAN_S, CLEAN_EVERY_S = 300.0, 3600.0
"""Seconds from the start to the first cleaning, so that also a daemon cleans which is never up for long."""

log = logging.getLogger("covey.cleanup")
Run = Callable[[Callable[[Tx], Any]], Awaitable[Any]]


class Cleanup:
    """Is asked once a second, and cleans once an hour; what only a person has removed stays."""

    def __init__(self, app: App, write: Run, write_long: Run) -> None:
        self._app = app
        self._write = write
        self._write_long = write_long
        self._forgot = now = app.context.pulses.clock.now().awake
        self._next_clean = now + FIRST_CLEAN_S

    async def tick(self) -> None:
        """Clean if it is time to."""
        now = self._app.context.pulses.clock.now().awake
        if now - self._forgot >= FORGET_EVERY_S:
            self._forgot = now
            await self._write(self._app.forget)
        if now >= self._next_clean:
            self._next_clean = now + CLEAN_EVERY_S
            while await self._write_long(self._prune):
                log.info("long texts were removed")
            await asyncio.to_thread(self._clear)

    def _prune(self, tx: Tx) -> bool:
        """Remove some of the long texts whose time is over, and say whether there were any."""
        keep = self._app.context.config.log
        return prune(tx, keep_days=keep.keep_days, keep_megabytes=keep.keep_megabytes) is not None

    def _clear(self) -> None:
        """Remove what on disk has had its time."""
        context = self._app.context
        if context.repository is None:
            return
        own = [kind for kind in FOUND_ON_DISK if RULES[kind].by is Cleaner.DAEMON]
        for each in cleanup.clear(context, context.repository, own):
            if each.left:
                log.warning("%s %s has had its time and stays: %s", each.kind, each.name, each.left)
            else:
                log.info("%s %s was removed: %s", each.kind, each.name, each.why)
