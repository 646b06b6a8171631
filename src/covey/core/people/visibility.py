"""What a session may see of the log: that something happened, always; what it was, only if that is its business."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from covey.core.events import Event, noun
from covey.core.nouns import BY_NAME, KINDS, Audience

WITHHELD = "{}"
"""What stands for the data of an event that its reader may not see."""
_BY_KIND: dict[str, Audience] = {
    "session.changed": Audience.CONCERNED,  # its evidence may be what it asked, or was told
    "session.rescued": Audience.CONCERNED,
    "comment.written": Audience.OWNER,  # a draft; what was sent comes as mail
    "comment.edited": Audience.OWNER,
    "comment.removed": Audience.OWNER,
}
AUDIENCES: dict[str, Audience] = {kind: _BY_KIND.get(kind, BY_NAME[noun(kind)].audience) for kind in KINDS}


def visible(event: Event, viewer: str | None, concerned: Collection[str]) -> Event:
    """Return an event as a viewer may see it; the owner (None) and whoever did it see all of it.

    `concerned` are the names of the sessions whose business it is.
    """
    if viewer is None or event.actor == viewer or AUDIENCES[event.kind] is Audience.EVERYONE:
        return event
    if AUDIENCES[event.kind] is Audience.CONCERNED and viewer in concerned:
        return event
    return replace(event, data=WITHHELD, key=None)
