"""The life of a message: sent once, quoted to whom it is for until it is seen there, read and acknowledged."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from covey.core import quotes
from covey.core.fleet.sessions import COVEY, EVERYONE, OWNER, Session
from covey.core.fleet.task_updates import Facts
from covey.core.texts import Text, name
from covey.errors import Denied, Refused
from covey.values import dataclass

ROLE = "role:"
MAX_MESSAGE_BYTES = 4 * 1024
"""Bytes of one message that an agent is told; the rest it can read."""
HEAD_BYTES = 512
"""Bytes of a message that is told which its head and its end take at most."""
HOOK_MAIL_BYTES = 8 * 1024
"""Bytes of mail that an agent is told at one step: of more than 10,000 characters Claude Code shows only the start."""
PROMPT_MAIL_BYTES = 16 * 1024
"""Bytes of mail in a prompt."""
TELL_AGAIN_S = 10.0
"""Seconds after which what was told and not seen to have arrived is told again."""

MIN_MESSAGE_BYTES = 40
"""Bytes in which no message can be told."""

_MARKER = re.compile(r"\[(mail-[0-9]{1,18})\] From ")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A message went out."""

    to: str
    subject: str | None = None
    text: Text = ""
    task: str | None = None
    wants_ack: bool = False
    wake: bool = False
    """Its reader is told at once, even if that takes a run of its own."""
    facts: Facts = ()
    """The parts of its task that it tells: who has heard it has heard them."""


@dataclass(frozen=True, kw_only=True)
class Message(Sent):
    """Mail from one session or person to a session, a role, everyone or the owner."""

    id: str
    ordinal: int
    sender: str
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


# Telling


def quoted(message: Message, text: str, speaker: str = "") -> str:
    """Return a message as an agent is told it: quoted line by line, so that nothing in it can pose as anybody else.

    `speaker`: the reader, if it has to say who it is when it gives a command.
    """
    return _quoted(replace(message, text=""), text[: MAX_MESSAGE_BYTES + 1], f" --as {speaker}" if speaker else "")


@lru_cache(maxsize=256)  # what is unread is quoted at every step of its reader
def _quoted(message: Message, text: str, by: str) -> str:
    about = f" about {message.task}" if message.task else ""
    subject = f"Subject: {message.subject}\n\n" if message.subject else ""
    name, _, standing = quotes.by(message.sender).partition(" (")
    head = f"[{message.id}] From {name}{about}{f' ({standing}' if standing else ''}:\n"
    tail = f"\n(It wants to be acknowledged: covey mail ack {message.id}{by})" if message.wants_ack else ""
    body = "\n".join(quotes.marked(subject + text) or [quotes.QUOTE_MARK.rstrip()])  # what is longer is cut below
    room = MAX_MESSAGE_BYTES - len(head.encode()) - len(tail.encode())
    if len(body.encode()) > room:
        tail = f"\n(That is not all of it: covey mail read {message.id}{by}){tail}"
        room = MAX_MESSAGE_BYTES - len(head.encode()) - len(tail.encode())
        body = body.encode()[:room].decode(errors="ignore")
    return f"{head}{body}{tail}"


def fits(text: str) -> bool:
    """Say whether an agent is told all of a text, if that is the whole message."""
    return quotes.size_of(quotes.marked(text)) + HEAD_BYTES <= MAX_MESSAGE_BYTES


def named(text: str) -> set[str]:
    """Return the messages that a text may have in it: whoever can write there can name any."""
    return set(_MARKER.findall(text))


def shown(text: str, quotes: Mapping[str, str]) -> list[str]:
    """Return which of some quoted messages stand in a text, word for word, so that nothing else can pass for one.

    Programs wrap lines differently, and some escape characters as XML does.
    """
    places = {_words(text), _words(_unescaped(text))} if quotes else set[str]()
    return [each for each, quote in quotes.items() if any(_words(quote) in place for place in places)]


def _words(text: str) -> str:
    return " ".join(text.split())


def _unescaped(text: str) -> str:
    for written, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
        text = text.replace(written, sign)
    return text


def portion(
    unread: Sequence[Message],
    quote: Callable[[Message], str],
    offered: Mapping[str, float],
    at: float,
    room: int = HOOK_MAIL_BYTES,
) -> list[tuple[Message, str]]:
    """Return what of the unread mail, the oldest first, is told now, each with how it is quoted.

    Of a sender all that fits from its oldest on, and nothing while something of it was told (`offered`: when) and may
    still be on its way: so everything arrives at least once, and what one sender says in its order.
    """
    held = {message.sender for message in unread if at - offered.get(message.id, -TELL_AGAIN_S) < TELL_AGAIN_S}
    chosen: list[tuple[Message, str]] = []
    for message in unread:
        if room < MIN_MESSAGE_BYTES:
            break
        if message.sender in held:
            continue
        told = quote(message)
        size = len(told.encode()) + 2
        if size > room:
            held.add(message.sender)  # what it sent later waits with it
            continue
        room -= size
        chosen.append((message, told))
    return chosen
