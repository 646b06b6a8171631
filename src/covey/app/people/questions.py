"""The verbs of questions and permits: agents ask, a person answers, and nobody waits for ever."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, field

from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.app.shapes.forms import Answered, As, Asked, Limit, Name, Nothing, Title, completed, fields_of
from covey.app.verbs import verb
from covey.core.board.tasks import Status
from covey.core.fleet.sessions import COVEY, OWNER
from covey.core.fleet.signals import Asks, Wants
from covey.core.people import permits, questions
from covey.core.people.alerts import AlertKind
from covey.core.people.commands import pushes
from covey.core.people.permits import Permit
from covey.core.people.questions import Decision, Question, QuestionState
from covey.core.people.rights import OWN, OWNER_ONLY, PARTLY, SHARED
from covey.core.texts import prose, redact
from covey.errors import Denied, Invalid, Refused, TooMany

TEXT = 4_000
"""Characters of a question that are kept."""
ABOUT = 16 * 1024
"""Characters of a command that are kept."""
GRACE = 30.0
"""Seconds in which `covey ask` itself fetches an answer, before anybody else passes it on."""
GONE_ON = (Status.REVIEW, Status.MERGING, Status.DONE, Status.DROPPED)
"""Where a task stands that needs no answer any more."""
_CUT = "\n[... cut]"
_REMOVED = "[secret removed]"


class ListQuestions(Asked, frozen=True, kw_only=True):
    """Which questions."""

    state: questions.QuestionState | None = None
    session: Name | None = None
    limit: Limit = 200


class AskQuestion(As, frozen=True, kw_only=True):
    """What an agent asks the person in charge, and the answers that it proposes."""

    text: Annotated[str, Meta(min_length=1, max_length=4000)]
    choices: Annotated[list[Title], Meta(max_length=20)] = field(default_factory=list)


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


@completed(fields_of(Question, "ordinal", "asks"))
class QuestionRow(Answered, frozen=True, kw_only=True):
    """A question, when it is denied if nobody answers, and what was decided."""

    id: str


@completed(fields_of(Permit, "ordinal"))
class PermitRow(Answered, frozen=True, kw_only=True):
    """What every agent may do here without asking."""

    id: str


# What the loops do


def ask(call: Call, session: str, asks: Asks, *, task: str | None, run: str | None, minutes: float) -> Question:
    """Write a question down and tell the person once; the same question of the same run is the same row for ever."""
    asks = _fit(asks)
    known = _known(call, session, run, asks)
    if known is not None:
        return known
    event = questions.Asked(
        session=session,
        task=task,
        run=run,
        asks=asks.id,
        wants=asks.wants,
        text=_cut(redact(asks.question), TEXT),
        tool=asks.tool,
        about=_cut(redact(asks.about), ABOUT),
        choices=asks.choices,
        until=call.tx.now + minutes * 60,
    )
    question = call.tx.begin(Question, event, session)
    # The whole of it: what was cut off counts too.
    permit = covering(call, asks.tool, asks.about) if asks.wants is Wants.PERMISSION else None
    if permit is not None:
        return _let_through(call, question, permit)
    if question.wants is Wants.PERMISSION:
        wants = "wants to" if question.about else "asks for a permission:"
        told = f"{session} {wants} {_what(question)} (covey answer {question.id} --allow, --always or --deny)"
    else:
        told = f"{session} asks: {_what(question)} (covey answer {question.id} TEXT)"
    alert(call, AlertKind.NEEDS_YOU, told, session, task)
    return question


def expire(call: Call) -> int:
    """Deny what nobody answered in time, and say so; return how many those were.

    What was asked for a task that has gone on without the answer is withdrawn without a word.
    """
    for question in call.tx.open_questions():
        task = None if question.task is None or not is_from_shell(question) else call.tx.task(question.task)
        if task is not None and task.status in GONE_ON:
            call.tx.advance(question, questions.Withdrawn(f"{task.id} is {task.status}."), COVEY)
    over = call.tx.questions_over(call.tx.now)
    for question in over:
        call.tx.advance(question, questions.Expired(), COVEY)
        message = f"Nobody answered {question.session} in time, so {question.id} was denied: {_what(question)}"
        alert(call, AlertKind.QUESTION_EXPIRED, message, question.session, question.task)
    return len(over)


def withdraw(call: Call, run_id: str, why: str, *, keep: bool = True) -> int:
    """End what a run that has ended still asks; with `keep`, answers to `covey ask` wait for the task's next run."""
    gone = [each for each in call.tx.open_questions(run_id) if not (keep and is_from_shell(each))]
    for question in gone:
        call.tx.advance(question, questions.Withdrawn(redact(why)[:500]), COVEY)
    return len(gone)


