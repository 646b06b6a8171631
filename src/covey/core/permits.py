"""What agents may do without asking: levels, and what a person allowed once and for all."""

from __future__ import annotations

import re
from enum import StrEnum

from covey.core import pushes
from covey.values import dataclass

SHELL = "shell"
"""The tool that runs commands, whatever an agent calls it."""
PUSH = "push"
"""What a session's git asks for before it pushes: a remote and refs."""
_CHAINED = re.compile(r"[;&|`$()<>\n\\]")
"""What makes more than one command of a line, or another command than it seems."""


class Level(StrEnum):
    """How much an agent may do by itself."""

    ASK = "ask"
    """It reads; for all else it asks."""
    EDITS = "edits"
    """It edits, uses git and covey, runs the gate and what `allow` names; for all else it asks."""
    FULL = "full"
    """It asks for nothing."""


@dataclass(frozen=True, kw_only=True)
class Permit:
    """Something that every agent on this project may do without asking."""

    id: str
    ordinal: int
    tool: str
    about: str
    by: str = ""
    granted: float = 0.0
    revoked: float | None = None


@dataclass(frozen=True, kw_only=True)
class Granted:
    """A person allowed something for this repository."""

    tool: str
    about: str


@dataclass(frozen=True)
class Revoked:
    """What was allowed is no longer."""


Event = Granted | Revoked


def covers(tool: str, about: str, asked_tool: str, asked: str) -> bool:
    """Say whether a permit for `about` covers what is asked for: exactly it, or a command that begins with its words.

    A command that chains others is covered only word for word, so that nothing rides along. What may be pushed is a
    remote with patterns of its refs.
    """
    if tool != asked_tool:
        return False
    allowed, wanted = about.strip(), asked.strip()
    if not allowed:
        return tool not in (SHELL, PUSH)  # a whole tool, but never every command, nor every push
    if wanted == allowed:
        return True
    if tool == PUSH:
        return pushes.covers(allowed, wanted)
    if tool != SHELL or _CHAINED.search(wanted) or _CHAINED.search(allowed):
        return False
    return wanted.split()[: len(allowed.split())] == allowed.split()


def is_chained(command: str) -> bool:
    """Say whether a command is more than one, or may be another than it seems."""
    return _CHAINED.search(command.strip()) is not None


def first(permit_id: str, seq: int, event: Granted, at: float, by: str) -> Permit:
    """Return the permit that a Granted event begins."""
    return Permit(id=permit_id, ordinal=seq, tool=event.tool, about=event.about, by=by, granted=at)


def apply(permit: Permit, event: Event, at: float, by: str) -> Permit:
    """Return the permit as it is after `event`. Never refuses."""
    match event:
        case Granted():
            return first(permit.id, permit.ordinal, event, at, by)
        case Revoked():
            return Permit(**{**permit.__dict__, "revoked": at})
