"""The log: one fact after another, each carrying the hash of the one before."""

from __future__ import annotations

from covey.hashes import sha256
from covey.values import dataclass

FIRST = bytes(32)
"""What the first event carries as the hash of the one before."""


@dataclass(frozen=True)
class Begun:
    """A log began, with an id of its own."""

    log: str
    project: str


@dataclass(frozen=True)
class Pruned:
    """Blobs whose time was over were removed; the log itself is kept whole."""

    blobs: int
    size: int


@dataclass(frozen=True)
class Rebuilt:
    """The rows were rebuilt from the log alone."""

    events: int
    differences: int


@dataclass(frozen=True)
class Imported:
    """Events of another origin were taken in beside this log."""

    log: str
    events: int


@dataclass(frozen=True)
class Forgotten:
    """An imported log with all its events was removed, so that it can be imported again."""

    log: str
    events: int


@dataclass(frozen=True)
class Minted:
    """A token of a session was made; the token itself is in no log."""


@dataclass(frozen=True)
class Started:
    """The daemon began to serve."""

    version: str


@dataclass(frozen=True)
class Stopped:
    """The daemon ended in good order."""


LogEvent = Begun | Pruned | Rebuilt | Imported | Forgotten
DaemonEvent = Started | Stopped


@dataclass(frozen=True)
class Event:
    """One fact: who did what to what, and when; `data` is the payload as JSON."""

    seq: int
    time: float
    actor: str
    kind: str
    subject: str
    data: str
    key: str | None
    prev: bytes


def digest(event: Event) -> bytes:
    """Return the hash of an event, which the next one carries."""
    key = "-" if event.key is None else "+" + event.key
    head = f"{event.seq}\n{event.time!r}\n{event.actor}\n{event.kind}\n{event.subject}\n{key}\n"
    return sha256(event.prev + (head + event.data).encode()).digest()


def noun(kind: str) -> str:
    """Return what a kind of event is about."""
    return kind.partition(".")[0]
