"""Real agents ask, people answer, and the agents go on with the answer: at once, late, or without one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.model.environment import World
from tests.model.script import Shell, Step, Tool
from tests.worlds.projects import Line, kill
from tests.worlds.real_projects import add, alerts, at_once, begin, lands, outcomes, runs, wait_for_ends, was, why
from tests.worlds.serving import wait_until

Real = Callable[..., Line]
WATCH = "[watch]\nbackoff = 0.2\nbackoff_most = 1\n"
MOSTLY = pytest.mark.parametrize("agent", ["claude", pytest.param("codex", marks=pytest.mark.soak)])
"""Where both do alike and Codex takes its time."""
COMMAND = "python3 -c \"print('forty' + '-two')\""
"""What no level but `full` lets an agent run unasked."""
WANTS = Step(do=(Shell(COMMAND),))


def questions(line: Line) -> list[dict[str, Any]]:
    """Return all questions, the oldest first."""
    with line.client() as client:
        found: list[dict[str, Any]] = client.get("/api/questions?limit=1000")
        return found


def wait_for_question(line: Line) -> dict[str, Any]:
    """Wait until somebody asks, and return the question, which is open unless it was to be answered very soon."""
    wait_until(lambda: bool(questions(line)), "a question")
    return questions(line)[-1]


def answer(line: Line, question: dict[str, Any], decision: str, text: str = "") -> None:
    """Answer as the person in charge."""
    with line.client() as client:
        client.post(f"/api/questions/{question['id']}/answer", {"decision": decision, "text": text})


def heard(world: World, words: str, script: str = "one") -> bool:
    """Say whether the model was told something, in the words of a tool or of a user."""
    bodies = (json.dumps(request.body, ensure_ascii=False) for request in world.model.turns(script))
    return any(words in body for body in bodies)


def ask_for_permission(line: Line, world: World, *steps: Step) -> tuple[str, dict[str, Any]]:
    """Let a session work on a task that needs a permission, and return both."""
    task = add(line, "One", world.model.add("one", [*(steps or (WANTS,)), at_once("one.txt"), Step(text="Done.")]))
    begin(line)
    return task, wait_for_question(line)


# Permissions


def test_a_permission_that_is_given_lets_the_agent_go_on(real: Real, world: World) -> None:
    line = real(WATCH)
    task, question = ask_for_permission(line, world)
    assert (question["wants"], question["tool"], question["about"]) == ("permission", "shell", COMMAND)
    wait_until(lambda: why(line)["state"] == "needs-you", "the verdict")
    assert why(line)["rule"] == "it waits for a person's word"
    (listed,) = (each for each in line.json("inbox") if each["kind"] == "question")
    assert listed["ids"] == [question["id"]]
    line.ok("answer", question["id"], "--allow")
    lands(line, task)
    assert heard(world, "forty-two")
    assert outcomes(line, task) == ["handed-in"]
    assert alerts(line) == ["needs_you"]


def test_a_permission_that_is_denied_says_why_to_the_model(real: Real, world: World) -> None:
    line = real(WATCH)
    task, question = ask_for_permission(line, world)
    answer(line, question, "deny", "Not on a Sunday.")
    lands(line, task)
    assert heard(world, "Not on a Sunday.")
    assert not heard(world, "forty-two")
    assert alerts(line) == ["needs_you"]


def test_a_permission_for_this_repository_is_asked_for_once(real: Real, world: World) -> None:
    line = real(WATCH)
    task, question = ask_for_permission(line, world, WANTS, WANTS)
    answer(line, question, "always")
    lands(line, task)
    second = add(line, "Two", world.model.add("two", [WANTS, at_once("two.txt"), Step(text="Done.")]))
    lands(line, second)
    assert heard(world, "forty-two", "two")
    assert all(each["state"] == "answered" for each in questions(line))
    (permit,) = line.json("permit", "list")
    assert (permit["tool"], permit["about"]) == ("shell", COMMAND)
    assert alerts(line) == ["needs_you"]


def test_a_permission_that_nobody_gives_in_time_is_denied_and_that_is_said(real: Real, world: World) -> None:
    line = real(f"{WATCH}answer_minutes = 0.02\n")
    task, question = ask_for_permission(line, world)
    lands(line, task)
    (after,) = questions(line)
    assert (after["id"], after["state"]) == (question["id"], "expired")
    assert heard(world, "Nobody answered")
    assert not heard(world, "forty-two")
    assert alerts(line) == ["needs_you", "question_expired"]


def test_a_question_outlives_the_daemon_and_can_be_answered_after_it(real: Real, world: World) -> None:
    line = real(WATCH)
    task, question = ask_for_permission(line, world)
    agents = line.agents()
    kill([line.up()])
    line.up()
    assert line.agents() == agents
    again = wait_for_question(line)
    assert (again["id"], again["state"]) == (question["id"], "open")
    answer(line, question, "allow")
    lands(line, task)
    assert heard(world, "forty-two")
    assert outcomes(line, task) == ["handed-in"]
    assert alerts(line) == ["needs_you"]


# Free questions


def test_a_question_of_claude_itself_is_answered_in_words(real: Real, world: World) -> None:
    line = real(WATCH)
    options = [{"label": "Red", "description": "as fire"}, {"label": "Blue", "description": "as the sea"}]
    asked = {"question": "Which colour?", "header": "Colour", "multiSelect": False, "options": options}
    asks = Step(do=(Tool("AskUserQuestion", {"questions": [asked]}),))
    task, question = ask_for_permission(line, world, asks)
    assert question["wants"] == "answer"
    assert question["text"].startswith("Which colour?")
    assert question["choices"] == ["Red", "Blue"]
    line.ok("answer", question["id"], "Green as grass")
    lands(line, task)
    assert heard(world, "Green as grass")
    assert outcomes(line, task) == ["handed-in"]
    assert alerts(line) == ["needs_you"]


@MOSTLY
def test_who_asks_from_its_shell_gets_the_answer_while_it_waits(real: Real, world: World, agent: str) -> None:
    line = real(WATCH, agent=agent)
    steps = [Step(do=(Shell('covey ask "Which port?"'),)), at_once("one.txt"), Step(text="Done.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line, agent=agent)
    question = wait_for_question(line)
    wait_until(lambda: was(line, "needs-you", "Which port?"), "the verdict")
    answer(line, question, "reply", "Port 8080, please.")
    lands(line, task)
    assert heard(world, "Port 8080, please.")
    assert outcomes(line, task) == ["handed-in"]
    assert alerts(line) == ["needs_you"]


@MOSTLY
def test_who_has_ended_its_turn_is_called_again_with_the_answer(real: Real, world: World, agent: str) -> None:
    line = real(WATCH, agent=agent)
    asks = Step(do=(Shell('covey ask "Which port?" --wait 0.2'),))
    steps = [asks, Step(text="I end my turn."), at_once("one.txt"), at_once("one.txt"), Step(text="Done.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line, agent=agent)
    question = wait_for_question(line)
    wait_for_ends(line, 1)
    wait_until(lambda: why(line)["state"] == "needs-you", "the verdict")
    assert why(line)["evidence"] == "Which port?"
    assert line.task(task)["session"] == "ada"
    assert heard(world, "No answer yet: end your turn")
    answer(line, question, "reply", "Port 8080, please.")
    assert lands(line, task)["tries"] == []
    first, second = runs(line, task)
    assert (first["outcome"], second["outcome"]) == ("put-off", "handed-in")
    assert second["begun"] >= next(each["ended"] for each in questions(line))
    assert heard(world, "What the person in charge answered")
    assert heard(world, "Port 8080, please.")
    assert alerts(line) == ["needs_you"]
