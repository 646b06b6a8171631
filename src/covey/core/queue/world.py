"""A world to try a strategy in: changes with their faults, when they come, and how long the gate takes."""

from __future__ import annotations

from dataclasses import dataclass

MIXED = 0x9E3779B97F4A7C15
WORD = 2**64 - 1


@dataclass(frozen=True)
class Coming:
    """One change as it really is; a strategy is told all of it but whether it is bad."""

    id: str
    at: float = 0.0
    bad: bool = False
    priority: int = 0
    needs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conflict:
    """Two changes of which only one can land: git cannot merge them, or the gate fails when both are in the tree."""

    one: str
    other: str
    semantic: bool = False


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything that happens to the queue, the same for every strategy that is tried in it."""

    changes: tuple[Coming, ...]
    conflicts: tuple[Conflict, ...] = ()
    slots: int = 1
    seconds: float = 60.0
    jitter: float = 0.0
    """By which part of its length the gate may take less or more."""
    flake: float = 0.0
    """The chance that a good tree fails."""
    seed: int = 0

    def partners(self, *, semantic: bool) -> dict[str, tuple[str, ...]]:
        """Return with which others each change is in conflict, of one of the two kinds."""
        found: dict[str, list[str]] = {}
        for conflict in self.conflicts:
            if conflict.semantic == semantic:
                found.setdefault(conflict.one, []).append(conflict.other)
                found.setdefault(conflict.other, []).append(conflict.one)
        return {id: tuple(dict.fromkeys(others)) for id, others in found.items()}


def chance(seed: int, number: int, use: int) -> float:
    """Return a number from 0 to below 1 that is as good as random and follows from its arguments (splitmix64)."""
    word = (seed * 3 + use + 1) * MIXED + number * 0xD1342543DE82EF95 & WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return (word ^ word >> 31) / 2**64
