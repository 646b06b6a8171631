"""The one writer thread: takes what waits, runs it in one transaction, hands the outcomes on after the commit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from covey.errors import CoveyError
from covey.store.rows import Change
from covey.store.sqlite import Job, Outcome, SqliteStore

MOST = 256
"""Jobs that share one commit at most."""

log = logging.getLogger("covey.store")
Ticket = Any
Deliver = Callable[[list[tuple[Ticket, Outcome[Any]]], list[Change]], None]


class Writer:
    """A queue of jobs before a store; `deliver` is called once per commit, in the writer's thread."""

    def __init__(self, store: SqliteStore, deliver: Deliver) -> None:
        self._store = store
        self._deliver = deliver
        self._queue: SimpleQueue[tuple[Ticket, Job[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="covey-writer", daemon=True)
        self._thread.start()

    def submit(self, ticket: Ticket, job: Job[Any]) -> None:
        """Queue a job; its outcome is delivered with its ticket."""
        self._queue.put((ticket, job))

    def stop(self) -> None:
        """Finish what waits, then end."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            batch = [first]
            stopping = self._take_more(batch)
            outcomes = self._run([job for _, job in batch])
            changes = [change for outcome in outcomes for change in outcome.changes]
            self._deliver([(ticket, outcome) for (ticket, _), outcome in zip(batch, outcomes, strict=True)], changes)
            if stopping:
                return

    def _take_more(self, batch: list[tuple[Ticket, Job[Any]]]) -> bool:
        while len(batch) < MOST:
            try:
                more = self._queue.get_nowait()
            except Empty:
                return False
            if more is None:
                return True
            batch.append(more)
        return False

    def _run(self, jobs: list[Job[Any]]) -> list[Outcome[Any]]:
        try:
            return self._store.run(jobs)
        except CoveyError as error:
            log.warning("a batch of %d was not committed: %s", len(jobs), error)
            return [Outcome(None, error=error) for _ in jobs]
        except Exception as error:
            log.exception("a batch of %d was not committed", len(jobs))
            return [Outcome(None, error=error) for _ in jobs]
