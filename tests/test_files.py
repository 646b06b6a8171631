"""Files where others may write too: what they put in the place of one is neither followed nor waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from covey import files
from covey.app.history import run_streams

Put = Callable[[Path, Path], object]
INSTEAD: dict[str, Put] = {
    "a link": lambda place, theirs: place.symlink_to(theirs),
    "a pipe": lambda place, _: os.mkfifo(place),
    "a folder": lambda place, _: place.mkdir(),
}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    path = tmp_path / "profile"
    path.write_text("# the user's\n")
    return path


@pytest.mark.parametrize("put", INSTEAD.values(), ids=INSTEAD)
def test_what_is_no_file_is_neither_read_nor_written(tmp_path: Path, theirs: Path, put: Put) -> None:
    place = tmp_path / "place"
    put(place, theirs)
    with pytest.raises(OSError, match="place"):
        files.read(place)
    with pytest.raises(OSError, match="place"):
        files.append(place, "evil\n")
    assert theirs.read_text() == "# the user's\n"


def test_nothing_is_added_in_a_folder_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="run"):
        files.append(tmp_path / "run" / "hooks", "evil\n")
    assert not list((tmp_path / "other").iterdir())


def test_a_text_is_added_to_and_read(tmp_path: Path) -> None:
    files.append(tmp_path / "hooks", "one\n")
    files.append(tmp_path / "hooks", "two\n")
    assert files.read(tmp_path / "hooks") == "one\ntwo\n"
    assert files.read(tmp_path / "hooks", 3) == "one"


def test_the_end_of_a_journal_is_not_noted_through_a_link(tmp_path: Path, theirs: Path) -> None:
    folder, journal = tmp_path / "run", tmp_path / "talk.jsonl"
    folder.mkdir()
    journal.write_text("{}\n")
    (folder / run_streams.NOTE).write_text(run_streams.expect_journal(str(journal), taken_up=False))
    (folder / f"{run_streams.NOTE}.new").symlink_to(theirs)
    run_streams.close_journal(folder)
    assert run_streams.find_journal(folder) == run_streams.Journal(str(journal), 0, 3)
    assert theirs.read_text() == "# the user's\n"
