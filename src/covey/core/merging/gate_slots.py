"""How many gates run at once."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

MAX_AUTOMATIC_SLOTS = 8
"""Gates at once that are tried without being told to."""
MAX_GATES_AVERAGED = 9
"""The last gates whose use of processors counts."""
GATE_MEMORY_BYTES = 512 * 1024**2
"""Bytes that a gate may need."""
LEAST_LOAD = 0.05
FULL = 0.1
"""A machine whose processors rest for less than this share of the time is full."""


def load(cpu: float, seconds: float, resting: float | None) -> float:
    """Return how many processors a gate wants, by the processor time that it used.

    `resting`: the share of the time for which the processors rested meanwhile, if anybody says. On a full machine a
    gate gets less than it wants, so there it counts as one processor at least; or the fuller it is, the more would run.
    """
    used = cpu / seconds
    return max(used, 1.0) if resting is not None and resting < FULL else used


def slots(setting: int, cores: float, loads: Sequence[float], *, free_memory: int | None = None) -> int:
    """Return how many gates run at once: as set, or as many as the processors bear by what the last gates used of them.

    `loads` are seconds of processor time per second, the latest last; of a gate that nobody has seen, one.
    """
    if setting > 0:
        return setting
    recent = [load for load in loads[-MAX_GATES_AVERAGED:] if load >= 0]
    load = max(median(recent), LEAST_LOAD) if recent else 1.0
    fitting = int(cores / load + 0.1)
    if free_memory is not None:
        fitting = min(fitting, free_memory // GATE_MEMORY_BYTES)
    return max(1, min(fitting, MAX_AUTOMATIC_SLOTS))
