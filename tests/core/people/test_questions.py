"""A question is decided once, and whoever asked always gets an answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core import nouns
from covey.core.fleet.signals import Wants
from covey.core.people import questions
from covey.core.people.questions import NOBODY_ANSWERED, Asked, Decision, Question, QuestionState, Reply
from covey.errors import CoveyError, Invalid, Refused

PERMISSION = Question(id="question-1", ordinal=1, session="ada", wants=Wants.PERMISSION, tool="shell", about="npm test")
FREE = Question(id="question-2", ordinal=2, session="ada", text="Which port?")
some_questions = st.sampled_from([PERMISSION, FREE])
texts = st.sampled_from(["", "  ", "Use 8080"])


@pytest.mark.parametrize("state", [QuestionState.ANSWERED, QuestionState.EXPIRED, QuestionState.WITHDRAWN])
@pytest.mark.parametrize("decision", Decision)
def test_a_question_is_decided_only_once(state: QuestionState, decision: Decision) -> None:
    with pytest.raises(Refused, match=f"question-2 is {state} already"):
        questions.answer(replace(FREE, state=state), decision, "8080")


@pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.ALWAYS, Decision.DENY])
def test_a_permission_is_given_once_for_ever_or_not(decision: Decision) -> None:
    assert questions.answer(PERMISSION, decision, "").decision is decision


def test_a_permission_is_not_given_in_words() -> None:
    with pytest.raises(Invalid, match="asks for a permission") as caught:
        questions.answer(PERMISSION, Decision.REPLY, "Well...")
    assert "--allow, --always or --deny" in caught.value.hint


@pytest.mark.parametrize("decision", [Decision.REPLY, Decision.ALLOW])
@pytest.mark.parametrize("text", ["", " \n"])
def test_a_free_question_is_answered_in_words(decision: Decision, text: str) -> None:
    with pytest.raises(Invalid, match="wants an answer in words"):
        questions.answer(FREE, decision, text)
    assert questions.answer(FREE, decision, "8080").text == "8080"


def test_an_answer_is_no_permission_for_ever() -> None:
    with pytest.raises(Invalid, match="only a permission can be given for ever"):
        questions.answer(FREE, Decision.ALWAYS, "8080")


def test_a_free_question_may_be_denied_without_a_word() -> None:
    assert questions.answer(FREE, Decision.DENY, "").decision is Decision.DENY


def test_whoever_is_answered_by_nobody_is_told_no_and_why() -> None:
    expired = questions.apply(PERMISSION, questions.Expired(), 9.0, "covey")
    reply = questions.reply_of(expired)
    assert reply == Reply(Decision.DENY, NOBODY_ANSWERED) and not reply.allows


@given(some_questions, st.sampled_from(Decision), texts)
def test_whoever_is_answered_is_told_just_that(question: Question, decision: Decision, text: str) -> None:
    assert questions.reply_of(question) is None, "nobody has decided"
    try:
        event = questions.answer(question, decision, text)
    except CoveyError:
        return
    after = questions.apply(question, event, 9.0, "owner")
    assert questions.reply_of(after) == Reply(decision, text)
    assert (after.by, after.ended) == ("owner", 9.0)
    assert Reply(decision).allows is (decision in (Decision.ALLOW, Decision.ALWAYS))


def test_a_withdrawn_question_has_no_answer() -> None:
    assert questions.reply_of(questions.apply(FREE, questions.Withdrawn("gone"), 9.0, "covey")) is None


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens to a question, it ends once and its log tells all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Asked(session="ada", run="run-1", asks="a", wants=Wants.PERMISSION, about="make", until=7.0)
        self.log: list[questions.Answered | questions.Expired | questions.Withdrawn | questions.Told] = []
        self.question = nouns.first(questions.Question, "question-1", 1, self.asked, 1.0)
        self.ends = 0

    def take(self, event: questions.Answered | questions.Expired | questions.Withdrawn | questions.Told) -> None:
        self.question = questions.apply(self.question, event, 1.0, "owner")
        self.log.append(event)

    @rule(decision=st.sampled_from(Decision), text=texts)
    def answer(self, decision: Decision, text: str) -> None:
        try:
            event = questions.answer(self.question, decision, text)
        except CoveyError:
            return
        self.ends += 1
        self.take(event)

    @rule(event=st.sampled_from([questions.Expired(), questions.Withdrawn("x")]))
    def end(self, event: questions.Expired | questions.Withdrawn) -> None:
        if self.question.state is QuestionState.OPEN:
            self.ends += 1
            self.take(event)

    @rule()
    def tell(self) -> None:
        if questions.reply_of(self.question) is not None:
            self.take(questions.Told())

    @invariant()
    def it_ends_once(self) -> None:
        assert self.ends == (self.question.state is not QuestionState.OPEN)
        assert (self.question.ended is not None) is (self.question.state is not QuestionState.OPEN)

    @invariant()
    def the_log_tells_all_of_it(self) -> None:
        question = nouns.first(questions.Question, "question-1", 1, self.asked, 1.0)
        for event in self.log:
            question = questions.apply(question, event, 1.0, "owner")
        assert question == self.question


TestAnyOrder = AnyOrder.TestCase
