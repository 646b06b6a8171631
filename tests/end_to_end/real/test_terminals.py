"""Real Claude Code in real terminals: prompted, seen, answered, taken over by a person and given back."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from covey.runners.tmux import TmuxRunner
from tests.model.environment import World, scripted_world
from tests.model.script import SIDE, Fail, Script, Shell, Step, Usage, Write, committing
from tests.model.server import Request
from tests.worlds.person import Person, person
from tests.worlds.projects import Line
from tests.worlds.real_projects import add, alerts, begin, outcomes, real_line, runs, story
from tests.worlds.serving import wait_until

SIZES = ["80x24", pytest.param("200x50", marks=pytest.mark.soak)]
ODD = "Line {n}: ünïcode ❯ \"double\" 'single' `back` $HOME \\n {{braces}} ──── #hash !bang @at /slash <b> 日本語 🎉 x"
PATIENCE = 120.0
HELD = Step(text="never said", hold="never")


@contextmanager
def lined(
    folder: Path, size: str = "80x24", *, runner: str = "tmux", sessions: str = "", trusted: bool = True
) -> Iterator[tuple[Line, World]]:
    """Yield a project whose sessions live in terminals of a size, its daemon up, in a world of its own."""
    with scripted_world(folder, trusted=[folder / "line" / "shop"] if trusted else []) as world:
        line = real_line(folder, world, sessions=f'runner = "{runner}"\nterminal = "{size}"\n{sessions}')
        line.up()
        try:
            yield line, world
        finally:
            line.end()


def beside_work(line: Line) -> list[str]:
    """Return the states in which the session was, without its work: in between, that may be shorter than a look."""
    seen = states(line)
    assert seen[1] == "working"
    return [state for state in seen if state != "working"]


def states(line: Line) -> list[str]:
    """Return the states that a session was in, one after the other."""
    return [state for state, _ in groupby(state for state, _ in story(line))]


def until_state(line: Line, state: str) -> None:
    """Wait until the session is in a state."""
    wait_until(lambda: line.sessions()["ada"]["state"] == state, f"a session that is {state}", patience=PATIENCE)


def until_done(line: Line, task: str) -> None:
    """Wait until a task has landed."""

    def done() -> bool:
        status: str = line.task(task)["status"]
        assert status != "blocked", line.ok("task", "show", task)
        return status == "done"

    wait_until(done, f"{task} done", patience=PATIENCE)


def kill_daemon(line: Line) -> None:
    """Kill the daemon as the machine would, and start another."""
    os.kill(json.loads((line.state / "daemon.json").read_text())["pid"], signal.SIGKILL)
    line.up()


def said_to_model(request: Request) -> str:
    """Return all that users and tools said in a conversation."""
    told = []
    for message in request.body["messages"]:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        told += [part.get("text", "") for part in parts if message["role"] == "user"]
    return "\n".join(told)


def assert_paid(line: Line, world: World) -> None:
    """Assert that all that the model charged was counted, once."""
    total, charged = line.json("cost", "--by", "model")["total"], world.model.charged()
    assert total["cost"] == pytest.approx(charged.cost)
    assert (total["input"], total["output"]) == (charged.usage.input, charged.usage.output)
    assert total["unpriced"] == 0


def goes_on() -> list[Step]:
    """Return what the model does once the session goes on by itself."""
    return [Step(do=(Shell("git add -A; git commit -qm 'Add the half' || true"),)), Step(text="It is committed.")]


# Sessions that live in a terminal


@pytest.mark.parametrize("size", SIZES)
def test_a_task_lands_in_a_terminal_of_any_size_with_the_right_state_at_every_step(size: str, tmp_path: Path) -> None:
    body = "\n".join(ODD.format(n=n) for n in range(40))
    later = Fail(status=529, type="overloaded_error", message="Overloaded", headers={"retry-after": "3"})
    steps = (
        Step(text="I write it.", do=(Write("hello.txt", "hello\n"),), troubles=(later,)),
        Step(do=(Shell("git add -A && git commit -qm Hello"),), usage=Usage(input=990_000, output=50)),
        Step(text="All is done."),
    )
    with lined(tmp_path, size) as (line, world):
        mark = world.model.add("t", Script(steps, summary=Step(hold="summary", usage=SIDE)))
        task = add(line, "Greet", f"{body}\nWrite hello.txt. {mark}")
        begin(line)
        until_state(line, "compacting")
        world.model.open("summary")
        until_done(line, task)
        assert line.git("show", "main:hello.txt") == "hello"
        first = said_to_model(world.model.turns("t")[0])
        assert first.count(body) == 1, "the prompt arrives once, and whole"
        assert beside_work(line) == ["starting", "limited", "compacting", "idle"]
        (run,) = runs(line)
        assert (run["outcome"], run["code"]) == ("handed-in", 0), "it left by itself"
        assert_paid(line, world)
        lines = line.ok("session", "logs", "ada").splitlines()
        assert lines[0] == "- I write it." and lines[-2:] == ["- All is done.", "= done, as it said"]
        assert alerts(line) == []
        line.ok("log", "verify")


def test_a_dialog_waits_for_a_person_who_attaches_and_nothing_is_typed_into_it(tmp_path: Path) -> None:
    with lined(tmp_path, sessions='permissions = "ask"\n') as (line, world):
        writes, commits, says = committing("hello.txt", "hello\n", "Add hello").steps
        # Between two dialogs the model waits until the watchdog has seen it work, which may be shorter than a look.
        steps = [writes, replace(commits, hold="written"), replace(says, hold="committed")]
        task = add(line, "Greet", world.model.add("t", steps))
        begin(line)
        until_state(line, "needs-you")
        kill_daemon(line)  # whom its hook kept waiting is let go: from now on only the screen asks
        (run,) = runs(line)
        (alert,) = alerts(line, of="needs_you")
        assert "ada wants to use Write" in alert and "--allow" in alert
        with person(line, "session", "attach", "ada") as ada:
            ada.waits_for("Do you want to create hello.txt?")
            press(ada.presses, lambda: world.model.asked("t", 1) > 0)
            until_state(line, "working")
            world.model.open("written")
            ada.waits_for("Do you want to proceed?")
            until_state(line, "needs-you")
            ada.detaches()
            ada.ends_with(0)
        runner = TmuxRunner(line.state / "runs")
        press(lambda key: runner.press(run["id"], key), lambda: world.model.asked("t", 2) > 0)
        runner.close()
        until_state(line, "working")
        world.model.open("committed")
        until_done(line, task)
        assert states(line)[:5] == ["starting", "working", "needs-you", "working", "needs-you"]
        assert states(line)[5:] == ["working", "idle"]
        _, alert = alerts(line, of="needs_you")  # one for each dialog, and none again for a new daemon
        assert "Do you want to proceed?" in alert and "covey session attach ada lets you answer" in alert
        assert (outcomes(line), world.model.asked("t", 0)) == (["handed-in"], 1)
        assert_paid(line, world)


def press(presses: Callable[[str], None], good: Callable[[], bool]) -> None:
    """Press Enter until it was taken: a dialog takes no key in its first moment."""
    pressed = 0.0

    def is_taken() -> bool:
        nonlocal pressed
        if good():
            return True
        if time.monotonic() > pressed + 1.5:
            presses("Enter")
            pressed = time.monotonic()
        return False

    wait_until(is_taken, "the end of a dialog")


def test_a_daemon_that_is_killed_finds_the_run_again_and_types_its_prompt_once(tmp_path: Path) -> None:
    with lined(tmp_path) as (line, world):
        steps = committing("hello.txt", "hello\n", "Add hello", hold="go")
        task = add(line, "Greet", f"Only once. {world.model.add('t', steps)}")
        begin(line)
        wait_until(lambda: bool(line.agents()), "a program")
        kill_daemon(line)  # before it was typed, or while it is
        wait_until(lambda: world.model.asked("t") > 0, "the prompt at the model", patience=PATIENCE)
        kill_daemon(line)
        until_state(line, "working")
        world.model.open("go")
        until_done(line, task)
        assert [said_to_model(turn).count("Only once.") for turn in world.model.turns("t")] == [1, 1, 1]
        assert world.model.asked("t") == 1 and outcomes(line) == ["handed-in"]
        assert_paid(line, world)


@pytest.mark.soak
def test_a_conversation_is_taken_up_again_in_a_new_terminal_when_its_program_was_killed(tmp_path: Path) -> None:
    with lined(tmp_path, sessions="[watch]\nbackoff = 0.1\n") as (line, world):
        mark = world.model.add("t", [Step(do=(Write("half.txt", "half\n"),)), HELD, *goes_on()])
        task = add(line, "Greet", f"Only once. {mark}")
        begin(line)
        wait_until(lambda: world.model.asked("t", 1) > 0, "a model that holds", patience=PATIENCE)
        wait_until(lambda: bool(runs(line)[0]["conversation"]), "a conversation")
        world.model.add("t", [Step(), *goes_on()[:1], *goes_on()])  # words of the program's own may count as a step
        os.kill(line.agents()[runs(line)[0]["id"]], signal.SIGKILL)
        until_done(line, task)
        assert line.git("show", "main:half.txt") == "half"
        last = said_to_model(world.model.turns("t")[-1])
        assert (last.count("Only once."), last.count("Go on with T-1")) == (1, 1)
        assert len({run["conversation"] for run in runs(line)}) == 1 and outcomes(line)[1:] == ["handed-in"]
        total, charged = line.json("cost", "--by", "model")["total"], world.model.charged()
        assert (total["input"], total["output"]) == (charged.usage.input, charged.usage.output)
        assert total["unpriced"] == 1050, "what was killed never said what it cost"


def test_a_folder_that_is_not_trusted_waits_for_a_person_once_and_goes_on(tmp_path: Path) -> None:
    with lined(tmp_path, trusted=False) as (line, world):
        task = add(line, "Greet", world.model.add("t", committing("hello.txt", "hello\n", "Add hello")))
        begin(line)
        until_state(line, "needs-you")
        (alert,) = alerts(line, of="needs_you")
        assert "trust" in alert and "covey session attach ada" in alert
        assert "asks: " in line.ok("session", "list")
        assert world.model.asked("t") == 0
        with person(line, "session", "attach", "ada") as ada:
            screen = ada.waits_for("Enter to confirm")
            yes = next(row for row in screen.splitlines() if "Yes" in row)
            if "❯" not in yes:
                ada.presses("Up" if screen.index("Yes") < screen.index("❯") else "Down")
                wait_until(lambda: "❯" in next(r for r in ada.screen().splitlines() if "Yes" in r), "Yes chosen")
            press(ada.presses, lambda: "Enter to confirm" not in ada.screen())
            until_done(line, task)
            ada.ends_with(0)
        assert beside_work(line) == ["starting", "needs-you", "idle"]
        assert len(alerts(line)) == 1


# Taking over


@contextmanager
def interrupted(folder: Path, agent: str = "claude") -> Iterator[tuple[Line, World, str]]:
    """Yield a session at work without a terminal: it has written half a file, and its model says nothing more."""
    with lined(folder, runner="process") as (line, world):
        task = add(line, "Greet", world.model.add("t", [Step(do=(Write("half.txt", "half\n"),)), HELD]))
        world.model.add("talk", [Step(text="Hello, person."), *goes_on()])
        begin(line, agent=agent)
        wait_until(lambda: world.model.asked("t", 1) > 0, "a model that holds", patience=PATIENCE)
        wait_until(lambda: bool(runs(line)[0]["conversation"]), "a conversation")
        yield line, world, task


def attached(line: Line, world: World, ada: Person) -> None:
    """See a conversation open before a person, who says something."""
    ada.waits_for("Write(half.txt)")
    assert (line.worktrees / "ada" / "half.txt").read_text() == "half\n"
    ada.enters("Hello [[script talk]]")
    ada.waits_for("Hello, person.")


def given_back(line: Line, world: World, task: str) -> list[dict[str, Any]]:
    """See the session go on with its conversation and land its task, all paid for; return its runs."""
    until_done(line, task)
    assert line.git("show", "main:half.txt") == "half"
    assert len({run["conversation"] for run in runs(line)}) == 1
    assert [event["data"]["title"] for event in line.events("task.added")] == ["Greet"]
    assert line.task(task)["failed_tries"] == 0, "an interruption is no try"
    said = said_to_model(world.model.turns("talk")[-1])
    assert said.count("Hello [[script talk]]") == 1 and "[[script t]]" in said
    assert_paid(line, world)
    assert len(line.events("session.attached")) == len(line.events("session.given_back")) == 1
    return runs(line)


def test_a_person_takes_a_conversation_over_and_gives_it_back(tmp_path: Path) -> None:
    with interrupted(tmp_path) as (line, world, task):
        with person(line, "session", "attach", "ada") as ada:
            attached(line, world, ada)
            assert "owner has it in a terminal" in line.ok("session", "why", "ada")
            assert ada.screen().splitlines()[23].strip().endswith("C-b d leaves, and it goes on")
            ada.detaches()
            screen = ada.ends_with(0)
            assert "ada is interrupted; its conversation opens here ..." in screen
            assert "ada has its conversation back and goes on." in screen
        found = given_back(line, world, task)
        assert [run["outcome"] for run in found] == ["stopped", "stopped", "handed-in"]
        assert [run["what"] for run in found][:2] == [
            "owner takes the conversation over.",
            "The conversation was given back.",
        ]
        mine = line.ok("session", "logs", "ada", "--run", found[1]["id"])
        assert "Hello, person." in mine and "Write" not in mine, "only what was said while the person had it"


@pytest.mark.soak
def test_two_people_take_over_together_and_the_last_to_leave_gives_back_with_any_daemon(tmp_path: Path) -> None:
    with interrupted(tmp_path) as (line, world, task):
        with person(line, "session", "attach", "ada") as ada, person(line, "session", "attach", "ada") as bob:
            attached(line, world, ada)
            bob.waits_for("Hello, person.")
            kill_daemon(line)
            ada.detaches()
            assert "Somebody else is at the terminal of ada" in ada.ends_with(0)
            bob.enters("/exit")
            bob.ends_with(0)
        found = given_back(line, world, task)
        assert [run["outcome"] for run in found] == ["stopped", "stopped", "handed-in"]
        assert found[1]["code"] == 0, "the program left as the person told it"


@pytest.mark.soak
def test_a_person_whose_terminal_is_closed_has_given_back(tmp_path: Path) -> None:
    with interrupted(tmp_path) as (line, world, task):
        with person(line, "session", "attach", "ada") as ada:
            attached(line, world, ada)
            ada.leaves()
        given_back(line, world, task)


@pytest.mark.soak
def test_the_conversation_of_codex_is_taken_over_and_given_back_too(tmp_path: Path) -> None:
    with interrupted(tmp_path, "codex") as (line, world, task):
        with person(line, "session", "attach", "ada") as ada:
            ada.waits_for("Added half.txt")
            ada.waits_for("Ask Codex to do anything")
            ada.enters("Hello [[script talk]]")
            ada.waits_for("Hello, person.")
            ada.detaches()
            assert "ada has its conversation back and goes on." in ada.ends_with(0)
        until_done(line, task)
        assert line.git("show", "main:half.txt") == "half"
        assert [run["outcome"] for run in runs(line)] == ["stopped", "stopped", "handed-in"]
        turns = [request for request in world.model.requests if request.kind == "turn"]
        assert {turn.conversation for turn in turns} == {run["conversation"] for run in runs(line)}
        total = line.json("cost", "--by", "model")["total"]
        # Its screen also asks for a title, which it does not count to the conversation.
        assert total["input"] == sum(turn.usage.input for turn in turns)
        assert total["output"] == sum(turn.usage.output for turn in turns)


def test_what_cannot_be_taken_over_is_refused_in_words(tmp_path: Path) -> None:
    with lined(tmp_path, runner="process") as (line, _):
        assert "no terminal here" in line.ends(5, "session", "attach", "ada")
        for name, agent in (("ada", "claude"), ("eve", "scripted")):
            line.ok("session", "new", name, "--agent", agent)
        with person(line, "session", "attach", "ada") as ada:
            assert "ada is not at work, so there is nothing to take over." in ada.ends_with(5)
        with person(line, "session", "attach", "nobody") as ada:
            assert "nobody" in ada.ends_with(4)
        add(line, "Wait", "hang\n")
        line.ok("session", "start", "eve")
        wait_until(lambda: bool(line.agents()), "a program")
        with person(line, "session", "attach", "eve") as ada:
            assert "The conversation of scripted cannot be taken over in a terminal." in ada.ends_with(5)
