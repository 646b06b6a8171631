"""Tests designed by what they would tell."""

from __future__ import annotations

import pytest

from covey.core.queue import design, steps, train
from covey.core.queue.posterior import WORLDS, believe
from covey.core.queue.simulate import simulate
from covey.core.queue.train import Change, Result, State
from tests.core.queue.worlds import compare, make

NAMES = tuple("abcdefgh")


@pytest.fixture(autouse=True)
def known_as_design(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(steps.STRATEGIES, "design", design.choose)


def _state(*results: tuple[str, bool], slots: int = 4) -> State:
    changes = {name: Change(name, order) for order, name in enumerate(NAMES)}
    heard = tuple(
        Result(train.Test(number, 0, tuple(names), alone=len(names) == 1), passed)
        for number, (names, passed) in enumerate(results, 1)
    )
    return State(strategy="design", slots=slots, changes=changes, results=heard, tests=len(heard))


def _chance(state: State, names: str) -> float:
    belief = believe(NAMES, state)
    return belief.red(sum(1 << belief.place[name] for name in names)).bit_count() / WORLDS


def test_one_of_a_failed_tree_is_to_blame_and_each_of_it_as_likely_as_the_other() -> None:
    state = _state(("abcd", False))
    assert _chance(state, "abcd") > 0.9
    assert abs(_chance(state, "ab") - _chance(state, "cd")) < 0.15


def test_what_two_failed_trees_share_is_suspected_most() -> None:
    state = _state(("abc", False), ("cde", False), ("a", True), ("d", True))
    assert _chance(state, "c") > max(_chance(state, name) for name in "abdefgh")


def test_a_failure_that_a_later_pass_refutes_is_nobody_s_fault() -> None:
    assert _chance(_state(("ab", False), ("abc", True)), "ab") < 0.1


def test_the_choice_follows_from_the_state_alone() -> None:
    state = _state(("abcd", False))
    assert design.choose(state) == design.choose(state)


def test_all_of_the_line_is_tried_at_once_in_one_of_several_slots_at_the_beginning() -> None:
    plans = design.choose(_state()).start
    assert NAMES in [plan.changes for plan in plans]


def test_a_change_that_surely_fails_is_shown_to_fail_beside_what_else_can_land() -> None:
    state = _state(("abc", False), ("c", False))
    plans = [plan.changes for plan in design.choose(state).start]
    assert ("c",) in plans
    assert any(len(changes) > 1 and "c" not in changes for changes in plans)


def test_needs_come_with_a_change_and_before_it() -> None:
    for seed in range(5):
        world = make(seed, needs=0.4, slots=3)
        report = simulate(world, "design")
        needs = {change.id: change.needs for change in world.changes}
        place = {each.id: number for number, each in enumerate(report.landed)}
        assert all(place[need] < place[id] for id in place for need in needs[id])
        assert len(report.landed) + len(report.rejected) == len(world.changes)


@pytest.mark.parametrize("slots", [1, 2, 4, 8])
def test_every_good_change_lands_and_every_bad_one_is_sent_back(slots: int) -> None:
    for seed in range(5):
        world = make(seed, slots=slots, bad=0.15, conflicts=0.1)
        report = simulate(world, "design")
        bad = {change.id for change in world.changes if change.bad}
        assert not bad & {each.id for each in report.landed}
        assert all(each.id in bad for each in report.rejected if each.reason == "bad")
        assert len(report.landed) + len(report.rejected) == len(world.changes)


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({}, 6.0),
        ({"slots": 1}, 2.5),
        ({"bad": 0.2}, 3.4),
        ({"bad": 0.0, "conflicts": 0.0}, 20.0),
        ({"flake": 0.05}, 5.5),
        ({"jitter": 0.2}, 5.0),
    ],
)
def test_a_queue_is_emptied_so_many_times_faster_than_one_at_a_time(options: dict[str, float], least: float) -> None:
    worlds = [make(seed, **options) for seed in range(20)]  # type: ignore[arg-type]
    assert compare(worlds, ["design"])["design"].makespan >= least
