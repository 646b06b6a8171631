"""What is asked and answered about mail."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from covey.app.shapes.forms import Asked, Limit, Name, Seq, TaskId, Title, form
from covey.core.mail import Message, Reading


class SendMail(Asked, frozen=True, kw_only=True):
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
    session: Name | None = None
    subject: Title | None = None
    task: TaskId | None = None
    wants_ack: bool = False
    wake: bool = False


class Inbox(Asked, frozen=True, kw_only=True):
    """Whose mail, and whether also what was read."""

    session: Name | None = None
    all: bool = False
    limit: Limit = 200
    after: Seq = 0


class ReadingRow(Struct, frozen=True):
    """What became of a message with one who got it: when it was read, seen in its conversation, acknowledged."""

    reader: str
    read: float
    delivered: float | None
    acked: float | None


class MessageFull(Struct, frozen=True, kw_only=True):
    """A message as one reader sees it; `waits` says why who shall be woken is not, `readers` whom it has reached."""

    id: str
    seq: int
    sender: str
    to: str
    subject: str | None
    text: str
    task: str | None
    wants_ack: bool
    sent: float
    wake: bool
    read: float | None
    delivered: float | None
    acked: float | None
    waits: str | None = None
    readers: list[ReadingRow] = []

    @staticmethod
    def of(message: Message, text: str, reading: Reading | None, waits: str | None = None) -> MessageFull:
        """Return a message as it is answered."""
        values = {**message.__dict__, "text": text, "seq": message.ordinal}
        del values["ordinal"], values["facts"]
        done = Reading(message.id, "", 0.0) if reading is None else reading
        read = None if reading is None else reading.read
        return MessageFull(**values, read=read, delivered=done.delivered, acked=done.acked, waits=waits)
