"""The one writer: what happens to a job that takes its time, and to a batch that cannot be ended."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from covey.core.events import Started
from covey.core.fleet.sessions import COVEY
from covey.errors import Refused, Unavailable
from covey.store.bus import Bus
from covey.store.engine.rows import Change
from covey.store.engine.sqlite import SqliteStore, Staged
from covey.store.tx import Tx


def note(tx: Tx) -> int:
    """Append one event."""
    return tx.append(COVEY, "daemon", Started("test"))


def take_time(tx: Tx) -> str:
    """Write, then find out that this will be long; return where it was run in the end."""
    note(tx)
    tx.take_time()
    return threading.current_thread().name


def refuse(tx: Tx) -> None:
    """Write, and be refused."""
    note(tx)
    raise Refused("No.")


def test_a_job_that_takes_its_time_is_run_once_beside_the_loop(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "covey.db")
    told: list[Change] = []

    async def run() -> list[Any]:
        writer = Bus(store)
        writer.listen(told.extend)
        answers = await asyncio.gather(
            writer.write(note), writer.write(take_time), writer.write(note), return_exceptions=True
        )
        await writer.stop()
        return list(answers)

    before = store.head.seq
    first, where, second = asyncio.run(run())
    assert (first, second) == (before + 1, before + 2)
    assert where.startswith("covey-writer")
    assert store.head.seq == before + 3
    assert [change.seq for change in told] == [before + 1, before + 2, before + 3]
    store.close()


def test_a_refusal_after_a_write_spoils_no_other_of_its_batch(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "covey.db")

    async def run() -> list[Any]:
        writer = Bus(store)
        answers = await asyncio.gather(
            writer.write(note), writer.write(refuse), writer.write(note), return_exceptions=True
        )
        await writer.stop()
        return list(answers)

    before = store.head.seq
    first, refused, second = asyncio.run(run())
    assert (first, second) == (before + 1, before + 2)
    assert isinstance(refused, Refused)
    assert store.head.seq == before + 2
    store.close()


class FailsToEnd(SqliteStore):
    """A store whose disk fails once, when a transaction in which nothing was written ends."""

    failures = 1

    def commit(self, staged: Staged) -> list[Any]:
        if not staged.wrote and self.failures:
            self.failures -= 1
            super().commit(staged)
            raise Unavailable("The disk failed.") from apsw.IOError()
        return super().commit(staged)


def test_the_writer_goes_on_after_the_end_of_a_batch_failed(tmp_path: Path) -> None:
    store = FailsToEnd(tmp_path / "covey.db")

    async def run() -> int:
        writer = Bus(store)
        with pytest.raises(Unavailable):
            await writer.write(lambda tx: None)
        seq: int = await asyncio.wait_for(writer.write(note), 30)
        await writer.stop()
        return seq

    assert asyncio.run(run()) == store.head.seq
    store.close()
