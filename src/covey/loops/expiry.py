"""The janitor: ends what silence ends, notes the signs of life, and clears away what has had its time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from covey.app.app import App
from covey.app.pulses import NOTED_EVERY
from covey.loops.transcripts import clear_outputs
from covey.store.audit import prune
from covey.store.tx import Tx

LOOK_EVERY = 1.0
STOOD_STILL = 5.0
"""Seconds between two looks after which we must have been stopped ourselves; a time to live may be as short."""
FORGET_EVERY = 600.0
PRUNE_EVERY = 6 * 3600.0

log = logging.getLogger("covey.janitor")
Run = Callable[[Callable[[Tx], Any]], Awaitable[Any]]


class Janitor:
    """Looks once a second; writes only when there is something to do."""

    def __init__(self, app: App, read: Run, write: Run, write_long: Run) -> None:
        self._app = app
        self._read = read
        self._write = write
        self._write_long = write_long
        now = app.house.pulses.watch.last.awake
        self._noted = self._forgot = self._pruned = now

    async def tick(self) -> None:
        """Look, judge, act."""
        app = self._app
        before = app.house.pulses.watch.last.awake
        now = app.house.pulses.look().last.awake
        if now - before > STOOD_STILL:
            app.house.pulses.begin_anew()
        if await self._read(app.is_anything_silent):
            ended = await self._write(app.sweep)
            log.info("silence ended %d things", ended)
        if now - self._noted >= NOTED_EVERY:
            self._noted = now
            await self._write(app.note_pulses)
        if now - self._forgot >= FORGET_EVERY:
            self._forgot = now
            await self._write(app.forget)
        if now - self._pruned >= PRUNE_EVERY:
            self._pruned = now
            while await self._write_long(self._prune):
                log.info("long texts were removed")
            await asyncio.to_thread(self._clear)

    def _prune(self, tx: Tx) -> bool:
        """Remove some of the long texts whose time is over, and say whether there were any."""
        keep = self._app.house.config.log
        return prune(tx, keep_days=keep.keep_days, keep_megabytes=keep.keep_megabytes) is not None

    def _clear(self) -> None:
        """Remove what runs printed long ago, or too much of it; their transcripts stay."""
        house = self._app.house
        if house.runs is not None:
            keep, now = house.config.log, house.pulses.watch.last.wall
            clear_outputs(house.runs, keep_days=keep.keep_days, keep_megabytes=keep.keep_megabytes, now=now)