def untold(call: Call) -> list[Question]:
    """Return what was decided, and the open run that asked has not been told; `covey ask` fetches its own at first."""
    now, found = call.tx.now, call.tx.untold_questions()
    return [each for each in found if not is_from_shell(each) or (each.ended is not None and now - each.ended > GRACE)]


def told(call: Call, question: Question, by: str = COVEY) -> Question:
    """Note that whoever asked knows the answer; a second time changes nothing."""
    now = call.tx.get(Question, question.id)
    if now is None or now.told or questions.reply_of(now) is None:
        return now or question
    return call.tx.advance(now, questions.Told(), by)


def awaited(call: Call, task_id: str) -> list[Question]:
    """Return what was asked for a task by `covey ask` and nobody has decided: its next run gets the answer."""
    found = call.tx.unsettled_questions(task=task_id)
    return [each for each in found if is_from_shell(each) and each.state is QuestionState.OPEN]


def answers(call: Call, task_id: str) -> list[Question]:
    """Return what was asked for a task and decided, but reached nobody: its next run is told by its prompt."""
    found = call.tx.unsettled_questions(task=task_id)
    return [each for each in found if is_from_shell(each) and questions.reply_of(each) is not None]


def quoted(question: Question) -> tuple[str, str]:
    """Return question and answer as a prompt tells them."""
    reply = questions.reply_of(question)
    said = "" if reply is None else reply.text.strip() or ("Yes." if reply.allows else "No.")
    return question.text, said


def is_from_shell(question: Question) -> bool:
    """Say whether it was asked by `covey ask`, which waits for the answer itself."""
    return question.asks.startswith(questions.FROM_SHELL)


def _known(call: Call, session: str, run: str | None, asks: Asks) -> Question | None:
    """Return the row of a question that was asked before; one without a name is the one that is open."""
    if not asks.id and run is None:
        return None
    same = call.tx.questions_named(session, run, asks.id)
    if not asks.id:
        same = [each for each in same if each.state is QuestionState.OPEN]
    return next(iter(same), None)


