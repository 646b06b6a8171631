"""Events as lines of a terminal."""

from __future__ import annotations

from covey.cli.show import clock, plain
from covey.core import trail

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

KNOWN = trail.KNOWN


def line(event: dict[str, Any]) -> str:
    """Return an event as one line: number, time and what happened."""
    return f"{event['seq']:>6}  {clock(event['time'])}  {sentence(event)}"


def sentence(event: dict[str, Any]) -> str:
    """Return what happened: who did what to what."""
    return plain(trail.sentence(event["kind"], event["actor"], event["subject"], event["data"]))
