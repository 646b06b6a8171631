"""What only memory tells of this moment: the machine, what providers refuse, and how much a run changes."""

from __future__ import annotations

from covey.values import dataclass


@dataclass(frozen=True)
class Machine:
    """How busy the machine is: the part of its processors that works, bytes of memory in use and in all."""

    cpu: float | None = None
    memory: int | None = None
    memory_total: int | None = None


@dataclass(frozen=True)
class Limit:
    """What keeps runs of an agent from starting, and until when in seconds since 1970, if that is known."""

    agent: str
    until: float | None
    what: str


@dataclass(frozen=True)
class Size:
    """How much a branch changes, what was not committed too: lines that came and went, and files."""

    plus: int = 0
    minus: int = 0
    files: int = 0
