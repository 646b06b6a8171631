"""Work that changes nothing is not called landed, and takes no credit for the commit of another."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds.projects import GOOD, SHELL, Line

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
    line.ok("task", "claim", "T-1")
    line.ok("task", "handin", "T-1", "--commit", "main")
    line.wait_for("T-1", "done")
    assert "was in main before: it brought nothing of its own" in line.ok("merge", "why", "T-1")
    told = line.json("why", "note.txt:1")
    assert (told["merge"], told["task"]) == (None, None)
    assert "was in main before" in line.ends(5, "merge", "revert", "T-1")
    line.ok("down")


def test_what_came_to_main_for_another_task_is_no_work_on_this_one(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD)
    line.up()
    for number in (1, 2, 3):
        line.ok("task", "add", f"Task {number}")
        line.ok("task", "claim", f"T-{number}", "--as", "zoe")
    said = line.ends(5, "task", "handin", "T-1", "--as", "zoe", "--commit", "main~0")
    assert "main has" in said and "so there is no work on T-1 to land" in said and "Commit your work first" in said
    line.git("checkout", "-q", "-b", "mine")
    line.commit("one.txt", "one\n")
    line.git("checkout", "-q", "main")
    line.ok("task", "handin", "T-1", "--as", "zoe", "--commit", "mine")
    line.wait_for("T-1", "done")
    assert "already, from T-1" in line.ends(5, "task", "handin", "T-2", "--as", "zoe", "--commit", "main")
    line.commit("three.txt", "three\n")  # merged by hand
    line.ok("task", "handin", "T-3", "--as", "zoe", "--commit", "main")
    line.wait_for("T-3", "done")
    line.ok("down")
