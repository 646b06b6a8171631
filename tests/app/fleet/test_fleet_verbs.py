"""The verbs of the sessions that covey runs, and of batches: what shall be, what is left, and who gets which task."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from covey.app.context import Call
from covey.app.fleet import fleet_verbs, runs
from covey.config import DEFAULT_AGENT, Config, Sessions
from covey.core.fleet.launches import Launch
from covey.core.fleet.outcomes import Again, HandIn
from covey.core.fleet.runs import Ending, Run
from covey.core.fleet.sessions import SessionState
from covey.errors import NotFound, Refused, Unknown
from tests.worlds.boards import World
from tests.worlds.serving import wait_until

COMMIT = "c" * 40


def session(world: World, name: str = "ada") -> Any:
    """Return a session as it is shown."""
    return next(each for each in world.ask("session.list") if each["name"] == name)


def part(world: World, name: str = "ada") -> None:
    """Do what the loop does with a session that shall be removed, once its work is safe."""

    def away(call: Call) -> None:
        found = call.tx.session(name)
        assert found is not None
        fleet_verbs.part(call, found)

    world.do(away)


# What a session shall do


def test_a_session_that_covey_runs_is_told_what_to_do_and_each_word_counts_once(world: World) -> None:
    world.ask("session.new", name="ada", agent="scripted")
    assert (session(world)["kind"], session(world)["goal"], session(world)["wip"]) == ("run", "stopped", 1)
    for verb, goal in (("start", "working"), ("pause", "paused"), ("resume", "working"), ("stop", "stopped")):
        assert world.ask(f"session.{verb}", name="ada")["goal"] == goal
        before = world.everything()
        assert world.ask(f"session.{verb}", name="ada")["goal"] == goal
        assert world.everything() == before


@pytest.mark.parametrize("verb", ["start", "stop", "pause", "resume", "restart"])
def test_a_session_from_outside_is_nobody_that_covey_could_tell_what_to_do(world: World, verb: str) -> None:
    world.ask("session.new", name="bob")
    with pytest.raises(Refused, match=r"bob cannot be .*: covey does not run it"):
        world.ask(f"session.{verb}", name="bob")


@pytest.mark.parametrize("verb", ["start", "stop", "pause", "resume", "restart", "remove"])
def test_a_session_that_is_not_there_is_not_found(world: World, verb: str) -> None:
    with pytest.raises(NotFound, match="no session 'nobody'"):
        world.ask(f"session.{verb}", name="nobody")


def test_an_agent_that_nobody_has_declared_makes_no_session(world: World) -> None:
    with pytest.raises(NotFound, match="no agent 'agnet'"):
        world.ask("session.new", name="ada", agent="agnet")
    assert world.ask("session.list") == []


def test_the_fleet_stands_still_and_goes_on_once(world: World) -> None:
    assert world.ask("status")["paused"] is False
    paused = world.ask("fleet.pause")
    assert (paused["paused"], paused["by"], paused["since"]) == (True, "owner", world.clock.now().wall)
    world.clock.run(5)
    assert world.ask("fleet.pause") == paused
    assert world.ask("status")["paused"] is True
    assert world.ask("fleet.resume") == {"paused": False, "by": None, "since": None}
    assert world.ask("fleet.resume") == {"paused": False, "by": None, "since": None}
    assert [kind for kind in world.kinds() if kind.startswith("fleet.")] == ["fleet.paused", "fleet.resumed"]


def test_a_session_that_was_taken_for_dead_can_stand_still(world: World) -> None:
    world.add()
    world.at_work()
    world.begin()
    world.ask("session.pause", name="ada")
    world.watch(70)
    assert session(world)["state"] == "dead"
    world.do(lambda call: runs.show(call, "ada", SessionState.PAUSED, "it was told to stand still"))
    assert (session(world)["state"], session(world)["evidence"]) == ("paused", "it was told to stand still")


# Removing


def test_a_session_at_work_is_removed_only_by_force(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    with pytest.raises(Refused, match="ada is at work"):
        world.ask("session.remove", name="ada")
    assert world.ask("session.remove", name="ada", force=True)["goal"] == "removed"
    assert world.status(task) == "doing", "its run ends first"
    world.do(lambda call: runs.ending(call, run, Ending("ada is being removed.")))
    world.end(run, Again("stopped"), -15)
    part(world)
    assert (world.status(task), world.task(task)["tries"]) == ("todo", [])


def test_a_session_that_is_removed_leaves_nothing_held(world: World) -> None:
    front, held = world.add("Rejected"), world.add("Held")
    world.at_work()
    world.end(world.begin(), HandIn(COMMIT))
    world.ask("merge.reject", id=world.ask("merge.list")[0]["id"], reason="red")
    world.claim(held, "ada")
    world.ask("lease.take", resources=["src/**", "port:3000"], session="ada")
    secret = world.ask("session.token", name="ada")["token"]
    world.ask("session.remove", name="ada", force=True)
    part(world)
    for task in (front, held):
        shown = world.task(task)
        assert (shown["status"], shown["session"], shown["front"]) == ("todo", None, None)
    assert world.ask("lease.list") == []
    assert world.ask("session.list") == []
    with pytest.raises(Unknown):
        world.store.read(lambda tx: world.app.who(tx, secret))
    world.claim(front, "bob")
    world.ask("lease.take", resources=["src/a.py", "port:3000"], session="bob")


def test_a_session_from_outside_is_removed_at_once_with_all_that_it_holds(world: World) -> None:
    task = world.add()
    world.claim(task, "bob")
    world.ask("lease.take", resources=["src/**"], session="bob")
    with pytest.raises(Refused, match="bob is at work"):
        world.ask("session.remove", name="bob")
    world.ask("session.remove", name="bob", force=True)
    assert (world.status(task), world.ask("lease.list"), world.ask("session.list")) == ("todo", [], [])
    assert world.next("bob") == task, "the name is free for another"


def test_the_name_of_a_removed_session_begins_anew(world: World) -> None:
    world.at_work()
    world.ask("session.remove", name="ada")
    with pytest.raises(Refused, match="about to be removed"):
        world.ask("session.start", name="ada")
    part(world)
    world.ask("session.new", name="ada", agent="scripted")
    assert (session(world)["goal"], session(world)["run"]) == ("stopped", None)


def test_of_a_removed_session_its_runs_are_named_where_it_has_some(world: World) -> None:
    world.add()
    world.at_work()
    world.end(world.begin(), HandIn(COMMIT))
    world.ask("session.new", name="rita")
    world.ask("session.new", name="eve", agent="scripted")
    hints = {}
    for name in ("ada", "rita", "eve"):
        world.ask("session.remove", name=name)
        if name != "rita":
            part(world, name)
        with pytest.raises(NotFound, match=f"{name} was removed, 20") as removed:
            world.ask("session.why", name=name)
        hints[name] = removed.value.hint
    assert hints["ada"].startswith("covey session logs ada --runs shows its runs")
    assert (hints["rita"], hints["eve"]) == ("", "")


@pytest.mark.parametrize("verb", ["session.logs", "session.transcript"])
def test_who_asks_for_a_run_of_a_session_without_one_is_told_to_start_only_what_can_be(world: World, verb: str) -> None:
    for name, agent in (("ada", "scripted"), ("eve", "scripted"), ("bob", None)):
        world.ask("session.new", name=name, agent=agent)
    world.ask("session.remove", name="eve")
    part(world, "eve")
    with pytest.raises(Refused, match="ada has not run yet") as not_yet:
        world.ask(verb, name="ada")
    assert not_yet.value.hint == "covey session start ada lets it work."
    with pytest.raises(Refused, match="bob has no runs: covey does not run it") as never:
        world.ask(verb, name="bob")
    assert never.value.hint == ""
    with pytest.raises(NotFound, match="eve was removed") as gone:
        world.ask(verb, name="eve")
    assert gone.value.hint == ""


# Edits


def inbox(world: World, name: str) -> list[str]:
    """Return the texts in a session's inbox."""
    return [message["text"] for message in world.ask("mail.inbox", session=name)]


