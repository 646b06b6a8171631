"""covey clean finds what a crash left, removes nothing that is in use or not covey's, and loses no work."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from covey.git import project as projects
from covey.git.project import Project
from covey.git.rescue.rescue import rescue
from covey.git.worktrees.worktrees import Worktrees
from covey.runners.tmux import socket_of
from tests.worlds.projects import GOOD, SCRIPTED, Line
from tests.worlds.serving import wait_until

MONTH_S = 30 * 86_400.0
LONG_AGO_S = 200 * 86_400.0
WRITES = "write done.txt\n    done\ncommit Done\n"


def _project(line: Line) -> Project:
    return projects.find(line.root)


def _worktrees(line: Line) -> Worktrees:
    return Worktrees(_project(line), line.worktrees)


def _ages(path: Path, seconds: float) -> None:
    """Let a file be as old as that."""
    at = time.time() - seconds
    os.utime(path, (at, at))


def _ended_run(line: Line) -> str:
    """Let ada land a task and go, and return her run."""
    line.up()
    line.ok("task", "add", "Land it", "--body", WRITES)
    line.start_session("ada")
    line.wait_for("T-1", "done")
    [run] = {each["subject"] for each in line.events("run.ended")}
    line.ok("session", "remove", "ada", "--force")
    wait_until(lambda: not line.refs("refs/heads/covey"), "the end of the branch")
    return str(run)


def _is_kept(line: Line, run: str) -> Callable[[], bool]:
    return (line.state / "runs" / run / "transcript.gz").exists


def _ghost(line: Line, name: str, task: str) -> Path:
    """Leave a worktree behind whose session nobody knows, with work in it that git would lose."""
    worktrees = _worktrees(line)
    worktrees.prepare(name, f"covey/{task}", "main")
    worktrees.release(name)
    (worktrees.path(name) / "unsaved.txt").write_text(f"work of {name}\n")
    return worktrees.path(name)


def _gone_long_ago(line: Line, session: str) -> None:
    """Let a session have been removed a month ago; no daemon runs."""
    db = apsw.Connection(str(_project(line).database))
    db.execute("UPDATE sessions SET updated = ? WHERE name = ?", (time.time() - MONTH_S, session))
    db.close()


@contextmanager
def _terminal(line: Line, name: str) -> Iterator[Callable[[], bool]]:
    """Leave a session of covey's own tmux server behind, and yield what says whether it is there."""
    tmux = ["tmux", "-f", "/dev/null", "-S", str(socket_of(line.state / "runs"))]
    subprocess.run([*tmux, "new-session", "-d", "-s", name, "sleep 1000"], check=True)
    try:
        yield (
            lambda: (
                subprocess.run([*tmux, "has-session", "-t", f"={name}"], capture_output=True, check=False).returncode
                == 0
            )
        )
    finally:
        subprocess.run([*tmux, "kill-session", "-t", f"={name}"], capture_output=True, check=False)


def _told(found: dict[str, Any]) -> dict[str, list[str]]:
    return {each["kind"]: [one["name"] for one in each["some"]] for each in found["kinds"] if each["some"]}


