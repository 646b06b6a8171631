"""Work that changes nothing is not called landed, and takes no credit for the commit of another."""

from __future__ import annotations

from collections.abc import Callable

from tests.line.lines import GOOD, SHELL, Line

ONCE = "[board]\ntries = 1\n"


def test_commits_that_change_nothing_land_nothing(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD, ONCE)
    before = line.git("rev-parse", "main")
    said = line.ends(1, "run", line.tasks({"title": "Idle", "body": "git commit -q --allow-empty -m nothing\n"}))
    assert "change nothing" in said
    assert line.statuses() == {"Idle": "blocked"}
    assert line.git("rev-parse", "main") == before


def test_what_main_has_already_is_done_and_its_line_is_still_its_authors(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD)
    line.commit("note.txt", "by the user\n")
    line.up()
    line.ok("task", "add", "There already")
    line.ok("task", "claim", "T-1", "--as", "ada")
    line.ok("task", "handin", "T-1", "--as", "ada", "--commit", "main")
    line.wait_for("T-1", "done")
    told = line.json("why", "note.txt:1")
    assert (told["merge"], told["task"]) == (None, None)
    assert "was in main before" in line.ends(5, "merge", "revert", "T-1")
    line.ok("down")
