"""What is asked and answered about questions and permits."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from covey.app.shapes.forms import Asked, Limit, Name, Title, form
from covey.core import permits, questions, signals

ONE_WORD = "must be one word"
PushedRef = Annotated[str, form(r"[+:]?[^\s\x00-\x20\x7f]+", "must be a ref", min_length=1, max_length=1000)]


class ListQuestions(Asked, frozen=True, kw_only=True):
    """Which questions."""

    state: questions.State | None = None
    session: Name | None = None
    limit: Limit = 200


class AskQuestion(Asked, frozen=True, kw_only=True):
    """What an agent asks the person in charge, and the answers that it proposes."""

    text: Annotated[str, Meta(min_length=1, max_length=4000)]
    choices: Annotated[list[Title], Meta(max_length=20)] = field(default_factory=list)
    session: Name | None = None


class AskPush(Asked, frozen=True, kw_only=True):
    """What a session's git is about to push: the remote by name or address, and its refs as git's refspecs name them.

    A branch stands by its bare name; `+` before a ref moves it by force, `:` deletes it.
    """

    remote: Annotated[str, form(r"[^\s\x00-\x1f\x7f]+", ONE_WORD, min_length=1, max_length=4000)]
    refs: Annotated[list[PushedRef], Meta(min_length=1, max_length=1000)]
    session: Name | None = None


class AnswerQuestion(Asked, frozen=True, kw_only=True):
    """What is decided, in words if need be; `about`: the part of a command that is allowed always."""

    decision: questions.Decision
    text: Annotated[str, Meta(max_length=16_384)] = ""
    about: Annotated[str, Meta(max_length=16_384)] | None = None


class ListPermits(Asked, frozen=True, kw_only=True):
    """Which permits; without `all`, those in force."""

    all: bool = False


class GrantPermit(Asked, frozen=True, kw_only=True):
    """What is allowed: a command or its first words; with another `tool`, what that is used for (empty: anything)."""

    tool: Title = permits.SHELL
    about: Annotated[str, Meta(max_length=16_384)] = ""


class QuestionRow(Struct, frozen=True, kw_only=True):
    """A question, when it is denied if nobody answers, and what was decided."""

    id: str
    session: str
    task: str | None
    run: str | None
    wants: signals.Wants
    text: str
    tool: str
    about: str
    choices: tuple[str, ...]
    state: questions.State
    decision: questions.Decision | None
    answer: str | None
    by: str | None
    told: bool
    asked: float
    until: float | None
    ended: float | None

    @staticmethod
    def of(question: questions.Question) -> QuestionRow:
        """Return a question as it is answered."""
        return QuestionRow(**{name: getattr(question, name) for name in QuestionRow.__struct_fields__})


class PushAnswer(Struct, frozen=True, kw_only=True):
    """Whether a push may be made: `allow`, `deny`, or `ask` while its question waits for a person; and why."""

    answer: questions.Permission
    why: str
    question: str | None = None

    @staticmethod
    def of(said: questions.Permitted) -> PushAnswer:
        """Return what was decided of a push as it is answered."""
        return PushAnswer(answer=said.permission, why=said.why, question=said.question)


class PermitRow(Struct, frozen=True, kw_only=True):
    """What every agent may do here without asking."""

    id: str
    tool: str
    about: str
    by: str
    granted: float
    revoked: float | None

    @staticmethod
    def of(permit: permits.Permit) -> PermitRow:
        """Return a permit as it is answered."""
        return PermitRow(**{name: getattr(permit, name) for name in PermitRow.__struct_fields__})
