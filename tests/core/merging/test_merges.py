"""The life of a merge."""

from __future__ import annotations

import typing

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core import merges
from covey.core.events import NAMES
from covey.core.merges import OPEN, Merge, State
from covey.errors import Refused
from covey.store.rows import decode_payload, encode_payload

COMMIT = "c0ffee1" * 5 + "c0ffe"
STEPS: list[tuple[merges.Event, tuple[State, ...], State | None]] = [
    (merges.Approved(), (State.REVIEW, State.QUEUED), State.QUEUED),
    (merges.Entered(priority=1, paths=("a",)), (State.QUEUED, State.TESTING), None),
    (merges.Clashed(("merge-4",)), (State.QUEUED, State.TESTING), None),
    (merges.Tested(COMMIT, "gate-7"), (State.QUEUED, State.TESTING), State.TESTING),
    (merges.Passed(COMMIT), (State.QUEUED, State.TESTING), State.PASSED),
    (merges.Waits("main is checked out"), (State.QUEUED, State.TESTING, State.PASSED), None),
    (merges.Held("it changes covey.toml"), (State.QUEUED, State.TESTING), State.REVIEW),
    (merges.Requeued("main moved"), (State.QUEUED, State.TESTING, State.PASSED), State.QUEUED),
    (merges.Landed(COMMIT), (State.QUEUED, State.TESTING, State.PASSED, State.REVERTED), State.LANDED),
    (merges.Rejected("tests failed"), OPEN, State.REJECTED),
    (merges.Withdrawn("AF-1 was dropped"), OPEN, State.WITHDRAWN),
    (merges.Reverted(COMMIT), (State.LANDED,), State.REVERTED),
]


def make(state: State) -> Merge:
    return Merge(id="merge-9", ordinal=9, task="AF-1", session="ada", branch="covey/AF-1", state=state)


@pytest.mark.parametrize(("event", "allowed", "end"), STEPS, ids=[type(step[0]).__name__ for step in STEPS])
@pytest.mark.parametrize("state", State)
def test_a_merge_can_be(event: merges.Event, allowed: tuple[State, ...], end: State | None, state: State) -> None:
    if state in allowed:
        assert merges.apply(make(state), merges.step(make(state), event), 2.0).state is (end or state)
    else:
        with pytest.raises(Refused, match=r"merge-9 cannot (land|be \w+( again)?): it \w+"):
            merges.step(make(state), event)


def test_a_merge_is_queued_once() -> None:
    with pytest.raises(Refused):
        merges.step(make(State.QUEUED), merges.Queued(task="AF-1", session="ada", branch="b"))


def test_the_steps_that_are_tested_are_all_that_there_are() -> None:
    assert {type(event) for event, _, _ in STEPS} == set(typing.get_args(merges.Event)) - {merges.Queued}


def test_a_person_approves_a_merge_once() -> None:
    approved = merges.apply(make(State.REVIEW), merges.step(make(State.REVIEW), merges.Approved()), 2.0)
    assert approved.approved
    with pytest.raises(Refused, match="merge-9 is approved already"):
        merges.step(approved, merges.Approved())


def test_a_reviewer_lets_work_into_the_queue_and_leaves_to_a_person_what_only_a_person_may() -> None:
    reviewed = merges.apply(make(State.REVIEW), merges.step(make(State.REVIEW), merges.Approved(person=False)), 2.0)
    assert (reviewed.state, reviewed.approved) == (State.QUEUED, False)
    with pytest.raises(Refused, match="approved already"):
        merges.step(reviewed, merges.Approved(person=False))
    held = merges.apply(reviewed, merges.Held("it changes covey.toml"), 3.0)
    assert merges.apply(held, merges.step(held, merges.Approved()), 4.0).approved


def test_what_passed_keeps_the_commit_that_was_tested_until_it_is_tested_again() -> None:
    tested = merges.apply(make(State.QUEUED), merges.Tested(COMMIT, "gate-7"), 2.0)
    assert (tested.candidate, tested.run) == (COMMIT, "gate-7")
    passed = merges.apply(tested, merges.Passed(COMMIT, untested=True), 3.0)
    assert (passed.candidate, passed.untested, passed.ended) == (COMMIT, True, None)
    waits = merges.apply(passed, merges.Waits("main is checked out"), 4.0)
    assert (waits.reason, waits.candidate) == ("main is checked out", COMMIT)
    again = merges.apply(waits, merges.Requeued("main moved"), 5.0)
    assert (again.candidate, again.untested, again.reason) == (None, False, None)
    assert merges.apply(waits, merges.Landed(COMMIT), 5.0).reason is None


def test_only_an_ended_merge_has_an_end_and_the_landed_one_its_commit() -> None:
    landed = merges.apply(make(State.TESTING), merges.Landed(COMMIT), 3.0)
    assert (landed.landed, landed.ended) == (COMMIT, 3.0)
    assert merges.apply(make(State.REVIEW), merges.Approved(), 3.0).ended is None


class AnyOrder(RuleBasedStateMachine):
    """Whatever is asked of a merge, in whatever order, the log tells the whole story."""

    def __init__(self) -> None:
        super().__init__()
        born = merges.Queued(task="AF-1", session="ada", branch="covey/AF-1", review=True)
        self.log = [(NAMES[type(born)], encode_payload(born))]
        self.merge = merges.first("merge-1", 1, born, 1.0)

    @rule(event=st.sampled_from([step[0] for step in STEPS]))
    def step(self, event: merges.Event) -> None:
        try:
            merges.step(self.merge, event)
        except Refused:
            return
        self.log.append((NAMES[type(event)], encode_payload(event)))
        self.merge = merges.apply(self.merge, event, float(len(self.log)))

    @invariant()
    def the_log_tells_the_whole_story(self) -> None:
        first = decode_payload(*self.log[0])
        assert isinstance(first, merges.Queued)
        merge = merges.first("merge-1", 1, first, 1.0)
        for at, (kind, data) in enumerate(self.log[1:], 2):
            payload = decode_payload(kind, data)
            assert isinstance(payload, merges.Event)
            merge = merges.apply(merge, payload, float(at))
        assert merge == self.merge

    @invariant()
    def what_passed_names_what_may_land(self) -> None:
        assert self.merge.state is not State.PASSED or self.merge.candidate == COMMIT

    @invariant()
    def nobody_is_asked_to_approve_twice_unless_it_was_held_since(self) -> None:
        kinds = [kind for kind, _ in self.log]
        since = len(kinds) - kinds[::-1].index("merge.held") if "merge.held" in kinds else 0
        assert kinds[since:].count("merge.approved") == self.merge.approved

    @invariant()
    def only_what_has_ended_has_an_end(self) -> None:
        assert (self.merge.ended is None) is (self.merge.state in OPEN)


TestAnyOrder = AnyOrder.TestCase