def _fit(asks: Asks) -> Asks:
    """Return what an agent asks as text that can be kept, whatever it sent."""
    id, question, tool, about, *choices = (
        text.encode("utf-8", "replace").decode()
        for text in (asks.id[:200], asks.question, asks.tool[:200], asks.about, *asks.choices[:20])
    )
    return replace(
        asks, id=id, question=question, tool=tool, about=about, choices=tuple(redact(each)[:500] for each in choices)
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def _is_whole(question: Question) -> bool:
    """Say whether all that was asked for is kept, so that it can be compared."""
    return not question.about.endswith(_CUT) and _REMOVED not in question.about


def _what(question: Question) -> str:
    if question.wants is Wants.PERMISSION and question.about:
        deed = {permits.SHELL: "run", permits.PUSH: "push to"}.get(question.tool, f"use {question.tool}:")
        return f"{deed} {question.about[:1000]}"
    return question.text[:1000]


def covering(call: Call, tool: str, about: str) -> Permit | None:
    """Return the permit that allows something, None if there is none."""
    if not tool:
        return None
    found = (each for each in call.tx.permits() if permits.covers(each.tool, each.about, tool, about))
    return next(found, None)


def _let_through(call: Call, question: Question, permit: Permit) -> Question:
    what = f"{permit.tool} {permit.about[:200]}".strip()
    return call.tx.advance(question, questions.Answered(Decision.ALLOW, f"{permit.id} allows it: {what}"), COVEY)


# Questions


@verb("question.list", "GET /api/questions", ListQuestions, list[QuestionRow], may=PARTLY)
def list_questions(call: Call, asked: ListQuestions) -> list[QuestionRow]:
    """List questions, the oldest first; of very many, the newest; a session sees its own."""
    if call.who.session is not None and asked.session not in (None, call.who.session):
        return []
    found = call.tx.find_questions(state=asked.state, session=call.who.session or asked.session, limit=asked.limit)
    return [QuestionRow.of(question) for question in found]


@verb("question.show", "GET /api/questions/{id}", Nothing, QuestionRow, may=OWN)
def show(call: Call, asked: Nothing, id: str) -> QuestionRow:
    """Show a question, and what was decided."""
    return QuestionRow.of(call.find(Question, id))


@verb("question.ask", "POST /api/questions", AskQuestion, QuestionRow, may=SHARED, status=201)
def ask_person(call: Call, asked: AskQuestion) -> QuestionRow:
    """Ask the person in charge; the same text asked again before its answer was taken is the same question."""
    name = call.actor(asked.session)
    if name == OWNER:
        raise Invalid("You are the owner, whom others ask.", hint="--as NAME asks for a session.")
    call.worker(name)
    run = next(iter(call.tx.open_runs(name)), None)
    task = run.task if run is not None else next((held.id for held in call.tx.held_by(name)), None)
    text = prose(asked.text, "The question", TEXT).strip()
    if not text:
        raise Invalid("The question is empty.")
    for before in call.tx.unsettled_questions(session=name):
        if is_from_shell(before) and (before.text, before.task) == (text, task):
            return QuestionRow.of(before)
    asks = Asks(text, wants=Wants.ANSWER, choices=tuple(asked.choices))
    return QuestionRow.of(ask_from_shell(call, name, asks, task=task, run=None if run is None else run.id))


def ask_from_shell(call: Call, session: str, asks: Asks, *, task: str | None, run: str | None) -> Question:
    """Ask for a command of a session, under a name that no other question has; too many open ones are refused."""
    check_open(call, session)
    mark = sha256(f"{call.tx.next_seq} {asks.about or asks.question}".encode()).hexdigest()[:16]
    asks = replace(asks, id=f"{questions.FROM_SHELL}{mark}")
    return ask(call, session, asks, task=task, run=run, minutes=call.context.config.watch.answer_minutes)


def check_open(call: Call, session: str) -> None:
    """Refuse a session more questions than it may have open."""
    most = call.context.config.limits.questions
    if len(call.tx.find_questions(state=QuestionState.OPEN, session=session, limit=most)) >= most:
        raise TooMany(f"{session} has {most} questions open already.", hint="Wait for an answer, or end your turn.")


@verb("question.take", "POST /api/questions/{id}/take", As, QuestionRow, may=OWN)
def take(call: Call, asked: As, id: str) -> QuestionRow:
    """Take the answer to one's own question: nobody else needs to pass it on any more."""
    question, who = call.find(Question, id), call.actor(asked.session)
    if who not in (question.session, OWNER):
        raise Denied(f"{id} was asked by {question.session}.")
    if questions.reply_of(question) is None:
        raise Refused(f"{id} has no answer yet: it is {question.state}.", hint=f"covey answer {id} gives one.")
    return QuestionRow.of(told(call, question, who))


@verb("question.answer", "POST /api/questions/{id}/answer", AnswerQuestion, QuestionRow, may=OWNER_ONLY)
def answer(call: Call, asked: AnswerQuestion, id: str) -> QuestionRow:
    """Answer a question: allow once, or always in this repository (`about`: by its first words), deny, or reply."""
    question, by = call.find(Question, id), call.actor(None)
    event = questions.answer(question, asked.decision, prose(asked.text, "The answer"))
    if asked.decision is not Decision.ALWAYS:
        if asked.about is not None:
            raise Invalid("`about` says what is allowed always.", hint=f"covey answer {id} --always --about WORDS")
        return QuestionRow.of(call.tx.advance(question, event, by))
    about = _narrowed(question, asked.about)
    after = call.tx.advance(question, event, by)
    _grant(call, question.tool, about, by)
    return QuestionRow.of(after)


def _narrowed(question: Question, about: str | None) -> str:
    """Return what a permit is for: all that was asked for, or its first words."""
    wanted = (question.about if about is None else about).strip()
    if not question.tool:
        raise Invalid(f"{question.id} does not say which tool it is about.", hint="--allow allows it once.")
    if not _is_whole(question) and about is None:
        raise Invalid(
            f"Not all of what {question.id} asks for is kept.",
            hint=f'covey answer {question.id} --always --about "WORDS" names its beginning; --allow allows it once.',
        )
    offer = permits.offered(question.tool, question.about)
    if offer is not None and wanted == offer.rule:
        return wanted
    if not permits.covers(question.tool, wanted, question.tool, question.about):
        raise Invalid(
            f"{wanted[:80]!r} would not allow what {question.id} asks for.",
            hint="It names the remote and patterns of its refs: origin feature/*"
            if question.tool == permits.PUSH
            else "It is the whole command or its first words; one that chains commands is allowed only as a whole.",
        )
    return wanted


# Permits


@verb("permit.list", "GET /api/permits", ListPermits, list[PermitRow], may=SHARED)
def list_permits(call: Call, asked: ListPermits) -> list[PermitRow]:
    """List what every agent may do here without asking; with `all`, also what was revoked."""
    return [PermitRow.of(permit) for permit in call.tx.permits(revoked=asked.all)]


@verb("permit.grant", "POST /api/permits", GrantPermit, PermitRow, may=OWNER_ONLY, status=201)
def grant(call: Call, asked: GrantPermit) -> PermitRow:
    """Allow something for this repository: a command with all that begins with its words, or a tool."""
    about = prose(asked.about, "What is allowed").strip()
    if asked.tool == permits.SHELL and not about:
        raise Invalid("No permit is for every command.", hint='covey permit grant "npm test"')
    if about != asked.about.strip():
        raise Invalid("A permit cannot have a secret in it.")
    if asked.tool == permits.PUSH:
        _, *refs = about.split() or [""]
        if not refs:
            hint = 'covey permit grant --tool push "origin feature/*"'
            raise Invalid("A permit to push names a remote and what of it.", hint=hint)
        pushes.check(ref.removeprefix(pushes.DELETED) for ref in refs)
    return PermitRow.of(_grant(call, asked.tool, about, call.actor(None)))


@verb("permit.revoke", "POST /api/permits/{id}/revoke", Nothing, PermitRow, may=OWNER_ONLY)
def revoke(call: Call, asked: Nothing, id: str) -> PermitRow:
    """Take back what was allowed: from now on it is asked for again."""
    permit = call.find(Permit, id)
    if permit.revoked is not None:
        raise Refused(f"{id} was revoked already.")
    return PermitRow.of(call.tx.advance(permit, permits.Revoked(), call.actor(None)))


def _grant(call: Call, tool: str, about: str, by: str) -> Permit:
    """Return the permit for something, made if there is none, and let through all that waits for it."""
    same = next((permit for permit in call.tx.permits() if (permit.tool, permit.about) == (tool, about)), None)
    if same is not None:
        return same
    permit = call.tx.begin(Permit, permits.Granted(tool=tool, about=about), by)
    for question in call.tx.open_questions():
        if (
            question.wants is Wants.PERMISSION
            and _is_whole(question)
            and permits.covers(tool, about, question.tool, question.about)
        ):
            _let_through(call, question, permit)
    return permit
