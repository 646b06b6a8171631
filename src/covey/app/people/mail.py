"""The verbs of mail: send, show, read, acknowledge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, field

from covey.app.context import Call, find
from covey.app.people import session_limits
from covey.app.shapes.forms import Answered, As, Limit, Seq, TaskId, Title, completed, fields_of, form
from covey.app.verbs import verb
from covey.core.fleet.sessions import COVEY, EVERYONE, OWNER, Goal, Session, SessionKind
from covey.core.fleet.task_updates import Facts
from covey.core.people import mail
from covey.core.people.mail import Message, Reading
from covey.core.people.rights import OWN, SHARED
from covey.errors import CoveyError, NotFound


class SendMail(As, frozen=True, kw_only=True):
    """A message to a session, role:NAME, everyone or owner; with `wake` a session that covey runs is told at once."""

    to: Annotated[
        str,
        form(
            r"(role:)?[A-Za-z0-9][A-Za-z0-9_-]*",
            "must be a session, role:NAME, everyone or owner",
            min_length=1,
            max_length=80,
        ),
    ]
    text: Annotated[str, Meta(min_length=1, max_length=65_536)]
    subject: Title | None = None
    task: TaskId | None = None
    wants_ack: bool = False
    wake: bool = False


class Inbox(As, frozen=True, kw_only=True):
    """Whose mail, and whether also what was read."""

    all: bool = False
    limit: Limit = 200
    after: Seq = 0


@completed(fields_of(Reading, "message"))
class ReadingRow(Answered, frozen=True):
    """What became of a message with one who got it: when it was read, seen in its conversation, acknowledged."""


@completed(fields_of(Message, "ordinal", "facts", "text"))
class MessageFull(Answered, frozen=True, kw_only=True):
    """A message as one reader sees it; `waits` says why who shall be woken is not, `readers` whom it has reached."""

    id: str
    seq: int
    text: str
    read: float | None
    delivered: float | None
    acked: float | None
    waits: str | None = None
    readers: list[ReadingRow] = field(default_factory=list)


@verb("mail.send", "POST /api/mail", SendMail, MessageFull, may=SHARED, status=201)
def send(call: Call, asked: SendMail) -> MessageFull:
    """Send a message to a session, role:NAME, everyone or owner."""
    sender = call.actor(asked.session)
    to = mail.address(asked.to)
    if to not in (EVERYONE, OWNER) and not to.startswith(mail.ROLE) and call.tx.session(to) is None:
        raise NotFound(f"There is no session {to!r} to write to.", hint="covey status lists the sessions.")
    if asked.wake and (to == EVERYONE or to.startswith(mail.ROLE)):
        call.only_owner("wake more than one session")
    if asked.task is not None:
        find(call.tx, asked.task)
    event = mail.Sent(
        to=to,
        subject=call.line(asked.subject, "The subject", 500),
        text=call.prose(asked.text, "The message"),
        task=asked.task,
        wants_ack=asked.wants_ack,
        wake=asked.wake,
    )
    session_limits.check_messages(call)
    call.worker(sender)
    return full(call, call.tx.begin(Message, event, sender), None, why_it_waits(call, to) if asked.wake else None)


def why_it_waits(call: Call, to: str) -> str | None:
    """Return why the addressee cannot be woken now, None if it can, or if it is not a single session."""
    session = call.tx.session(to)
    if to.startswith(mail.ROLE) and not call.tx.has_role(to.removeprefix(mail.ROLE)):
        return f"Nobody has the role {to.removeprefix(mail.ROLE)} now: who gets it later does not see this message."
    if session is None or session.kind is not SessionKind.RUN:
        others = to in (EVERYONE, OWNER) or to.startswith(mail.ROLE)
        return None if others else f"covey does not run {to}: it finds the message when it looks."
    if not reads(call, session):
        return f"{to} runs its tasks as scripts and is not woken: its scripts find the message by covey mail inbox."
    if session.goal is not Goal.WORKING:
        return f"{to} is {session.goal}: it gets the message when it works again."
    return "The fleet is paused: the message waits until covey resume." if call.tx.fleet().paused else None


def reads(call: Call, session: Session) -> bool:
    """Say whether the agent of a session understands a text: one that runs its task as a script would run the mail."""
    try:
        return not call.context.agent(session.agent or "").traits.script
    except CoveyError:
        return False


def tell(call: Call, to: str, text: str, task: str | None, facts: Facts = ()) -> None:
    """Let a session know something of its task, in covey's own name; `facts`: the parts of it that are told."""
    call.tx.begin(Message, mail.Sent(to=to, text=call.tx.keep(text), task=task, facts=facts), COVEY)