def test_editing_a_task_at_work_mails_its_holder(world: World) -> None:
    task = world.add()
    world.at_work()
    world.begin()
    world.ask("task.edit", id=task, title="Mend it well", body="With care.\nTwice.", note="See the plan", role=None)
    (text,) = inbox(world, "ada")
    assert text.startswith(f"{task} was edited by owner while you are at work on it: ")
    for part_of_it in ("title", "body", "note", '"Mend it well"', "> With care.\n> Twice.", "> See the plan"):
        assert part_of_it in text
    (message,) = world.ask("mail.inbox", session="ada")
    assert (message["sender"], message["task"]) == ("covey", task)


def test_an_edit_that_changes_nothing_or_that_nobody_works_on_mails_nobody(world: World) -> None:
    task = world.add("Mend it", priority=3)
    world.at_work()
    world.ask("task.edit", id=task, priority=4)
    world.begin()
    world.ask("task.edit", id=task, priority=4, title="Mend it")
    assert inbox(world, "ada") == []


# What is typed and printed


def start(world: World, run: Run, *argv: str, **more: Any) -> None:
    """Start a program as a run."""
    world.runner.start(run.id, Launch(argv=argv, cwd="/", env={"PATH": os.environ["PATH"]}, **more))


def ended(world: World, run: Run) -> None:
    """Wait for the end of a run's program."""
    wait_until(lambda: not world.runner.look(run.id).alive, "the end of the program")


