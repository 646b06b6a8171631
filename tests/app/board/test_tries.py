"""A try goes on where it was while that session lives and can; else the next one knows what was left."""

from __future__ import annotations

import pytest

from covey.app.costs import costs
from covey.app.fleet import runs
from covey.app.fleet.fleet_verbs import part
from covey.app.fleet.sessions import find
from covey.config import Board, Budget, Config, Merge
from covey.core.costs.spending import Used
from covey.core.fleet.outcomes import Again, Crashed, HandIn
from covey.core.fleet.runs import Left
from covey.core.fleet.start_limits import Wait
from covey.errors import Invalid
from tests.worlds.boards import Principal, World

FAILED = Again("Nothing came of it.")


def test_a_failed_try_goes_on_in_its_own_session(world: World) -> None:
    task = world.add()
    for name in ("ada", "bob", "eve"):
        world.at_work(name)
    for _ in range(3):
        assert world.would_begin("ada") is not None
        run = next(iter(world.store.read(lambda tx: tx.open_runs("ada"))))
        world.end(run, FAILED)
        assert world.would_begin("bob") is world.would_begin("eve") is None
    assert [tried["session"] for tried in world.task(task)["tries"]] == ["ada"] * 3
    assert world.status(task) == "blocked"
    world.ask("task.edit", id=task, status="todo")
    assert world.would_begin("bob") is None, "its conversation is with ada"
    assert world.begin("ada").task == task


def test_a_task_that_its_agent_gave_back_goes_on_in_its_own_session(world: World) -> None:
    task = world.add()
    world.at_work("ada")
    world.at_work("bob")
    run = world.begin("ada")
    world.ask("task.release", Principal("ada"), id=task, fence=run.fence, reason="Too hard.")
    world.end(run, FAILED)
    assert world.would_begin("bob") is None
    assert world.begin("ada").task == task


@pytest.mark.parametrize("verb", ["session.stop", "session.remove"])
def test_a_try_of_a_session_that_works_no_more_is_for_anyone(world: World, verb: str) -> None:
    task = world.add()
    world.at_work("ada")
    world.at_work("bob")
    run = world.begin("ada")
    world.do(lambda call: runs.note(call, run, Left("refs/covey/rescue/ada/1")))
    world.end(run, FAILED)
    world.ask(verb, name="ada")
    if verb == "session.remove":
        world.do(lambda call: part(call, find(call, "ada")))
    again = world.begin("bob")
    assert again.task == task
    assert world.work(again).left == (("ada", "refs/covey/rescue/ada/1"),)


def test_a_session_that_could_not_start_leaves_the_task_to_others(world: World) -> None:
    task = world.add()
    world.at_work("ada")
    world.at_work("bob")
    world.end(world.begin("ada"), FAILED)
    run = world.begin("ada")
    world.do(lambda call: runs.unstartable(call, run, "Its worktree is broken."))
    assert world.begin("bob").task == task


def test_a_session_that_has_spent_its_day_leaves_the_task_to_others(world: World) -> None:
    task = world.add()
    world.at_work("ada")
    world.at_work("bob")
    world.end(world.begin("ada"), FAILED)
    world.app.context.config = Config(budget=Budget(session=0.0001))
    spent = world.store.read(lambda tx: tx.last_runs(1, task=task))[0]
    world.do(lambda call: costs.count(call, spent, {"m": Used(cost=1.0)}, world.day.name))
    assert isinstance(world.would_begin("ada"), Wait)
    assert world.begin("bob").task == task


def test_what_was_left_counts_until_the_session_goes_on_or_the_work_is_handed_in(world: World) -> None:
    world.add()
    world.at_work("ada")
    run = world.begin()
    world.do(lambda call: runs.note(call, run, Left("refs/covey/rescue/ada/1")))
    world.end(run, Crashed("It went."))
    run = world.begin()
    assert world.work(run).left == (("ada", "refs/covey/rescue/ada/1"),)
    world.end(run, FAILED)
    run = world.begin()
    assert world.work(run).left == (), "its last run left nothing"
    world.do(lambda call: runs.note(call, run, Left("refs/covey/rescue/ada/2")))
    world.end(run, HandIn("c" * 40))


def test_while_much_waits_for_review_nothing_new_is_begun_but_what_came_back_goes_on(world: World) -> None:
    world.app.context.config = Config(merge=Merge(review=True), board=Board(max_in_review=1))
    first, second = world.add("One"), world.add("Two")
    world.at_work("ada")
    world.end(world.begin("ada"), HandIn("c" * 40))
    assert world.status(first) == "review"
    waits = world.would_begin("ada")
    assert isinstance(waits, Wait) and "1 tasks wait for review" in waits.why and waits.news
    world.ask("merge.reject", id=world.ask("merge.list")[-1]["id"], reason="Not so.")
    assert world.begin("ada").task == first
    world.end(world.run(world.store.read(lambda tx: tx.open_runs("ada"))[0].id), HandIn("d" * 40))
    world.app.context.config = Config(merge=Merge(review=True))
    assert world.begin("ada").task == second


def test_permissions_are_for_a_session_that_covey_runs(world: World) -> None:
    made = world.ask("session.new", name="ada", agent="scripted", permissions="full")
    assert made["permissions"] == "full"
    assert world.ask("session.new", name="bob", agent="scripted")["permissions"] is None
    with pytest.raises(Invalid, match="for a session that covey runs"):
        world.ask("session.new", name="eve", permissions="ask")
    with pytest.raises(Invalid):
        world.ask("session.new", name="eve", agent="scripted", permissions="all")
