"""What a session may see of the log: that something happened, always; what it was, only if that is its business."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum

from covey.core.events import KINDS, Event, noun


class Sight(StrEnum):
    """Which sessions see what an event says."""

    EVERYONE = "every session"
    CONCERNED = "those concerned"
    OWNER = "the owner"


WITHHELD = "{}"
"""What stands for the data of an event that its reader may not see."""
_BY_NOUN: dict[str, Sight] = {
    "task": Sight.EVERYONE,
    "session": Sight.EVERYONE,
    "run": Sight.CONCERNED,
    "fleet": Sight.EVERYONE,
    "question": Sight.CONCERNED,
    "permit": Sight.EVERYONE,
    "proposal": Sight.CONCERNED,
    "device": Sight.OWNER,
    "lease": Sight.EVERYONE,
    "mail": Sight.CONCERNED,
    "comment": Sight.CONCERNED,
    "overlap": Sight.EVERYONE,
    "merge": Sight.EVERYONE,
    "queue": Sight.EVERYONE,
    "gate": Sight.EVERYONE,
    "landing": Sight.EVERYONE,
    "alert": Sight.CONCERNED,
    "log": Sight.OWNER,
    "daemon": Sight.EVERYONE,
}
_BY_KIND: dict[str, Sight] = {
    "session.changed": Sight.CONCERNED,  # its evidence may be what it asked, or was told
    "session.rescued": Sight.CONCERNED,
    "comment.written": Sight.OWNER,  # a draft; what was sent comes as mail
    "comment.edited": Sight.OWNER,
    "comment.removed": Sight.OWNER,
}
SIGHTS: dict[str, Sight] = {kind: _BY_KIND.get(kind, _BY_NOUN[noun(kind)]) for kind in KINDS}


def visible(event: Event, viewer: str | None, concerned: Collection[str]) -> Event:
    """Return an event as a viewer may see it; the owner (None) and whoever did it see all of it.

    `concerned` are the names of the sessions whose business it is.
    """
    if viewer is None or event.actor == viewer or SIGHTS[event.kind] is Sight.EVERYONE:
        return event
    if SIGHTS[event.kind] is Sight.CONCERNED and viewer in concerned:
        return event
    return replace(event, data=WITHHELD, key=None)
