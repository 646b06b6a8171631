"""Expiry: ends the claims and leases of those who are silent, and notes the signs of life."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from covey.app.app import App
from covey.app.fleet.heartbeats import NOTED_EVERY
from covey.store.tx import Tx

LOOK_EVERY = 1.0
STOOD_STILL = 5.0
"""Seconds between two looks after which we must have been stopped ourselves; a time to live may be as short."""

log = logging.getLogger("covey.expiry")
Run = Callable[[Callable[[Tx], Any]], Awaitable[Any]]


class Expiry:
    """Looks once a second; writes only when there is something to do."""

    def __init__(self, app: App, read: Run, write: Run) -> None:
        self._app = app
        self._read = read
        self._write = write
        self._noted = app.context.pulses.watch.last.awake

    async def tick(self) -> None:
        """Look, judge, act."""
        app = self._app
        before = app.context.pulses.watch.last.awake
        now = app.context.pulses.look().last.awake
        if now - before > STOOD_STILL:
            app.context.pulses.begin_anew()
        if await self._read(app.is_anything_silent):
            ended = await self._write(app.sweep)
            log.info("silence ended %d things", ended)
        if now - self._noted >= NOTED_EVERY:
            self._noted = now
            await self._write(app.note_pulses)
