"""How many gates run at once."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

MOST = 8
"""Gates at once that are tried without being told to."""
RECENT = 9
"""The last gates whose use of processors counts."""
MEMORY = 512 * 1024**2
"""Bytes that a gate may need."""
LEAST_LOAD = 0.05


def slots(setting: int, cores: float, loads: Sequence[float], *, free_memory: int | None = None) -> int:
    """Return how many gates run at once: as set, or as many as the processors bear by what the last gates used of them.

    `loads` are seconds of processor time per second, the latest last; of a gate that nobody has seen, one.
    """
    if setting > 0:
        return setting
    recent = [load for load in loads[-RECENT:] if load >= 0]
    load = max(median(recent), LEAST_LOAD) if recent else 1.0
    fitting = int(cores / load + 0.1)
    if free_memory is not None:
        fitting = min(fitting, free_memory // MEMORY)
    return max(1, min(fitting, MOST))
