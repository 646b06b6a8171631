"""The life of a task: what may happen to it, what may not, and that its events tell all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from covey.core.board import tasks
from covey.core.board.needs import Need, Policy
from covey.core.board.tasks import ENDED, WAITING, Edited, Kind, Note, Status, Task, Try
from covey.core.nouns import NAMES
from covey.core.texts import blob_of
from covey.errors import CoveyError, Invalid, Refused
from covey.store.engine.rows import decode_payload, encode_payload


def make(status: Status = Status.TODO, **values: Any) -> Task:
    holder = {"session": "ada", "fence": 3} if status in (Status.DOING, Status.REVIEW, Status.MERGING) else {}
    return Task(**{"id": "AF-1", "ordinal": 7, "title": "Mend it", "status": status, **holder, **values})


def others(*allowed: Status) -> list[Status]:
    return [status for status in Status if status not in allowed]


# Claiming


@pytest.mark.parametrize("status", WAITING)
def test_a_task_that_waits_can_be_claimed_and_gets_the_next_fence(status: Status) -> None:
    task = make(status, fence=4)
    event = tasks.claim(task, "bob")
    after = tasks.apply(task, event, 10.0, "bob")
    assert (after.status, after.session, after.fence, after.claimed) == (Status.DOING, "bob", 5, 10.0)


@pytest.mark.parametrize("status", others(*WAITING))
def test_a_task_that_does_not_wait_is_refused_to_who_claims_it(status: Status) -> None:
    with pytest.raises(Refused, match=f"it is {status}"):
        tasks.claim(make(status), "bob")


def test_the_refusal_of_a_claim_names_the_holder() -> None:
    with pytest.raises(Refused, match="claimed by ada"):
        tasks.claim(make(Status.DOING), "bob")


@pytest.mark.parametrize(("counter", "why"), [("unmet", "needs"), ("open_children", "children")])
def test_a_task_that_waits_for_others_is_refused(counter: str, why: str) -> None:
    task = replace(make(), **{counter: 1})  # type: ignore[arg-type]
    assert not task.ready
    with pytest.raises(Refused, match=f"has {why} that are not done"):
        tasks.claim(task, "bob")


def test_a_task_for_one_session_is_refused_to_another_and_given_to_its_own() -> None:
    task = make(assignee="ada")
    with pytest.raises(Refused, match="is for ada, not for bob"):
        tasks.claim(task, "bob")
    assert tasks.claim(task, "ada").fence == 1


def test_a_claim_takes_the_task_out_of_line_and_forgets_why_it_was_blocked() -> None:
    task = make(front="ada", reason="lost its way")
    after = tasks.apply(task, tasks.claim(task, "ada"), 1.0, "ada")
    assert (after.front, after.reason) == (None, None)


# Holding


def test_the_holder_holds_under_its_fence() -> None:
    task = make(Status.DOING)
    assert tasks.hold(task, "ada", 3) == "ada"
    assert tasks.hold(task, None, 3) == "ada"
    assert tasks.hold(task, "ada", None) == "ada"


def test_an_old_fence_holds_nothing() -> None:
    with pytest.raises(Refused, match="with fence 2 has ended; the fence is 3"):
        tasks.hold(make(Status.DOING), "ada", 2)


def test_another_session_holds_nothing() -> None:
    with pytest.raises(Refused, match="held by ada, not by bob"):
        tasks.hold(make(Status.DOING), "bob", 3)


@pytest.mark.parametrize("status", others(Status.DOING))
def test_nobody_holds_a_task_that_is_not_at_work(status: Status) -> None:
    with pytest.raises(Refused, match="nobody holds it"):
        tasks.hold(make(status), "ada", 3)


# Handing in


@pytest.mark.parametrize(("review", "to"), [(False, Status.MERGING), (True, Status.REVIEW)])
def test_a_change_goes_to_the_queue_or_to_review_and_stays_its_authors(review: bool, to: Status) -> None:
    task = make(Status.DOING)
    after = tasks.apply(task, tasks.hand_in(task, "ada", review=review, commit="c0ffee1"), 9.0, "ada")
    assert (after.status, after.session, after.commit, after.ended) == (to, "ada", "c0ffee1", None)


@pytest.mark.parametrize("review", [False, True])
def test_a_report_is_done_by_its_text(review: bool) -> None:
    task = make(Status.DOING, kind=Kind.REPORT)
    after = tasks.apply(task, tasks.hand_in(task, "ada", review=review, result="All is well."), 9.0, "ada")
    assert (after.status, after.result, after.ended) == (Status.DONE, "All is well.", 9.0)


@pytest.mark.parametrize("result", [None, ""])
def test_a_report_without_text_is_not_done(result: str | None) -> None:
    with pytest.raises(Invalid, match="its result is empty"):
        tasks.hand_in(make(Status.DOING, kind=Kind.REPORT), "ada", review=False, result=result)


def test_a_second_hand_in_without_a_text_keeps_the_first_one() -> None:
    task = make(Status.DOING, result="what I saw")
    after = tasks.apply(task, tasks.hand_in(task, "ada", review=False), 1.0, "ada")
    assert after.result == "what I saw"


# Review, landing, rejection


def test_a_reviewed_task_goes_on_to_the_queue() -> None:
    task = make(Status.REVIEW)
    assert tasks.apply(task, tasks.approve(task), 1.0, "owner").status is Status.MERGING


def test_landing_makes_a_task_done_with_its_commit() -> None:
    task = make(Status.MERGING, commit="abc1234")
    after = tasks.apply(task, tasks.land(task, "fedcba9"), 5.0, "owner")
    assert (after.status, after.commit, after.ended) == (Status.DONE, "fedcba9", 5.0)


@pytest.mark.parametrize("status", [Status.MERGING, Status.REVIEW])
def test_a_rejected_task_waits_first_in_line_for_its_author_with_the_story(status: Status) -> None:
    task = make(status)
    after = tasks.apply(task, tasks.reject(task, "ada", "tests failed"), 5.0, "owner")
    assert (after.status, after.session, after.front, after.claimed) == (Status.TODO, None, "ada", None)
    assert after.tries == (Try("ada", 5.0, "tests failed", "owner"),)
    assert after.forgiven == 0


def test_what_a_person_wants_otherwise_counts_against_nobody() -> None:
    task = make(Status.REVIEW, tries=(Try("ada", 1.0, "red"),))
    after = tasks.apply(task, tasks.reject(task, "ada", "shorter, please", wished=True), 5.0, "owner")
    assert len(after.tries) == after.forgiven == 2


TABLE: list[tuple[str, Callable[[Task], tasks.Event], tuple[Status, ...]]] = [
    ("approved", tasks.approve, (Status.REVIEW,)),
    ("landed", lambda task: tasks.land(task, "fedcba9"), (Status.MERGING,)),
    ("rejected", lambda task: tasks.reject(task, "ada", "no"), (Status.MERGING, Status.REVIEW)),
    (
        "blocked",
        lambda task: tasks.block(task, "who knows"),
        (Status.BACKLOG, Status.TODO, Status.DOING, Status.REVIEW),
    ),
    ("dropped", lambda task: tasks.drop(task, "not needed"), tuple(others(*ENDED))),
]


@pytest.mark.parametrize(("verb", "command", "allowed"), TABLE, ids=[row[0] for row in TABLE])
@pytest.mark.parametrize("status", Status)
def test_a_task_can_be(
    verb: str, command: Callable[[Task], tasks.Event], allowed: tuple[Status, ...], status: Status
) -> None:
    if status in allowed:
        command(make(status))
    else:
        with pytest.raises(Refused, match=f"AF-1 cannot be {verb}: it is {status}"):
            command(make(status))


# Releasing, blocking, dropping


def test_a_task_given_back_in_good_order_has_no_failed_try() -> None:
    after = tasks.apply(make(Status.DOING, claimed=1.0), tasks.Released("ada"), 2.0, "ada")
    assert (after.status, after.session, after.claimed, after.tries) == (Status.TODO, None, None, ())
    assert after.fence == 3


def test_a_task_given_back_because_something_went_wrong_keeps_the_story_of_every_try() -> None:
    once = tasks.apply(make(Status.DOING), tasks.Released("ada", "it crashed"), 2.0, "covey")
    again = tasks.apply(once, tasks.claim(once, "bob"), 3.0, "bob")
    twice = tasks.apply(again, tasks.Released("bob", "it hung"), 4.0, "covey")
    assert twice.tries == (Try("ada", 2.0, "it crashed"), Try("bob", 4.0, "it hung"))


def test_a_blocked_task_has_no_holder_and_says_why() -> None:
    task = make(Status.DOING)
    after = tasks.apply(task, tasks.block(task, "which database?"), 2.0, "ada")
    assert (after.status, after.session, after.reason) == (Status.BLOCKED, None, "which database?")


def test_a_dropped_task_has_ended_and_is_first_in_nobodys_line() -> None:
    task = make(front="ada")
    after = tasks.apply(task, tasks.drop(task, "done elsewhere"), 2.0, "owner")
    assert (after.status, after.ended, after.reason, after.front) == (Status.DROPPED, 2.0, "done elsewhere", None)


# Editing


def test_an_edit_keeps_only_what_differs() -> None:
    task = make(priority=3, assignee="ada", budget=None)
    asked = Edited(title="Mend it", priority=4, assignee="ada", cleared=("budget", "role"))
    assert tasks.edit(task, asked) == Edited(priority=4)


def test_an_edit_that_changes_nothing_is_nothing() -> None:
    task = make(needs=(Need("AF-9"),), scope=("src/**",))
    asked = Edited(title="Mend it", needs=(Need("AF-9"),), scope=("src/**",), priority=0, overlap=False)
    assert tasks.is_nothing(tasks.edit(task, asked))


def test_a_note_is_never_nothing() -> None:
    event = tasks.edit(make(), Edited(note="look here"))
    assert not tasks.is_nothing(event)
    assert tasks.apply(make(), event, 4.0, "bob").notes == (Note("bob", 4.0, "look here"),)


def test_values_that_look_empty_are_changes_too() -> None:
    task = make(priority=5, overlap=True, needs=(Need("AF-9"),), scope=("a",), budget=2.0, body="text")
    event = tasks.edit(task, Edited(priority=0, overlap=False, needs=(), scope=(), budget=0.0, body=""))
    after = tasks.apply(task, event, 1.0, "owner")
    assert (after.priority, after.overlap, after.needs, after.scope, after.budget, after.body) == (
        0,
        False,
        (),
        (),
        0.0,
        "",
    )


@pytest.mark.parametrize("name", tasks.CLEARABLE)
def test_a_field_can_be_cleared(name: str) -> None:
    task = make(assignee="ada", role="quality", parent="AF-2", budget=1.0, batch="night")
    assert getattr(task, name) is not None
    after = tasks.apply(task, tasks.edit(task, Edited(cleared=(name,))), 1.0, "owner")
    assert getattr(after, name) is None


MOVES = {
    (Status.BACKLOG, Status.TODO),
    (Status.TODO, Status.BACKLOG),
    (Status.BLOCKED, Status.TODO),
    (Status.BLOCKED, Status.BACKLOG),
    (Status.DROPPED, Status.TODO),
    (Status.DROPPED, Status.BACKLOG),
}


@pytest.mark.parametrize("start", Status)
@pytest.mark.parametrize("end", Status)
def test_an_edit_moves_a_task_only_between_places_where_it_waits(start: Status, end: Status) -> None:
    task = make(start, reason="because", ended=3.0 if start in ENDED else None)
    if start is end:
        assert tasks.is_nothing(tasks.edit(task, Edited(status=end)))
    elif (start, end) in MOVES:
        after = tasks.apply(task, tasks.edit(task, Edited(status=end)), 5.0, "owner")
        assert (after.status, after.reason, after.ended) == (end, None, None)
    else:
        with pytest.raises(Refused, match=f"cannot go from {start} to {end} by an edit"):
            tasks.edit(task, Edited(status=end))


@pytest.mark.parametrize("status", others(*WAITING, Status.BLOCKED))
def test_the_needs_of_a_task_that_began_can_change_no_more(status: Status) -> None:
    with pytest.raises(Refused, match="needs can no longer change"):
        tasks.edit(make(status), Edited(needs=(Need("AF-9"),)))


def test_every_field_of_an_addition_reaches_the_task() -> None:
    event = tasks.Added(
        title="t",
        body=blob_of("long"),
        kind=Kind.REPORT,
        status=Status.BACKLOG,
        assignee="ada",
        role="quality",
        priority=-2,
        needs=(Need("AF-1", Policy.ANY),),
        parent="AF-2",
        scope=("src/**", "new:docs/*"),
        do_not_touch=("src/x",),
        overlap=True,
        done_when=("make test",),
        budget=1.5,
        batch="run-1",
        key="k",
        note="n",
    )
    task = tasks.add("AF-3", 9, event, 2.0, "bob")
    for field in fields(tasks.Added):
        if field.name != "note":
            assert getattr(task, field.name) == getattr(event, field.name) != field.default
    assert task.notes == (Note("bob", 2.0, "n"),)
    assert (task.id, task.ordinal, task.created, task.updated, task.fence) == ("AF-3", 9, 2.0, 2.0, 0)


# Whatever is asked, in whatever order

names = st.sampled_from(["ada", "bob", "owner"])
words = st.text(max_size=8)
some_needs = st.lists(st.builds(Need, st.sampled_from(["T-1", "T-2"]), st.sampled_from(Policy)), max_size=2).map(tuple)
some_globs = st.lists(st.sampled_from(["src/**", "new:docs/*"]), max_size=2).map(tuple)
edits = st.builds(
    Edited,
    title=st.none() | words,
    body=st.none() | words | words.map(blob_of),
    kind=st.none() | st.sampled_from(Kind),
    status=st.none() | st.sampled_from(Status),
    assignee=st.none() | names,
    role=st.none() | names,
    priority=st.none() | st.integers(-2, 2),
    needs=st.none() | some_needs,
    parent=st.none() | st.just("T-9"),
    scope=st.none() | some_globs,
    do_not_touch=st.none() | some_globs,
    overlap=st.none() | st.booleans(),
    done_when=st.none() | st.just(("make test",)),
    budget=st.none() | st.floats(0, 9),
    batch=st.none() | names,
    note=st.none() | words,
    cleared=st.lists(st.sampled_from(tasks.CLEARABLE), unique=True).map(tuple),
)
BORN = tasks.Added(title="Mend it", status=Status.TODO)


class AnyOrder(RuleBasedStateMachine):
    """Whatever is asked of a task, in whatever order, the log tells the whole story."""

    def __init__(self) -> None:
        super().__init__()
        self.task = tasks.add("AF-1", 1, BORN, 0.0, "owner")
        self.log: list[tuple[str, str, float, str]] = []
        self.fences = [0]

    def ask(self, command: Callable[[], tasks.Event], by: str = "ada") -> None:
        try:
            event = command()
        except CoveyError:
            return
        at = len(self.log) + 1.0
        self.log.append((NAMES[type(event)], encode_payload(event), at, by))
        self.task = tasks.apply(self.task, event, at, by)

    @rule(session=names)
    def claim(self, session: str) -> None:
        before = self.task.status
        self.ask(lambda: tasks.claim(self.task, session), session)
        if before in WAITING and self.task.status is Status.DOING:
            assert self.task.fence not in self.fences
            self.fences.append(self.task.fence)

    @rule(session=names, fence=st.integers(0, 5), review=st.booleans(), result=st.none() | words)
    def hand_in(self, session: str, fence: int, review: bool, result: str | None) -> None:
        def command() -> tasks.Event:
            holder = tasks.hold(self.task, session, fence)
            return tasks.hand_in(self.task, holder, review=review, result=result, commit="c0ffee1")

        self.ask(command, session)

    @precondition(lambda self: self.task.status is Status.DOING)
    @rule(review=st.booleans(), result=words)
    def hand_in_as_the_holder(self, review: bool, result: str) -> None:
        self.ask(lambda: tasks.hand_in(self.task, str(self.task.session), review=review, result=result))

    @rule(session=names, what=st.none() | words)
    def release(self, session: str, what: str | None) -> None:
        self.ask(lambda: tasks.Released(tasks.hold(self.task, session, None), what), session)

    @rule()
    def approve(self) -> None:
        self.ask(lambda: tasks.approve(self.task), "owner")

    @rule()
    def land(self) -> None:
        self.ask(lambda: tasks.land(self.task, "fedcba9"), "owner")

    @rule(author=names, what=words)
    def reject(self, author: str, what: str) -> None:
        self.ask(lambda: tasks.reject(self.task, author, what), "owner")

    @rule(reason=words)
    def block(self, reason: str) -> None:
        self.ask(lambda: tasks.block(self.task, reason))

    @rule(reason=words)
    def drop(self, reason: str) -> None:
        self.ask(lambda: tasks.drop(self.task, reason), "owner")

    @rule(changes=edits)
    def edit(self, changes: Edited) -> None:
        self.ask(lambda: tasks.edit(self.task, changes))

    @invariant()
    def the_log_tells_the_whole_story(self) -> None:
        task = tasks.add("AF-1", 1, BORN, 0.0, "owner")
        for kind, data, at, by in self.log:
            payload = decode_payload(kind, data)
            assert isinstance(payload, tasks.Event)
            task = tasks.apply(task, payload, at, by)
        assert task == self.task

    @invariant()
    def who_works_has_a_holder_and_who_waits_has_none(self) -> None:
        if self.task.status is Status.DOING:
            assert self.task.session is not None and self.task.claimed is not None and self.task.front is None
        if self.task.status in (*WAITING, Status.BLOCKED, Status.DROPPED):
            assert self.task.session is None and self.task.claimed is None

    @invariant()
    def only_what_has_ended_has_an_end(self) -> None:
        assert (self.task.ended is not None) is (self.task.status in ENDED)


TestAnyOrder = AnyOrder.TestCase
