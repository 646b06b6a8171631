"""Whatever goes wrong with a real agent ends in a verdict, an action and an alert, and the work lands or is blocked."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model.environment import CODEX_MODEL, World
from tests.model.script import ALWAYS, Cut, Fail, Hang, Script, Shell, Step, Tool, Usage, Write
from tests.worlds.projects import Line, alive, kill
from tests.worlds.real_projects import (
    add,
    alerts,
    at_once,
    begin,
    commits,
    lands,
    outcomes,
    runs,
    story,
    wait_for_ends,
    wait_for_run,
    was,
    why,
    writing,
)
from tests.worlds.serving import wait_until

Real = Callable[..., Line]
QUICK = "backoff = 0.2\nbackoff_most = 1\n"
WATCH = f"[watch]\n{QUICK}"
IMPATIENT = f"{WATCH}stalled_minutes = 0.1\nrequest_minutes = 0.2\n"
LESS_SO = f"{WATCH}stalled_minutes = 0.05\nrequest_minutes = 0.1\n"
"""With time to start on a busy machine."""
NOTHING_YET = Step(do=(Shell("true"),))
MOSTLY = pytest.mark.parametrize("agent", ["claude", pytest.param("codex", marks=pytest.mark.soak)])
"""Where both do alike and Codex takes its time."""


def told(world: World, words: str) -> int:
    """Return how many requests to the model carried some words."""
    return sum(words in json.dumps(request.body, ensure_ascii=False) for request in world.model.requests)


def executable(path: Path, text: str) -> Path:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)
    return path


# It ends


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGINT, "exit code 0"), pytest.param(signal.SIGKILL, "signal 9", marks=pytest.mark.soak)],
)
def test_an_agent_that_goes_without_a_word_is_started_again_and_lands(
    real: Real, world: World, number: signal.Signals, said: str
) -> None:
    line = real(WATCH)
    steps = [NOTHING_YET, at_once("one.txt", hold="go"), at_once("one.txt"), Step(text="Done.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line)
    (pid,) = wait_for_run(line).values()
    wait_until(lambda: world.model.asked("one", 1) > 0, "its second request")
    kill([pid], number)
    wait_for_ends(line, 1)
    world.model.open("go")
    done = lands(line, task)
    first, second = runs(line, task)
    assert (first["outcome"], second["outcome"]) == ("crashed", "handed-in")
    assert said in first["what"]
    assert first["conversation"] == second["conversation"]
    assert was(line, "idle", "run-7 ended: The agent")
    assert done["tries"] == []
    assert alerts(line) == []


@pytest.mark.soak
def test_an_agent_that_goes_before_it_wrote_anything_down_begins_anew(real: Real, world: World) -> None:
    line = real(WATCH)
    held = Step(do=(Shell("true"),), hold="go")
    task = add(line, "One", world.model.add("one", writing("one.txt", first=held)))
    begin(line)
    (pid,) = wait_for_run(line).values()
    wait_until(lambda: world.model.asked("one") > 0, "its first request")
    kill([pid])
    wait_for_ends(line, 1)
    world.model.open("go")
    assert lands(line, task)["tries"] == []
    assert outcomes(line, task)[0] == "crashed"
    assert outcomes(line, task)[-1] == "handed-in"


@MOSTLY
def test_an_agent_that_did_nothing_is_told_so_and_its_task_is_blocked_in_the_end(
    real: Real, world: World, agent: str
) -> None:
    line = real(WATCH, "[board]\ntries = 2\n", agent=agent)
    task = add(line, "One", world.model.add("one", [Step(text="Done!"), Step(text="Done, I say!")]))
    begin(line, agent=agent)
    begin(line, "bob", agent=agent)
    blocked = line.wait_for(task, "blocked")
    assert outcomes(line, task) == ["failed", "failed"]
    first, second = runs(line, task)
    assert first["session"] == second["session"], "it goes on where it was, whoever else has nothing to do"
    assert first["conversation"] == second["conversation"] is not None
    assert "The run ended without a commit." in first["what"]
    assert [each["what"].splitlines()[0] for each in blocked["tries"]] == ["The run ended without a commit."] * 2
    assert "without a commit" in blocked["reason"]
    assert told(world, "What went wrong before (1 so far)") == 1
    assert alerts(line) == ["task_blocked"]


@MOSTLY
def test_what_was_left_uncommitted_is_a_try_is_kept_and_is_there_for_the_next_run(
    real: Real, world: World, agent: str
) -> None:
    line = real(WATCH, agent=agent)
    steps = [Step(do=(Write("one.txt", "one\n"),)), Step(text="Done!"), commits("One"), Step(text="Now it is.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line, agent=agent)
    done = lands(line, task)
    assert outcomes(line, task) == ["failed", "handed-in"]
    (tried,) = done["tries"]
    assert tried["what"].startswith("The run left changes that it did not commit: one.txt.")
    (ref,) = line.refs("refs/covey/rescue")
    assert f"covey rescue show {ref.removeprefix('refs/covey/rescue/')}" in tried["what"]
    assert line.git("show", "main:one.txt") == "one"
    assert alerts(line) == []


def test_an_agent_that_crashes_again_and_again_is_given_up_once(real: Real, world: World, tmp_path: Path) -> None:
    broken = executable(tmp_path / "broken", "#!/bin/sh\nkill -SEGV $$\n")
    line = real(f"{WATCH}crashes = 3\n", f'[agents.claude]\nprogram = "{broken}"\n')
    task = add(line, "One", "Nobody will read this.")
    begin(line)
    blocked = line.wait_for(task, "blocked")
    assert outcomes(line, task) == ["crashed"] * 3
    assert "Its runs crashed 3 times" in blocked["reason"] and "ended by signal 11" in blocked["reason"]
    assert len(alerts(line, of="crash_loop")) == 1
    assert world.model.requests == []


# Its model does not answer


@MOSTLY
def test_a_run_whose_model_does_not_answer_is_taken_up_again(real: Real, world: World, agent: str) -> None:
    line = real(LESS_SO, agent=agent)
    hangs = at_once("one.txt", troubles=(Hang(times=1, whoever=True),))
    task = add(line, "One", world.model.add("one", [NOTHING_YET, hangs, at_once("one.txt"), Step(text="Done.")]))
    begin(line, agent=agent)
    done = lands(line, task)
    first, *between, last = runs(line, task)  # on a busy machine so little patience may end another one
    assert {run["outcome"] for run in (first, *between)} == {"stopped"}
    assert last["outcome"] == "handed-in"
    assert first["conversation"] == last["conversation"]
    assert "its model does not answer" in first["what"]
    assert was(line, "stalled", "its model does not answer")
    assert done["tries"] == []
    assert alerts(line) == ["stalled"]


@pytest.mark.parametrize("kind", ["sleeps", pytest.param("burns", marks=pytest.mark.soak)])
def test_silence_while_a_tool_runs_harms_nobody(real: Real, world: World, kind: str) -> None:
    line = real(IMPATIENT, sessions='permissions = "full"\n')
    waits = f"while [ ! -e {line.mark('go')} ]; do {'sleep 0.2' if kind == 'sleeps' else ':'}; done"
    task = add(line, "One", world.model.add("one", writing("one.txt", first=Step(do=(Shell(waits),)))))
    begin(line)
    seen = "silent, and something of it runs" if kind == "sleeps" else "it works"
    started = time.time()
    wait_until(lambda: time.time() > started + 12 and why(line)["rule"] == seen, "twice the patience of silence")
    assert why(line)["state"] == "working"
    line.mark("go").touch()
    lands(line, task)
    assert outcomes(line, task) == ["handed-in"]
    assert alerts(line) == []


# Its conversation


def test_a_conversation_that_gets_too_long_is_made_shorter_and_goes_on(real: Real, world: World) -> None:
    line = real(WATCH)
    full = Step(do=(Shell("git status"),), usage=Usage(input=990_000, output=50))
    steps = (NOTHING_YET, NOTHING_YET, full, at_once("one.txt"), at_once("one.txt"), Step(text="Done."))
    script = Script(steps, summary=Step(hold="summary"))
    task = add(line, "One", world.model.add("one", script))
    begin(line)
    wait_until(lambda: why(line)["state"] == "compacting", "compaction")
    assert why(line)["rule"] == "its context was full"
    world.model.open("summary")
    assert lands(line, task)["tries"] == []
    assert outcomes(line, task) == ["handed-in"]
    assert [state for state, _ in story(line)].count("compacting") == 1
    assert alerts(line) == []


TOO_LONG = Fail(status=400, type="invalid_request_error", message="prompt is too long: 210000 tokens", whoever=True)


@pytest.mark.soak
def test_a_prompt_that_is_too_long_later_is_made_shorter_and_goes_on(real: Real, world: World) -> None:
    line = real(WATCH)
    refused = at_once("one.txt", troubles=(TOO_LONG,))
    script = Script((NOTHING_YET, NOTHING_YET, refused, at_once("one.txt"), Step(text="Done.")))
    task = add(line, "One", world.model.add("one", script))
    begin(line)
    assert lands(line, task)["tries"] == []
    assert outcomes(line, task) == ["handed-in"]
    assert "compaction" in [request.kind for request in world.model.requests]
    assert alerts(line) == []


@pytest.mark.soak
def test_a_conversation_that_cannot_be_made_shorter_is_left_for_a_new_one(real: Real, world: World) -> None:
    line = real(WATCH)
    refused = at_once("one.txt", troubles=(TOO_LONG,))
    summary = Step(troubles=(Fail(status=400, type="invalid_request_error", times=ALWAYS),))
    script = Script((NOTHING_YET, NOTHING_YET, refused, at_once("one.txt"), Step(text="Done.")), summary=summary)
    task = add(line, "One", world.model.add("one", script))
    begin(line)
    done = lands(line, task)
    first, *_, last = runs(line, task)
    assert first["outcome"] == "failed" and "too long" in first["what"]
    assert first["conversation"] == ""
    assert outcomes(line, task) == ["failed", "handed-in"]
    assert last["conversation"] and len(done["tries"]) == 1
    assert alerts(line) == []


@pytest.mark.soak
def test_a_broken_thinking_block_is_left_with_its_conversation(real: Real, world: World) -> None:
    line = real(WATCH)
    said = "messages.1.content.0: Invalid `signature` in `thinking` block"
    broken = Fail(status=400, type="invalid_request_error", message=said, times=2, whoever=True)
    steps = [Step(do=(Shell("true"),), thinking="Hm."), at_once("one.txt", troubles=(broken,)), Step(text="Done.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line)
    done = lands(line, task)
    assert outcomes(line, task) == ["put-off", "handed-in"]
    first, second = runs(line, task)
    assert first["conversation"] == "" and second["conversation"]
    assert "signature" in first["what"]
    assert done["tries"] == []
    assert alerts(line) == ["agent_corrupt"]


# Its provider refuses


def limited_until(reset: int) -> list[Step]:
    """Return steps of which the second is refused until a time, in the words of the provider."""
    named = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(reset),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    limit = Fail(status=429, type="rate_limit_error", message="Limited", headers=named, times=1)
    begins = Step(do=(Shell("true"),), hold="begin")
    return [begins, at_once("one.txt", troubles=(limit,)), at_once("one.txt"), Step(text="Done.")]


def test_a_limit_with_a_named_end_is_waited_for_by_all(real: Real, world: World) -> None:
    # Only to who pays by subscription it names the end.
    line = real(WATCH, env={"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-nobody", "ANTHROPIC_API_KEY": ""})
    task = add(line, "One", world.model.add("one", limited_until(0)))
    begin(line)
    wait_until(lambda: world.model.asked("one") > 0, "its first request")
    reset = int(time.time()) + 15
    world.model.add("one", limited_until(reset))
    begin(line, "bob")  # now, since who is told to start by a person does so at once
    world.model.open("begin")
    wait_for_ends(line, 1)
    assert was(line, "limited", "hit your")
    assert [run["outcome"] for run in runs(line)] == ["put-off"]
    shown = [event for event in line.events("session.changed") if event["data"]["state"] == "limited"]
    (limited,) = [event["data"] for event in shown if event["subject"] == "ada"]  # bob too, if he waits for long
    assert limited["until"] == reset
    other = add(line, "Two", world.model.add("two", writing("two.txt")))
    for each in (task, other):
        assert lands(line, each)["tries"] == []
    assert outcomes(line, task) == ["put-off", "handed-in"]
    assert outcomes(line, other) == ["handed-in"]
    assert all(run["begun"] >= reset for run in runs(line)[1:])
    assert alerts(line) == ["agent_limit"]


@MOSTLY
@pytest.mark.parametrize(("status", "kind"), [(429, "limit"), pytest.param(500, "overload", marks=pytest.mark.soak)])
def test_a_refusal_without_a_named_end_is_tried_again_after_a_while(
    real: Real, world: World, agent: str, status: int, kind: str
) -> None:
    line = real(WATCH, agent=agent)
    types = {429: "rate_limit_error", 500: "api_error"}
    times = 9 if (agent, status) == ("codex", 500) else 3  # it tries three times each of three times by itself
    refusal = Fail(status=status, type=types[status], message="Not now", times=times, whoever=True)
    steps = [NOTHING_YET, at_once("one.txt", troubles=(refusal,)), at_once("one.txt"), Step(text="Done.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line, agent=agent)
    assert lands(line, task)["tries"] == []
    *before, last = outcomes(line, task)
    assert set(before) == {"put-off"} and last == "handed-in"
    assert was(line, "limited")
    assert alerts(line) == [f"agent_{kind}"]


def test_a_storm_slows_all_sessions_down_and_all_land(real: Real, world: World) -> None:
    line = real(WATCH)
    storm = Fail(status=529, type="overloaded_error", message="Overloaded", times=3)
    tasks = []
    for number in range(4):
        path = f"{number}.txt"
        steps = [at_once(path, hold="storm", troubles=(storm,)), at_once(path), Step(text="Done.")]
        tasks.append(add(line, path, world.model.add(f"storm-{number}", steps)))
        begin(line, f"worker-{number}")
    wait_until(lambda: all(world.model.asked(f"storm-{number}") for number in range(4)), "four requests")
    world.model.open("storm")
    for task in tasks:
        assert lands(line, task)["tries"] == []
    assert all(outcomes(line, task) == ["put-off", "handed-in"] for task in tasks)
    assert all(was(line, "limited", "529", f"worker-{number}") for number in range(4))
    again = [run for run in runs(line) if run["outcome"] == "handed-in"]
    at_once_most = max(sum(other["begun"] <= run["begun"] < other["ended"] for other in again) for run in again)
    assert at_once_most <= 2, "half as many as met the storm"
    assert alerts(line) == ["agent_overload"]


@MOSTLY
def test_a_server_that_is_down_is_waited_for(real: Real, world: World, agent: str) -> None:
    line = real(WATCH, agent=agent)
    steps = [NOTHING_YET, at_once("one.txt", hold="go"), at_once("one.txt"), Step(text="Done.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line, agent=agent)
    wait_until(lambda: world.model.asked("one", 1) > 0, "its second request")
    world.model.go_down()
    try:
        # Codex waits by itself, and says so; Claude Code gives up, and is started again.
        if agent == "claude":
            wait_for_ends(line, 2)
        wait_until(lambda: was(line, "limited"), "the verdict")
    finally:
        world.model.open("go")
        world.model.come_back()
    assert lands(line, task)["tries"] == []
    *before, last = outcomes(line, task)
    assert set(before) == ({"put-off"} if agent == "claude" else set()) and last == "handed-in"
    assert alerts(line) == (["agent_connection"] if agent == "claude" else [])


@pytest.mark.parametrize(
    ("times", "came"), [(1, ["handed-in"]), pytest.param(6, ["put-off", "handed-in"], marks=pytest.mark.soak)]
)
def test_answers_that_are_cut_off_are_asked_for_again(real: Real, world: World, times: int, came: list[str]) -> None:
    line = real(WATCH)
    cut = Cut(after=4, times=times, whoever=True)
    steps = [NOTHING_YET, at_once("one.txt", troubles=(cut,)), at_once("one.txt"), Step(text="Done.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line)
    assert lands(line, task)["tries"] == []
    assert outcomes(line, task) == came
    assert alerts(line) == ["agent_connection"] * (len(came) - 1)


# It goes wrong by itself


@pytest.mark.soak
def test_an_agent_that_repeats_itself_is_told_so_and_then_ended(real: Real, world: World) -> None:
    line = real(f"{WATCH}repeats = 3\n", "[board]\ntries = 1\n")
    again = Step(do=(Shell("git status"),), delay=0.7)
    task = add(line, "One", world.model.add("one", [again] * 30))
    begin(line)
    blocked = line.wait_for(task, "blocked")
    assert outcomes(line, task) == ["failed"]
    assert "Stalled: it does the same again and again, and was told so" in blocked["tries"][0]["what"]
    assert told(world, "covey notices that you have done the same thing") > 0
    assert was(line, "stalled", "times in a row the same: shell git status")
    assert alerts(line) == ["stalled", "task_blocked"]


def test_agents_that_get_on_are_left_alone_though_they_do_alike_again_and_again(real: Real, world: World) -> None:
    line = real(f"{WATCH}repeats = 2\n", "[board]\ntries = 1\n", sessions='permissions = "full"\n')
    patch = "*** Begin Patch\n*** Update File: one.txt\n@@\n-{0}\n+{1}\n*** End Patch\n"
    edits = [Step(do=(Tool("apply_patch", patch.format(n, n + 1)),), delay=0.4) for n in range(10)]
    patching = [Step(do=(Write("one.txt", "0\n"),)), *edits, commits("One"), Step(text="Done.")]
    polling = [*[Step(do=(Shell("date +%N"),), delay=0.4)] * 10, at_once("two.txt"), Step(text="Done.")]
    one = add(line, "One", world.model.add("one", patching), assignee="cody")
    two = add(line, "Two", world.model.add("two", polling), assignee="ada")
    begin(line, "cody", "codex")
    begin(line, "ada", "claude")
    assert lands(line, one)["tries"] == lands(line, two)["tries"] == []
    assert outcomes(line) == ["handed-in"] * 2
    assert line.git("show", "main:one.txt") == "10"
    assert told(world, "covey notices") == 0
    assert alerts(line) == []


def test_nothing_is_left_of_what_an_agent_started_beside_itself(real: Real, world: World) -> None:
    line = real(WATCH, sessions='permissions = "full"\n')
    forks = f"setsid sleep 987 > /dev/null 2>&1 & echo $! > {line.mark('pid')}"
    task = add(line, "One", world.model.add("one", writing("one.txt", first=Step(do=(Shell(forks),)))))
    begin(line)
    lands(line, task)
    assert not alive(int(line.marks("pid")[0]))
    assert line.agents() == line.wrappers() == {}
    assert alerts(line) == []


def test_an_agent_that_kills_its_terminal_hurts_nobody_else(real: Real, world: World) -> None:
    shell = '[agents.sh]\ncommand = ["bash", "{body_file}"]\n'
    line = real(WATCH, shell, agent="sh", sessions='runner = "tmux"\n')
    commit = "git add -A && git commit -qm done"
    waits = f"until [ -e {line.mark('go')} ]; do sleep 0.1; done"
    other = add(line, "Other", f"echo up > {line.mark('up')}; {waits}; echo other > other.txt; {commit}")
    begin(line, "ada", "sh")
    wait_until(line.mark("up").exists, "the other at work")
    # Once it takes down whatever tmux it finds, and then its own session by the one way that is left: its parent.
    tries = f"echo try >> {line.mark('tries')}; tmux kill-server; tmux kill-session"
    kills = f"[ $(wc -l < {line.mark('tries')}) -gt 1 ] || kill -9 $PPID"
    task = add(line, "One", f"{tries}; {kills}; echo one > one.txt; {commit}")
    begin(line, "bob", "sh")
    assert lands(line, task)["tries"] == []
    assert outcomes(line, task) == ["lost", "handed-in"]
    line.mark("go").touch()
    lands(line, other)
    assert outcomes(line, other) == ["handed-in"]
    assert alerts(line) == []


def test_an_agent_that_ignores_its_end_is_ended_all_the_same(real: Real, world: World, tmp_path: Path) -> None:
    text = "#!/bin/bash\ntrap '' TERM INT HUP\nclaude \"$@\"\nwhile :; do sleep 0.1; done\n"
    stubborn = executable(tmp_path / "stubborn", text)
    line = real(WATCH, f'[agents.claude]\nprogram = "{stubborn}"\n')
    task = add(line, "One", world.model.add("one", [Step(text="Never.", hold="never")]))
    begin(line)
    (pid,) = wait_for_run(line).values()
    wait_until(lambda: world.model.asked("one") > 0, "its request")
    line.ok("session", "stop", "ada")
    wait_for_ends(line, 1)
    assert not alive(pid)
    assert line.agents() == line.wrappers() == {}
    assert line.task(task)["status"] == "todo"
    assert outcomes(line, task) == ["stopped"]
    assert alerts(line) == []


# It takes too long, or costs too much


@pytest.mark.soak
def test_a_run_over_its_time_is_a_try(real: Real, world: World) -> None:
    line = real(WATCH, "[board]\ntries = 1\n", sessions="run_minutes = 0.05\n")
    task = add(line, "One", world.model.add("one", [NOTHING_YET, Step(text="Late.", hold="never")]))
    begin(line)
    blocked = line.wait_for(task, "blocked")
    assert blocked["tries"][0]["what"].startswith("The run took longer than 3 s.")
    assert outcomes(line, task) == ["failed"]
    assert alerts(line) == ["task_blocked"]


def test_a_run_over_its_budget_is_a_try_and_a_task_over_its_own_is_blocked(real: Real, world: World) -> None:
    line = real(WATCH, "[budget]\nrun = 0.012\ntask = 0.018\n")
    steps = [Step(do=(Shell(f"git log -{number}"),)) for number in range(1, 30)]
    task = add(line, "One", world.model.add("one", steps))
    begin(line)
    blocked = line.wait_for(task, "blocked")
    first = runs(line, task)[0]
    assert first["outcome"] == "failed"
    assert "$0.01" in first["what"] or "budget" in first["what"]
    assert world.model.charged().cost <= 0.025
    assert "Of the $0.018 of T-1" in blocked["reason"]
    assert alerts(line) == ["budget_spent"]


@pytest.mark.parametrize(("agent", "day"), [("claude", 0.0155), pytest.param("codex", 0.0078, marks=pytest.mark.soak)])
def test_nothing_starts_when_the_budget_of_the_day_is_spent(real: Real, world: World, agent: str, day: float) -> None:
    prices = f'[prices."{CODEX_MODEL}"]\ninput = 2.0\noutput = 10.0\n'
    line = real(WATCH, f"[budget]\nrun = 0.02\nday = {day}\n", prices, agent=agent)
    first = add(line, "One", world.model.add("one", writing("one.txt")))
    begin(line, agent=agent)
    lands(line, first)
    second = add(line, "Two", world.model.add("two", writing("two.txt")))
    wait_until(lambda: why(line)["state"] == "limited", "the wait")
    seen = why(line)
    assert " of today" in seen["evidence"]
    assert seen["until"] > time.time()
    assert outcomes(line, second) == []
    assert line.task(second)["status"] == "todo"
    assert alerts(line) == ["waits"]