@verb("mail.inbox", "GET /api/mail", Inbox, list[MessageFull], may=OWN)
def inbox(call: Call, asked: Inbox) -> list[MessageFull]:
    """List the mail of a session, the oldest first; without `all`, what it has not read."""
    reader = call.actor(asked.session)
    call.hear(reader)
    return [
        full(call, message, call.tx.get(Reading, message.id, reader))
        for message in letters(call, reader, unread=not asked.all, after=asked.after, limit=asked.limit)
    ]


@verb("mail.show", "GET /api/mail/{id}", As, MessageFull, may=OWN)
def show(call: Call, asked: As, id: str) -> MessageFull:
    """Show a message, and to its sender whom it has reached; it counts as read by nobody for that."""
    reader = call.actor(asked.session)
    message = call.find(Message, id)
    if reader != OWNER:  # who is in charge sees what became of any
        mail.may_read(message, reader, call.tx.session(reader))
    call.hear(reader)
    readers = call.tx.readings_of(id) if reader in (message.sender, OWNER) else ()
    return full(call, message, call.tx.get(Reading, id, reader), readers=readers)


@verb("mail.read", "POST /api/mail/{id}/read", As, MessageFull, may=OWN)
def read(call: Call, asked: As, id: str) -> MessageFull:
    """Read a message, and note that it was read."""
    return _noted(call, id, asked, mail.Read)


@verb("mail.ack", "POST /api/mail/{id}/ack", As, MessageFull, may=OWN)
def ack(call: Call, asked: As, id: str) -> MessageFull:
    """Acknowledge a message: its sender sees that it was taken in."""
    return _noted(call, id, asked, mail.Acked)


def letters(
    call: Call, reader: str, *, unread: bool, after: int = 0, limit: int = 200, wake: bool = False
) -> list[Message]:
    """Return the messages to a reader, or those meant to wake it; of those to many, what came after it was known."""
    session = call.tx.session(reader)
    names = mail.addresses(reader, session.role if session else None)
    since = session.ordinal if session and reader != OWNER else 0
    return call.tx.messages_to(names, reader, since=since, after=after, unread=unread, wake=wake, limit=limit)


def full(
    call: Call,
    message: Message,
    reading: Reading | None,
    waits: str | None = None,
    readers: Iterable[Reading] = (),
) -> MessageFull:
    """Return a message as one reader sees it; `waits`: why it could not be told at once."""
    return MessageFull.of(
        message,
        seq=message.ordinal,
        text=call.tx.text(message.text),
        read=None if reading is None else reading.read,
        delivered=None if reading is None else reading.delivered,
        acked=None if reading is None else reading.acked,
        waits=waits,
        readers=[ReadingRow.of(each) for each in readers],
    )


def note(
    call: Call, message: Message, before: Reading | None, event: mail.Read | mail.Acked | mail.Delivered, by: str
) -> Reading:
    """Write down what a reader has done with a message, or what came of it there."""
    after = mail.read(message.id, before, event, call.tx.now)
    call.tx.put(before, after)
    call.tx.append(by, message.id, event, message)
    return after


def _noted(call: Call, message_id: str, asked: As, event: type[mail.Read | mail.Acked]) -> MessageFull:
    """Note once that a message was read or acknowledged, and return it."""
    reader = call.actor(asked.session)
    message = call.find(Message, message_id)
    mail.may_read(message, reader, call.tx.session(reader))
    call.worker(reader)
    reading = call.tx.get(Reading, message_id, reader)
    if reading is None or (event is mail.Acked and reading.acked is None):
        reading = note(call, message, reading, event(reader), reader)
    return full(call, message, reading)
