"""The five real agent programs work against the scripted model, and need nobody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.model.environment import CHECKOUT, World, agent_environment, program, scripted_world
from tests.model.headless import WORDS, lines, make_repository, run_agent
from tests.model.outdoor import OutDoor
from tests.model.script import ALWAYS, Cut, Fail, Hang, Shell, Step, Tool, Usage, Write, committing
from tests.model.server import ModelServer
from tests.worlds.serving import wait_until


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Yield a world of the test's own."""
    with scripted_world(tmp_path) as made:
        yield made


@pytest.fixture
def repository(tmp_path: Path, world: World) -> Path:
    """Return a repository with one commit."""
    return make_repository(tmp_path / "repository", world.environment)


def last_commit(repository: Path) -> str:
    command = ["git", "log", "-1", "--format=%s", "--name-only"]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout


def result_of(run: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found = [line for line in lines(run) if line["type"] == "result"]
    assert found, run
    return found[-1]


SLOW = ("opencode", "aider")
"""Agents that take their time to start; tests/end_to_end/real lets each of them land a task as well."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in SLOW else name for name in WORDS]
)
def test_a_real_agent_edits_and_commits_and_nobody_else_is_asked(name: str, world: World, repository: Path) -> None:
    prompt = world.model.add("hello", committing("hello.txt", "hello\nyou\n", "Add hello"))
    run = run_agent(name, f"Please do it. {prompt}", repository, world.environment)
    assert run.returncode == 0, run
    assert (repository / "hello.txt").read_text() == "hello\nyou\n", run
    assert last_commit(repository).split("\n") == ["Add hello", "", "hello.txt", ""], run
    # aider commits by itself, so its script is over after the first step.
    steps = [0] if name == "aider" else [0, 1, 2]
    turns = world.model.turns("hello")
    assert [turn.step for turn in turns] == steps
    assert len({turn.conversation for turn in turns}) == 1
    sides = [request for request in world.model.requests if request.kind == "side"]
    # opencode asks for a title and aider for the words of its commit; the others ask nothing beside their turns.
    assert len(sides) == (1 if name in ("opencode", "aider") else 0)
    charged = world.model.charged(script="hello").usage
    assert charged == Usage(1000 * len(steps) + 100 * len(sides), 50 * len(steps) + 5 * len(sides))
    assert world.outdoor.attempts == []


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_real_agent_works_in_a_network_that_leads_nowhere(name: str, tmp_path: Path) -> None:
    alone = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]
    command = [*alone, sys.executable, "-m", "tests.model.headless", name, str(tmp_path)]
    run = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=150, check=False)
    assert run.returncode == 0, run
    found = json.loads(run.stdout)
    assert (found["returned"], found["turns"]) == (0, 3), found
    assert last_commit(tmp_path / "repository").startswith("Add hello")


# Claude Code


@pytest.mark.parametrize("model", ["opus", "sonnet", "haiku", "claude-opus-4-5", "claude-haiku-4-5"])
def test_claude_bills_what_the_ledger_charged(model: str, world: World, repository: Path) -> None:
    usage = Usage(input=12_345, output=678, cache_read=54_321, cache_write=2_345)
    prompt = world.model.add("bill", [Step(do=(Shell("true"),), usage=usage), Step(text="Done.", usage=usage)])
    run = run_agent("claude", prompt, repository, world.environment, "--model", model)
    charged = world.model.charged()
    assert charged.usage == usage + usage
    assert result_of(run)["total_cost_usd"] == pytest.approx(charged.cost)
    assert list(world.model.charged_by_model()) == list(result_of(run)["modelUsage"])


def test_claude_goes_on_where_it_was_when_it_is_resumed_and_where_a_new_marker_says(
    world: World, repository: Path
) -> None:
    first = world.model.add("first", [Step(text="One."), Step(text="Two."), Step(text="Three.")])
    second = world.model.add("second", [Step(do=(Write("new.txt", "new\n"),)), Step(text="Other.")])
    said = []
    session = "0b9f3c5e-6c1c-4d0e-9d7a-3f1a2b4c5d6e"
    begin, go_on = ("--session-id", session), ("--resume", session)
    for words, prompt in [(begin, first), (go_on, "And?"), (go_on, f"Now {second}"), (go_on, f"Again {first}")]:
        said.append(result_of(run_agent("claude", prompt, repository, world.environment, *words))["result"])
    assert said == ["One.", "Two.", "Other.", "One."]
    assert {request.conversation for request in world.model.requests if request.kind == "turn"} == {session}


def test_claude_tries_again_after_failures_and_pays_once(world: World, repository: Path) -> None:
    limited = Fail(status=429, type="rate_limit_error", headers={"retry-after": "0"}, times=1)
    overloaded = Fail(status=529, type="overloaded_error", times=1)
    prompt = world.model.add("rough", [Step(text="Made it.", troubles=(limited, overloaded))])
    run = run_agent("claude", prompt, repository, world.environment)
    assert result_of(run)["result"] == "Made it."
    outcomes = [(r.attempt, r.outcome, r.status) for r in world.model.requests if r.kind == "turn"]
    assert outcomes == [(0, "failed", 429), (1, "failed", 529), (2, "answered", 200)]
    assert result_of(run)["total_cost_usd"] == pytest.approx(world.model.charged().cost)


def test_claude_that_failed_for_good_is_resumed_at_the_same_step(world: World, repository: Path) -> None:
    broken = Fail(status=500, times=3)  # the first request and two retries
    prompt = world.model.add("broken", [Step(do=(Shell("true"),)), Step(text="Mended.", troubles=(broken,))])
    session = "5d2c1f60-9c43-4d4e-8b62-1f0e9a7b6c5d"
    failed = run_agent("claude", prompt, repository, world.environment, "--session-id", session)
    assert failed.returncode == 1 and result_of(failed)["is_error"], failed
    resumed = run_agent("claude", "Go on.", repository, world.environment, "--resume", session)
    assert result_of(resumed)["result"] == "Mended.", world.model.requests


def test_claude_recovers_from_a_stream_that_breaks_off(world: World, repository: Path) -> None:
    prompt = world.model.add("cut", [Step(text="All of it in the end.", troubles=(Cut(after=4),))])
    run = run_agent("claude", prompt, repository, world.environment)
    assert result_of(run)["result"] == "All of it in the end."
    assert [r.outcome for r in world.model.requests if r.kind == "turn"] == ["cut", "answered"]


def test_claude_goes_on_after_compaction_at_the_step_it_was_at(world: World, repository: Path) -> None:
    full = Usage(input=990_000, output=50)
    steps = [
        Step(do=(Shell("true"),)),
        Step(do=(Write("early.txt", "early\n"),)),
        Step(do=(Shell("true"),), usage=full),
        Step(do=(Write("late.txt", "late\n"),)),
        Step(text="Both."),
    ]
    run = run_agent("claude", world.model.add("long", steps), repository, world.environment)
    assert result_of(run)["result"] == "Both.", run
    assert [turn.step for turn in world.model.turns("long")] == [0, 1, 2, 3, 4]
    assert any(request.kind == "compaction" for request in world.model.requests)


@pytest.mark.parametrize(("background", "results"), [(False, ["Done."]), (True, ["I wait.", "Done."])])
def test_a_sub_agent_follows_the_script_that_its_prompt_names(
    background: bool, results: list[str], world: World, repository: Path
) -> None:
    helper = world.model.add("helper", [Step(do=(Write("helped.txt", "yes\n"),)), Step(text="Helped.")])
    kind = {"subagent_type": "general-purpose", "run_in_background": background}
    task = Tool("Task", {"description": "help", "prompt": f"Help. {helper}", **kind})
    prompt = world.model.add("lead", [Step(do=(task,)), *(Step(text=text) for text in results)])
    run = run_agent("claude", prompt, repository, world.environment)
    # One that works in the background is told of in a turn of its own: one run, two results.
    assert [line["result"] for line in lines(run) if line["type"] == "result"] == results
    assert (repository / "helped.txt").read_text() == "yes\n"
    assert result_of(run)["total_cost_usd"] == pytest.approx(world.model.charged().cost)


def test_the_door_sees_an_agent_that_tries_to_leave(tmp_path: Path) -> None:
    with ModelServer() as model, OutDoor() as outdoor:
        environment = agent_environment(tmp_path / "home", model.url(), outdoor)
        del environment["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]
        repository = make_repository(tmp_path / "repository", environment)
        run_agent("claude", model.add("hello", [Step(text="Hello.")]), repository, environment)
        assert any(attempt.startswith("CONNECT ") for attempt in outdoor.attempts)


@pytest.mark.parametrize("agents", [6, pytest.param(40, marks=pytest.mark.soak)])
def test_many_agents_share_one_model(agents: int, world: World, tmp_path: Path) -> None:
    def work(number: int) -> str:
        repository = make_repository(tmp_path / f"repository-{number}", world.environment)
        script = committing(f"file-{number}.txt", "x\n", f"Add file {number}")
        prompt = world.model.add(f"agent-{number}", script)
        run_agent("claude" if number % 2 else "codex", prompt, repository, world.environment)
        return last_commit(repository).split("\n")[0]

    with ThreadPoolExecutor(agents) as pool:
        assert list(pool.map(work, range(agents))) == [f"Add file {number}" for number in range(agents)]
    assert all(charge.requests == 3 for charge in world.model.charged_by_script().values())


SCREENS = {"claude": ["--permission-mode", "bypassPermissions"], "codex": ["--no-daemon"]}


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_of_a_real_agent_starts_without_a_question(name: str, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short, scripted_world(tmp_path, trusted=[tmp_path / "repository"]) as world:
        repository = make_repository(tmp_path / "repository", world.environment)
        prompt = world.model.add("hello", committing("hello.txt", "hello\n", "Add hello"))
        tmux = ["tmux", "-S", f"{short}/tmux", "-f", "/dev/null"]
        agent = [str(program(name)), *SCREENS[name], prompt]
        subprocess.run([*tmux, "new-session", "-d", *agent], cwd=repository, env=world.environment, check=True)
        try:
            wait_until(lambda: len(world.model.turns("hello")) == 3, "the whole script")
        finally:
            subprocess.run([*tmux, "kill-server"], env=world.environment, check=True)
        assert last_commit(repository).startswith("Add hello")
        assert sorted(turn.step for turn in world.model.turns("hello")) == [0, 1, 2]


# A model that does not answer


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_silent_model_leaves_the_agent_waiting_and_the_ledger_knows(
    name: str, world: World, repository: Path
) -> None:
    prompt = world.model.add("silent", [Step(troubles=(Hang(after=1, times=ALWAYS),))])
    command = [str(program(name)), *WORDS[name], prompt]
    with subprocess.Popen(
        command,
        cwd=repository,
        env=world.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(lambda: any(r.outcome == "hung" for r in world.model.requests), "the agent's request")
        assert process.poll() is None
        process.kill()
    assert world.model.charged().cost == 0


# Codex


def test_codex_goes_on_where_it_was_when_it_is_resumed(world: World, repository: Path) -> None:
    prompt = world.model.add("twice", [Step(do=(Shell("true"),)), Step(text="One."), Step(text="Two.")])
    begun = run_agent("codex", prompt, repository, world.environment)
    thread = next(line["thread_id"] for line in lines(begun) if line["type"] == "thread.started")
    resumed = run_agent("codex", "And?", repository, world.environment, "resume", str(thread))
    assert "Two." in resumed.stdout, resumed
    assert [turn.step for turn in world.model.turns("twice")] == [0, 1, 2]


def test_codex_goes_on_after_compaction_at_the_step_it_was_at(world: World, repository: Path) -> None:
    full = Usage(input=350_000, output=50)
    early, late = Write("early.txt", "early\n"), Write("late.txt", "late\n")
    steps = [Step(do=(Shell("true"),)), Step(do=(early,), usage=full), Step(do=(late,)), Step(text="Both.")]
    run = run_agent("codex", world.model.add("long", steps), repository, world.environment)
    assert run.returncode == 0 and "Both." in run.stdout, run
    assert [(r.kind, r.step) for r in world.model.requests] == [
        *(("turn", 0), ("turn", 1), ("compaction", 2)),
        *(("turn", 2), ("turn", 3)),
    ]


def test_codex_tries_again_after_failures(world: World, repository: Path) -> None:
    troubles = (Fail(status=500, times=1), Cut(after=2, times=1))
    prompt = world.model.add("rough", [Step(text="Made it.", troubles=troubles)])
    run = run_agent("codex", prompt, repository, world.environment)
    assert run.returncode == 0 and "Made it." in run.stdout, run
    assert [r.outcome for r in world.model.requests] == ["failed", "cut", "answered"]
