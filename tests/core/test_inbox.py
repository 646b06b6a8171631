"""The inbox: the oldest first, and what is the same together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.core import inbox
from covey.core.inbox import Item, Kind
from covey.core.questions import Question
from covey.core.sessions import Goal, Session, State
from covey.core.sessions import Kind as SessionKind
from covey.core.signals import Wants


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


times = st.floats(0, 1e6)
few = st.lists(st.tuples(st.sampled_from("abc"), times, st.integers(0, 9)), max_size=12)


@given(few)
def test_nothing_is_lost_and_the_oldest_comes_first(drawn: list[tuple[str, float, int]]) -> None:
    items = [Item(key=key, kind=Kind.MAIL, title="", since=at, ids=(str(number),)) for key, at, number in drawn]
    found = inbox.together(items)
    assert [item.since for item in found] == sorted(item.since for item in found)
    assert {(item.key, one) for item in found for one in item.ids} == {(item.key, item.ids[0]) for item in items}
    assert len({item.key for item in found}) == len(found)


def test_a_session_is_stuck_only_where_it_shall_work_and_its_question_is_not_listed() -> None:
    def session(state: State, goal: Goal = Goal.WORKING, kind: SessionKind = SessionKind.RUN) -> Session:
        return Session(name="ada", ordinal=1, kind=kind, state=state, goal=goal)

    assert inbox.is_stuck(session(State.STALLED), ["ada"])
    assert inbox.is_stuck(session(State.NEEDS_YOU), [])
    assert not inbox.is_stuck(session(State.NEEDS_YOU), ["ada"])
    assert not inbox.is_stuck(session(State.WORKING), [])
    assert not inbox.is_stuck(session(State.DEAD, Goal.STOPPED), [])
    assert not inbox.is_stuck(session(State.DEAD, kind=SessionKind.OUTSIDE), [])


@given(st.lists(st.text(max_size=3), max_size=3), st.lists(st.text(max_size=3), max_size=3))
def test_no_two_lists_of_texts_have_the_same_digest(one: list[str], other: list[str]) -> None:
    assert (inbox.digest(*one) == inbox.digest(*other)) is (one == other)
