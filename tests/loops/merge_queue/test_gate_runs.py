"""A gate that cannot be started: for one change it is that change's failure, for main it is nobody's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from covey.config import Config, Merge
from covey.core.merging.gates import Gate
from covey.core.merging.queue.train import Purpose
from covey.errors import Unavailable
from covey.git.candidates.candidate_chain import Placed
from covey.loops.gates.gate_outcomes import Order, Outcome
from covey.loops.gates.gates import Gates
from covey.loops.merge_queue.build import CandidateTree
from covey.loops.merge_queue.gate_runs import MAX_LOST, BrokenGate, GateRuns
from covey.store.bus import Direct
from covey.store.tx import Tx
from tests.loops.gates.test_gates import Yard

T = TypeVar("T")
UNAVAILABLE = Unavailable("The room of the gate cannot be made.")


class Pool(Gates):
    """Gates of which those of some commits cannot be started."""

    def __init__(self, yard: Yard, unstarted: set[str], error: Exception) -> None:
        super().__init__(yard.runtime)
        self.unstarted = unstarted
        self.error = error

    async def run(self, order: Order) -> Outcome:
        """Pass, or refuse to start."""
        if order.commit in self.unstarted:
            raise self.error
        return Outcome(passed=True, code=0)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path / "yard", "off")
    yard.app.context.config = Config(merge=Merge(check="true", isolate="off"))
    yield yard
    yard.leave()


def _tested(
    yard: Yard, unstarted: Callable[[str], set[str]], *, with_others: bool, error: Exception = UNAVAILABLE
) -> tuple[list[Gate], GateRuns]:
    """Test a change again and again until it counts, a good one in between if told, and return its gates."""
    bad = "b" * 40
    testing = GateRuns(yard.runtime, Pool(yard, unstarted(bad), error), BrokenGate(yard.runtime), lambda: None)
    names = [yard.hand_in(_held(yard), "ada", commit=each * 40) for each in "bc"]

    async def test(name: str, commit: str, number: int) -> None:
        tree = CandidateTree(yard.head, (Placed(name, commit, yard.head, commit, (commit,)),))
        await testing.start(number, Purpose.SOLO, tree)
        await asyncio.gather(*(each.task for each in testing.running.values() if each.task is not None))

    for number in range(MAX_LOST):
        yard.loop.run_until_complete(test(names[0], bad, 2 * number + 1))
        if with_others:
            yard.loop.run_until_complete(test(names[1], f"{number}" * 40, 2 * number + 2))
    found = yard.store.read(lambda tx: tx.find(Gate, "ORDER BY ordinal"))
    return [gate for gate in found if gate.commit == bad], testing


def _held(yard: Yard) -> str:
    task = yard.add("Mend it")
    yard.claim(task, "ada", overlap=True)
    return task


@pytest.mark.parametrize("with_others", [False, True])
def test_what_can_be_started_on_main_and_not_on_a_change_fails_for_that_change(yard: Yard, with_others: bool) -> None:
    found, testing = _tested(yard, lambda bad: {bad}, with_others=with_others)
    assert [gate.state for gate in found] == [*["lost"] * (MAX_LOST - 1), "failed"]
    assert "cannot be made" in found[-1].summary and not testing.broken.is_broken()


def test_what_cannot_be_started_on_main_either_is_no_changes_fault(yard: Yard) -> None:
    found, testing = _tested(yard, lambda bad: {bad, yard.head}, with_others=False)
    assert [gate.state for gate in found] == ["lost"] * MAX_LOST and testing.broken.is_broken()


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), ValueError("unforeseen")])
def test_a_gate_at_which_covey_itself_fails_is_written_to_its_end_and_tried_again(yard: Yard, error: Exception) -> None:
    found, testing = _tested(yard, lambda bad: {bad}, with_others=False, error=error)
    assert [gate.state for gate in found] == [*["lost"] * (MAX_LOST - 1), "failed"]
    assert type(error).__name__ in found[-1].summary and not testing.unwritten


class FullDisk(Direct):
    """A store that can only be read."""

    async def write(self, job: Callable[[Tx], T], *, long: bool = False) -> T:
        """Fail as a full disk does."""
        raise Unavailable("The disk is full.")


def test_a_gate_whose_end_could_not_be_written_is_told_to_the_queue(yard: Yard) -> None:
    testing = GateRuns(yard.runtime, Pool(yard, set(), UNAVAILABLE), BrokenGate(yard.runtime), lambda: None)
    name = yard.hand_in(_held(yard), "ada", commit="b" * 40)
    tree = CandidateTree(yard.head, (Placed(name, "b" * 40, yard.head, "b" * 40, ("b" * 40,)),))

    async def test() -> None:
        await testing.start(1, Purpose.SOLO, tree)
        testing.runtime.bus = FullDisk(yard.store)
        await asyncio.gather(*(each.task for each in testing.running.values() if each.task is not None))

    yard.loop.run_until_complete(test())
    assert testing.unwritten and not testing.running
