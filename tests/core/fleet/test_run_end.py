"""How a run ends, and what becomes of its task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.board.tasks import Status, Task
from covey.core.fleet import run_end
from covey.core.fleet.outcomes import Again, Crashed, HandIn, PutOff, Verdict
from covey.core.fleet.run_end import End, Fate
from covey.core.fleet.runs import Outcome, Run
from covey.core.fleet.sessions import SessionState
from covey.core.fleet.signals import Trouble
from covey.core.people.permits import PUSH, SHELL
from covey.core.people.questions import Question

RUN = Run(id="run-9", ordinal=9, session="ada", task="T-1", fence=3, agent="scripted", begun=100.0)
TASK = Task(id="T-1", ordinal=1, title="t", status=Status.DOING, session="ada", fence=3)
WORK = HandIn("c0ffee1", "It works")
QUESTION = Question(id="question-1", ordinal=1, session="ada", run="run-9", text="Which port?")

verdicts = st.sampled_from(
    [
        WORK,
        Again("no commit"),
        Again("broken", fresh=True),
        Crashed("boom"),
        *(PutOff("later", each) for each in Trouble),
    ]
)
flags = {name: st.booleans() for name in ("person", "again", "fault", "over")}
some_runs = st.builds(
    Run,
    id=st.sampled_from(["run-1", "run-9"]),
    ordinal=st.just(1),
    session=st.just("ada"),
    task=st.just("T-1"),
    fence=st.integers(2, 3),
    agent=st.just("scripted"),
    outcome=st.sampled_from(Outcome),
    conversation=st.sampled_from([None, "", "talk"]),
    ended=st.floats(0.0, 200.0),
)


@pytest.mark.parametrize(
    ("verdict", "end"),
    [
        (WORK, End(outcome=Outcome.HANDED_IN, fate=Fate.HANDED_IN, commit="c0ffee1", result="It works")),
        (Again("no commit"), End(outcome=Outcome.FAILED, fate=Fate.FAILED, what="no commit", waits=True)),
        (Crashed("boom"), End(outcome=Outcome.CRASHED, what="boom", waits=True)),
        (
            PutOff("429", Trouble.LIMIT),
            End(outcome=Outcome.PUT_OFF, what="429", state=SessionState.LIMITED, evidence="429", waits=True),
        ),
        (
            PutOff("no key", Trouble.KEY),
            End(outcome=Outcome.PUT_OFF, what="no key", state=SessionState.STALLED, evidence="no key", waits=True),
        ),
        (
            PutOff("spent", Trouble.BUDGET),
            End(outcome=Outcome.PUT_OFF, what="spent", state=SessionState.IDLE, evidence="spent", waits=True),
        ),
    ],
)
def test_a_run_that_ended_by_itself_ends_as_it_was_judged(verdict: Verdict, end: End) -> None:
    assert run_end.end_of(RUN, TASK, verdict, []) == end


@pytest.mark.parametrize(
    ("run", "task", "outcome", "fate"),
    [
        ({}, {"status": Status.TODO, "session": None}, Outcome.STOPPED, Fate.STAYS),
        ({}, {"fence": 4}, Outcome.STOPPED, Fate.STAYS),
        ({}, {"session": "bob"}, Outcome.STOPPED, Fate.STAYS),
        ({}, {"status": Status.MERGING}, Outcome.HANDED_IN, Fate.STAYS),
        ({}, {"status": Status.DONE, "fence": 4}, Outcome.STOPPED, Fate.STAYS),
        ({"person": True}, {}, Outcome.STOPPED, Fate.STAYS),
        ({"ending": "ada was stopped."}, {}, Outcome.STOPPED, Fate.RELEASED),
        ({"ending": "Stalled", "again": True}, {}, Outcome.STOPPED, Fate.STAYS),
        ({"ending": "It took too long.", "fault": True}, {}, Outcome.HANDED_IN, Fate.HANDED_IN),
        ({"ending": "It did not end.", "over": True}, {}, Outcome.HANDED_IN, Fate.HANDED_IN),
    ],
)
def test_complete_work_is_handed_in_only_by_who_holds_the_task_and_was_not_stopped(
    run: dict[str, Any], task: dict[str, Any], outcome: Outcome, fate: Fate
) -> None:
    end = run_end.end_of(replace(RUN, **run), replace(TASK, **task), WORK, [])
    assert (end.outcome, end.fate) == (outcome, fate)


@given(verdicts, st.builds(replace, st.just(RUN), ending=st.sampled_from([None, "why"]), **flags), st.booleans())
def test_a_task_that_is_not_at_work_in_the_run_is_left_alone(verdict: Verdict, run: Run, often: bool) -> None:
    for task in (replace(TASK, fence=4), replace(TASK, session="bob"), replace(TASK, status=Status.BLOCKED)):
        end = run_end.end_of(run, task, verdict, [QUESTION], crashes_too_often=often)
        assert (end.fate, end.state) == (Fate.STAYS, None)


@given(verdicts, st.builds(replace, st.just(RUN), ending=st.sampled_from([None, "why"]), **flags))
def test_while_a_person_is_asked_nothing_is_handed_in_or_counted(verdict: Verdict, run: Run) -> None:
    end = run_end.end_of(run, TASK, verdict, [QUESTION])
    assert end.fate in (Fate.STAYS, Fate.RELEASED)
    if not run.person and not run_end.is_stopped(run):
        assert (end.outcome, end.state, end.evidence) == (Outcome.PUT_OFF, SessionState.NEEDS_YOU, "Which port?")


def test_work_that_is_complete_waits_only_for_what_its_own_run_asked_and_not_for_a_push() -> None:
    past_git = replace(QUESTION, tool=SHELL, about="git push --no-verify origin HEAD:main")
    asked = [replace(QUESTION, run="run-1"), replace(QUESTION, tool=PUSH), past_git, QUESTION]
    assert run_end.still_asked(asked, RUN, WORK) == [QUESTION]
    assert run_end.still_asked(asked, RUN, Again("no commit")) == asked


def test_work_on_a_parent_is_not_handed_in_while_its_children_are_open() -> None:
    verdict = run_end.in_context(WORK, RUN, replace(TASK, open_children=1), [], "covey/T-1")
    assert verdict == Again("T-1 has children that are not done: its commits stay on covey/T-1.")
    assert run_end.in_context(WORK, RUN, TASK, [], "covey/T-1") == WORK


def _earlier(outcome: Outcome, **more: Any) -> Run:
    return replace(RUN, **{"id": "run-1", "outcome": outcome, "ended": 90.0, **more})


def test_a_conversation_that_breaks_a_third_time_is_a_failure_of_the_task() -> None:
    broken, verdict = _earlier(Outcome.PUT_OFF, conversation=""), PutOff("corrupt", Trouble.CORRUPT, fresh=True)
    assert run_end.in_context(verdict, RUN, TASK, [broken], "covey/T-1") == verdict
    assert run_end.in_context(verdict, RUN, TASK, [broken, broken], "covey/T-1") == Again("corrupt", fresh=True)
    assert run_end.in_context(verdict, RUN, TASK, [replace(broken, fence=2)] * 2, "covey/T-1") == verdict


@pytest.mark.parametrize(
    ("earlier", "count"),
    [
        ([Outcome.CRASHED, Outcome.LOST, Outcome.CRASHED], 3),
        ([Outcome.CRASHED, Outcome.PUT_OFF, Outcome.STOPPED, Outcome.LOST], 2),
        ([Outcome.CRASHED, Outcome.FAILED, Outcome.CRASHED], 1),
        ([Outcome.FAILED, Outcome.CRASHED], 0),
    ],
)
def test_crashes_count_in_a_row(earlier: list[Outcome], count: int) -> None:
    assert len(run_end.crashes_before(RUN, [_earlier(each) for each in earlier])) == count


@pytest.mark.parametrize(
    ("ended", "often"),
    [([], False), ([90.0], False), ([90.0, 80.0], True), ([90.0, 1.0], False), ([4.0, 3.0, 2.0, 1.0, 0.0], True)],
)
def test_crashes_block_a_task_when_they_are_many_in_a_short_time_or_twice_as_many(
    ended: list[float], often: bool
) -> None:
    crashes = [_earlier(Outcome.CRASHED, ended=each) for each in ended]
    assert run_end.crashes_too_often(crashes, 100.0, most=3, seconds=60.0) is often
    end = run_end.end_of(RUN, TASK, Crashed("boom"), [], crashes_too_often=often)
    assert (end.fate is Fate.BLOCKED) is often


@given(st.lists(some_runs, max_size=8))
def test_only_crashes_under_the_same_claim_count(earlier: list[Run]) -> None:
    crashes = run_end.crashes_before(RUN, earlier)
    assert all(one.fence == RUN.fence and one.id != RUN.id for one in crashes)
    assert all(one.outcome in (Outcome.CRASHED, Outcome.LOST) for one in crashes)
    if run_end.crashes_too_often(crashes, 200.0, most=3, seconds=60.0):
        assert run_end.crashes_too_often(
            [*crashes, _earlier(Outcome.CRASHED, ended=200.0)], 200.0, most=3, seconds=60.0
        )


def test_a_crash_story_names_the_last_crash_in_one_line() -> None:
    story = run_end.crash_story(RUN, [_earlier(Outcome.CRASHED, begun=40.0)], 160.0, "boom\nand more")
    assert story == "Its runs crashed 2 times in 2 min; the last time: boom"
