"""How a daemon uses its store: one writer, readers beside it, and everybody who hears of commits.

Short jobs run in the event loop's own thread and only their commit, which waits for the disk, in another: two threads
that take turns at every statement would spend more time on the turns than on the work. A long job runs in the other
thread altogether, alone in its transaction, so that the loop goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from covey.errors import CoveyError, Unavailable
from covey.store.engine.rows import Change
from covey.store.engine.sqlite import Job, Outcome, SqliteStore
from covey.store.engine.transaction import TakesTime
from covey.store.tx import Tx

T = TypeVar("T")
G = TypeVar("G")
MAX_READERS = 4
"""How many threads read the store at the same time."""
MAX_JOBS_PER_COMMIT = 256

log = logging.getLogger("covey.store")
Listener = Callable[[list[Change]], None]
Waiting = tuple[asyncio.Future[Any], Job[Any], bool]
"""Who waits, for what, and whether it may take its time."""


class Access(Protocol):
    """Reading and changing a store, wherever that is done."""

    def read(self, job: Callable[[Tx], T]) -> Awaitable[T]: ...
    def write(self, job: Callable[[Tx], T], *, long: bool = False) -> Awaitable[T]: ...


class Bus:
    """The store as everything in a daemon uses it; lives in one event loop, where its listeners are called."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._listeners: list[tuple[Listener, tuple[str, ...]]] = []
        self._loop = asyncio.get_running_loop()
        self._readers = ThreadPoolExecutor(MAX_READERS, "covey-reader")
        self._writer = ThreadPoolExecutor(1, "covey-writer")
        self._waiting: deque[Waiting] = deque()
        self._busy = False
        self._idle = asyncio.Event()
        self._idle.set()

    def listen(self, listener: Listener, *kinds: str) -> None:
        """Call a listener with the changes of every commit, after those that listen already.

        It hears only of the kinds of events that begin so, if any are named, and of a commit without one nothing.
        """
        self._listeners.append((listener, kinds or ("",)))

    async def read(self, job: Job[T]) -> T:
        """Run a job that only reads, beside the writer."""
        try:
            return await self._loop.run_in_executor(self._readers, self._store.read, job)
        except Unavailable:
            await self.write(lambda tx: None)  # only the writer can rescue a board whose file is gone, and say where
            raise

    def write(self, job: Job[T], *, long: bool = False) -> asyncio.Future[T]:
        """Queue a job and return its value or its error to come, after the commit; a `long` one may take its time."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append((future, job, long))
        if not self._busy:
            self._busy = True
            self._idle.clear()
            self._loop.call_soon(self._next)
        return future

    async def stop(self) -> None:
        """Finish what waits to be written."""
        await self._idle.wait()
        self._writer.shutdown()

    def close(self) -> None:
        """Let the readers go."""
        self._readers.shutdown()

    def _next(self) -> None:
        """Begin the next transaction, or rest; a job that may take its time has one of its own."""
        if not self._waiting:
            self._busy = False
            self._idle.set()
            return
        batch = [self._waiting.popleft()]
        is_long = batch[0][2]
        while self._waiting and len(batch) < MAX_JOBS_PER_COMMIT and not is_long and not self._waiting[0][2]:
            batch.append(self._waiting.popleft())
        jobs = [job for _, job, _ in batch]
        if is_long:
            self._in_thread(batch, self._store.run, jobs)
            return
        outcomes: list[Outcome[Any]] | Exception
        try:
            staged = self._store.stage(jobs)
            if staged.wrote:
                self._in_thread(batch, self._store.commit, staged)
                return
            outcomes = self._store.commit(staged)
        except Exception as error:  # noqa: BLE001 - whatever it is, everyone in the batch has to hear of it
            outcomes = error
        self._answer(batch, outcomes)

    def _in_thread(self, batch: list[Waiting], work: Callable[[G], list[Outcome[Any]]], given: G) -> None:
        """Do what waits for the disk beside the loop, then answer."""
        running = self._loop.run_in_executor(self._writer, work, given)
        running.add_done_callback(lambda done: self._answer(batch, done.exception() or done.result()))

    def _answer(self, batch: list[Waiting], outcomes: list[Outcome[Any]] | BaseException) -> None:
        """Answer a batch, tell of its changes, and go on; what takes its time is queued anew, to be run alone."""
        if isinstance(outcomes, BaseException):
            known = isinstance(outcomes, CoveyError)
            log.log(logging.WARNING if known else logging.ERROR, "a batch was not committed", exc_info=outcomes)
            outcomes = [Outcome(None, error=outcomes) for _ in batch]
        for (future, job, _), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome.error, TakesTime):
                self._waiting.append((future, job, True))
            elif future.cancelled():
                continue
            elif outcome.error is None:
                future.set_result(outcome.value)
            else:
                future.set_exception(outcome.error)
        self._loop.call_soon(self._next)
        changes = [change for outcome in outcomes for change in outcome.changes]
        for listener, kinds in self._listeners:
            if heard := [change for change in changes if change.kind.startswith(kinds)]:
                listener(heard)


class Direct:
    """The same for a command without a daemon: each job runs here and now."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def read(self, job: Job[T]) -> T:
        """Run a job that only reads."""
        return self._store.read(job)

    async def write(self, job: Job[T], *, long: bool = False) -> T:
        """Run a job and commit it."""
        value: T = self._store.run([job])[0].result()
        return value
