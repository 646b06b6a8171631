"""What a person changes of a task reaches the conversation that goes on with it: once, whole, whoever is killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.model.environment import World
from tests.model.script import ALWAYS, Fail, Shell, Step, Write
from tests.worlds.projects import Line, kill
from tests.worlds.real_projects import add, at_once, begin, commits, lands, outcomes, runs, wait_for_ends
from tests.worlds.serving import wait_until

Real = Callable[..., Line]
QUICK = "[watch]\nbackoff = 0.2\nbackoff_most = 1\n"
ONE_TRY = "[board]\ntries = 1\n"
AGENTS = pytest.mark.parametrize("agent", ["claude", "codex"])
NOTHING = Step(text="Done!")


def in_last(world: World, words: str) -> int:
    """Return how often some words stand in the last request that a conversation sent."""
    asked = [request for request in world.model.requests if request.kind == "turn"]
    return json.dumps(asked[-1].body, ensure_ascii=False).count(words)


def edit(line: Line, task: str, **changes: Any) -> None:
    """Change a task as the person in charge."""
    with line.client() as client:
        client.ask("PATCH", f"/api/board/{task}", changes)


@AGENTS
def test_a_corrected_task_reaches_the_conversation_that_is_taken_up_again(real: Real, world: World, agent: str) -> None:
    line = real(QUICK, ONE_TRY, agent=agent)
    task = add(line, "Paint it", world.model.add("one", [NOTHING]), scope=["src/**"])
    begin(line, agent=agent)
    line.wait_for(task, "blocked")
    corrected = world.model.add("two", [Step(do=(Shell("true"),), hold="go"), NOTHING])
    words = {"title": "Paint it vermilion", "note": "ask the harbourmaster", "done_when": ["test -e ochre"]}
    edit(line, task, body=f"{corrected} not the cobalt", scope=[], do_not_touch=["umber"], status="todo", **words)
    wait_until(lambda: world.model.asked("two") > 0, "the corrected task")
    kill([line.up()])
    line.up()
    world.model.open("go")
    line.wait_for(task, "blocked")
    edit(line, task, note=f"{world.model.add('three', [at_once('one.txt')])} sienna", status="todo")
    lands(line, task)
    assert outcomes(line, task) == ["failed", "failed", "handed-in"]
    assert len({run["conversation"] for run in runs(line, task)}) == 1
    told = ("not the cobalt", "ask the harbourmaster", "test -e ochre", "Do not touch: umber", "write everywhere")
    assert {each: in_last(world, each) for each in (*told, "sienna")} == dict.fromkeys((*told, "sienna"), 1)
    assert in_last(world, "# T-1: Paint it vermilion") == 1


@AGENTS
def test_what_a_provider_refused_is_not_told_again_to_a_conversation_that_holds_it(
    real: Real, world: World, agent: str
) -> None:
    line = real(QUICK, ONE_TRY, agent=agent)
    task = add(line, "Paint it", world.model.add("one", [NOTHING]))
    begin(line, agent=agent)
    line.wait_for(task, "blocked")
    refused = Fail(status=400, type="invalid_request_error", message="no", times=ALWAYS)
    corrected = world.model.add("two", [Step(troubles=(refused,))])
    edit(line, task, body=f"{corrected} not the cobalt", note="sienna", status="todo")
    wait_for_ends(line, 2)
    line.wait_for(task, "blocked")
    edit(line, task, note=world.model.add("three", [at_once("one.txt")]), status="todo")
    lands(line, task)
    assert outcomes(line, task) == ["failed", "failed", "handed-in"]
    assert (in_last(world, "not the cobalt"), in_last(world, "sienna")) == (1, 1)


def test_another_session_is_told_what_was_left_uncommitted_and_can_have_it(real: Real, world: World) -> None:
    line = real(QUICK, ONE_TRY)
    task = add(line, "Paint it", world.model.add("one", [Step(do=(Write("one.txt", "cobalt\n"),)), NOTHING]))
    begin(line, "ada")
    line.wait_for(task, "blocked")
    line.ok("session", "stop", "ada")
    (ref,) = line.refs("refs/covey/rescue")
    takes = Shell(f"git restore --source={ref}:work -- one.txt")
    asks = Shell("env > /dev/null; touch two.txt")  # which it would have to ask for at the usual level
    note = world.model.add("two", [Step(do=(takes,)), Step(do=(asks,)), commits("One"), Step(text="Done.")])
    edit(line, task, note=note, status="todo")
    line.ok("session", "new", "bob", "--agent", "claude", "--permissions", "full")
    line.ok("session", "start", "bob")
    lands(line, task)
    assert [run["session"] for run in runs(line, task)] == ["ada", "bob"]
    assert in_last(world, "- ada left one.txt:") == 1
    assert line.git("show", "main:one.txt") == "cobalt"
    wrote = [event["data"]["files"] for event in line.events("run.wrote")]
    assert wrote == [["one.txt"], ["one.txt", "two.txt"]]
