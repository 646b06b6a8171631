"""Mail on its way to the models: what they are told now, what has arrived, and whom it wakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from covey.app.board.task_verbs import add_task
from covey.app.context import Call
from covey.app.people.mail import letters, note, reads
from covey.app.shapes.board import AddTask
from covey.core.board.tasks import ENDED, Kind, Task
from covey.core.fleet import runs
from covey.core.fleet.sessions import COVEY, Session, SessionKind
from covey.core.people import mail
from covey.core.people.mail import Message
from covey.values import dataclass

MAX_UNREAD_SEEN = 100
"""How many unread messages are looked at when some of them are told."""
ERRAND = "wake "
"""How the keys of tasks begin for which a message is the only reason."""


@dataclass(frozen=True)
class MailOffer:
    """What a reader is told now, and the messages in it; nothing of what is older than `after` is unread."""

    text: str | None
    messages: tuple[str, ...]
    after: int


def offer(
    call: Call, reader: str, offered: Mapping[str, float], at: float, *, after: int = 0, waking: bool = False
) -> MailOffer:
    """Return what a reader is told at this step; `offered`: what was, and when; `waking`: only to wake it."""
    found = letters(call, reader, unread=True, after=after, limit=1 if waking else MAX_UNREAD_SEEN)
    after = found[0].ordinal - 1 if found else call.tx.head.seq
    if waking and found:
        woken = letters(call, reader, unread=True, after=after, limit=len(offered) + 1, wake=True)
        is_news = any(message.id not in offered for message in woken)
        found = letters(call, reader, unread=True, after=after, limit=MAX_UNREAD_SEEN) if is_news else []
    chosen = mail.portion(found, _quote(call, reader), offered, at)
    text = "\n\n".join(quote for _, quote in chosen) if chosen else None
    return MailOffer(text, tuple(message.id for message, _ in chosen), after)


def enclosed(call: Call, reader: str) -> list[tuple[Message, str]]:
    """Return the mail that a prompt carries, each message with how it is quoted."""
    found = letters(call, reader, unread=True, limit=MAX_UNREAD_SEEN)
    return mail.portion(found, _quote(call, reader), {}, 0.0, mail.PROMPT_MAIL_BYTES)


def _quote(call: Call, reader: str) -> Callable[[Message], str]:
    session = call.tx.session(reader)
    speaker = (
        reader if session is not None and session.kind is SessionKind.OUTSIDE else ""
    )  # it has no token of its own
    return lambda message: mail.quoted(message, call.tx.text(message.text), speaker)


def carried(call: Call, reader: str, text: str, offered: Iterable[str] = (), after: int = 0) -> list[str]:
    """Return the messages to a reader that stand in a text whole, of what is unread or was `offered`."""
    named = mail.named(text)
    if not named:
        return []
    found = {
        each.id: each
        for each in letters(call, reader, unread=True, after=after, limit=MAX_UNREAD_SEEN)
        if each.id in named
    }
    for each in named.intersection(offered).difference(found):
        message = call.tx.get(mail.Message, each)
        found |= {} if message is None else {each: message}
    quote = _quote(call, reader)
    return mail.shown(text, {each: quote(message) for each, message in found.items()})


def undelivered(call: Call, reader: str, ids: Iterable[str]) -> list[str]:
    """Return which of these messages were sent to a reader and not yet noted as delivered, in their order."""
    session = call.tx.session(reader)
    names = mail.addresses(reader, session.role if session else None)
    found: list[Message] = []
    for each in ids:
        message, reading = call.tx.get(mail.Message, each), call.tx.get(mail.Reading, each, reader)
        if message is None or message.to not in names or message.sender == reader:
            continue
        if reading is None or reading.delivered is None:
            found.append(message)
    return [message.id for message in sorted(found, key=lambda message: message.ordinal)]


def delivered(call: Call, reader: str, run: str, ids: Iterable[str], how: str) -> None:
    """Note that messages have reached the model of a run; what was noted before is not noted again."""
    for each in undelivered(call, reader, ids):
        message = call.tx.get(mail.Message, each)
        assert message is not None
        event = mail.Delivered(reader=reader, run=run, how=how)
        note(call, message, call.tx.get(mail.Reading, each, reader), event, COVEY)
        known = call.tx.run(run)
        if message.facts and known is not None and known.task == message.task:
            call.tx.advance(known, runs.Heard(message.facts), COVEY)


def errand(call: Call, session: Session) -> Task | None:
    """Give an idle session a report to write on the mail that wakes it; once for each message."""
    if not reads(call, session):
        return None
    for message in letters(call, session.name, unread=True, limit=MAX_UNREAD_SEEN, wake=True):
        if _is_from_errand(call, message):
            continue  # two sessions would keep each other awake for ever
        key = f"{ERRAND}{message.id} {session.name}"
        known = call.tx.task_of_key(key)
        if known is None:
            return _report(call, session.name, message, key)
        if known.status not in ENDED:
            return None  # one at a time, and a person may have to look at it first
    return None


def _is_from_errand(call: Call, message: Message) -> bool:
    """Say whether the sender, when it wrote, was at a task that is there only so that a message is read."""
    run = call.tx.run_begun_before(message.sender, message.sent)
    if run is None or (run.ended is not None and run.ended < message.sent):
        return False
    task = call.tx.task(run.task)
    return task is not None and (task.key or "").startswith(ERRAND)


def _report(call: Call, name: str, message: Message, key: str) -> Task:
    about = f" about {message.task}" if message.task else ""
    asked = AddTask(
        title=f"Read {message.id} from {message.sender}{about}",
        body=f"{message.sender} wrote to you and asked that you read it now. The message stands below;"
        f" `covey mail read {message.id}` shows it too, and `covey mail inbox` what else there is.\n"
        f"Do what it needs within your rights, answer by `covey mail send {message.sender} ...`,"
        " and say in a sentence what you did. What is more work than that, add to the board: `covey task add`.",
        kind=Kind.REPORT,
        assignee=name,
    )
    return add_task(call.by_covey(), asked, (), key)
