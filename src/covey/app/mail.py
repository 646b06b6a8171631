"""The verbs of mail: send, read, acknowledge."""

from __future__ import annotations

from covey.app import shapes
from covey.app.shapes import MessageFull
from covey.app.tasks import find
from covey.app.verbs import Call, missing, verb
from covey.core import mail
from covey.core.mail import Message, Reading
from covey.core.sessions import COVEY, EVERYONE, OWNER
from covey.errors import NotFound
from covey.store import rows


@verb("mail.send", "POST /api/mail", shapes.SendMail, MessageFull, status=201)
def send(call: Call, asked: shapes.SendMail) -> MessageFull:
    """Send a message to a session, role:NAME, everyone or owner."""
    sender = call.actor(asked.session)
    to = mail.address(asked.to)
    if to not in (EVERYONE, OWNER) and not to.startswith(mail.ROLE) and call.tx.session(to) is None:
        raise NotFound(f"There is no session {to!r} to write to.", hint="covey status lists the sessions.")
    if asked.task is not None:
        find(call.tx, asked.task)
    event = mail.Sent(
        to=to,
        subject=call.line(asked.subject, "The subject", 500),
        text=call.prose(asked.text, "The message"),
        task=asked.task,
        wants_ack=asked.wants_ack,
    )
    call.worker(sender)
    return full(call, _post(call, sender, event), None)


def tell(call: Call, to: str, text: str, task: str) -> None:
    """Let a session know something of its task, in covey's own name."""
    _post(call, COVEY, mail.Sent(to=to, text=call.tx.keep(text), task=task))


def _post(call: Call, sender: str, event: mail.Sent) -> Message:
    seq = call.tx.next_seq
    message = mail.first(f"mail-{seq}", seq, sender, event, call.tx.now)
    call.tx.insert(rows.MESSAGES, message)
    call.tx.append(sender, message.id, event, message)
    return message


@verb("mail.inbox", "GET /api/mail", shapes.Inbox, list[MessageFull])
def inbox(call: Call, asked: shapes.Inbox) -> list[MessageFull]:
    """List the mail of a session, the oldest first; without `all`, what it has not read."""
    reader = call.actor(asked.session)
    call.hear(reader)
    return [
        full(call, message, call.tx.get(rows.READINGS, message.id, reader))
        for message in letters(call, reader, unread=not asked.all, after=asked.after, limit=asked.limit)
    ]


@verb("mail.read", "POST /api/mail/{id}/read", shapes.As, MessageFull)
def read(call: Call, asked: shapes.As, id: str) -> MessageFull:
    """Read a message, and note that it was read."""
    message, reader, reading = _reading(call, id, asked)
    if reading is None:
        reading = _note(call, message, reader, reading, mail.Read(reader))
    return full(call, message, reading)


@verb("mail.ack", "POST /api/mail/{id}/ack", shapes.As, MessageFull)
def ack(call: Call, asked: shapes.As, id: str) -> MessageFull:
    """Acknowledge a message: its sender sees that it was taken in."""
    message, reader, reading = _reading(call, id, asked)
    if reading is None or reading.acked is None:
        reading = _note(call, message, reader, reading, mail.Acked(reader))
    return full(call, message, reading)


def letters(call: Call, reader: str, *, unread: bool, after: int = 0, limit: int = 200) -> list[Message]:
    """Return the messages to a reader; those to many only from the time when it became known."""
    session = call.tx.session(reader)
    names = mail.addresses(reader, session.role if session else None)
    since = session.ordinal if session and reader != OWNER else 0
    marks = ", ".join("?" * len(names))
    unread_only = "AND id NOT IN (SELECT message FROM readings WHERE reader = ?) " if unread else ""
    return call.tx.find(
        rows.MESSAGES,
        f'WHERE "to" IN ({marks}) AND sender <> ? AND ("to" = ? OR ordinal > ?) AND ordinal > ? {unread_only}'
        "ORDER BY ordinal LIMIT ?",
        (*names, reader, reader, since, after, *([reader] if unread else []), limit),
    )


def full(call: Call, message: Message, reading: Reading | None) -> MessageFull:
    """Return a message as one reader sees it."""
    read, acked = (reading.read, reading.acked) if reading else (None, None)
    return MessageFull.of(message, call.tx.text(message.text), read, acked)


def _reading(call: Call, message_id: str, asked: shapes.As) -> tuple[Message, str, Reading | None]:
    reader = call.actor(asked.session)
    message = call.tx.get(rows.MESSAGES, message_id)
    if message is None:
        raise missing("message", message_id)
    mail.may_read(message, reader, call.tx.session(reader))
    call.worker(reader)
    return message, reader, call.tx.get(rows.READINGS, message_id, reader)


def _note(call: Call, message: Message, reader: str, before: Reading | None, event: mail.Read | mail.Acked) -> Reading:
    after = mail.read(message.id, before, event, call.tx.now)
    if before is None:
        call.tx.insert(rows.READINGS, after)
    else:
        call.tx.update(rows.READINGS, before, after)
    call.tx.append(reader, message.id, event, message)
    return after