def test_what_is_typed_reaches_the_program_once_for_each_key(world: World) -> None:
    world.add()
    world.at_work()
    run = world.begin()
    start(world, run, sys.executable, "-c", "print(input(), '|', input())", typed=True)
    for _ in range(2):
        answer = world.ask("session.send", name="ada", text="red", key="k")
        assert (answer["id"], answer["session"]) == (run.id, "ada")
    assert world.runner.look(run.id).alive, "the second was the same as the first"
    world.ask("session.send", name="ada", text="blue", key="l")
    ended(world, run)
    assert world.ask("session.logs", name="ada")["text"].strip().endswith("red | blue")


def test_nothing_is_typed_where_nothing_runs(world: World) -> None:
    world.at_work()
    with pytest.raises(Refused, match="ada has no run to type to"):
        world.ask("session.send", name="ada", text="yes")


def logs(world: World, **asked: Any) -> Any:
    """Read what a run of ada printed, as a query is read."""
    return world.ask("session.logs", name="ada", **asked)


def test_what_a_run_printed_is_read_in_parts_without_secrets(world: World) -> None:
    world.add()
    world.at_work()
    run = world.begin()
    secret = "ghp_" + "a1" * 18
    start(world, run, "/bin/echo", f"söme wörds and {secret}")
    ended(world, run)
    whole = logs(world)
    assert (whole["run"], whole["text"], whole["alive"]) == (run.id, "söme wörds and [secret removed]\n", False)
    assert logs(world, since=whole["next"])["text"] == ""
    assert logs(world, run=run.id, since=-4)["text"] == "\n", "the end of a secret was shown"
    assert logs(world, since=-(2**40))["text"] == whole["text"]


def test_the_output_of_a_run_that_does_not_exist_or_is_another_sessions_is_not_found(world: World) -> None:
    world.at_work()
    world.at_work("bob")
    with pytest.raises(Refused, match="ada has not run yet"):
        logs(world)
    world.add()
    other = world.begin("bob")
    for run in (other.id, "run-999"):
        with pytest.raises(NotFound, match=f"no run '{run}'"):
            logs(world, run=run)
    with pytest.raises(NotFound, match="no session 'nobody'"):
        world.ask("session.logs", name="nobody")


