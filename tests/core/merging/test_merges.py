"""The life of a merge."""

from __future__ import annotations

import typing
from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core.merging import merges
from covey.core.merging.merges import OPEN, Merge, MergeState
from covey.core.nouns import NAMES
from covey.errors import Refused
from covey.store.engine.rows import decode_payload, encode_payload

COMMIT = "c0ffee1" * 5 + "c0ffe"
STEPS: list[tuple[merges.Event, tuple[MergeState, ...], MergeState | None]] = [
    (merges.Approved(), (MergeState.REVIEW, MergeState.QUEUED), MergeState.QUEUED),
    (merges.Entered(priority=1, paths=("a",)), (MergeState.QUEUED, MergeState.TESTING), None),
    (merges.Clashed(("merge-4",)), (MergeState.QUEUED, MergeState.TESTING), None),
    (merges.Tested(COMMIT, "gate-7"), (MergeState.QUEUED, MergeState.TESTING), MergeState.TESTING),
    (merges.Passed(COMMIT), (MergeState.QUEUED, MergeState.TESTING), MergeState.PASSED),
    (merges.Waits("main is checked out"), (MergeState.QUEUED, MergeState.TESTING, MergeState.PASSED), None),
    (merges.Held("it changes covey.toml"), (MergeState.QUEUED, MergeState.TESTING), MergeState.REVIEW),
    (merges.Requeued("main moved"), (MergeState.QUEUED, MergeState.TESTING, MergeState.PASSED), MergeState.QUEUED),
    (
        merges.Landed(COMMIT),
        (MergeState.QUEUED, MergeState.TESTING, MergeState.PASSED, MergeState.REVERTED),
        MergeState.LANDED,
    ),
    (merges.Rejected("tests failed"), OPEN, MergeState.REJECTED),
    (merges.Withdrawn("AF-1 was dropped"), OPEN, MergeState.WITHDRAWN),
    (merges.Reverted(COMMIT), (MergeState.LANDED,), MergeState.REVERTED),
]


def make(state: MergeState) -> Merge:
    return Merge(id="merge-9", ordinal=9, task="AF-1", session="ada", branch="covey/AF-1", state=state)


@pytest.mark.parametrize(
    ("state", "approved", "has_gate", "broken_gate", "reason", "waits"),
    [
        (MergeState.QUEUED, False, True, False, None, False),
        (MergeState.QUEUED, False, False, False, None, True),
        (MergeState.QUEUED, True, False, False, None, False),
        (MergeState.QUEUED, True, True, True, None, True),
        (MergeState.TESTING, False, False, True, None, False),
        (MergeState.PASSED, False, True, False, None, False),
        (MergeState.PASSED, False, True, False, "main is checked out", True),
    ],
)
def test_a_merge_waits_for_a_person_if_no_gate_lets_it_go_on_or_its_landing_is_in_the_way(
    state: MergeState, approved: bool, has_gate: bool, broken_gate: bool, reason: str | None, waits: bool
) -> None:
    merge = replace(make(state), approved=approved, reason=reason)
    assert merges.waits_for_person(merge, has_gate=has_gate, broken_gate=broken_gate) is waits


@pytest.mark.parametrize(("event", "allowed", "end"), STEPS, ids=[type(step[0]).__name__ for step in STEPS])
@pytest.mark.parametrize("state", MergeState)
def test_a_merge_can_be(
    event: merges.Event, allowed: tuple[MergeState, ...], end: MergeState | None, state: MergeState
) -> None:
    if state in allowed:
        assert merges.apply(make(state), merges.step(make(state), event), 2.0).state is (end or state)
    else:
        with pytest.raises(Refused, match=r"merge-9 cannot (land|be \w+( again)?): it \w+"):
            merges.step(make(state), event)


def test_a_merge_is_queued_once() -> None:
    with pytest.raises(Refused):
        merges.step(make(MergeState.QUEUED), merges.Queued(task="AF-1", session="ada", branch="b"))


def test_the_steps_that_are_tested_are_all_that_there_are() -> None:
    assert {type(event) for event, _, _ in STEPS} == set(typing.get_args(merges.Event)) - {merges.Queued}


def test_a_person_approves_a_merge_once() -> None:
    approved = merges.apply(make(MergeState.REVIEW), merges.step(make(MergeState.REVIEW), merges.Approved()), 2.0)
    assert approved.approved
    with pytest.raises(Refused, match="merge-9 is approved already"):
        merges.step(approved, merges.Approved())


def test_a_reviewer_lets_work_into_the_queue_and_leaves_to_a_person_what_only_a_person_may() -> None:
    reviewed = merges.apply(
        make(MergeState.REVIEW), merges.step(make(MergeState.REVIEW), merges.Approved(person=False)), 2.0
    )
    assert (reviewed.state, reviewed.approved) == (MergeState.QUEUED, False)
    with pytest.raises(Refused, match="approved already"):
        merges.step(reviewed, merges.Approved(person=False))
    held = merges.apply(reviewed, merges.Held("it changes covey.toml"), 3.0)
    assert merges.apply(held, merges.step(held, merges.Approved()), 4.0).approved


def test_what_a_merge_waited_for_with_the_whole_queue_ends_with_the_wait() -> None:
    waits = merges.apply(make(MergeState.QUEUED), merges.Waits("No gate runs.", cause=merges.WholeQueue.MACHINE), 4.0)
    again = merges.apply(waits, merges.Requeued("it is tried again"), 5.0)
    assert (waits.cause, again.cause, again.reason) == ("machine", "", None)
    assert merges.apply(waits, merges.Withdrawn("nobody wants it"), 5.0).cause == ""


def test_what_passed_keeps_the_commit_that_was_tested_until_it_is_tested_again() -> None:
    tested = merges.apply(make(MergeState.QUEUED), merges.Tested(COMMIT, "gate-7"), 2.0)
    assert (tested.candidate, tested.run) == (COMMIT, "gate-7")
    passed = merges.apply(tested, merges.Passed(COMMIT, untested=True), 3.0)
    assert (passed.candidate, passed.untested, passed.ended) == (COMMIT, True, None)
    waits = merges.apply(passed, merges.Waits("main is checked out"), 4.0)
    assert (waits.reason, waits.candidate) == ("main is checked out", COMMIT)
    again = merges.apply(waits, merges.Requeued("main moved"), 5.0)
    assert (again.candidate, again.untested, again.reason) == (None, False, None)
    assert merges.apply(waits, merges.Landed(COMMIT), 5.0).reason is None


def test_only_an_ended_merge_has_an_end_and_the_landed_one_its_commit() -> None:
    landed = merges.apply(make(MergeState.TESTING), merges.Landed(COMMIT), 3.0)
    assert (landed.landed, landed.ended) == (COMMIT, 3.0)
    assert merges.apply(make(MergeState.REVIEW), merges.Approved(), 3.0).ended is None


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
        assert self.merge.state is not MergeState.PASSED or self.merge.candidate == COMMIT

    @invariant()
    def nobody_is_asked_to_approve_twice_unless_it_was_held_since(self) -> None:
        kinds = [kind for kind, _ in self.log]
        since = len(kinds) - kinds[::-1].index("merge.held") if "merge.held" in kinds else 0
        assert kinds[since:].count("merge.approved") == self.merge.approved

    @invariant()
    def only_what_has_ended_has_an_end(self) -> None:
        assert (self.merge.ended is None) is (self.merge.state in OPEN)


TestAnyOrder = AnyOrder.TestCase
