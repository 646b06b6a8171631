"""The life of a question: an agent waits for a person's word, and goes on with it, or without it after a time.

open > answered | expired | withdrawn        An expired one is denied, and the agent is told that nobody answered.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from covey.core.fleet.signals import Wants
from covey.errors import Invalid, Refused
from covey.values import dataclass

NOBODY_ANSWERED = "Nobody answered in time, so the answer is no."
FROM_SHELL = "covey ask "
"""How the name of a question begins that an agent asked by that command."""


class QuestionState(StrEnum):
    """Where a question stands."""

    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    """Whoever asked is gone, or went on by itself."""


class Decision(StrEnum):
    """What a person decided."""

    ALLOW = "allow"
    ALWAYS = "always"
    """For this repository, from now on."""
    DENY = "deny"
    REPLY = "reply"


@dataclass(frozen=True)
class Reply:
    """A decision, and what is said with it."""

    decision: Decision
    text: str = ""

    @property
    def allows(self) -> bool:
        """Say whether it lets the agent do what it asked for."""
        return self.decision in (Decision.ALLOW, Decision.ALWAYS)


class Permission(StrEnum):
    """Whether something may be done now."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    """A person is asked."""


@dataclass(frozen=True)
class Permitted:
    """Whether something may be done now, why, and the question that waits for a person if there is one."""

    answer: Permission
    why: str
    question: str | None = None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """An agent waits for a person."""

    session: str
    task: str | None = None
    run: str | None = None
    asks: str = ""
    """The agent's own name for it."""
    wants: Wants = Wants.ANSWER
    text: str = ""
    tool: str = ""
    about: str = ""
    choices: tuple[str, ...] = ()
    until: float | None = None
    """When it is denied if nobody has answered."""


@dataclass(frozen=True, kw_only=True)
class Question(Asked):
    """One question of one run."""

    id: str
    ordinal: int
    state: QuestionState = QuestionState.OPEN
    decision: Decision | None = None
    answer: str | None = None
    by: str | None = None
    told: bool = False
    """The agent has been told."""
    asked: float = 0.0
    ended: float | None = None


@dataclass(frozen=True)
class Answered:
    """A person decided."""

    decision: Decision
    text: str = ""


@dataclass(frozen=True)
class Expired:
    """Nobody decided in time: it is denied."""


@dataclass(frozen=True)
class Withdrawn:
    """The question needs no answer any more."""

    why: str = ""


@dataclass(frozen=True)
class Told:
    """The agent has been told what was decided."""


Event = Asked | Answered | Expired | Withdrawn | Told


def answer(question: Question, decision: Decision, text: str) -> Answered:
    """Decide a question that is open."""
    if question.state is not QuestionState.OPEN:
        raise Refused(f"{question.id} is {question.state} already.", hint="covey inbox shows what waits.")
    if question.wants is Wants.PERMISSION and decision is Decision.REPLY:
        raise Invalid(
            f"{question.id} asks for a permission.",
            hint=f"covey answer {question.id} --allow, --always or --deny; a text may go with --deny.",
        )
    if question.wants is Wants.ANSWER and decision is Decision.ALWAYS:
        raise Invalid(f"{question.id} asks for an answer; only a permission can be given for ever.")
    if question.wants is Wants.ANSWER and decision in (Decision.REPLY, Decision.ALLOW) and not text.strip():
        raise Invalid(f"{question.id} wants an answer in words.", hint=f'covey answer {question.id} "..."')
    return Answered(decision, text)


def reply_of(question: Question) -> Reply | None:
    """Return what the agent is to be told, None while nobody has decided."""
    if question.state is QuestionState.EXPIRED:
        return Reply(Decision.DENY, NOBODY_ANSWERED)
    if question.state is QuestionState.ANSWERED and question.decision is not None:
        return Reply(question.decision, question.answer or "")
    return None


def standing(question: Question, run: str | None) -> Permitted | None:
    """Return what an earlier question for the same thing and the same task says of it now, None if it says nothing.

    What was allowed stays allowed for the task; what was denied stays denied for the run that asked.
    """
    if question.state is QuestionState.OPEN:
        return Permitted(Permission.ASK, f"A person is asked: {question.id}.", question.id)
    reply = reply_of(question)
    if reply is None:
        return None
    if reply.allows:
        return Permitted(Permission.ALLOW, f"{question.id} was allowed by {question.by}.", question.id)
    if question.run != run:
        return None
    return Permitted(Permission.DENY, reply.text.strip() or "The answer is no.", question.id)


def apply(question: Question, event: Answered | Expired | Withdrawn | Told, at: float, by: str) -> Question:
    """Return the question as it is after `event`. Never refuses."""
    match event:
        case Answered(decision, text):
            return replace(question, state=QuestionState.ANSWERED, decision=decision, answer=text, by=by, ended=at)
        case Expired():
            return replace(question, state=QuestionState.EXPIRED, ended=at)
        case Withdrawn():
            return replace(question, state=QuestionState.WITHDRAWN, ended=at)
        case Told():
            return replace(question, told=True)