def test_runs_are_listed_by_session_and_task_the_newest_first(world: World) -> None:
    one, two = world.add(), world.add()
    world.at_work()
    world.at_work("bob")
    first = world.begin()
    world.end(first, Again("no"))
    second = world.begin()
    third = world.begin("bob")

    def ids(**asked: Any) -> list[str]:
        return [row["id"] for row in world.ask("run.list", **asked)]

    assert ids() == [third.id, second.id, first.id]
    assert ids(limit=2) == [third.id, second.id]
    assert ids(session="ada") == [second.id, first.id]
    assert ids(task=two) == [third.id]
    assert ids(task=one, session="bob") == []


# Batches


def batch(world: World, sessions: int = 2, **asked: Any) -> Any:
    """Start a batch."""
    return world.ask("batch.start", name="night", sessions=sessions, agent="scripted", **asked)


def test_a_batch_starts_sessions_for_its_tasks_and_no_other(world: World) -> None:
    other = world.add("Another")
    tasks = [world.add(f"Task {number}", batch="night") for number in range(2)]
    started = batch(world)
    assert (started["sessions"], started["tasks"], started["over"]) == (["worker-1", "worker-2"], tasks, False)
    assert {world.begin(name).task for name in started["sessions"]} == set(tasks)
    for name in started["sessions"]:
        world.end(world.run(session(world, name)["run"]), HandIn(COMMIT))
        assert world.would_begin(name) is None
    assert world.next("bob") == other


def test_a_task_of_a_batch_is_for_nobody_else(world: World) -> None:
    task = world.add(batch="night")
    world.at_work()
    assert world.would_begin("ada") is None
    assert world.next("bob") is None
    with pytest.raises(Refused, match=f"{task} is for the sessions of night"):
        world.claim(task, "bob")


def test_with_all_every_task_that_waits_joins_the_batch(world: World) -> None:
    waiting, later = world.add("One"), world.add("Later", status="backlog")
    theirs = world.add("Of another", batch="day")
    assert batch(world, all=True)["tasks"] == [waiting]
    assert [world.task(task)["batch"] for task in (waiting, later, theirs)] == ["night", None, "day"]


def test_a_batch_without_a_task_is_refused(world: World) -> None:
    world.add("Of nobody")
    with pytest.raises(Refused, match="No task of night waits"):
        batch(world)
    assert world.ask("session.list") == []


def test_a_batch_whose_settings_name_no_agent_has_the_usual_one(world: World) -> None:
    world.add(batch="night")
    world.ask("batch.start", name="night", sessions=1)
    assert [session["agent"] for session in world.ask("session.list")] == [DEFAULT_AGENT]


def test_a_batch_takes_no_more_sessions_than_are_allowed_with_those_of_its_assignees(tmp_path: Path) -> None:
    world = World(tmp_path, Config(sessions=Sessions(max=3)))
    world.at_work("zoe")
    world.add(batch="night", assignee="ada")
    before = world.everything()
    with pytest.raises(Refused, match="That would be 4 sessions, and at most 3 are allowed"):
        batch(world)
    assert world.everything() == before
    assert batch(world, sessions=1)["sessions"] == ["ada", "worker-1"]
    world.store.close()


def test_a_batch_makes_a_session_for_each_assignee_that_there_is_not(world: World) -> None:
    world.ask("session.new", name="bob")
    for name in ("ada", "bob", "ada", "worker-1", "owner"):
        world.add(f"For {name}", batch="night", assignee=name)
    started = batch(world)
    assert started["sessions"] == ["ada", "worker-1", "worker-2", "worker-3"]
    assert world.task(world.begin("ada").task)["assignee"] == "ada"
    assert world.task(world.begin("worker-1").task)["assignee"] == "worker-1"
    assert world.would_begin("worker-2") is None
    assert session(world, "bob")["kind"] == "outside"


