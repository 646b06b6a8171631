"""The journals of terminal programs: a run hears its own part, and keeps it when another goes on in the same file."""

from __future__ import annotations

from pathlib import Path

from covey.app.history import run_streams
from covey.app.history.run_streams import Journal


def test_a_run_has_no_journal_before_its_program_begins_one(tmp_path: Path) -> None:
    assert run_streams.find_journal(tmp_path) is None
    pattern = str(tmp_path / "*" / "talk-1.jsonl")
    (tmp_path / run_streams.NOTE).write_text(run_streams.expect_journal(pattern, taken_up=False))
    assert run_streams.find_journal(tmp_path) is None
    run_streams.close_journal(tmp_path)
    file = tmp_path / "project" / "talk-1.jsonl"
    file.parent.mkdir()
    file.write_text("one\n")
    assert run_streams.find_journal(tmp_path) == Journal(str(file), 0), "noting the end of nothing notes nothing"


def test_of_a_conversation_that_goes_on_each_run_has_its_own_part(tmp_path: Path) -> None:
    file, first, second = tmp_path / "talk-1.jsonl", tmp_path / "run-1", tmp_path / "run-2"
    for folder in (first, second):
        folder.mkdir()
    (first / run_streams.NOTE).write_text(run_streams.expect_journal(str(file), taken_up=False))
    file.write_text("one\ntwo\n")
    for _ in range(2):
        run_streams.close_journal(first)
    (second / run_streams.NOTE).write_text(run_streams.expect_journal(str(file), taken_up=True))
    with file.open("a") as more:
        more.write("three\n")
    run_streams.close_journal(first)
    mine, theirs = run_streams.find_journal(first), run_streams.find_journal(second)
    assert mine is not None and theirs is not None
    assert (mine.size(), mine.read(0), mine.read(4), mine.read(8)) == (8, (b"one\ntwo\n", 8), (b"two\n", 8), (b"", 8))
    assert (theirs.size(), theirs.read(0), theirs.read(6)) == (6, (b"three\n", 6), (b"", 6))
    file.unlink()
    assert (mine.size(), mine.read(0)) == (0, (b"", 0)) and run_streams.find_journal(first) is None
