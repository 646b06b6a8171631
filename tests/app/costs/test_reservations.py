"""Budgets at work: what a run may spend is set aside as it begins, and a limit that is used up stops dispatch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from covey.app.costs import costs
from covey.app.fleet import runs
from covey.config import Budget, Config, Tokens
from covey.core.costs.spending import Used
from covey.core.fleet.outcomes import Again, HandIn, PutOff
from covey.core.fleet.runs import Prepared, Run
from covey.core.fleet.signals import Trouble, Usage
from covey.core.fleet.start_limits import Wait
from tests.worlds.boards import World

DONE = HandIn("c" * 40, "It works")


@pytest.fixture
def bounded(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Return a function that makes a world with limits and some sessions at work, for each of which there is a task."""
    worlds: list[World] = []

    def make(sessions: int = 1, tokens: Tokens | None = None, **limits: float) -> World:
        world = World(tmp_path, Config(budget=Budget(**limits, tokens=tokens or Tokens())))
        worlds.append(world)
        for number in range(sessions):
            world.add(f"Task {number}")
            world.at_work(f"s{number}")
        return world

    yield make
    for world in worlds:
        assert world.folded() == world.tables()
        world.store.close()


def spend(world: World, run: Run, cost: float | None, tokens: int = 1000, calls: int = 0) -> None:
    """Let a run have spent this much in all; without a cost, nobody knows its price."""
    used = Used(Usage(tokens), cost or 0.0, tokens if cost is None else 0, calls)
    world.do(lambda call: costs.count(call, run, {"sonnet": used}, world.day.name))


def test_without_limits_nothing_is_set_aside(bounded: Callable[..., World]) -> None:
    run = bounded().begin("s0")
    assert (run.money, run.tokens) == (None, None)


def test_what_a_run_may_spend_is_in_its_row(bounded: Callable[..., World]) -> None:
    run = bounded(run=2.0, tokens=Tokens(run=5000)).begin("s0")
    assert (run.money, run.tokens) == (2.0, 5000)


def test_two_that_begin_in_a_row_cannot_both_take_the_last_dollars(bounded: Callable[..., World]) -> None:
    world = bounded(sessions=2, run=3.0, day=5.0)
    first = world.begin("s0")
    assert first.money == 3.0
    before = world.everything()
    wait = world.would_begin("s1")
    assert wait == Wait("What is left of the $5.00 of today is set aside for runs at work.")
    assert world.everything() == before, "nothing was claimed"
    spend(world, first, 1.0)
    world.end(first, DONE)
    assert world.begin("s1").money == 3.0, "what the first did not need is there again"


def test_a_run_that_has_spent_has_less_set_aside(bounded: Callable[..., World]) -> None:
    world = bounded(sessions=2, run=3.0, day=6.0)
    first = world.begin("s0")
    spend(world, first, 2.5)
    second = world.begin("s1")
    assert second.money == 3.0
    spend(world, second, 3.0)
    world.end(second, Again("no"))
    assert isinstance(world.would_begin("s1"), Wait)


def test_a_task_over_its_budget_is_blocked_and_a_person_is_told_once(bounded: Callable[..., World]) -> None:
    world = bounded(task=2.0)
    (task,) = (row["id"] for row in world.ask("task.list"))
    run = world.begin("s0")
    assert run.money == 2.0
    spend(world, run, 1.95)
    world.end(run, Again("The run spent too much."))
    assert world.would_begin("s0") is None
    shown = world.task(task)
    assert (shown["status"], shown["session"]) == ("blocked", None)
    more = "[budget] in covey.toml says how much."
    assert shown["reason"] == f"Of the $2.00 of {task}, $0.05 is left. {more}"
    (alert,) = world.ask("alert.list")
    assert (alert["type"], alert["task"]) == ("budget_spent", task)
    assert world.would_begin("s0") is None
    assert len(world.ask("alert.list")) == 1


def test_a_task_that_its_session_holds_is_blocked_too(bounded: Callable[..., World]) -> None:
    world = bounded(task=2.0)
    run = world.begin("s0")
    spend(world, run, 2.0)
    world.end(run, PutOff("529", Trouble.OVERLOAD))
    assert world.status(run.task) == "doing"
    assert world.would_begin("s0") is None
    assert (world.status(run.task), world.task(run.task)["session"]) == ("blocked", None)


def test_the_budget_of_a_task_itself_counts_if_it_is_less(bounded: Callable[..., World]) -> None:
    world = bounded(task=2.0)
    world.add("Cheap", budget=0.5, priority=9)
    run = world.begin("s0")
    assert run.money == 0.5
    world.end(run, DONE)
    assert world.begin("s0").money == 2.0


