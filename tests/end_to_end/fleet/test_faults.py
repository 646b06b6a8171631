"""What goes wrong in a night: each fault ends in its verdict, its action, and one alert; silence alone ends nobody."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.worlds.projects import GOOD, SCRIPTED, SHELL, Line, alive, kill
from tests.worlds.serving import wait_until

ONCE = "[board]\ntries = 1\n"
STALLED = 6.0
"""Seconds without any sign after which a run is stalled here: a few looks at its processes."""
DONE = "write done.txt\n    done\ncommit Done\n"


def watching(**settings: float) -> str:
    """Return settings with which the watchdog has little patience."""
    quick = {"stalled_minutes": STALLED / 60, "backoff": 0.05} | settings
    return "[watch]\n" + "".join(f"{name} = {value}\n" for name, value in quick.items())


def started(line: Line, body: str, *, names: tuple[str, ...] = ("ada",), agent: str = "scripted") -> str:
    """Add a task, let sessions work the board, and return the task."""
    line.up()
    task = added(line, body)
    for name in names:
        line.start_session(name, agent)
    return task


def added(line: Line, body: str, title: str = "One") -> str:
    """Add a task and return its id."""
    with line.client() as client:
        return str(client.post("/api/board", {"title": title, "body": body})["id"])


def why(line: Line, name: str = "ada") -> dict[str, Any]:
    """Return what the watchdog thinks of a session."""
    with line.client() as client:
        found: dict[str, Any] = client.get(f"/api/sessions/{name}/why")
        return found


def states(line: Line, name: str = "ada") -> list[str]:
    """Return all states that a session was in, the oldest first."""
    return [event["data"]["state"] for event in line.events("session.changed") if event["subject"] == name]


def told(line: Line) -> list[str]:
    """Return the types of the alerts, the oldest first."""
    return [event["data"]["type"] for event in line.events("alert.raised")]


def outcomes(line: Line) -> list[str]:
    """Return what the runs that have ended came to, the oldest first."""
    return [event["data"]["outcome"] for event in line.events("run.ended")]


def age_of(verdict: dict[str, Any], words: str) -> float:
    """Return how many seconds old a clue of a verdict is, -1 if there is none with these words."""
    return max((clue["age"] for clue in verdict["clues"] if words in clue["text"]), default=-1.0)


# Ends


@pytest.mark.parametrize(
    ("body", "story"),
    [
        ("say I have nothing\n", "The run ended without a commit."),
        (f"{DONE}dirt left.txt\n", "The run left changes that it did not commit:"),
        (f"{DONE}trouble context: The prompt is too long\n", "The agent gave up: The prompt is too long"),
    ],
    ids=["nothing done", "dirty tree", "context overflow"],
)
def test_what_ends_without_being_done_is_a_try_with_its_story(made: Callable[..., Line], body: str, story: str) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    task = started(line, body)
    shown = line.wait_for(task, "blocked")
    assert shown["tries"][0]["what"].startswith(story)
    assert story in shown["reason"]
    assert (outcomes(line), told(line)) == (["failed"], ["task_blocked"])
    assert line.landed() == []


def test_a_crash_is_begun_again_after_a_while_and_is_no_try(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching(backoff=0.3, crashes=4))
    mark = line.mark("crashes")
    crash = f'run echo x >> {mark}; test "$(wc -l < {mark})" -gt 2 || kill -9 $PPID\n'
    task = started(line, f"{crash}{DONE}")
    assert line.wait_for(task, "done")["tries"] == []
    assert (outcomes(line), told(line)) == (["crashed", "crashed", "handed-in"], [])
    assert len(line.marks("crashes")) == 3
    begun, ended = (line.events(kind) for kind in ("run.begun", "run.ended"))
    waits = [later["time"] - earlier["time"] for earlier, later in zip(ended, begun[1:], strict=False)]
    assert waits[0] >= 0.27 and waits[1] >= 0.54, "it waits, and the second time twice as long"


def test_a_crash_loop_blocks_the_task_with_its_story_and_says_so_once(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD, watching(crashes=3))
    task = started(line, "say Here I go\ncrash SEGV\n")
    shown = line.wait_for(task, "blocked")
    reason = r"Its runs crashed 3 times in \d+ (?:s|min); the last time: The agent was ended by signal 11\."
    assert re.fullmatch(reason, shown["reason"])
    assert "Here I go" in shown["tries"][0]["what"]
    assert (outcomes(line), told(line)) == (["crashed"] * 3, ["crash_loop"])
    other = added(line, DONE, "Two")
    line.wait_for(other, "done")
    assert told(line) == ["crash_loop"]


def test_a_wrapper_that_is_killed_is_no_fault_of_the_task(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    first = line.mark("first")
    task = started(line, f"run test -e {first} || {{ touch {first}; sleep 1000; }}\n{DONE}")
    wait_until(first.exists, "the first run")
    kill(line.wrappers().values())
    assert line.wait_for(task, "done")["tries"] == []
    assert (outcomes(line), told(line)) == (["lost", "handed-in"], [])


# Silence


def test_a_run_that_hangs_is_stalled_and_ended_as_a_try(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD, watching(), "[board]\ntries = 2\n")
    task = started(line, f"say hanging\ntry 1: hang\n{DONE}")
    shown = line.wait_for(task, "done")
    (tried,) = shown["tries"]
    assert tried["what"].startswith("Stalled: no word, no request, no tool, no processor time.")
    assert "hanging" in tried["what"]
    assert (outcomes(line), told(line)) == (["failed", "handed-in"], ["stalled"])
    assert "stalled" in states(line)
    (alert,) = line.alerts()
    assert f"ada is stalled on {task}" in alert and "no request is under way and no tool runs" in alert


@pytest.mark.soak
def test_silence_while_a_build_runs_ends_nobody(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    pipe = line.mark("pipe")
    os.mkfifo(pipe)
    task = started(line, f"run read go < {pipe}\n{DONE}")
    wait_until(lambda: why(line)["rule"] == "silent, and something of it runs", "the verdict")
    wait_until(lambda: age_of(why(line), "processes of it live") > 3 * STALLED, "a long silence")
    assert why(line)["state"] == "working"
    with pipe.open("w") as file:
        file.write("go\n")
    assert line.wait_for(task, "done")["tries"] == []
    assert (outcomes(line), told(line)) == (["handed-in"], [])


@pytest.mark.soak
def test_silence_of_one_process_that_uses_the_processor_ends_nobody(made: Callable[..., Line]) -> None:
    line = made(SHELL, ONCE, GOOD, watching())
    go, begun = line.mark("go"), line.mark("begun")
    body = f"touch {begun}\nwhile [ ! -e {go} ]; do :; done\necho done > done.txt\ngit add .\ngit commit -qm Done\n"
    task = started(line, body, agent="sh")
    wait_until(begun.exists, "the work")
    wait_until(lambda: age_of(why(line), "it was started") > 3 * STALLED, "a long silence")
    assert (why(line)["state"], why(line)["rule"]) == ("working", "it works")
    go.touch()
    assert line.wait_for(task, "done")["tries"] == []
    assert (outcomes(line), told(line)) == (["handed-in"], [])


@pytest.mark.soak
def test_a_run_that_stands_still_is_not_stalled(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    begun, go = line.mark("begun"), line.mark("go")
    task = started(line, f"run touch {begun}\nwait for {go}\n{DONE}")
    wait_until(begun.exists, "the work")
    line.ok("session", "pause", "ada")
    wait_until(lambda: age_of(why(line), "held") > 2 * STALLED, "a long time")
    assert why(line)["state"] == "paused"
    go.touch()
    line.ok("session", "resume", "ada")
    assert line.wait_for(task, "done")["tries"] == []
    assert told(line) == []


@pytest.mark.soak
def test_a_run_that_waits_for_a_person_is_not_stalled(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    task = started(line, f"ask Which colour?\n{DONE}")
    wait_until(lambda: age_of(why(line), "Which colour?") > 2 * STALLED, "a long wait for a person")
    assert why(line)["state"] == "needs-you"
    line.ok("session", "send", "ada", "green")
    assert line.wait_for(task, "done")["tries"] == []
    assert told(line) == ["needs_you"]


# What does not want to end


def test_what_an_agent_leaves_in_the_background_ends_with_its_run(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    pid = line.mark("pid")
    away = f"run setsid sh -c 'echo $$ > {pid}; exec sleep 1000' > /dev/null 2>&1 & while [ ! -s {pid} ]; do :; done\n"
    task = started(line, f"{away}{DONE}")
    line.wait_for(task, "done")
    assert not alive(int(line.marks("pid")[0]))
    assert (outcomes(line), told(line)) == (["handed-in"], [])


@pytest.mark.soak
def test_a_run_that_hangs_and_ignores_being_asked_to_end_is_ended(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    task = started(line, f"ignore TERM\nignore INT\nignore HUP\nrun echo $PPID > {line.mark('pid')}\nhang\n")
    assert line.wait_for(task, "blocked")["tries"][0]["what"].startswith("Stalled:")
    assert not alive(int(line.marks("pid")[0]))
    assert (outcomes(line), told(line)) == (["failed"], ["stalled", "task_blocked"])


def test_a_run_over_its_time_is_ended_though_it_works(made: Callable[..., Line]) -> None:
    line = made('[sessions]\nagent = "scripted"\nrun_minutes = 0.05\n', ONCE, GOOD, watching())
    task = started(line, "say busy\nspin 1000\n")
    assert line.wait_for(task, "blocked")["tries"][0]["what"].startswith("The run took longer than 3 s.")
    assert (outcomes(line), told(line)) == (["failed"], ["task_blocked"])


# Repetition


def test_who_repeats_a_call_is_told_and_may_go_on(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching(repeats=4))
    task = started(line, "call shell make\n" * 4 + f"listen\ncall shell make test\n{DONE}")
    assert line.wait_for(task, "done")["tries"] == []
    said = line.ok("session", "logs", "ada")
    assert "heard: covey notices that you have done the same thing 4 times in a row. Step back" in said
    assert (outcomes(line), told(line)) == (["handed-in"], [])


def test_who_repeats_a_call_on_and_on_is_ended_as_stuck(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching(repeats=4))
    task = started(
        line, "call shell make\n" * 4 + "listen\n" + "call shell make\n" * 4 + f"wait for {line.mark('never')}\n"
    )
    (tried,) = line.wait_for(task, "blocked")["tries"]
    assert tried["what"].startswith("Stalled: it does the same again and again, and was told so.")
    assert "8 times in a row the same: shell make" in tried["what"]
    assert (outcomes(line), told(line)) == (["failed"], ["stalled", "task_blocked"])


# Providers


def test_a_limit_with_a_reset_is_waited_for_and_is_no_try(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    begun, go = line.mark("begun"), line.mark("go")
    task = started(line, f"run touch {begun}\nwait for {go}\ntrouble limit 12: 429, try later\n")
    wait_until(begun.exists, "the run")
    with line.client() as client:  # while it works: how long it waits afterwards is nobody's to rely on
        client.ask("PATCH", f"/api/board/{task}", {"body": DONE}).good()
    go.touch()
    assert line.wait_for(task, "done")["tries"] == []
    (limited,) = [each["data"] for each in line.events("session.changed") if each["data"]["state"] == "limited"]
    assert limited["evidence"] == "429, try later"
    ended, again = line.events("run.ended")[0]["time"], line.events("run.begun")[1]["time"]
    assert limited["until"] is not None and again >= limited["until"] > ended
    assert (outcomes(line), told(line)) == (["put-off", "handed-in"], ["agent_limit"])


@pytest.mark.soak
def test_a_trouble_without_a_reset_is_tried_again_after_a_while(made: Callable[..., Line]) -> None:
    line = made(SHELL, ONCE, GOOD, watching(backoff=0.2))
    mark = line.mark("runs")
    trouble = '{"covey": "failed", "text": "529: overloaded", "trouble": "overload"}'
    body = (
        f"echo x >> {mark}\n"
        f"if [ $(wc -l < {mark}) -le 3 ]; then echo '{trouble}'; exit 1; fi\n"
        "echo done > done.txt; git add .; git commit -qm Done\n"
    )
    task = started(line, body, agent="sh")
    assert line.wait_for(task, "done")["tries"] == []
    assert outcomes(line) == ["put-off"] * 3 + ["handed-in"]
    assert told(line) == ["agent_overload"], "once, however often it is met"
    assert "limited" in states(line)


@pytest.mark.soak
def test_who_is_put_off_by_its_provider_and_waits_itself_is_shown_as_limited(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching())
    go = line.mark("go")
    task = started(line, f"limited overload: 529, trying again\nwait for {go}\nsay Here I am\n{DONE}")
    wait_until(lambda: why(line)["state"] == "limited", "the state")
    wait_until(lambda: age_of(why(line), "529, trying again") > 2 * STALLED, "a long wait")
    go.touch()
    assert line.wait_for(task, "done")["tries"] == []
    assert told(line) == []


# Budgets


def test_a_run_over_its_budget_is_ended_as_a_try_before_it_spends_more(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching(), "[budget]\nrun = 1.0\n")
    task = started(line, f"spend sonnet 1000 100 0.4\nspend sonnet 1000 100 0.4\nwait for {line.mark('never')}\n")
    (tried,) = line.wait_for(task, "blocked")["tries"]
    assert tried["what"].startswith("The run spent $0.80 of the $1.00 that it was allowed.")
    assert (outcomes(line), told(line)) == (["failed"], ["task_blocked"])
    assert line.task(task)["cost"] == pytest.approx(0.8)


@pytest.mark.soak
def test_a_day_that_is_used_up_stops_dispatch_with_one_alert(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, ONCE, GOOD, watching(), "[budget]\nrun = 1.0\nday = 1.0\n")
    first = started(line, "spend sonnet 1000 100 0.04\n" * 24 + DONE, names=("ada", "ben"))
    line.wait_for(first, "done")
    second, third = added(line, "", "Two"), added(line, "", "Three")
    wait_until(lambda: {why(line, name)["state"] for name in ("ada", "ben")} == {"limited"}, "both to wait")
    assert "Of the $1.00 of today, $0.04 is left." in (why(line)["evidence"] or "")
    assert why(line)["until"] is not None
    assert (line.task(second)["status"], line.task(third)["status"]) == ("todo", "todo")
    assert told(line) == ["waits"]
    line.settings(SCRIPTED, ONCE, GOOD, watching(), "[budget]\nrun = 1.0\nday = 9.0\n")
    line.wait_for(second, "done")
    line.wait_for(third, "done")
    assert told(line) == ["waits"]


# Starts


def test_starts_are_staggered(made: Callable[..., Line]) -> None:
    line = made('[sessions]\nagent = "scripted"\nstagger = 0.4\n', GOOD, watching())
    line.up()
    tasks = [added(line, f"write {number}.txt\n    x\ncommit {number}\n", str(number)) for number in range(4)]
    for name in ("ada", "ben", "cem", "dot"):
        line.start_session(name)
    for task in tasks:
        line.wait_for(task, "done")
    begun = [event["time"] for event in line.events("run.begun")]
    assert len(begun) == 4
    assert all(later - earlier >= 0.39 for earlier, later in itertools.pairwise(begun)), begun
