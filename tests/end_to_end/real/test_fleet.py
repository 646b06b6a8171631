"""Real agents on the same line: every task claimed once, edited, committed on its own branch, landed, and paid for."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.model.environment import CODEX_MODEL, scripted_world
from tests.model.script import Price, Script, Shell, Step, Write, committing
from tests.worlds.projects import Line
from tests.worlds.real_projects import add, begin, real_line
from tests.worlds.serving import wait_until

SLOW = 240
"""Seconds in which many real agents must have come to an end on a busy machine."""
TWO = Price(input=2.0, output=10.0)
PRICED = f'[prices."{CODEX_MODEL}"]\ninput = 2.0\noutput = 10.0\n'


def events(line: Line, kind: str) -> list[dict[str, Any]]:
    """Return all events of a kind, the oldest first."""
    with line.client() as client:
        found: list[dict[str, Any]] = client.get(f"/api/log?kind={kind}&limit=1000")
        return found


def all_done(line: Line) -> bool:
    """Say whether every task has landed; one that is blocked never will."""
    board = line.board()
    blocked = [task for task in board.values() if task["status"] in ("blocked", "dropped")]
    assert not blocked, blocked
    return all(task["status"] == "done" for task in board.values())


@pytest.mark.parametrize(("sessions", "tasks"), [(4, 6), pytest.param(8, 16, marks=pytest.mark.soak)])
def test_sessions_of_claude_and_codex_land_all_tasks_and_the_costs_add_up(
    tmp_path: Path, request: pytest.FixtureRequest, sessions: int, tasks: int
) -> None:
    with scripted_world(tmp_path, prices={**_claude_prices(), CODEX_MODEL: TWO}) as world:
        line = real_line(tmp_path, world, PRICED)
        request.addfinalizer(line.end)
        line.ok("up")
        for number in range(tasks):
            steps = committing(f"file-{number}.txt", f"File number {number}\n", f"Add {number}")
            mark = world.model.add(f"task-{number}", steps)
            add(line, f"Task {number}", f"Write file-{number}.txt. {mark}")
        for number in range(sessions):
            begin(line, f"worker-{number}", "claude" if number % 2 else "codex")
        wait_until(lambda: all_done(line), "all tasks done", patience=SLOW)
        claims = Counter(event["subject"] for event in events(line, "task.claimed"))
        assert len(claims) == tasks and set(claims.values()) == {1}
        assert Counter(event["data"]["outcome"] for event in events(line, "run.ended")) == {"handed-in": tasks}
        assert {event["data"]["agent"] for event in events(line, "run.begun")} == {"claude", "codex"}
        branches = {event["data"]["branch"] for event in events(line, "merge.queued")}
        assert branches == {f"covey/{task}" for task in claims}
        landed = line.git("ls-tree", "--name-only", "main").split()
        assert {f"file-{number}.txt" for number in range(tasks)} <= set(landed)
        for number in range(tasks):
            passage = line.json("why", f"file-{number}.txt:1")["passage"]
            assert passage["exact"] and f"  +File number {number}" in passage["lines"], passage
        costs = line.json("cost", "--by", "model")
        for row in costs["rows"]:
            charged = world.model.charged(model=row["key"])
            assert row["cost"] == pytest.approx(charged.cost)
            assert (row["input"], row["output"]) == (charged.usage.input, charged.usage.output)
        assert costs["total"]["cost"] == pytest.approx(world.model.charged().cost)
        assert costs["total"]["unpriced"] == 0
        by_task = line.json("cost", "--by", "task")
        assert len(by_task["rows"]) == tasks
        assert sum(row["cost"] for row in by_task["rows"]) == pytest.approx(costs["total"]["cost"])
        line.ok("log", "verify")


def _claude_prices() -> dict[str, Price]:
    from tests.model.server import PRICES

    return dict(PRICES)


@pytest.mark.parametrize("agent", ["gemini", "opencode", "aider"])
def test_the_other_agents_land_a_task_each(agent: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with scripted_world(tmp_path) as world:
        line = real_line(tmp_path, world, agent=agent)
        request.addfinalizer(line.end)
        mark = world.model.add("hello", committing("hello.txt", "hello\n", "Add hello"))
        said = line.ok("run", "-n", "1", line.tasks({"title": "Greet", "body": f"Write hello.txt. {mark}"}))
        assert "1 landed" in said
        assert line.git("show", "main:hello.txt") == "hello"
        assert line.json("cost", "--by", "agent")["total"]["tokens"] > 0


@pytest.mark.parametrize("count", [5, pytest.param(20, marks=pytest.mark.soak)])
def test_sessions_of_claude_at_once_all_finish_with_paced_starts_and_known_memory(
    tmp_path: Path, request: pytest.FixtureRequest, count: int
) -> None:
    with scripted_world(tmp_path) as world:
        line = real_line(tmp_path, world)
        request.addfinalizer(line.end)
        line.ok("up")
        rest = (Step(do=(Shell("git add -A && git commit -q -m 'Add it'"),)), Step(text="Done."))
        for number in range(count):
            first = Step(do=(Write(f"file-{number}.txt", "x\n"),), hold="together")
            mark = world.model.add(f"task-{number}", Script((first, *rest)))
            add(line, f"Task {number}", f"Write file-{number}.txt. {mark}")
        for number in range(count):
            begin(line, f"worker-{number}")
        asked = world.model.asked
        wait_until(lambda: all(asked(f"task-{number}") for number in range(count)), "all at once", patience=SLOW)
        # Each is weighed when it has just started, and every ten seconds from then on.
        wait_until(lambda: _lightest(line) > 30 * 1024**2, "the weight of every one at work", patience=SLOW)
        assert line.json("status")["memory"] < count * 1024**3
        assert f"{count} runs in " in line.ok("status")
        world.model.open("together")
        wait_until(lambda: all_done(line), "all tasks done", patience=SLOW)
        starts = [event["time"] for event in events(line, "run.begun")]
        assert len(starts) == count
        gaps = [later - earlier for earlier, later in pairwise(starts)]
        assert min(gaps) > 0.1, "starts are staggered"


def _lightest(line: Line) -> int:
    """Return the bytes that the lightest session takes."""
    return min(int(session["memory"]) for session in line.sessions().values())
