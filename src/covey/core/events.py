"""The log: one fact after another, each carrying the hash of the one before, also in logs of other origins."""

from __future__ import annotations

from covey.errors import Refused
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


# Logs of other origins

IMPORT_AGAIN_HINT = (
    "If its origin exported it again: covey log import --again --from REMOTE takes it in from its beginning."
)
"""What to do about a log that does not continue what is known of it."""


@dataclass(frozen=True)
class Line:
    """An event of another origin with the hash that it had at home, and the fields that were left there."""

    event: Event
    hash: bytes
    withheld: tuple[str, ...] = ()


def follow(log: str, line: Line, seq: int, link: bytes) -> None:
    """Refuse a line that does not continue the log with this id, which ends at event `seq` with the hash `link`."""
    event = line.event
    if event.seq != seq + 1:
        raise Refused(f"The log {log} has a gap: after event {seq} comes {event.seq}.")
    if event.prev != link:
        raise Refused(
            f"The log {log} is a fork: its event {event.seq} does not follow the event {seq} that is known.",
            hint=IMPORT_AGAIN_HINT,
        )
    if not line.withheld and digest(event) != line.hash:
        raise Refused(f"Event {event.seq} of the log {log} was altered: it does not have its hash.")
    if event.seq == 1 and not _begins(log, event):
        raise Refused(f"Event 1 of the log {log} is not its beginning.")


def _begins(log: str, event: Event) -> bool:
    import json  # few commands take in a log, and all of them start with this module

    try:
        return event.kind == "log.begun" and json.loads(event.data)["log"] == log
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
