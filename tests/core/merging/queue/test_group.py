"""Group testing: what it tests next, and that it is as fast as it shall be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import pytest

from covey.core.merging.queue import steps, train
from covey.core.merging.queue.simulate import Coming, World, simulate
from covey.core.merging.queue.train import (
    Arrived,
    Cancel,
    Change,
    Ended,
    Land,
    Plan,
    Purpose,
    Rate,
    Start,
    Together,
    TrainState,
    TreeResult,
)
from covey.core.merging.strategies import group
from covey.core.merging.strategies.group_belief import Joint, believe
from tests.core.merging.queue.worlds import compare, make

GOOD = Rate(good=200.0, steady=200.0)
BAD = Rate(good=100.0, bad=100.0, steady=200.0)
USUAL = Rate(good=190.0, bad=10.0, steady=200.0)


def queue(
    size: int, *, slots: int = 4, rate: Rate = USUAL, needs: dict[str, tuple[str, ...]] | None = None
) -> TrainState:
    changes = (Change(f"c{number}", number, needs=(needs or {}).get(f"c{number}", ())) for number in range(size))
    return TrainState(slots=slots, rate=rate, changes={change.id: change for change in changes})


def ended(state: TrainState, *results: tuple[int, bool]) -> TrainState:
    """Return the train after tests ended at the same moment."""
    return steps.step(state, Together(tuple(Ended(number, passed) for number, passed in results)))[0]


def started(state: TrainState) -> TrainState:
    """Return the train after its first tests were chosen."""
    return steps.step(state, Together(()))[0]


def trees(plans: Iterable[Plan]) -> list[tuple[str, ...]]:
    return [plan.changes for plan in plans]


def test_untested_changes_are_tested_in_groups_that_pass_about_half_the_time() -> None:
    groups = trees(group.choose(queue(200)).start)

    assert len(groups) == 4
    assert all(10 <= len(each) <= 16 for each in groups)
    assert len({id for each in groups for id in each}) == sum(len(each) for each in groups)


def test_a_short_queue_is_spread_over_all_slots() -> None:
    groups = trees(group.choose(queue(24, rate=BAD)).start)

    assert len(groups) == 4


def test_all_is_tested_at_once_where_hardly_anything_fails() -> None:
    assert len(trees(group.choose(queue(50, rate=GOOD)).start)[0]) == 50


def test_one_of_several_slots_tries_all_as_long_as_nothing_is_known() -> None:
    sizes = [len(each) for each in trees(group.choose(queue(50, rate=Rate())).start)]

    assert sizes[0] == 50
    assert all(size < 25 for size in sizes[1:])


def test_one_slot_tries_all_once_a_handful_has_passed_and_is_careful_once_it_failed() -> None:
    state = started(queue(50, slots=1, rate=Rate()))
    assert len(state.running[1].changes) == 16

    assert len(ended(state, (1, True)).running[2].changes) == 34
    assert len(ended(state, (1, False)).running[2].changes) < 4


def test_one_slot_finishes_what_failed_so_that_the_last_of_it_has_failed_alone() -> None:
    state = started(queue(50, slots=1))
    tree = state.running[1].changes
    state = ended(state, (1, False))
    while "c0" in state.changes:
        (test,) = state.running.values()
        assert set(test.changes) <= set(tree)
        state = ended(state, (test.id, "c0" not in test.changes))

    assert not set(tree) & state.changes.keys()
    assert state.tests <= 6


def test_whoever_comes_later_is_tested_on_top_of_what_is_likely_to_land() -> None:
    state = started(queue(2))
    state, _ = steps.step(state, Arrived(Change("later", 9)))

    assert [test.changes for test in state.running.values()] == [("c0", "c1"), ("c0", "c1", "later")]


def test_a_test_is_ended_when_a_part_of_it_has_failed() -> None:
    state = started(queue(1))
    state, _ = steps.step(state, Arrived(Change("later", 9)))
    state, actions = steps.step(state, Ended(1, False))

    assert Cancel(2) in actions
    assert ("later",) in {test.changes for test in state.running.values()}


def test_changes_are_tested_one_by_one_where_half_of_them_fail() -> None:
    assert {len(each) for each in trees(group.choose(queue(50, slots=1, rate=BAD)).start)} == {1}


def test_the_first_in_line_are_tested_first() -> None:
    assert trees(group.choose(queue(200, slots=1)).start)[0][:3] == ("c0", "c1", "c2")


def test_a_group_that_failed_is_split_and_not_tested_again_as_it_was() -> None:
    state = ended(started(queue(12, slots=1)), (1, False))
    (test,) = state.running.values()

    assert 0 < len(test.changes) < 12


def test_what_failed_is_good_again_for_all_that_is_known_once_a_part_of_it_failed() -> None:
    state = started(queue(12, slots=1))
    state = ended(ended(state, (1, False)), (2, False))
    belief = believe(state)

    assert len(belief.failed) == 1
    assert belief.failed[0].bit_count() < 12


def test_what_passed_but_could_not_land_rides_below_the_next_tests() -> None:
    state = started(queue(200))
    first, second, *_ = (test.changes for test in state.running.values())
    state = ended(state, (1, True), (2, True), (3, False), (4, False))

    (other,) = {first, second} & {test.changes[: len(second)] for test in state.running.values()}
    carrying = [test for test in state.running.values() if not test.alone]
    assert carrying
    assert all(test.changes[: len(other)] == other for test in carrying)


def test_the_last_that_passed_is_brought_to_main_though_nothing_is_left_to_learn() -> None:
    state = started(queue(8, slots=2, rate=BAD))
    landed = 0
    while state.running:
        state, actions = steps.step(state, Together(tuple(Ended(number, True) for number in state.running)))
        landed += sum(len(action.changes) for action in actions if isinstance(action, Land))

    assert landed == 8


def test_what_rides_below_is_doubted_when_everything_on_top_of_it_fails() -> None:
    state = started(queue(200))
    state = ended(state, (1, True), (2, True), (3, True), (4, True))
    riders = believe(state).passed
    assert riders
    state = ended(state, *((number, False) for number in state.running))

    assert any(riders & failed for failed in believe(state).failed)


def test_a_change_that_failed_alone_is_tested_alone_once_more() -> None:
    state = ended(started(queue(1, slots=1)), (1, False))

    assert [(test.changes, test.purpose) for test in state.running.values()] == [(("c0",), Purpose.RETRY)]


def test_a_second_failure_alone_is_worth_more_the_longer_its_author_waits() -> None:
    state = ended(started(queue(1, slots=1)), (1, False))
    more = {f"n{number}": Change(f"n{number}", number + 1) for number in range(200)}
    state = replace(state, running={}, slots=2, changes={**state.changes, **more})
    now, *_ = group.choose(state).start
    later, *_ = group.choose(replace(state, tests=state.tests + 40)).start

    assert len(now.changes) > 1
    assert later == Plan(("c0",), Purpose.RETRY)


def test_who_is_found_bad_by_the_landing_of_all_others_is_not_left_for_the_end_of_a_long_queue() -> None:
    world = World(changes=tuple(Coming(f"c{each}", bad=each % 20 == 7) for each in range(600)), slots=4)
    report = simulate(world, "group")
    last = max(each.at for each in report.landed)

    assert sum(each.at > 0.9 * last for each in report.rejected) < 10
    assert report.tests < 240


def test_what_is_needed_stands_before_whoever_needs_it() -> None:
    needs: dict[str, tuple[str, ...]] = {"c0": ("c9",), "c3": ("c0",), "c20": ("c19",)}
    for tree in trees(group.choose(queue(60, needs=needs)).start):
        for id, needed in needs.items():
            assert id not in tree or set(needed) <= set(tree[: tree.index(id)])


def test_a_change_whose_need_is_a_suspect_waits_for_it() -> None:
    state = ended(started(queue(2, slots=1, rate=BAD, needs={"c1": ("c0",)})), (1, False))

    assert [test.changes for test in state.running.values()] == [("c0",)]


@pytest.mark.parametrize(
    "rate",
    [
        Rate(),
        Rate(good=8, bad=5, steady=13),
        Rate(good=8, bad=5, steady=13, flaked=2),
        Rate(good=20, bad=1, steady=20, flaked=3),
        Rate(good=1, bad=8, steady=3),
    ],
)
@pytest.mark.parametrize("slots", [2, 4, 8])
def test_a_change_by_itself_is_tested_as_often_as_its_failure_counts_and_no_more(rate: Rate, slots: int) -> None:
    state = started(queue(1, slots=slots, rate=rate))

    assert {test.purpose for test in state.running.values()} == {Purpose.SOLO}
    assert 1 <= len(state.running) <= min(slots, train.FAILURES)


@pytest.mark.parametrize("flaked", [0.0, 1.0, 5.0])
def test_chance_failures_make_no_tree_worth_a_second_test_at_the_same_time(flaked: float) -> None:
    state = started(queue(12, slots=8, rate=Rate(good=20, bad=2, steady=20, flaked=flaked)))

    running = [test.changes for test in state.running.values()]
    assert len(set(running)) == len(running)


def test_nothing_is_chosen_without_a_free_slot() -> None:
    assert group.choose(started(queue(200))).start == ()


def test_the_same_is_chosen_from_the_same() -> None:
    state = ended(started(queue(60)), (1, False), (2, True))

    assert group.choose(replace(state, running={})) == group.choose(replace(state, running={}))


def test_how_likely_tests_pass_is_known_exactly() -> None:
    state = ended(started(queue(4, slots=1, rate=Rate(good=3, bad=1))), (1, False))
    belief = replace(believe(state), rates=((0.25, 1.0),), flake=0.0, passed=0)

    one, bits = Joint(belief, [0b11], []).weigh(0b01)
    assert one == pytest.approx(0.75 * 0.25 / (1 - 0.75**2))
    assert 0.9 < bits < 1.0
    assert Joint(belief, [0b11], [0b01]).weigh(0b01)[1] == pytest.approx(0.0, abs=1e-9)
    assert Joint(belief, [0b11], []).weigh(0b11)[0] == pytest.approx(0.0, abs=1e-9)


def test_the_work_of_a_choice_is_bounded_however_many_sets_and_tests_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    state = queue(200, slots=16)
    chain = [tuple(f"c{each}" for each in range(start, start + 12)) for start in range(0, 180, 6)]
    failed = tuple(TreeResult(train.Test(number, 0, changes), passed=False) for number, changes in enumerate(chain, 1))
    state = replace(state, tests=len(failed), results=failed)
    summed = 0

    class Counted(Joint):
        def _patterns(self, more: int) -> list[float]:
            nonlocal summed
            summed += sum(len(terms) for terms in self.terms)
            return super()._patterns(more)

    monkeypatch.setattr(group, "Joint", Counted)
    assert len(group.choose(state).start) == 16
    assert 0 < summed < 2 * group.EFFORT


def speed(worlds: Iterable[World]) -> float:
    return compare(worlds, ["group"])["group"].makespan


@pytest.mark.parametrize("bad", [0.4, 0.6])
def test_it_is_hardly_slower_than_one_at_a_time_even_where_most_are_bad(bad: float) -> None:
    assert speed(make(seed, bad=bad, slots=1) for seed in range(10)) >= 0.965


def test_a_start_names_each_change_once() -> None:
    state = queue(100)
    for _ in range(30):
        state, actions = steps.step(state, Together(tuple(Ended(each, each % 3 > 0) for each in state.running)))
        for action in actions:
            if isinstance(action, Start):
                assert len(set(action.test.changes)) == len(action.test.changes) > 0


@pytest.mark.parametrize("slots", [1, 2, 4, 8])
@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("good", [0.0, 0.4, 4.0, 40.0, 199.0])
def test_one_change_of_which_nothing_is_known_need_not_be_weighed(slots: int, is_running: bool, good: float) -> None:
    change, test = Change("c1", 1), train.Test(1, 0, ("c1",), Purpose.SOLO, alone=True)
    for bad, flaked in product((0.0, 0.1, group.SELDOM_BAD), (0.0, group.SELDOM_FLAKED)):
        rate = Rate(good=good, bad=bad * good, steady=good, flaked=flaked * good)
        state = TrainState(slots=slots, changes={"c1": change}, running={1: test} if is_running else {}, rate=rate)
        for each in (state, replace(state, doubtful=frozenset({"c1"}))):
            assert group._is_unremarkable(each)
            assert group._lone(each) == group._choose(each)