def test_names_of_sessions_that_there_are_are_not_given_again(world: World) -> None:
    world.at_work("worker-1")
    world.add(batch="night")
    assert batch(world)["sessions"] == ["worker-2", "worker-3"]


def test_stopping_a_batch_ends_its_sessions_and_gives_its_tasks_to_all(world: World) -> None:
    tasks = [world.add(f"Task {number}", batch="night") for number in range(3)]
    names = batch(world)["sessions"]
    run = world.begin("worker-1")
    stopped = world.ask("batch.stop", name="night")
    assert {session(world, name)["goal"] for name in names} == {"removed"}
    assert stopped["sessions"] == names
    part(world, "worker-2")
    assert world.task(tasks[1])["batch"] == "night", "one of its sessions is there yet"
    world.do(lambda call: runs.ending(call, run, Ending("worker-1 is being removed.")))
    world.end(run, Again("stopped"), -15)
    part(world, "worker-1")
    assert [world.task(task)["batch"] for task in tasks] == [None] * 3
    assert world.ask("batch.show", name="night") == {"name": "night", "sessions": [], "tasks": [], "over": True}
    assert {world.next("bob") for _ in tasks} == set(tasks)


def test_a_batch_that_nobody_works_on_any_more_is_disbanded_when_it_is_stopped(world: World) -> None:
    task = world.add(batch="night")
    assert world.ask("batch.stop", name="night")["tasks"] == []
    assert world.task(task)["batch"] is None


def to_done(world: World, task: str) -> None:
    """Bring what was handed in last onto main."""
    world.ask("merge.approve", id=world.ask("merge.list")[-1]["id"])
    world.ask("merge.land", id=world.ask("merge.list")[-1]["id"], commit=COMMIT)


ENDS: dict[str, tuple[Callable[[World, str], None], bool]] = {
    "handed in, and a person looks": (lambda world, task: None, True),
    "approved": (lambda world, task: world.ask("merge.approve", id=world.ask("merge.list")[-1]["id"]), False),
    "landed": (to_done, True),
    "rejected": (
        lambda world, task: world.ask("merge.reject", id=world.ask("merge.list")[-1]["id"], reason="red"),
        False,
    ),
    "blocked": (lambda world, task: world.ask("task.block", id=task, reason="?"), True),
    "dropped": (lambda world, task: world.ask("task.drop", id=task, reason="not now"), True),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_batch_is_over_when_nothing_of_it_moves_by_itself(world: World, how: str) -> None:
    act, over = ENDS[how]
    task = world.add(batch="night")
    later = world.add("After it", batch="night", needs=[task])
    batch(world, sessions=1)
    world.end(world.begin("worker-1"), HandIn(COMMIT))
    act(world, task)
    shown = world.ask("batch.show", name="night")
    ready = world.status(later) == "todo" and world.task(later)["ready"]
    assert shown["over"] is (over and not ready)


def test_a_batch_waits_for_what_is_at_work_elsewhere(world: World) -> None:
    first = world.add("Elsewhere")
    world.claim(first, "bob")
    world.add(batch="night", needs=[first])
    batch(world, sessions=1)
    assert world.ask("batch.show", name="night")["over"] is False
    world.ask("task.release", id=first, session="bob")
    assert world.ask("batch.show", name="night")["over"] is True


def test_a_batch_does_not_wait_for_a_session_that_covey_does_not_let_work(world: World) -> None:
    world.ask("session.new", name="rita")
    world.ask("session.new", name="ada", agent="scripted")
    world.add("For rita", assignee="rita", batch="night")
    world.add("For ada", assignee="ada", batch="night")
    assert world.ask("batch.start", name="night", sessions=1, agent="scripted")["over"] is True
    world.ask("session.start", name="ada")
    assert world.ask("batch.show", name="night")["over"] is False
