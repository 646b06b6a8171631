"""What covey says and knows: of broken gates, questions, results, mail, settings, titles and tries."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.worlds.projects import GOOD, SCRIPTED, Line, answers
from tests.worlds.serving import Client, wait_until


def _merges(line: Line) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = line.json("merge", "list")
    return found


# Gates that cannot be run


def _assert_all_wait(line: Line, said: str, count: int) -> None:
    """Assert that every merge waits for a gate, that nobody is blamed, and that a person was told once."""
    assert set(line.statuses().values()) == {"merging"}
    assert all(merge["state"] == "queued" and merge["reason"] for merge in _merges(line))
    assert len(_merges(line)) == count
    assert len(line.alerts()) == 1
    assert all(task["failed_tries"] == 0 for task in line.board().values())
    assert _merges(line)[0]["reason"] in said
    assert line.landed() == []


def test_a_gate_that_does_not_exist_blames_nobody(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, '[merge]\ncheck = "mak chek"\n')
    said = line.ends(1, "run", "-n", "2", "One", "Two", "Three")
    _assert_all_wait(line, said, 3)
    assert "mak chek" in line.alerts()[0]
    line.settings(SCRIPTED, GOOD)
    line.ok("run")
    assert sorted(line.landed()) == ["One", "Three", "Two"]
    line.assert_nothing_left()


@pytest.mark.soak
def test_a_folder_in_the_place_of_the_gate_is_left_and_the_gate_runs_elsewhere(
    made: Callable[..., Line],
) -> None:
    line = made(SCRIPTED, GOOD)
    place = line.worktrees / ".gate-1"
    place.mkdir(parents=True)
    (place / "mine.txt").write_text("mine\n")
    line.ok("run", "-n", "2", "One", "Two", "Three")
    assert sorted(line.landed()) == ["One", "Three", "Two"]
    assert (place / "mine.txt").read_text() == "mine\n"
    shutil.rmtree(line.worktrees)
    line.assert_nothing_left()


@pytest.mark.soak
def test_a_gate_that_cannot_be_made_blames_nobody(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    (line.state / "gates").write_text("In the way.\n")
    said = line.ends(1, "run", "-n", "2", "One", "Two", "Three")
    _assert_all_wait(line, said, 3)
    assert "The room of the gate cannot be made" in line.alerts()[0]
    (line.state / "gates").unlink()
    line.ok("run")
    assert sorted(line.landed()) == ["One", "Three", "Two"]
    line.assert_nothing_left()


@pytest.mark.soak
def test_a_gate_that_was_mended_is_run_again_while_the_daemon_is_up(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    (line.state / "gates").write_text("In the way.\n")
    line.up()
    line.ends(1, "run", "One", "Two")
    (line.state / "gates").unlink()
    line.ok("run")
    assert sorted(line.landed()) == ["One", "Two"]
    line.ok("down")
    line.assert_nothing_left()


def test_a_change_that_takes_the_gate_away_is_rejected_and_the_others_land(made: Callable[..., Line]) -> None:
    settings = '[merge]\ncheck = "./gate"\nprotect_check = false\n'
    line = made(SCRIPTED, settings, "[board]\ntries = 1\n", files={"gate": "#!/bin/sh\n"})
    (line.root / "gate").chmod(0o755)
    line.git("commit", "-q", "-a", "-m", "A gate that may be run")
    line.ends(1, "run", line.tasks({"title": "Bad", "body": "delete gate\ncommit Bad\n"}, {"title": "Good"}))
    assert line.statuses() == {"Bad": "blocked", "Good": "done"}
    (tried,) = line.json("task", "show", "T-1")["tries"]
    assert "exit code 127" in tried["what"]
    assert "gate" in line.git("ls-tree", "-r", "--name-only", "main").splitlines()


# Questions, results, time


def test_a_question_that_was_answered_is_not_asked_again_after_a_restart(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    body = f"ask Red or blue?\nrun touch {line.mark('answered')}\nwait for {line.mark('go')}\n"
    line.ok("task", "add", "One", "--body", body + "write colour\n    {answer}\ncommit One\n")
    line.start_session("ada")
    wait_until(lambda: line.sessions()["ada"]["state"] == "needs-you", "the question")
    line.ok("down")
    line.up()
    wait_until(lambda: line.sessions()["ada"]["state"] == "needs-you", "the question")
    line.ok("session", "send", "ada", "blue")
    wait_until(line.mark("answered").exists, "the answer")
    wait_until(lambda: line.sessions()["ada"]["state"] == "working", "the agent at work")
    line.ok("down")
    line.up()
    line.mark("go").touch()
    line.wait_for("T-1", "done")
    assert len(line.alerts()) == 1
    shown = [event["data"]["state"] for event in line.events("session.changed")]
    assert shown.count("needs-you") == 1, shown
    assert line.git("show", "main:colour") == "blue"
    line.ok("down")


def test_a_result_is_the_result_whatever_is_printed_after_it(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED)
    body = "result It is the cache.\nflood 2097152\n"
    line.ok("run", line.tasks({"title": "Look", "kind": "report", "body": body}))
    assert line.json("task", "show", "T-1")["result"] == "It is the cache."


@pytest.mark.soak
def test_a_pause_before_the_daemon_ended_is_no_time_at_work(made: Callable[..., Line]) -> None:
    minutes = 0.1
    line = made(f'[sessions]\nagent = "scripted"\nrun_minutes = {minutes}\n', GOOD)
    line.up()
    body = f"run touch {line.mark('at-work')}\nwait for {line.mark('go')}\nwrite a\n    a\ncommit a\n"
    line.ok("task", "add", "One", "--body", body)
    line.start_session("ada")
    wait_until(line.mark("at-work").exists, "the agent at work")
    line.ok("session", "pause", "ada")
    enough = time.monotonic() + minutes * 60
    line.ok("down")
    wait_until(lambda: time.monotonic() > enough, "more time than a run may take")
    line.up()
    line.mark("go").touch()
    line.ok("session", "resume", "ada")
    line.wait_for("T-1", "done")
    assert line.task("T-1")["tries"] == []
    line.ok("down")


# Mail


def test_mail_is_unread_until_the_program_that_is_told_it_has_started(made: Callable[..., Line]) -> None:
    line = made()
    program = line.folder / "agent"
    line.settings(f'[agents.mine]\ncommand = ["{program}", "{{prompt_file}}"]\n', GOOD, "[watch]\nbackoff = 0.05\n")
    program.write_text(f'#!/bin/sh\ncp "$1" {line.mark("prompt")}; date > a.txt; git add .; git commit -qm a\n')
    program.chmod(0o755)
    line.up()
    line.ok("session", "new", "ada", "--agent", "mine")
    aside = program.rename(line.folder / "aside")
    line.ok("mail", "send", "ada", "Mind the cache.")
    line.ok("task", "add", "One")
    line.ok("session", "start", "ada")
    wait_until(lambda: line.alerts() != [], "the alert")
    assert line.events("mail.delivered") == []
    aside.rename(program)
    line.wait_for("T-1", "done")
    assert "Mind the cache." in line.mark("prompt").read_text()
    assert [event["data"]["reader"] for event in line.events("mail.delivered")] == ["ada"]
    line.ok("down")


# Settings


def _told(line: Line) -> list[str]:
    """Return what the person was told of the settings."""
    return [alert for alert in line.alerts() if "covey.toml" in alert]


def _claimed_until(client: Client, task: str) -> float:
    """Return until when eve has a task, who takes it again if the settings of before have ended her claim."""
    found = client.get(f"/api/board/{task}")
    if found["status"] == "todo":
        found = client.post(f"/api/board/{task}/claim", {"session": "eve"})
        assert found["status"] == "doing"
    return float(found["until"])


def test_settings_that_break_hold_up_nothing_and_are_told_of_once(made: Callable[..., Line]) -> None:
    line = made("[board]\nclaim_ttl = 1\n")
    line.up()
    with line.client() as client:
        client.post("/api/board", {"title": "One"})
        client.post("/api/board/T-1/claim", {"session": "eve"})
        line.settings("[board]\nclaim_ttl = soon\n")
        wait_until(lambda: client.get("/api/board/T-1")["status"] == "todo", "the end of the claim")
        wait_until(lambda: len(_told(line)) == 1, "the alert")
        client.post("/api/board/T-1/claim", {"session": "eve"})
        wait_until(lambda: client.get("/api/board/T-1")["status"] == "todo", "the end of another claim")
        assert answers(line)()
        assert len(_told(line)) == 1
        line.settings("[board]\nclaim_ttl = 5000\n")
        wait_until(lambda: _claimed_until(client, "T-1") > time.time() + 1000, "the new settings")
    assert len(_told(line)) == 1
    line.ok("down")


# Titles and tries


def test_words_that_end_like_a_file_are_a_title(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.ok("run", "Fix the typo in README.md")
    assert line.statuses() == {"Fix the typo in README.md": "done"}


@pytest.mark.parametrize("order", [("tasks.jsonl", "And a title"), ("And a title", "tasks.jsonl")])
def test_a_file_among_titles_is_refused_before_anything_is_added(
    made: Callable[..., Line], order: tuple[str, str]
) -> None:
    line = made(SCRIPTED, GOOD)
    (line.root / "tasks.jsonl").write_text('{"title": "One"}\n')
    assert "tasks.jsonl is a file" in line.ends(2, "run", *order)
    assert line.board() == {}


@pytest.mark.soak
def test_a_blocked_task_that_is_tried_again_gets_as_many_tries_as_before(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD, "[board]\ntries = 2\n")
    body = f"run echo $COVEY_TRY >> {line.mark('tries')}\nrun test $COVEY_TRY = 4\nwrite a\n    a\ncommit a\n"
    line.ends(1, "run", line.tasks({"title": "One", "body": body}))
    assert line.statuses() == {"One": "blocked"}
    assert line.marks("tries") == ["1", "2"]
    line.ok("task", "edit", "T-1", "--status", "todo")
    line.ok("run")
    assert line.marks("tries") == ["1", "2", "3", "4"]
    assert line.landed() == ["One"]
