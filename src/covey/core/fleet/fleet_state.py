"""All sessions that covey runs, together: they work, or stand still."""

from __future__ import annotations

from covey.values import dataclass

FLEET = "fleet"


@dataclass(frozen=True)
class Fleet:
    """Whether the whole fleet stands still, since when and by whose word."""

    id: str = FLEET
    paused: bool = False
    by: str | None = None
    since: float | None = None


@dataclass(frozen=True)
class Paused:
    """The fleet was paused: nothing new starts or lands."""


@dataclass(frozen=True)
class Resumed:
    """The fleet was told to go on."""


@dataclass(frozen=True)
class Stopped:
    """All sessions that worked or were paused were stopped; their names, so that they can be brought back."""

    working: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()


Event = Paused | Resumed | Stopped


def apply(fleet: Fleet, event: Event, at: float, by: str) -> Fleet:
    """Return the fleet as it is after `event`. Never refuses."""
    match event:
        case Paused():
            return Fleet(paused=True, by=by, since=at)
        case Resumed():
            return Fleet()
        case Stopped():
            return fleet
