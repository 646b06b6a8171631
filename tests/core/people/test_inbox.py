"""The inbox: the oldest first, and what is the same together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.core.fleet.sessions import Goal, Session, SessionKind, SessionState
from covey.core.fleet.signals import Wants
from covey.core.people import inbox
from covey.core.people.inbox import InboxItem, InboxKind
from covey.core.people.questions import Question


def asked(number: int, **values: object) -> Question:
    """Return a question as an agent asks it."""
    own = {"session": f"s{number}", "asked": float(number), "wants": Wants.PERMISSION, "tool": "shell", "about": "make"}
    return Question(**{"id": f"question-{number}", "ordinal": number, **own, **values})  # type: ignore[arg-type]


def test_the_same_command_of_several_is_one_item_with_all_who_ask() -> None:
    questions = [asked(2, task="T-2", until=9.0), asked(1, task="T-1", until=12.0, text="why"), asked(3, about="ls")]
    first, other = inbox.together(map(inbox.of_question, questions))
    assert (first.ids, first.sessions, first.tasks) == (("question-1", "question-2"), ("s1", "s2"), ("T-1", "T-2"))
    assert (first.since, first.until, first.session, first.text) == (1.0, 9.0, "s1", "why")
    assert first.decisions == ("allow", "always", "deny") and first.title == "wants to run"
    assert other.ids == ("question-3",)


def test_another_tool_another_text_and_other_choices_are_another_question() -> None:
    words = {"wants": Wants.ANSWER, "tool": "", "about": "", "text": "Which?"}
    questions = [
        asked(1),
        asked(2, tool="edit"),
        asked(3, **words),
        asked(4, **words, choices=("a",)),
        asked(5, **words | {"text": "Where?"}),
    ]
    items = inbox.together(map(inbox.of_question, questions))
    assert [item.ids for item in items] == [(question.id,) for question in questions]
    assert items[2].decisions == ("reply", "deny")
    assert inbox.of_question(asked(6, tool="")).decisions == ("allow", "deny"), "nothing that could be allowed for ever"


def test_what_asks_the_same_can_be_answered_one_by_one() -> None:
    asks = [asked(1, task="T-1", until=9.0), asked(2, session="s1"), asked(3, task="T-3")]
    (item,) = inbox.together(map(inbox.of_question, asks))
    assert [(part.id, part.session, part.task, part.until) for part in item.parts] == [
        ("question-1", "s1", "T-1", 9.0), ("question-2", "s1", None, None), ("question-3", "s3", "T-3", None),
    ]  # fmt: skip


def test_commands_that_one_rule_would_allow_have_one_cause() -> None:
    one, other, else_ = (
        inbox.of_question(asked(n, about=about)) for n, about in enumerate(("npm run a", "npm run b", "cargo test"), 1)
    )
    assert one.key != other.key and one.rule == other.rule
    assert one.cause == other.cause != else_.cause


def test_tasks_that_the_same_blocks_have_one_cause_whatever_names_are_told_with_it() -> None:
    error = "No module named 'requests'"
    reasons = {
        own: f"{own}: {error} (merge-{n}, gate-{n}, {n}a94a8fe5ccb19ba)" for n, own in enumerate(("A-1", "b-22"))
    }
    assert len({inbox.cause_of(reason, own) for own, reason in reasons.items()}) == 1
    assert inbox.cause_of("Which port, 80 or 81?", "A-1") != inbox.cause_of("Which port, 80 or 82?", "A-1")
    assert inbox.cause_of("A-2 waits", "A-1") != inbox.cause_of("A-1 waits", "A-1"), "another task is another cause"


times = st.floats(0, 1e6)
few = st.lists(st.tuples(st.sampled_from("abc"), times, st.integers(0, 9)), max_size=12)


@given(few)
def test_nothing_is_lost_and_the_oldest_comes_first(drawn: list[tuple[str, float, int]]) -> None:
    items = [
        InboxItem(key=key, kind=InboxKind.MAIL, title="", since=at, ids=(str(number),)) for key, at, number in drawn
    ]
    found = inbox.together(items)
    assert [item.since for item in found] == sorted(item.since for item in found)
    assert {(item.key, one) for item in found for one in item.ids} == {(item.key, item.ids[0]) for item in items}
    assert len({item.key for item in found}) == len(found)


def test_a_session_is_stuck_only_where_it_shall_work_and_its_question_is_not_listed() -> None:
    def session(state: SessionState, goal: Goal = Goal.WORKING, kind: SessionKind = SessionKind.RUN) -> Session:
        return Session(name="ada", ordinal=1, kind=kind, state=state, goal=goal)

    assert inbox.is_stuck(session(SessionState.STALLED), ["ada"])
    assert inbox.is_stuck(session(SessionState.NEEDS_YOU), [])
    assert not inbox.is_stuck(session(SessionState.NEEDS_YOU), ["ada"])
    assert not inbox.is_stuck(session(SessionState.WORKING), [])
    assert not inbox.is_stuck(session(SessionState.DEAD, Goal.STOPPED), [])
    assert not inbox.is_stuck(session(SessionState.DEAD, kind=SessionKind.OUTSIDE), [])


@given(st.lists(st.text(max_size=3), max_size=3), st.lists(st.text(max_size=3), max_size=3))
def test_no_two_lists_of_texts_have_the_same_digest(one: list[str], other: list[str]) -> None:
    assert (inbox.digest(*one) == inbox.digest(*other)) is (one == other)
