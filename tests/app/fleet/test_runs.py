"""What the loops write of runs: one at a time for a session, judged by its evidence, and dead with its token."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from covey.app.board.task_changes import change, step
from covey.app.board.tries import block_if_tried_often
from covey.app.context import Call, find
from covey.app.fleet import fleet_verbs, runs
from covey.app.fleet.sessions import alert as raise_alert
from covey.app.merging import merges
from covey.app.people import questions
from covey.config import Board, Config, Merge, Watch
from covey.core.board import tasks
from covey.core.board.tasks import Status
from covey.core.fleet import outcomes, sessions, watchdog
from covey.core.fleet.launches import Launch
from covey.core.fleet.outcomes import Again, Crashed, HandIn, PutOff, Verdict
from covey.core.fleet.prompts import prompt
from covey.core.fleet.runs import Ending, Outcome, Run
from covey.core.fleet.sessions import COVEY, SessionState
from covey.core.fleet.signals import Asks, Trouble
from covey.core.fleet.start_limits import Wait
from covey.core.fleet.watchdog import Clue
from covey.core.merging.merges import Merge as QueuedMerge
from covey.core.merging.merges import Rejected
from covey.core.people.alerts import AlertKind
from covey.core.people.questions import Question
from covey.errors import Denied, Unknown
from tests.worlds.boards import Principal, Remembers, World
from tests.worlds.serving import wait_until

COMMIT = "c" * 40
DONE = HandIn(COMMIT, "It works")
SECRET = "sk-ant-" + "a1" * 20


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[World]:
    """Return a world in which a gate tests what lands."""
    folder = tmp_path / "gated"
    folder.mkdir()
    world = World(folder, Config(merge=Merge(check="make test")))
    yield world
    assert world.folded() == world.tables()
    world.store.close()


# Beginning


def test_a_run_begins_on_the_next_task_with_its_claim(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    shown = world.task(task)
    assert (run.session, run.task, run.fence, run.agent) == ("ada", task, shown["fence"], "scripted")
    assert (shown["status"], shown["session"]) == ("doing", "ada")
    (session,) = world.ask("session.list")
    assert (session["state"], session["run"], session["tasks"]) == ("starting", run.id, [task])
    assert [row["id"] for row in world.ask("run.list", session="ada")] == [run.id]


def test_a_session_has_one_run_at_a_time(world: World) -> None:
    for _ in range(3):
        world.add()
    world.at_work()
    world.begin()
    before = world.everything()
    assert world.would_begin("ada") is None
    assert world.everything() == before


@pytest.mark.parametrize("verb", ["session.stop", "session.pause", "fleet.pause", "session.remove"])
def test_nothing_begins_for_a_session_that_shall_not_work(world: World, verb: str) -> None:
    world.add()
    world.at_work()
    asked: dict[str, Any] = {} if verb == "fleet.pause" else {"name": "ada"}
    world.ask(verb, **asked)
    before = world.everything()
    assert world.would_begin("ada") is None
    assert world.everything() == before


def test_a_session_that_holds_a_task_goes_on_with_it(world: World) -> None:
    world.add("Urgent", priority=9)
    task = world.add("Mine")
    world.at_work()
    world.claim(task, "ada")
    assert world.begin().task == task


def test_nothing_begins_for_a_name_that_nobody_has(world: World) -> None:
    assert world.would_begin("nobody") is None


def test_a_run_whose_claim_has_ended_needs_nothing_more(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    world.ask("task.release", id=task, session="ada")
    assert world.do(lambda call: runs.work(call, run)) is None
    world.claim(task, "ada")
    assert world.do(lambda call: runs.work(call, run)) is None, "it is claimed again, with another fence"


def test_a_run_that_has_ended_is_not_started_though_its_session_keeps_the_claim(world: World) -> None:
    world.add()
    world.at_work()
    run = world.begin()
    world.do(lambda call: runs.lost(call, run, "The machine fell over", None))
    assert world.do(lambda call: runs.work(call, run)) is None


# Tokens


def test_the_token_of_a_run_speaks_for_its_session_and_dies_with_it(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    secret = world.work(run).token
    assert world.work(run).token == secret, "a start that is tried again has the same token"
    who = world.store.read(lambda tx: world.app.who(tx, secret))
    assert who == Principal("ada")
    assert world.ask("task.show", who, id=task)["session"] == "ada"
    world.end(run, DONE)
    with pytest.raises(Unknown):
        world.store.read(lambda tx: world.app.who(tx, secret))


@pytest.mark.parametrize(
    "how",
    [
        lambda call, run: runs.lost(call, run, "gone", None),
        lambda call, run: runs.unstartable(call, run, "no such program"),
        lambda call, run: runs.judged(call, run, Again("no commit"), 0),
    ],
    ids=["lost", "unstartable", "judged"],
)
def test_however_a_run_ends_its_token_ends_too_and_the_next_has_another(world: World, how: Callable[..., None]) -> None:
    world.add()
    world.at_work()
    run = world.begin()
    secret = world.work(run).token
    world.do(lambda call: how(call, run))
    with pytest.raises(Unknown):
        world.store.read(lambda tx: world.app.who(tx, secret))
    assert world.work(world.begin()).token != secret


OWNERS: list[tuple[str, dict[str, Any]]] = [
    ("session.new", {"name": "bob", "agent": "scripted"}),
    ("session.start", {"name": "ada"}),
    ("session.stop", {"name": "ada"}),
    ("session.pause", {"name": "ada"}),
    ("session.resume", {"name": "ada"}),
    ("session.restart", {"name": "ada"}),
    ("session.remove", {"name": "ada"}),
    ("session.send", {"name": "ada", "text": "yes"}),
    ("fleet.pause", {}),
    ("fleet.resume", {}),
    ("batch.start", {"name": "night", "sessions": 1}),
    ("batch.stop", {"name": "night"}),
    ("merge.approve", {"id": "merge-1"}),
]


@pytest.mark.parametrize(("verb", "asked"), OWNERS, ids=[verb for verb, _ in OWNERS])
def test_a_session_may_not_ask_what_only_the_owner_may(world: World, verb: str, asked: dict[str, Any]) -> None:
    world.at_work()
    before = world.everything()
    with pytest.raises(Denied, match="Only the owner"):
        world.ask(verb, Principal("ada"), **asked)
    assert world.everything() == before


# Ends


def test_work_that_is_complete_goes_to_the_queue(gated: World) -> None:
    task = gated.add()
    gated.at_work()
    ended = gated.end(gated.begin(), DONE)
    assert (ended.outcome, ended.commit, ended.code) == (Outcome.HANDED_IN, COMMIT, 0)
    (merge,) = gated.ask("merge.list")
    assert (merge["task"], merge["session"], merge["branch"], merge["commit"], merge["state"]) == (
        task,
        "ada",
        f"covey/{task}",
        COMMIT,
        "queued",
    )
    assert gated.task(task)["result"] == "It works"
    assert gated.status(task) == "merging"


def test_work_of_ours_waits_for_a_person_where_no_gate_tests_it(world: World) -> None:
    task = world.add()
    world.at_work()
    world.end(world.begin(), DONE)
    assert (world.status(task), world.ask("merge.list")[0]["state"]) == ("review", "review")


def test_work_from_outside_waits_for_a_person_only_where_that_is_required(world: World, gated: World) -> None:
    for each in (world, gated):
        task = each.add()
        each.claim(task, "bob")
        each.hand_in(task, "bob")
        assert each.status(task) == "merging"


def test_a_report_is_done_by_its_text(world: World) -> None:
    task = world.add(kind="report")
    world.at_work()
    world.end(world.begin(), HandIn(None, "All is well"))
    assert (world.status(task), world.task(task)["result"]) == ("done", "All is well")
    assert world.ask("merge.list") == []


def test_a_failed_run_puts_its_task_back_with_the_story(world: World) -> None:
    task = world.add()
    world.at_work()
    ended = world.end(world.begin(), Again("The run ended without a commit.\nThe end of its output:\nboom"))
    assert ended.outcome is Outcome.FAILED
    shown = world.task(task)
    assert (shown["status"], shown["session"]) == ("todo", None)
    assert [each["what"] for each in shown["tries"]] == [ended.what]
    (session,) = world.ask("session.list")
    assert (session["state"], session["evidence"]) == ("idle", f"{ended.id} ended: The run ended without a commit.")


@pytest.mark.parametrize("most", [1, 3])
def test_a_task_is_tried_as_often_as_is_set_and_then_needs_a_person(tmp_path: Path, most: int) -> None:
    world = World(tmp_path, Config(board=Board(tries=most)))
    task = world.add()
    world.at_work()
    for number in range(most):
        assert world.status(task) == "todo"
        world.end(world.begin(), Again(f"Failure {number}\nand more"))
    shown = world.task(task)
    assert shown["status"] == "blocked"
    often = "once" if most == 1 else f"{most} times"
    times = f"Tried {often} without success; the last time: Failure {most - 1}"
    assert shown["reason"] == times
    assert len(shown["tries"]) == most
    (alert,) = world.ask("alert.list")
    assert (alert["type"], alert["task"]) == ("task_blocked", task)
    assert times in alert["message"]
    assert world.would_begin("ada") is None
    assert world.folded() == world.tables()
    world.store.close()


def test_stopping_is_no_failed_try(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    world.ask("session.stop", name="ada")
    world.do(lambda call: runs.ending(call, run, Ending("ada was stopped.")))
    ended = world.end(run, DONE)
    assert (ended.outcome, ended.what) == (Outcome.STOPPED, "ada was stopped.")
    shown = world.task(task)
    assert (shown["status"], shown["tries"], shown["session"]) == ("todo", [], None)


def test_a_restarted_run_keeps_its_claim_and_is_no_failed_try(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    world.ask("session.restart", name="ada")
    world.ask("session.restart", name="ada")
    assert (world.run(run.id).again, world.kinds().count("run.ending")) == (True, 1)
    world.end(run, Again("killed"), -15)
    shown = world.task(task)
    assert (shown["status"], shown["session"], shown["tries"]) == ("doing", "ada", [])
    again = world.begin()
    assert (again.task, again.fence) == (task, run.fence)


def test_a_run_that_took_too_long_is_a_failed_try(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    world.do(lambda call: runs.ending(call, run, Ending("The run took longer than 60 minutes.", fault=True)))
    ended = world.end(run, Again("The run took longer than 60 minutes."), -15)
    assert ended.outcome is Outcome.FAILED
    assert len(world.task(task)["tries"]) == 1


def test_a_lost_run_keeps_the_claim_and_is_no_failed_try(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    world.do(lambda call: runs.lost(call, run, "The machine fell over", None))
    assert world.run(run.id).outcome is Outcome.LOST
    shown = world.task(task)
    assert (shown["status"], shown["session"], shown["fence"], shown["tries"]) == ("doing", "ada", run.fence, [])
    again = world.begin()
    assert (again.task, again.fence) == (task, run.fence)


def test_a_run_that_cannot_be_started_is_no_fault_of_its_task_and_its_session_tries_again(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    world.do(lambda call: runs.unstartable(call, run, "there is no program agnet on the PATH"))
    assert (world.status(task), world.task(task)["tries"]) == ("todo", [])
    (session,) = world.ask("session.list")
    assert (session["state"], session["evidence"]) == ("stalled", "there is no program agnet on the PATH")
    assert world.begin().task == task


def test_a_run_ends_once(gated: World) -> None:
    gated.add()
    gated.at_work()
    run = gated.begin()
    gated.end(run, DONE)
    before = gated.everything()
    for again in (
        lambda call: runs.judged(call, run, Again("no"), 1),
        lambda call: runs.lost(call, run, "no", None),
        lambda call: runs.unstartable(call, run, "no"),
        lambda call: runs.ending(call, run, Ending("no")),
        lambda call: runs.note_conversation(call, run, "other"),
    ):
        gated.do(again)
    assert gated.everything() == before


def test_what_a_session_handed_in_itself_stays_as_it_handed_it_in(gated: World) -> None:
    task = gated.add()
    gated.at_work()
    run = gated.begin()
    gated.hand_in(task, "ada", commit="d" * 40)
    ended = gated.end(run, Again("no commit"))
    assert (ended.outcome, gated.status(task)) == (Outcome.HANDED_IN, "merging")
    assert [merge["commit"] for merge in gated.ask("merge.list")] == ["d" * 40]


def test_a_task_that_was_taken_from_a_run_is_left_alone(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    world.ask("task.block", id=task, reason="Which one?")
    ended = world.end(run, DONE)
    assert (ended.outcome, world.status(task)) == (Outcome.STOPPED, "blocked")


def test_work_on_a_task_that_got_children_meanwhile_waits_for_them(gated: World) -> None:
    task = gated.add()
    gated.at_work()
    run = gated.begin()
    child = str(gated.ask("task.add", title="A part", parent=task)["id"])
    ended = gated.end(run, DONE)
    assert ended.outcome is Outcome.FAILED
    assert gated.status(task) == "todo"
    assert "children that are not done" in gated.task(task)["tries"][0]["what"]
    assert gated.begin().task == child


def test_no_secret_that_an_agent_prints_reaches_the_log(world: World) -> None:
    world.add(kind="report")
    world.add()
    world.at_work()
    run = world.begin()
    begun = world.work(run)
    assert begun is not None
    world.do(lambda call: runs.started(call, begun, COMMIT))
    asks(world, run, f"Is {SECRET} the key?")
    world.end(run, HandIn(None, f"The key is {SECRET}"))
    world.end(world.begin(), Again(f"It ended.\nThe end of its output:\n{SECRET}"))
    failed = world.begin()
    world.do(lambda call: runs.lost(call, failed, f"{SECRET} is lost", None))
    failed = world.begin()
    world.do(lambda call: runs.unstartable(call, failed, f"no program {SECRET}"))
    failed = world.begin()
    world.do(lambda call: runs.ending(call, failed, Ending(f"Stalled: {SECRET}", again=True)))
    world.end(failed, Crashed(f"killed by {SECRET}"), -15)
    world.end(world.begin(), PutOff(f"401: {SECRET} is no key", Trouble.KEY), 1)
    world.do(lambda call: raise_alert(call, AlertKind.AGENT_KEY, f"{SECRET} is no key", "ada", None))
    assert SECRET not in repr(world.everything())
    assert "[secret removed]" in world.task("T-1")["result"]


def test_no_secret_is_told_with_why_a_session_is_in_its_state(world: World) -> None:
    world.add()
    world.at_work()
    clue = Clue("stream", f"429: {SECRET} has no quota", 1.0)
    verdict = watchdog.Verdict(state=SessionState.LIMITED, rule="its provider put it off", clues=(clue,))
    world.app.context.fleet = Remembers(verdict, Wait(f"401: {SECRET} is no key"))
    told = world.ask("session.why", name="ada")
    assert [each["text"] for each in told["clues"]] == [
        "429: [secret removed] has no quota",
        "401: [secret removed] is no key",
    ]


# Questions


def asks(world: World, run: Run, text: str, *, id: str = "") -> Question:
    """Let a run ask a person something by its output."""
    return world.do(
        lambda call: questions.ask(call, run.session, Asks(text, id), task=run.task, run=run.id, minutes=60)
    )


def asked_by_shell(world: World, text: str) -> str:
    """Let ada ask by `covey ask`, and return the question."""
    return str(world.ask("question.ask", Principal("ada"), text=text)["id"])


def test_a_question_is_an_alert_once_until_it_goes_on(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    for _ in range(2):
        asks(world, run, "Which colour?")
    (alert,) = world.ask("alert.list")
    assert (alert["type"], alert["session"], alert["task"]) == ("needs_you", "ada", task)
    assert "Which colour?" in alert["message"] and "covey answer question-" in alert["message"]


def test_a_question_of_a_run_that_stands_still_reaches_the_person_too(world: World) -> None:
    world.add()
    world.at_work()
    run = world.begin()
    world.ask("session.pause", name="ada")
    world.do(lambda call: runs.show(call, "ada", SessionState.PAUSED, "it stands still"))
    asks(world, run, "Which colour?")
    (alert,) = world.ask("alert.list")
    assert "Which colour?" in alert["message"]


def test_what_a_run_asked_by_its_output_is_withdrawn_with_it(world: World) -> None:
    world.add()
    world.at_work()
    run = world.begin()
    question = asks(world, run, "Which colour?", id="q1")
    world.end(run, Again("no"))
    assert world.ask("question.show", id=question.id)["state"] == "withdrawn"
    assert isinstance(world.would_begin(), Run)


def test_a_run_that_ends_with_a_question_open_goes_on_with_the_answer(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    question = asked_by_shell(world, "Which colour?")
    ended = world.end(run, Again("The run ended without a commit."))
    assert (ended.outcome, ended.what) == (Outcome.PUT_OFF, f"It waits for an answer to {question}.")
    shown = world.task(task)
    assert (shown["status"], shown["session"], shown["tries"]) == ("doing", "ada", [])
    (session,) = world.ask("session.list")
    assert (session["state"], session["evidence"]) == ("needs-you", "Which colour?")
    assert world.would_begin() == Wait("A person has not answered yet.")
    world.ask("question.answer", id=question, decision="reply", text="Green, as ever")
    again = world.begin()
    assert (again.task, again.fence) == (task, run.fence)
    work = world.work(again)
    assert "Which colour?" in prompt(work.brief) and "Green, as ever" in prompt(work.brief)
    world.do(lambda call: runs.started(call, work, COMMIT))
    assert "Green, as ever" in prompt(world.work(again).brief), "nobody has seen it arrive"
    assert work.brief.answered == [question]
    world.do(lambda call: questions.told(call, questions.answers(call, task)[0]))
    assert "Green, as ever" not in prompt(world.work(again).brief)


def test_work_that_is_done_does_not_wait_for_what_its_run_wanted_to_push(gated: World) -> None:
    task = gated.add()
    gated.at_work()
    run = gated.begin()
    question = gated.ask("push.ask", Principal("ada", run.id), remote="origin", refs=["main"])["question"]
    assert gated.end(run, DONE).outcome is Outcome.HANDED_IN
    assert gated.task(task)["status"] == "merging"
    assert gated.ask("question.show", id=question)["state"] == "withdrawn"


@pytest.mark.parametrize(("kind", "done"), [("change", DONE), ("report", HandIn(None, "All is well"))])
def test_work_that_looks_done_is_handed_in_only_when_what_its_run_asked_is_answered(
    gated: World, kind: str, done: HandIn
) -> None:
    task = gated.add(kind=kind)
    gated.at_work()
    run = gated.begin()
    question = asked_by_shell(gated, "Is that all?")
    ended = gated.end(run, done)
    assert (ended.outcome, ended.what) == (Outcome.PUT_OFF, f"It waits for an answer to {question}.")
    assert waits(gated) == (SessionState.NEEDS_YOU, None)
    shown = gated.task(task)
    assert (shown["status"], shown["session"], shown["result"], shown["tries"]) == ("doing", "ada", None, [])
    assert gated.would_begin() == Wait("A person has not answered yet.")
    gated.ask("question.answer", id=question, decision="reply", text="It is")
    again = gated.begin()
    gated.do(lambda call: runs.started(call, work_of(call, again), COMMIT))
    assert gated.end(again, done).outcome is Outcome.HANDED_IN
    assert gated.status(task) == ("merging" if kind == "change" else "done")


def work_of(call: Call, run: Run) -> runs.Work:
    """Return what a run needs to be started."""
    work = runs.work(call, run)
    assert work is not None
    return work


def test_what_a_run_asked_by_its_output_keeps_no_work_from_being_handed_in(gated: World) -> None:
    task = gated.add()
    gated.at_work()
    run = gated.begin()
    question = asks(gated, run, "May I?", id="q1")
    gated.end(run, DONE)
    assert (gated.status(task), gated.ask("question.show", id=question.id)["state"]) == ("merging", "withdrawn")


# Troubles that are nobody's fault, and crashes


@pytest.mark.parametrize("trouble", sorted(outcomes.OUTSIDE_TROUBLES))
def test_a_run_that_is_put_off_keeps_the_claim_and_is_no_failed_try(world: World, trouble: Trouble) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    until = world.clock.now().wall + 600
    ended = world.end(run, PutOff("No more today", trouble, fresh=False), 1, until)
    assert (ended.outcome, ended.what) == (Outcome.PUT_OFF, "No more today")
    shown = world.task(task)
    assert (shown["status"], shown["session"], shown["fence"], shown["tries"]) == ("doing", "ada", run.fence, [])
    state = {Trouble.KEY: "stalled", Trouble.CREDIT: "stalled", Trouble.CORRUPT: "idle"}.get(trouble, "limited")
    assert waits(world) == (state, until)
    again = world.begin()
    assert (again.task, again.fence) == (task, run.fence)


def waits(world: World) -> tuple[SessionState, float | None]:
    """Return how ada is, and until when she waits."""
    session = world.store.read(lambda tx: tx.session("ada"))
    assert session is not None
    return session.state, session.until


@pytest.mark.parametrize(
    "verdict",
    [PutOff("a thinking block was changed", Trouble.CORRUPT, fresh=True), Again("The prompt is too long", fresh=True)],
)
def test_a_conversation_that_is_broken_is_not_taken_up_again(world: World, verdict: Verdict) -> None:
    world.add()
    world.at_work()
    run = world.begin()
    world.do(lambda call: runs.note_conversation(call, run, "talk-1"))
    world.end(run, verdict, 1)
    again = world.begin()
    assert world.work(again).conversation is None
    world.do(lambda call: runs.note_conversation(call, again, "talk-2"))
    world.end(again, PutOff("overloaded", Trouble.OVERLOAD), 1)
    third = world.begin()
    assert world.work(third).conversation == "talk-2"
    world.end(third, verdict, 1)
    assert world.work(world.begin()).conversation is None, "the third never named the one that it took up"


def test_a_crash_is_no_failed_try_and_many_in_a_short_time_block_the_task_once(tmp_path: Path) -> None:
    world = World(tmp_path, Config(watch=Watch(crashes=3, crash_minutes=15)))
    task = world.add()
    world.at_work()
    what = "The agent was ended by signal 11.\nThe end of its output:\nboom"
    for _ in range(2):
        ended = world.end(world.begin(), Crashed(what), -11)
        assert (ended.outcome, world.status(task), world.task(task)["tries"]) == (Outcome.CRASHED, "doing", [])
        world.clock.run(60)
    assert world.end(world.begin(), Crashed(what), -11).outcome is Outcome.CRASHED
    shown = world.task(task)
    reason = "Its runs crashed 3 times in 2 min; the last time: The agent was ended by signal 11."
    assert (shown["status"], shown["reason"], shown["session"]) == ("blocked", reason, None)
    assert [each["what"] for each in shown["tries"]] == [what], "the story is with the task"
    (alert,) = world.ask("alert.list")
    assert (alert["type"], alert["task"]) == ("crash_loop", task)
    assert reason in alert["message"]
    assert world.would_begin() is None
    assert world.folded() == world.tables()
    world.store.close()


SEGV = "The agent was ended by signal 11."


def test_crashes_far_apart_block_a_task_when_they_are_twice_as_many(tmp_path: Path) -> None:
    world = World(tmp_path, Config(watch=Watch(crashes=3, crash_minutes=15)))
    task = world.add()
    world.at_work()
    for _ in range(5):
        world.end(world.begin(), Crashed(SEGV), -11)
        assert (world.status(task), world.ask("alert.list")) == ("doing", [])
        world.clock.run(8 * 60)
    world.end(world.begin(), Crashed(SEGV), -11)
    assert world.status(task) == "blocked"
    assert world.task(task)["reason"] == f"Its runs crashed 6 times in 40 min; the last time: {SEGV}"
    assert [alert["type"] for alert in world.ask("alert.list")] == ["crash_loop"]
    world.store.close()


def stopped(world: World, run: Run) -> None:
    """Let a run be restarted by a person."""
    world.do(lambda call: runs.ending(call, run, Ending("It was restarted by a person.", again=True)))
    world.end(run, Crashed("The agent was ended by signal 15."), -15)


BETWEEN: dict[str, Callable[[World, Run], object]] = {
    "put off": lambda world, run: world.end(run, PutOff("429", Trouble.LIMIT), 1),
    "stopped": stopped,
}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
@pytest.mark.parametrize("apart", [1, 20])
def test_what_was_put_off_or_stopped_between_crashes_neither_counts_nor_ends_their_row(
    tmp_path: Path, apart: int, between: Callable[[World, Run], object]
) -> None:
    world = World(tmp_path, Config(watch=Watch(crashes=3, crash_minutes=15)))
    task = world.add()
    world.at_work()
    wanted = 3 if apart == 1 else 6
    for _ in range(wanted - 1):
        world.end(world.begin(), Crashed(SEGV), -11)
        between(world, world.begin())
        assert world.status(task) == "doing"
        world.clock.run(apart * 60)
    world.end(world.begin(), Crashed(SEGV), -11)
    assert world.status(task) == "blocked"
    assert world.task(task)["reason"].startswith(f"Its runs crashed {wanted} times in ")
    world.store.close()


def test_lost_runs_count_as_crashes_when_a_crash_follows(tmp_path: Path) -> None:
    world = World(tmp_path, Config(watch=Watch(crashes=3, crash_minutes=15)))
    task = world.add()
    world.at_work()
    for _ in range(2):
        lost = world.begin()
        world.do(lambda call, lost=lost: runs.lost(call, lost, "Nobody saw it end", None))  # type: ignore[misc]
    world.end(world.begin(), Crashed(SEGV), -11)
    assert world.status(task) == "blocked"
    world.store.close()


def test_a_failed_try_between_crashes_ends_their_row(tmp_path: Path) -> None:
    world = World(tmp_path, Config(watch=Watch(crashes=2, crash_minutes=15), board=Board(tries=9)))
    task = world.add()
    world.at_work()
    for _ in range(4):
        world.end(world.begin(), Crashed(SEGV), -11)
        assert world.status(task) == "doing"
        world.end(world.begin(), Again("The run ended without a commit."))
        assert world.status(task) == "todo"
    world.store.close()


BROKEN = PutOff("a thinking block was changed", Trouble.CORRUPT, fresh=True)


def test_a_conversation_that_breaks_a_third_time_is_a_failed_try(world: World) -> None:
    task = world.add()
    world.at_work()
    for _ in range(2):
        assert world.end(world.begin(), BROKEN, 1).outcome is Outcome.PUT_OFF
        world.end(world.begin(), PutOff("429", Trouble.LIMIT), 1)
    assert (world.status(task), world.task(task)["tries"]) == ("doing", [])
    ended = world.end(world.begin(), BROKEN, 1)
    assert (ended.outcome, ended.what, ended.conversation) == (Outcome.FAILED, BROKEN.what, "")
    shown = world.task(task)
    assert (shown["status"], [each["what"] for each in shown["tries"]]) == ("todo", [BROKEN.what])
    assert world.end(world.begin(), BROKEN, 1).outcome is Outcome.PUT_OFF, "the next claim begins from one on"


def test_a_task_that_crashed_and_was_given_back_by_a_person_crashes_from_one_on(tmp_path: Path) -> None:
    world = World(tmp_path, Config(watch=Watch(crashes=2, crash_minutes=15)))
    task = world.add()
    world.at_work()
    for _ in range(2):
        world.end(world.begin(), Crashed("The agent was ended by signal 11."), -11)
    world.ask("task.edit", id=task, status="todo")
    world.end(world.begin(), Crashed("The agent was ended by signal 11."), -11)
    assert world.status(task) == "doing", "a person gave it another chance"
    world.store.close()


@pytest.mark.parametrize("verdict", [Again("killed"), Crashed("killed"), PutOff("429", Trouble.LIMIT), DONE])
def test_the_run_of_a_person_is_never_judged_and_gives_the_conversation_back(world: World, verdict: Verdict) -> None:
    task = world.add()
    world.at_work()
    world.end(world.begin(), PutOff("429", Trouble.LIMIT))
    world.do(lambda call: attach(call, "ada"))
    run = world.begin()
    assert (run.person, run.runner, run.task) == (True, "tmux", task)
    ended = world.end(run, verdict, -1)
    assert (ended.outcome, ended.what) == (Outcome.STOPPED, "The person left.")
    shown = world.task(task)
    assert (shown["status"], shown["session"], shown["tries"]) == ("doing", "ada", [])
    assert world.ask("alert.list") == []
    again = world.begin()
    assert (again.person, again.task) == (False, task)


def person_run(world: World) -> Run:
    """Let a person take over what ada was put off with, and return the run that begins for that."""
    world.end(world.begin(), PutOff("429", Trouble.LIMIT))
    world.do(lambda call: attach(call, "ada"))
    return world.begin()


def test_a_conversation_is_given_back_though_the_run_of_the_person_could_not_start(world: World) -> None:
    task = world.add()
    world.at_work()
    run = person_run(world)
    world.do(lambda call: runs.unstartable(call, run, "there is no tmux"))
    assert world.store.read(lambda tx: tx.session("ada")).attached is None  # type: ignore[union-attr]
    assert world.status(task) == "todo"
    again = world.begin()
    assert (again.person, again.task) == (False, task)


@pytest.mark.parametrize("how", ["lost", "taken away"])
def test_a_conversation_is_given_back_however_the_run_of_a_person_ends(world: World, how: str) -> None:
    task = world.add()
    world.at_work()
    run = person_run(world)
    if how == "lost":
        world.do(lambda call: runs.lost(call, run, "Nobody saw it end", None))
    else:
        world.ask("task.block", id=task, reason="Which one?")
        world.end(run, Again("killed"), -15)
    assert world.store.read(lambda tx: tx.session("ada")).attached is None  # type: ignore[union-attr]


def test_a_person_takes_over_what_was_put_off(world: World) -> None:
    world.add()
    world.ask("session.new", name="ada", agent="claude")
    world.ask("session.start", name="ada")
    until = world.clock.now().wall + 3600
    run = world.begin()
    world.do(lambda call: runs.note_conversation(call, run, "talk-1"))
    world.end(run, PutOff("429", Trouble.LIMIT), 1, until)
    world.ask("session.attach", name="ada")
    again = world.begin()
    assert (again.person, again.runner, world.work(again).conversation) == (True, "tmux", "talk-1")


@pytest.mark.parametrize("verb", ["session.start", "session.restart"])
def test_who_was_put_off_goes_on_at_once_when_a_person_says_so(world: World, verb: str) -> None:
    world.add()
    world.at_work()
    world.app.context.fleet = fleet = Remembers()
    world.end(world.begin(), PutOff("429", Trouble.LIMIT), 1, world.clock.now().wall + 3600)
    world.ask(verb, name="ada")
    assert (waits(world), fleet.forgiven) == ((SessionState.IDLE, None), [("scripted", "ada")])


def attach(call: Call, name: str) -> None:
    """Let the owner take a conversation over."""
    session = call.tx.session(name)
    assert session is not None
    call.put_session(session, name, sessions.Attached(), by="owner")


def test_a_stalled_run_that_is_begun_again_keeps_the_claim(world: World) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    world.do(lambda call: runs.ending(call, run, Ending("Stalled: its model does not answer", again=True)))
    until = world.clock.now().wall + 5
    ended = world.end(run, Crashed("The agent was ended by signal 15."), -15, until)
    assert ended.outcome is Outcome.STOPPED
    assert (world.status(task), world.task(task)["tries"]) == ("doing", [])
    assert waits(world) == (SessionState.IDLE, until)


ENDED = "It had said its last word, and did not end."


@pytest.mark.parametrize(
    ("verdict", "outcome", "status", "tries"),
    [(DONE, Outcome.HANDED_IN, "merging", []), (Again("no commit"), Outcome.FAILED, "todo", ["no commit"])],
)
def test_what_a_run_brought_that_did_not_end_by_itself_is_judged(
    gated: World, verdict: Verdict, outcome: Outcome, status: str, tries: list[str]
) -> None:
    task = gated.add()
    gated.at_work()
    run = gated.begin()
    gated.do(lambda call: runs.ending(call, run, Ending(ENDED, over=True)))
    assert gated.run(run.id).over
    assert gated.end(run, verdict, -15).outcome is outcome
    shown = gated.task(task)
    assert (shown["status"], [each["what"] for each in shown["tries"]]) == (status, tries)


# Prompts


def test_a_prompt_is_made_of_all_that_is_known(gated: World) -> None:
    first = gated.add("Lay the ground", kind="report")
    task = gated.add("Build on it", body="With care.", needs=[first], scope=["src/**"], done_when=["make test"])
    gated.at_work(role="quality")
    gated.end(gated.begin(), HandIn(None, "The ground is laid"))
    gated.end(gated.begin(), Again("The roof fell in"))
    gated.ask("mail.send", to="ada", text="Mind the gap", session="bob")
    gated.ask("task.edit", id=task, note="Look at the plan")
    work = gated.work(gated.begin())
    text = prompt(work.brief)
    for part in (
        *("Build on it", "With care.", "src/**", "make test", "Your role is quality.", "The ground is laid"),
        *("The roof fell in", "] From bob (information", "> Mind the gap", "Look at the plan", f"covey/{task}"),
    ):
        assert part in text
    assert (work.tries, work.brief.body, work.conversation) == (1, "With care.", None)
    assert len(gated.ask("mail.inbox", session="ada")) == 1, "nobody has told it yet"
    gated.do(lambda call: runs.started(call, work, COMMIT))
    assert len(gated.ask("mail.inbox", session="ada")) == 1, "nobody has seen that its program got it"


def test_a_later_run_of_the_same_agent_takes_the_conversation_up_again(world: World) -> None:
    world.add()
    world.at_work()
    run = world.begin()
    world.do(lambda call: runs.note_conversation(call, run, "talk-1"))
    world.do(lambda call: runs.note_conversation(call, run, "talk-1"))
    assert world.kinds().count("run.talking") == 1
    world.end(run, Again("no"))
    again = world.begin()
    assert world.work(again).conversation == "talk-1"
    other = replace(again, agent="another")
    assert world.work(other).conversation is None


def test_what_lies_in_a_worktree_belongs_to_a_task_only_if_its_session_ran_on_nothing_else_since(world: World) -> None:
    first = world.add("One")
    world.at_work()
    run = world.begin()
    assert not world.work(run).lies, "nothing of it can be there"
    world.end(run, PutOff("429", Trouble.LIMIT), 1)
    again = world.begin()
    assert world.work(again).lies
    world.do(lambda call: runs.note_conversation(call, again, "talk-1"))
    world.end(again, Again("no commit"))
    world.ask("session.stop", name="ada")
    world.ask("session.start", name="ada")
    other = world.add("Two", priority=9)
    between = world.begin()
    assert (between.task, world.work(between).lies) == (other, False)
    world.end(between, Again("no commit"))
    world.ask("task.drop", id=other, reason="Not now")
    back = world.begin()
    work = world.work(back)
    assert (back.task, work.conversation, work.lies) == (first, "talk-1", False)


# Rejected work


def rejected(world: World) -> str:
    """Let work of ada be handed in, and return its merge."""
    world.end(world.begin(), DONE)
    return str(world.ask("merge.list")[-1]["id"])


def test_rejected_work_goes_first_to_its_author(gated: World) -> None:
    task = gated.add()
    gated.at_work()
    gated.at_work("bob")
    merge = rejected(gated)
    urgent = gated.add("Urgent", priority=9)
    gated.ask("merge.reject", id=merge, reason="red")
    assert gated.begin("bob").task == urgent
    assert gated.would_begin("bob") is None
    assert gated.begin().task == task


def test_rejected_work_of_a_paused_author_waits_for_it(gated: World) -> None:
    task = gated.add()
    gated.at_work()
    gated.at_work("bob")
    merge = rejected(gated)
    gated.ask("session.pause", name="ada")
    gated.ask("merge.reject", id=merge, reason="red")
    assert gated.would_begin("bob") is None
    gated.ask("session.resume", name="ada")
    assert gated.begin().task == task


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["session.stop", "session.remove"])
def test_rejected_work_of_an_author_who_works_no_more_goes_to_anyone(gated: World, verb: str, when: str) -> None:
    task = gated.add()
    gated.at_work()
    gated.at_work("bob")
    merge = rejected(gated)

    def leave() -> None:
        gated.ask(verb, name="ada")
        if verb == "session.remove":
            part(gated, "ada")

    if when == "before":
        leave()
    gated.ask("merge.reject", id=merge, reason="red")
    if when == "after":
        leave()
    assert gated.begin("bob").task == task


def part(world: World, name: str) -> None:
    """Do what the loop does with a session that shall be removed, once its work is safe."""

    def away(call: Call) -> None:
        session = call.tx.session(name)
        assert session is not None
        fleet_verbs.part(call, session)

    world.do(away)


def test_rejected_work_counts_as_a_try(gated: World) -> None:
    task = gated.add()
    gated.at_work()
    for number in range(gated.config.board.tries):
        merge = rejected(gated)

        def back(call: Call, merge: str = merge, number: int = number) -> None:
            found = call.tx.get(QueuedMerge, merge)
            assert found is not None
            now = step(call, found, Rejected(f"red {number}"), COVEY)
            held = find(call.tx, now.task)
            sent = change(call, held, tasks.reject(held, now.session, f"red {number}"), COVEY)
            block_if_tried_often(call, merges.free_if_author_gone(call, sent), f"red {number}")

        gated.do(back)
    shown = gated.task(task)
    assert (shown["status"], len(shown["tries"])) == (Status.BLOCKED, gated.config.board.tries)


# Silence


def asleep(world: World, run: Run, folder: Path) -> None:
    """Start a program that lives until it is stopped."""
    env = {"PATH": os.environ["PATH"]}
    world.runner.start(run.id, Launch(argv=("/bin/sleep", "1000"), cwd=str(folder), env=env))
    wait_until(lambda: world.runner.look(run.id).alive, "the program to run")


def test_a_run_that_lives_keeps_its_claim_while_no_daemon_hears_of_it(world: World, tmp_path: Path) -> None:
    task = world.add()
    world.at_work()
    run = world.begin()
    asleep(world, run, tmp_path)
    try:
        world.watch(600)
        assert (world.status(task), world.ask("alert.list")) == ("doing", [])
        world.start(daemon=False)
        world.clock.run(7200)
        world.add("A command writes, and sweeps")
        assert (world.status(task), world.ask("alert.list")) == ("doing", [])
        world.start(daemon=True)
    finally:
        world.runner.stop(run.id)
    world.watch(61)
    shown = world.task(task)
    assert (shown["status"], shown["session"]) == ("todo", None)
    assert [alert["type"] for alert in world.ask("alert.list")] == ["claim_expired"]


def test_a_run_of_which_nothing_lives_keeps_no_claim(world: World) -> None:
    task = world.add()
    world.at_work()
    world.begin()
    world.watch(59)
    assert world.status(task) == "doing"
    world.watch(2)
    assert world.status(task) == "todo"
