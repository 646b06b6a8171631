"""What is told of this moment from the store."""

from __future__ import annotations

from typing import Any

import pytest

from covey.app.merging import sendback
from covey.app.merging.sendback import RejectionCause
from tests.app.merging.test_merges import checked, end, handed_in, merge_of, start
from tests.worlds.boards import World


def gate_of(world: World, task: str) -> Any:
    """Return what is told of the gate of a task's work."""
    return next(row["gate"] for row in world.ask("live.show")["sessions"] if row["task"] == task)


def sent_back(world: World, cause: str) -> str:
    """Return a task at work whose last merge failed in a gate, or was sent back after one for another cause."""
    checked(world)
    task, merge = handed_in(world)
    gate = start(world, merge)
    end(world, gate, "test_one", "test_two")
    why = RejectionCause(cause, [gate.id], words="Not so.")
    world.do(lambda call: sendback.rejected(call, merge_of(world, merge), why))
    if world.status(task) == "blocked":
        world.ask("task.edit", id=task, status="todo")
    world.claim(task, "ada")
    return task


def test_a_gate_that_failed_is_told_with_how_many_tests_failed(world: World) -> None:
    assert gate_of(world, sent_back(world, "fails")) == {"state": "failed", "failed": 2}


@pytest.mark.parametrize("cause", ["", "text", "needs"])
def test_what_was_not_sent_back_by_a_gate_has_no_failing_gate(world: World, cause: str) -> None:
    assert gate_of(world, sent_back(world, cause)) is None
