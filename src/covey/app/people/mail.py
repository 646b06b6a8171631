"""The verbs of mail: send, show, read, acknowledge."""

from __future__ import annotations

from msgspec import structs

from covey.app import limits
from covey.app.shapes.forms import As
from covey.app.shapes.mail import Inbox, MessageFull, ReadingRow, SendMail
from covey.app.tasks import find
from covey.app.verbs import Call, missing, verb
from covey.core import mail
from covey.core.facts import Facts
from covey.core.mail import Message, Reading
from covey.core.rights import OWN, SHARED
from covey.core.sessions import COVEY, EVERYONE, OWNER, Goal, Kind, Session
from covey.errors import CoveyError, NotFound
from covey.store import rows


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
    limits.check_messages(call)
    call.worker(sender)
    return full(call, post(call, sender, event), None, why_it_waits(call, to) if asked.wake else None)


def why_it_waits(call: Call, to: str) -> str | None:
    """Return why who is written to cannot be woken now, None if that can be, or if it is no one session."""
    session = call.tx.session(to)
    if to.startswith(mail.ROLE) and not _has_role(call, to.removeprefix(mail.ROLE)):
        return f"Nobody has the role {to.removeprefix(mail.ROLE)} now: who gets it later does not see this message."
    if session is None or session.kind is not Kind.RUN:
        others = to in (EVERYONE, OWNER) or to.startswith(mail.ROLE)
        return None if others else f"covey does not run {to}: it finds the message when it looks."
    if not reads(call, session):
        return f"{to} runs its tasks as scripts and is not woken: its scripts find the message by covey mail inbox."
    if session.goal is not Goal.WORKING:
        return f"{to} is {session.goal}: it gets the message when it works again."
    return "The fleet is paused: the message waits until covey resume." if call.tx.fleet().paused else None


def reads(call: Call, session: Session) -> bool:
    """Say whether the agent of a session understands a text: one that runs its task as a script would run the mail."""
    from covey.agents import registry  # few commands wake somebody, and all of them start with this module

    try:
        return not registry.find(session.agent or "", call.house.config.declared()).traits.script
    except CoveyError:
        return False


def _has_role(call: Call, role: str) -> bool:
    return bool(call.tx.find(rows.SESSIONS, "WHERE role = ? AND removed = 0 LIMIT 1", (role,)))


def tell(call: Call, to: str, text: str, task: str | None, facts: Facts = ()) -> None:
    """Let a session know something of its task, in covey's own name; `facts`: the parts of it that are told."""
    post(call, COVEY, mail.Sent(to=to, text=call.tx.keep(text), task=task, facts=facts))


def post(call: Call, sender: str, event: mail.Sent) -> Message:
    """Let a message go out."""
    seq = call.tx.next_seq
    message = mail.first(f"mail-{seq}", seq, sender, event, call.tx.now)
    call.tx.insert(rows.MESSAGES, message)
    call.tx.append(sender, message.id, event, message)
    return message


@verb("mail.inbox", "GET /api/mail", Inbox, list[MessageFull], may=OWN)
def inbox(call: Call, asked: Inbox) -> list[MessageFull]:
    """List the mail of a session, the oldest first; without `all`, what it has not read."""
    reader = call.actor(asked.session)
    call.hear(reader)
    return [
        full(call, message, call.tx.get(rows.READINGS, message.id, reader))
        for message in letters(call, reader, unread=not asked.all, after=asked.after, limit=asked.limit)
    ]


@verb("mail.show", "GET /api/mail/{id}", As, MessageFull, may=OWN)
def show(call: Call, asked: As, id: str) -> MessageFull:
    """Show a message, and to its sender whom it has reached; it counts as read by nobody for that."""
    reader = call.actor(asked.session)
    message = _message(call, id)
    if reader != OWNER:  # who is in charge sees what became of any
        mail.may_read(message, reader, call.tx.session(reader))
    call.hear(reader)
    shown = full(call, message, call.tx.get(rows.READINGS, id, reader))
    if reader not in (message.sender, OWNER):
        return shown
    found = call.tx.find(rows.READINGS, "WHERE message = ? ORDER BY read", (id,))
    readers = [ReadingRow(each.reader, each.read, each.delivered, each.acked) for each in found]
    return structs.replace(shown, readers=readers)


@verb("mail.read", "POST /api/mail/{id}/read", As, MessageFull, may=OWN)
def read(call: Call, asked: As, id: str) -> MessageFull:
    """Read a message, and note that it was read."""
    message, reader, reading = _reading(call, id, asked)
    if reading is None:
        reading = note(call, message, reading, mail.Read(reader), reader)
    return full(call, message, reading)


@verb("mail.ack", "POST /api/mail/{id}/ack", As, MessageFull, may=OWN)
def ack(call: Call, asked: As, id: str) -> MessageFull:
    """Acknowledge a message: its sender sees that it was taken in."""
    message, reader, reading = _reading(call, id, asked)
    if reading is None or reading.acked is None:
        reading = note(call, message, reading, mail.Acked(reader), reader)
    return full(call, message, reading)


def letters(
    call: Call, reader: str, *, unread: bool, after: int = 0, limit: int = 200, wake: bool = False
) -> list[Message]:
    """Return the messages to a reader, or those that shall wake it; to many only from when it became known."""
    session = call.tx.session(reader)
    names = mail.addresses(reader, session.role if session else None)
    since = session.ordinal if session and reader != OWNER else 0
    marks = ", ".join("?" * len(names))
    by_reader = "SELECT 1 FROM readings WHERE message = messages.id AND reader = ?"
    only = f"{'AND wake = 1 ' if wake else ''}{f'AND NOT EXISTS ({by_reader}) ' if unread else ''}"
    return call.tx.find(
        rows.MESSAGES,
        f'WHERE "to" IN ({marks}) AND sender <> ? AND ("to" = ? OR ordinal > ?) AND ordinal > ? {only}'
        "ORDER BY ordinal LIMIT ?",
        (*names, reader, reader, since, after, *([reader] if unread else []), limit),
    )


def full(call: Call, message: Message, reading: Reading | None, waits: str | None = None) -> MessageFull:
    """Return a message as one reader sees it; `waits`: why it could not be told at once."""
    return MessageFull.of(message, call.tx.text(message.text), reading, waits)


def note(
    call: Call, message: Message, before: Reading | None, event: mail.Read | mail.Acked | mail.Delivered, by: str
) -> Reading:
    """Write down what a reader has done with a message, or what came of it there."""
    after = mail.read(message.id, before, event, call.tx.now)
    if before is None:
        call.tx.insert(rows.READINGS, after)
    else:
        call.tx.update(rows.READINGS, before, after)
    call.tx.append(by, message.id, event, message)
    return after


def _message(call: Call, message_id: str) -> Message:
    message = call.tx.get(rows.MESSAGES, message_id)
    if message is None:
        raise missing("message", message_id)
    return message


def _reading(call: Call, message_id: str, asked: As) -> tuple[Message, str, Reading | None]:
    reader = call.actor(asked.session)
    message = _message(call, message_id)
    mail.may_read(message, reader, call.tx.session(reader))
    call.worker(reader)
    return message, reader, call.tx.get(rows.READINGS, message_id, reader)
