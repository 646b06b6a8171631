"""The one writer: takes what waits, runs it in one transaction, and answers after the commit.

Short jobs run in the event loop's own thread and only their commit, which waits for the disk, in another: two threads
that take turns at every statement would spend more time on the turns than on the work. A long job runs in the other
thread altogether, alone in its transaction, so that the loop goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from covey.errors import CoveyError
from covey.store.rows import Change
from covey.store.sqlite import Job, Outcome, SqliteStore
from covey.store.transaction import TakesTime

MOST = 256
"""Jobs that share one commit at most."""

log = logging.getLogger("covey.store")
Waiting = tuple[asyncio.Future[Any], Job[Any], bool]
"""Who waits, for what, and whether it may take its time."""


class Writer:
    """A queue of jobs before a store; lives in one event loop, and `tell` hears of every commit there."""

    def __init__(self, store: SqliteStore, tell: Callable[[list[Change]], None]) -> None:
        self._store = store
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "covey-writer")
        self._waiting: deque[Waiting] = deque()
        self._busy = False
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, job: Job[Any], *, long: bool = False) -> asyncio.Future[Any]:
        """Queue a job and return its answer to come: its value or its error, after the commit."""
        future = self._loop.create_future()
        self._waiting.append((future, job, long))
        if not self._busy:
            self._busy = True
            self._idle.clear()
            self._loop.call_soon(self._next)
        return future

    async def stop(self) -> None:
        """Finish what waits, then end."""
        await self._idle.wait()
        self._thread.shutdown()

    def _next(self) -> None:
        """Begin the next transaction, or rest."""
        if not self._waiting:
            self._busy = False
            self._idle.set()
            return
        batch = self._take()
        futures = [future for future, _, _ in batch]
        jobs = [job for _, job, _ in batch]
        if batch[0][2]:
            self._in_thread(futures, lambda: self._store.run(jobs))
            return
        try:
            staged = self._store.stage(jobs)
            futures = self._put_off(batch, staged.outcomes)
            outcomes = None if staged.wrote else self._store.commit(staged)
        except Exception as error:  # noqa: BLE001 - whatever it is, everyone in the batch has to hear of it
            self._answer(futures, error)
            return
        if outcomes is None:
            self._in_thread(futures, lambda: self._store.commit(staged))
        else:
            self._answer(futures, outcomes)

    def _put_off(self, batch: list[Waiting], outcomes: list[Outcome[Any]]) -> list[asyncio.Future[Any]]:
        """Queue what takes its time anew, to be run beside the loop, and return who is to be answered."""
        futures: list[asyncio.Future[Any]] = []
        for (future, job, _), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome.error, TakesTime):
                self._waiting.append((future, job, True))
                future = self._loop.create_future()  # nobody waits for this one
                future.cancel()
            futures.append(future)
        return futures

    def _in_thread(self, futures: list[asyncio.Future[Any]], work: Callable[[], list[Outcome[Any]]]) -> None:
        """Do what waits for the disk beside the loop, then answer."""
        running = self._loop.run_in_executor(self._thread, work)
        running.add_done_callback(lambda done: self._answer(futures, done.exception() or done.result()))

    def _take(self) -> list[Waiting]:
        batch = [self._waiting.popleft()]
        while self._waiting and len(batch) < MOST and not batch[0][2] and not self._waiting[0][2]:
            batch.append(self._waiting.popleft())
        return batch

    def _answer(self, futures: list[asyncio.Future[Any]], outcomes: list[Outcome[Any]] | BaseException) -> None:
        """Answer a batch, tell of its changes, and go on."""
        if isinstance(outcomes, BaseException):
            known = isinstance(outcomes, CoveyError)
            log.log(logging.WARNING if known else logging.ERROR, "a batch was not committed", exc_info=outcomes)
            outcomes = [Outcome(None, error=outcomes) for _ in futures]
        for future, outcome in zip(futures, outcomes, strict=True):
            if future.cancelled():
                continue
            if outcome.error is None:
                future.set_result(outcome.value)
            else:
                future.set_exception(outcome.error)
        self._loop.call_soon(self._next)
        changes = [change for outcome in outcomes for change in outcome.changes]
        if changes:
            self._tell(changes)
