"""Whether the store's file is still ours, asked by readers and the writer at the same time."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from covey.store.engine import sqlite
from covey.store.engine.sqlite import Ground


def test_a_reader_that_looked_earlier_does_not_hide_what_another_program_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "covey.db"
    database.write_bytes(b"ours")
    ground = Ground(database)
    look, looked, written = sqlite._mark, threading.Event(), threading.Event()

    def slow(name: str) -> os.stat_result | None:
        mark = look(name)
        if threading.current_thread().name == "reader" and name == str(database):
            looked.set()
            assert written.wait(30)
        return mark

    monkeypatch.setattr(sqlite, "_mark", slow)
    reader = threading.Thread(target=ground.look, name="reader")
    reader.start()
    assert looked.wait(30)
    before = database.stat().st_mtime_ns
    while database.stat().st_mtime_ns == before:
        database.write_bytes(b"his!")
    assert ground.look() == (None, True)
    written.set()
    reader.join()
    assert ground.look() == (None, True)
