"""Logs of other origins: what continues one that was imported."""

from __future__ import annotations

import json

from covey.core.events import Event, digest
from covey.errors import Refused
from covey.values import dataclass

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
    try:
        return event.kind == "log.begun" and json.loads(event.data)["log"] == log
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