@pytest.mark.parametrize("has_daemon", [True, False])
def test_what_a_crash_left_goes_and_what_only_looks_like_it_stays(
    made: Callable[..., Line], *, has_daemon: bool
) -> None:
    line = made(SCRIPTED, GOOD)
    run = _ended_run(line)
    wait_until(_is_kept(line, run), "the transcript")
    line.ok("task", "add", "Dropped")
    line.ok("task", "drop", "T-2")
    line.ok("task", "add", "Open")
    line.ok("down")
    ghost = _ghost(line, "ghost", "T-9")
    line.git("branch", "covey/T-1", "main")
    for name in (
        "covey/T-2",
        "covey/T-3",
        "covey/users-own",
        "covey/T-77",
    ):  # never worked on, of an open task, of none
        line.git("branch", name, "main")
    (line.worktrees / "ghostly").mkdir()
    (line.worktrees / "ghostly" / "mine.txt").write_text("mine\n")
    at = time.time() - MONTH_S
    assert rescue(_project(line), ghost, session="ada", why="a test", at=at, own=_worktrees(line).git_dir("ghost"))
    _gone_long_ago(line, "ada")
    [gate_log] = (line.state / "gates").glob("*.log.gz")
    _ages(gate_log, LONG_AGO_S)
    _ages(line.state / "runs" / run / "output", LONG_AGO_S)
    (line.state / "runs" / "run-like").mkdir()
    _ages(line.state / "runs" / "run-like", LONG_AGO_S)
    [old_rescue] = line.json("rescue", "list")
    with _terminal(line, run) as is_there, _terminal(line, "mine") as is_mine_there:
        if has_daemon:
            line.up()
        shown = line.json("clean")
        assert _told(shown) == {
            "run output": [run],
            "gate log": [gate_log.name],
            "rescue": [old_rescue["id"]],
            "worktree": ["ghost"],
            "branch": ["covey/T-1"],
            "tmux session": [run],
        }
        assert not shown["done"] and shown["count"] == 6 and shown["bytes"] > 0
        assert line.json("clean", "--dry-run") == shown
        assert ghost.exists() and is_there() and gate_log.exists() and "covey/T-1" in line.git("branch", "-a")
        done = line.json("clean", "--yes")
        assert done["done"] and done["count"] == 6 and done["left"] == 0
        assert not is_there() and is_mine_there()
    assert not ghost.exists() and not gate_log.exists()
    assert (line.worktrees / "ghostly" / "mine.txt").read_text() == "mine\n"
    assert (line.state / "runs" / "run-like").exists()
    assert {name.removeprefix("refs/heads/") for name in line.refs("refs/heads/covey")} == {
        "covey/T-2", "covey/T-3", "covey/T-9", "covey/users-own", "covey/T-77",
    }  # fmt: skip
    [saved] = line.json("rescue", "list")
    assert saved["session"] == "ghost"
    line.ok("rescue", "restore", "ghost", "--to", str(line.outside / "back"))
    assert (line.outside / "back" / "unsaved.txt").read_text() == "work of ghost\n"
    assert "Land it" not in line.ok("clean") and line.json("clean")["count"] == 0
    assert line.json("session", "logs", "ada", "--run", run)["transcript"], "the transcript stays"


def test_what_is_in_use_is_never_listed(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    line.ok("task", "add", "Long", "--body", f"run touch {line.mark('begun')}\nhang\n")
    line.start_session("ada")
    wait_until(line.mark("begun").exists, "the agent")
    [run] = line.agents()
    _ages(line.state / "runs" / run / "output", LONG_AGO_S)
    assert _told(line.json("clean", "--yes")) == {}
    assert (line.worktrees / "ada").exists() and "covey/T-1" in line.git("branch", "-a")
    line.ok("session", "remove", "ada", "--force")


def test_a_clean_that_is_killed_loses_nothing_and_the_next_one_finishes(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    names = [f"ghost-{number}" for number in range(5)]
    places = [_ghost(line, name, f"T-{number}") for number, name in enumerate(names)]
    for number in range(10):
        cleaning = line.begin("clean", "--yes")
        with suppress(subprocess.TimeoutExpired):
            cleaning.wait(0.2 + number * 0.1)
        cleaning.kill()
        cleaning.communicate()
    line.ok("clean", "--yes")
    assert line.json("clean")["count"] == 0
    assert not any(place.exists() for place in places)
    assert {each["session"] for each in line.json("rescue", "list")} == set(names)
    for name in names:
        line.ok("rescue", "restore", name, "--to", str(line.outside / name))
        assert (line.outside / name / "unsaved.txt").read_text() == f"work of {name}\n"