@pytest.mark.parametrize("scope", ["day", "session"])
def test_a_day_that_is_used_up_waits_for_midnight(bounded: Callable[..., World], scope: str) -> None:
    world = bounded(**{scope: 4.0, "run": 4.0})
    run = world.begin("s0")
    spend(world, run, 4.0)
    world.end(run, Again("no"))
    whose = {"day": "today", "session": "s0 today"}[scope]
    wait = world.would_begin("s0")
    assert wait == Wait(f"Of the $4.00 of {whose}, $0.00 is left.", world.day.ends, news=True)
    assert world.status(run.task) == "todo", "no fault of the task"
    world.clock.run(world.day.ends - world.clock.now().wall + 1)
    assert world.begin("s0").money == 4.0


def test_the_budget_of_one_session_is_not_anothers(bounded: Callable[..., World]) -> None:
    world = bounded(sessions=2, session=1.0)
    run = world.begin("s0")
    spend(world, run, 1.0)
    world.end(run, Again("no"))
    assert isinstance(world.would_begin("s0"), Wait)
    assert world.begin("s1").money is not None


@pytest.mark.parametrize("scope", ["day", "session", "task"])
def test_a_run_without_a_price_counts_as_all_that_was_set_aside(bounded: Callable[..., World], scope: str) -> None:
    world = bounded(**{scope: 4.0, "run": 2.0})
    for _ in range(2):
        run = world.begin("s0")
        assert run.money == 2.0
        spend(world, run, None)
        world.end(run, Again("no"))
    refused = world.would_begin("s0")
    assert not isinstance(refused, Run)
    said = refused.why if refused else world.ask("task.list", status="blocked")[0]["reason"]
    assert "$0.00 is left. $4.00 of it counts for ended runs of which nobody knows the price." in said


def test_tokens_have_limits_of_their_own(bounded: Callable[..., World]) -> None:
    world = bounded(sessions=2, tokens=Tokens(run=600, day=1000))
    first = world.begin("s0")
    assert (first.money, first.tokens) == (None, 600)
    wait = world.would_begin("s1")
    assert wait == Wait("What is left of the 1,000 tokens of today is set aside for runs at work.")
    spend(world, first, None, tokens=980)
    world.end(first, Again("no"))
    wait = world.would_begin("s1")
    assert wait == Wait("Of the 1,000 tokens of today, 20 are left.", world.day.ends, news=True)


def test_a_run_of_which_nothing_is_known_gets_what_the_last_ones_needed(bounded: Callable[..., World]) -> None:
    world = bounded(sessions=2, day=20.0)
    first = world.begin("s0")
    assert first.money == 2.0
    spend(world, first, 1.5)
    world.end(first, DONE)
    assert world.begin("s1").money == 3.0


def test_whoever_waits_is_shown_as_limited_once(bounded: Callable[..., World]) -> None:
    world = bounded(run=4.0, day=4.0)
    run = world.begin("s0")
    spend(world, run, 4.0)
    world.end(run, Again("no"))
    wait = world.would_begin("s0")
    assert isinstance(wait, Wait)
    assert [world.do(lambda call: runs.waits(call, "s0", wait, wait.until)) for _ in range(2)] == [True, False]
    (session,) = world.ask("session.list")
    assert (session["state"], session["evidence"]) == ("limited", wait.why)


def test_with_less_left_than_a_call_usually_costs_nothing_begins(bounded: Callable[..., World]) -> None:
    world = bounded(day=2.0)
    first = world.begin("s0")
    spend(world, first, 1.0, calls=4)
    world.end(first, Again("no"))
    second = world.begin("s0")
    assert second.money == pytest.approx(1.0), "a call of 0.25 fits"
    spend(world, second, 0.75, calls=1)
    world.end(second, Again("no"))
    wait = world.would_begin("s0")
    assert isinstance(wait, Wait) and wait.why == (
        "Of the $2.00 of today, $0.25 is left: less than the $0.35 that a call of scripted usually costs."
    )


def test_a_task_without_enough_for_a_call_is_blocked_with_the_name_of_its_branch(
    bounded: Callable[..., World],
) -> None:
    world = bounded(tokens=Tokens(task=10_000))
    run = world.begin("s0")
    world.do(lambda call: call.tx.advance(run, Prepared(base="b" * 40), "covey"))
    spend(world, run, None, tokens=8000, calls=2)
    world.end(run, Again("no"))
    assert world.would_begin("s0") is None
    reason = world.task(run.task)["reason"]
    assert "2,000 are left: less than the 4,000 that a call of scripted usually costs." in reason
    assert f"Its branch is covey/{run.task}." in reason
