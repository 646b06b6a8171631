"""The life of a message: sent once, then read and acknowledged by each who gets it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from covey.core.sessions import COVEY, EVERYONE, OWNER, Session
from covey.core.texts import Text, name
from covey.errors import Denied, Refused

ROLE = "role:"


@dataclass(frozen=True, kw_only=True)
class Message:
    """Mail from one session or person to a session, a role, everyone or the owner."""

    id: str
    ordinal: int
    sender: str
    to: str
    subject: str | None = None
    text: Text = ""
    task: str | None = None
    wants_ack: bool = False
    sent: float = 0.0


@dataclass(frozen=True)
class Reading:
    """What one reader has done with one message."""

    message: str
    reader: str
    read: float
    acked: float | None = None
    delivered: float | None = None
    """When it was seen to have reached an agent's conversation."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A message went out."""

    to: str
    subject: str | None = None
    text: Text = ""
    task: str | None = None
    wants_ack: bool = False


@dataclass(frozen=True)
class Read:
    """A reader has seen the message."""

    reader: str


@dataclass(frozen=True)
class Acked:
    """A reader says that it has taken the message in."""

    reader: str


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """The conversation of a reader's run shows the message: it has reached the model."""

    reader: str
    run: str
    how: str


Event = Sent | Read | Acked | Delivered


def address(to: str) -> str:
    """Return an address in its one spelling, or refuse it."""
    if to in (EVERYONE, OWNER):
        return to
    if to == COVEY:
        raise Refused("covey reads no mail.", hint=f"Write to a session, role:NAME, {EVERYONE} or {OWNER}.")
    if to.startswith(ROLE):
        return ROLE + name(to.removeprefix(ROLE), "The name of a role")
    return name(to, "The name of a session")


def addresses(reader: str, role: str | None) -> list[str]:
    """Return the addresses under which a reader gets mail."""
    own = [reader, EVERYONE]
    return [*own, ROLE + role] if role else own


def may_read(message: Message, reader: str, session: Session | None) -> None:
    """Refuse who is not among those to whom a message was sent."""
    role = session.role if session else None
    if message.to not in addresses(reader, role) and message.sender != reader:
        raise Denied(f"{message.id} was not sent to {reader}.")


def first(message_id: str, seq: int, sender: str, event: Sent, at: float) -> Message:
    """Return the message that a Sent event begins."""
    return Message(
        id=message_id,
        ordinal=seq,
        sender=sender,
        to=event.to,
        subject=event.subject,
        text=event.text,
        task=event.task,
        wants_ack=event.wants_ack,
        sent=at,
    )


def read(message: str, reading: Reading | None, event: Read | Acked | Delivered, at: float) -> Reading:
    """Return what a reader has done with a message after `event`: what was acknowledged or delivered has been read."""
    reading = reading or Reading(message, event.reader, at)
    match event:
        case Acked():
            return replace(reading, acked=at)
        case Delivered():
            return replace(reading, delivered=reading.delivered or at)
        case Read():
            return reading
