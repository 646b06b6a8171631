"""The weather of a night: which providers fail when, and when memory is short; all of it from the seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from covey.core.fleet.signals import Trouble
from tests.end_to_end.night.agents import NAMES

MINUTE, HOUR = 60.0, 3600.0
GIB = 1024**3
PLENTY, SCARCE = 16 * GIB, 550 * 1024**2


@dataclass(frozen=True)
class Cloud:
    """From a time to a time, the providers of some agents refuse."""

    begins: float
    ends: float
    trouble: Trouble
    agents: tuple[str, ...]
    named: bool = False
    """They say when they will take requests again."""


@dataclass(frozen=True)
class Weather:
    """All clouds of a night, and the times in which memory is short."""

    clouds: tuple[Cloud, ...]
    shortages: tuple[tuple[float, float], ...]

    def over(self, agent: str, at: float) -> Cloud | None:
        """Return what hangs over an agent's provider."""
        return next((one for one in self.clouds if agent in one.agents and one.begins <= at < one.ends), None)

    def shortage(self, at: float) -> float | None:
        """Return when the shortage of memory began that there is, None if there is none."""
        return next((begins for begins, ends in self.shortages if begins <= at < ends), None)

    def free_memory(self, at: float) -> int:
        """Return the bytes that are free; that is never the same for long."""
        moved = int(at * 7_919) % (100 * 1024**2)
        return (PLENTY if self.shortage(at) is None else SCARCE) - moved


def forecast(chance: Random, hours: float) -> Weather:
    """Return the weather of a night that is so long; the longer, the more of it."""
    kinds = [
        (Trouble.OVERLOAD, 30 * MINUTE, NAMES, False),
        (Trouble.CONNECTION, HOUR, (chance.choice(NAMES),), False),
        (Trouble.KEY, 25 * MINUTE, (chance.choice(NAMES),), False),
        (Trouble.LIMIT, 40 * MINUTE, (chance.choice(NAMES),), True),
        (Trouble.LIMIT, 15 * MINUTE, NAMES, False),
        (Trouble.CREDIT, 15 * MINUTE, (chance.choice(NAMES),), False),
    ]
    chance.shuffle(kinds)
    wanted = kinds * 2 if hours > 6 else kinds[: max(int(hours), 1)]
    clouds = []
    for trouble, length, agents, named in wanted:
        begins = chance.uniform(0, hours * HOUR - length) if hours * HOUR > length else 0.0
        ends = min(begins + length * chance.uniform(0.5, 1.2), hours * HOUR)
        clouds.append(Cloud(begins, ends, trouble, agents, named))
    short = [chance.uniform(0, hours * HOUR) for _ in range(max(int(hours / 4), 1))]
    ends_of = [min(begins + chance.uniform(5, 30) * MINUTE, hours * HOUR) for begins in short]
    return Weather(tuple(clouds), tuple(zip(short, ends_of, strict=True)))
