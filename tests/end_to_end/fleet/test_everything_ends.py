"""Everything comes to an end: gates, errands, runs of two on one task, and covey run itself."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.worlds.projects import GOOD, SCRIPTED, SHELL, Line, alive, answers, kill, processes_of, sleepers_of
from tests.worlds.serving import wait_until

SLOW = '[merge]\ncheck = "echo $$ >> $OUTSIDE/gates; test ! -e slow || sleep 600"\n'
"""A gate that never ends on a tree with a file `slow`, and says that it is there."""
SLOW_TASK = {"title": "Slow", "body": "write slow\n    slow\ncommit Slow\n"}


def _gate(line: Line) -> int:
    """Wait for the first gate, and return what it runs."""
    wait_until(lambda: line.marks("gates") != [] and sleepers_of(line.folder) != [], "the gate")
    return sleepers_of(line.folder)[0]


# Gates


def test_a_gate_ends_with_the_daemon(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, SLOW)
    line.up()
    line.ok("task", "add", SLOW_TASK["title"], "--body", SLOW_TASK["body"])
    line.start_session("ada")
    gate = _gate(line)
    line.ok("down")
    assert not alive(gate)
    wait_until(lambda: processes_of(line.folder) == [], "the end of all processes")
    (merge,) = line.json("merge", "list")
    assert merge["state"] in ("queued", "testing")
    line.ok("task", "drop", "T-1", "Too slow.")
    line.ok("session", "remove", "ada")
    line.assert_nothing_left(branches=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_gate_ends_with_a_run_that_is_interrupted(made: Callable[..., Line], number: int) -> None:
    line = made(SCRIPTED, SLOW)
    running = line.begin("run", line.tasks(SLOW_TASK))
    gate = _gate(line)
    running.send_signal(number)
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 130, said
    assert not alive(gate)
    line.assert_nothing_left(branches=True)


@pytest.mark.soak
def test_a_gate_that_a_killed_daemon_left_alone_is_ended_by_the_next(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, SLOW)
    daemon = line.up()
    line.ok("task", "add", SLOW_TASK["title"], "--body", SLOW_TASK["body"])
    line.start_session("ada")
    gate = _gate(line)
    kill([daemon])
    wait_until(lambda: not alive(daemon), "the end of the daemon")
    assert alive(gate)
    line.up()
    wait_until(lambda: not alive(gate), "the end of the old gate")
    wait_until(lambda: len(line.marks("gates")) == 2, "the next gate")
    line.ok("down")
    assert sleepers_of(line.folder) == []


def test_a_gate_ends_with_the_task_that_was_dropped_and_the_next_is_tested(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, SLOW)
    line.up()
    line.ok("task", "add", SLOW_TASK["title"], "--body", SLOW_TASK["body"])
    line.ok("task", "add", "Next")
    line.start_session("ada")
    gate = _gate(line)
    line.wait_for("T-2", "merging")
    line.ok("task", "drop", "T-1", "Too slow.")
    line.wait_for("T-2", "done")
    assert not alive(gate)
    assert line.landed() == ["Next"]
    assert line.task("T-1")["status"] == "dropped"
    assert line.task("T-1")["tries"] == []
    line.ok("session", "remove", "ada")
    line.ok("down")
    line.assert_nothing_left(branches=True)


# Errands


def _is_errand(line: Line) -> bool:
    try:
        return bool(json.loads((line.state / "daemon.json").read_text())["errand"])
    except (OSError, ValueError, KeyError):
        return False


@pytest.mark.soak
def test_a_daemon_that_is_started_during_an_errand_stays(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    line.ok("task", "add", "One", "--body", f"ignore TERM\nrun touch {line.mark('at-work')}\nhang\n")
    line.start_session("ada")
    wait_until(line.mark("at-work").exists, "the agent at work")
    line.ok("down")
    stopping = line.begin("session", "stop", "ada")
    wait_until(lambda: _is_errand(line), "the errand")
    daemon = line.up()
    said, _ = stopping.communicate(timeout=120)
    assert stopping.returncode == 0, said
    assert alive(daemon)
    assert answers(line)()
    assert not _is_errand(line)
    assert line.agents() == {}
    line.ok("task", "drop", "T-1", "Never ends.")
    line.ok("task", "add", "Two")
    line.ok("session", "start", "ada")
    line.wait_for("T-2", "done")
    line.ok("down")


@pytest.mark.parametrize("part", [0, 3, *(pytest.param(part, marks=pytest.mark.soak) for part in (1, 2))])
def test_a_daemon_that_is_started_at_any_moment_of_an_errand_stays(made: Callable[..., Line], part: int) -> None:
    line = made(SCRIPTED, GOOD)
    line.ok("session", "new", "ada", "--agent", "scripted")
    errands = [line.begin("session", "stop", "ada") for _ in range(part + 1)]
    daemon = line.up()
    for errand in errands:
        said, _ = errand.communicate(timeout=120)
        assert errand.returncode == 0, said
    assert alive(daemon)
    assert answers(line)()
    line.ok("down")


# Two on one task


def test_nobody_begins_a_task_that_was_taken_from_another_before_that_ones_run_has_ended(
    made: Callable[..., Line],
) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    body = f"run echo $COVEY_SESSION >> {line.mark('begun')}\nignore TERM\nwait for {line.mark('go')}\n"
    line.ok("task", "add", "One", "--body", body + "write one.txt\n    one\ncommit One\n")
    line.start_session("ada")
    wait_until(lambda: line.marks("begun") == ["ada"], "ada at work")
    line.start_session("bob")
    line.ok("task", "release", "T-1")
    wait_until(lambda: len(line.marks("begun")) == 2, "another run")
    line.mark("go").touch()
    line.wait_for("T-1", "done")
    at_work: set[str] = set()
    for event in line.json("log", "-n", "1000"):
        if event["kind"] == "run.begun":
            assert at_work == set()
            at_work.add(event["subject"])
        elif event["kind"] == "run.ended":
            at_work.remove(event["subject"])
    assert line.landed() == ["One"]
    line.ok("down")


# covey run


@pytest.mark.soak
def test_a_run_ends_where_work_from_outside_waits_for_a_person(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED)
    line.ok("task", "add", "One")
    line.ok("task", "claim", "T-1", "--as", "eve")
    line.git("switch", "-q", "-c", "eve")
    commit = line.commit("eve.txt", "eve\n")
    line.git("switch", "-q", "main")
    line.ok("task", "handin", "T-1", "--as", "eve", "--branch", "eve", "--commit", commit)
    said = line.ends(1, "run")
    (merge,) = line.json("merge", "list")
    assert f"covey merge approve {merge['id']}" in said
    line.ok("merge", "approve", merge["id"])
    assert line.landed() == ["One"]
    assert line.git("show", "main:eve.txt") == "eve"
    line.assert_nothing_left()


@pytest.mark.parametrize("has_work", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_task_whose_branch_a_user_has_is_blocked_and_the_others_land(
    made: Callable[..., Line], has_work: bool
) -> None:
    line = made(SCRIPTED, GOOD)
    users = line.folder / "users"
    line.git("worktree", "add", "-q", "-b", "covey/T-1", str(users))
    if has_work:
        (users / "mine.txt").write_text("mine\n")
        line.git("add", ".", at=users)
        line.git("commit", "-q", "-m", "Mine", at=users)
    at = line.git("rev-parse", "covey/T-1")
    said = line.ends(1, "run", "One", "Two", "Three")
    assert str(users) in said
    assert line.statuses() == {"One": "blocked", "Two": "done", "Three": "done"}
    assert str(users) in line.json("task", "show", "T-1")["tries"][0]["what"]
    assert line.git("rev-parse", "covey/T-1") == at
    assert line.git("status", "--porcelain", at=users) == ""
    assert line.git("symbolic-ref", "--short", "HEAD", at=users) == "covey/T-1"
    line.git("switch", "-q", "--detach", at=users)
    line.ok("task", "edit", "T-1", "--status", "todo")
    line.ok("run")
    assert line.statuses()["One"] == "done"
    assert sorted(line.landed()) == ["One", "Three", "Two"]
    assert "mine.txt" not in line.git("ls-tree", "-r", "--name-only", "main").splitlines()
    assert list(line.refs("refs/covey/kept").values()) == ([at] if has_work else [])
    line.assert_nothing_left()


def test_a_folder_in_the_place_of_a_worktree_blames_no_task(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    (line.worktrees / "ada").mkdir(parents=True)
    (line.worktrees / "ada" / "mine.txt").write_text("mine\n")
    line.up()
    line.ok("task", "add", "One")
    line.start_session("ada")
    line.wait_for("T-1", "done")
    assert line.task("T-1")["tries"] == []
    assert "mine.txt" not in line.git("ls-tree", "-r", "--name-only", "main")
    assert (line.worktrees / "ada" / "mine.txt").read_text() == "mine\n"
    line.ok("down")


def test_a_session_is_removed_although_a_user_looks_at_its_empty_branch(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, "[board]\ntries = 1\n", GOOD)
    line.up()
    line.ok("task", "add", "One", "--body", "say I have nothing\n")
    line.start_session("ada")
    line.wait_for("T-1", "blocked")
    users = line.folder / "users"
    line.git_at_last("worktree", "add", "-q", str(users), "covey/T-1")
    line.ok("session", "remove", "ada")
    assert "ada" not in line.sessions()
    assert line.git("symbolic-ref", "--short", "HEAD", at=users) == "covey/T-1"
    assert line.git("status", "--porcelain", at=users) == ""
    line.ok("down")
    line.assert_nothing_left(branches=True)


def test_an_agent_that_gives_its_task_back_again_and_again_is_stopped(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD)
    body = "echo begun >> $COVEY_WORKTREE/../../outside/begun; covey task release $COVEY_TASK\n"
    said = line.ends(1, "run", line.tasks({"title": "One", "body": body}))
    assert "gave it back" in said
    assert line.statuses() == {"One": "blocked"}
    assert len(line.marks("begun")) == 3
    tried: list[dict[str, Any]] = line.json("task", "show", "T-1")["tries"]
    assert len(tried) == 3
    line.assert_nothing_left()
