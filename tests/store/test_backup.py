"""A copy of a store that others write to meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from covey.errors import Invalid, Refused, Unavailable
from covey.store.engine import audit
from covey.store.engine.backup import backup
from covey.store.engine.lock import WriterLock
from covey.store.engine.sqlite import SqliteStore
from tests.worlds.stories import Project, Teller, a_rich_story


def _hammer(path: Path, lock: Path, stop: threading.Event, seed: int) -> None:
    """Write as a covey without a daemon does: take the lock, open, write, close, give it back."""
    while not stop.is_set():
        with WriterLock(lock):
            project = Project(path)
            Teller(project).tell(a_rich_story(seed, 12))
            project.close()
        seed += 4


def test_a_copy_made_under_four_writers_is_whole_and_a_part_of_the_log(tmp_path: Path) -> None:
    path, lock = tmp_path / "covey.db", tmp_path / "lock"
    Project(path).close()
    stop = threading.Event()
    writers = [threading.Thread(target=_hammer, args=(path, lock, stop, seed)) for seed in range(4)]
    for writer in writers:
        writer.start()
    copies = [tmp_path / f"copy-{number}.db" for number in range(40)]  # few enough, and a race would pass unseen
    ends = [backup(path, copy) for copy in copies]
    stop.set()
    for writer in writers:
        writer.join()
    assert ends == sorted(ends)
    assert ends[-1] > ends[0], "nobody wrote meanwhile"
    whole = _events(path)
    for copy, end in zip(copies, ends, strict=True):
        assert _events(copy) == whole[:end]
    for copy in copies[::8]:
        assert audit.verify(copy).problems == []
    assert audit.verify(path).problems == []


def _events(path: Path) -> list[tuple[object, ...]]:
    db = apsw.Connection(str(path))
    found = db.execute("SELECT * FROM events ORDER BY seq").fetchall()
    db.close()
    return found


def test_a_copy_can_be_used_as_a_store(tmp_path: Path) -> None:
    project = Project(tmp_path / "covey.db")
    project.ask("task.add", title="Before")
    backup(project.path, tmp_path / "copy.db")
    project.ask("task.add", title="After")
    project.close()
    copy = Project(tmp_path / "copy.db")
    assert [task["title"] for task in copy.ask("task.list")] == ["Before"]
    assert copy.ask("task.add", title="Another")["id"] == "T-2"
    copy.close()
    assert audit.verify(copy.path).problems == []


def test_a_file_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "covey.db").close()
    target = tmp_path / "precious"
    target.write_text("mine")
    with pytest.raises(Refused, match="exists already"):
        backup(tmp_path / "covey.db", target)
    with pytest.raises(Invalid, match="not a folder"):
        backup(tmp_path / "covey.db", tmp_path / "nowhere" / "copy.db")
    assert target.read_text() == "mine"


def test_a_store_that_is_not_there_leaves_no_copy(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        backup(tmp_path / "covey.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_cannot_be_used_is_taken_away_again(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "covey.db").close()
    source = tmp_path / "source.db"
    backup(tmp_path / "covey.db", source)
    whole = bytearray(source.read_bytes())
    whole[8192:] = b"\xff" * (len(whole) - 8192)
    source.write_bytes(whole)
    with pytest.raises(Unavailable):
        backup(source, tmp_path / "copy.db")
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("copy")] == []
