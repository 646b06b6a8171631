"""What the machine has left, and how busy it is."""

from __future__ import annotations

_MEMORY = ("MemTotal:", "MemAvailable:")


def free_memory() -> int | None:
    """Return the bytes that programs can still get without swapping, None where nobody says."""
    return memory()[1]


def memory() -> tuple[int | None, int | None]:
    """Return the bytes of memory in all, and those that programs can still get, None where nobody says."""
    try:
        with open("/proc/meminfo", encoding="ascii") as about:
            found = {words[0]: int(words[1]) * 1024 for words in map(str.split, about) if words[0] in _MEMORY}
    except (OSError, ValueError, IndexError):
        found = {}
    total, available = map(found.get, _MEMORY)
    return total, available


def processors() -> tuple[float, float] | None:
    """Return for how long the processors have worked, and were there in all, since the start; None if nobody says."""
    try:
        with open("/proc/stat", encoding="ascii") as about:
            times = [float(word) for word in about.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return (sum(times) - times[3] - times[4], sum(times)) if len(times) > 4 else None


def resting_since(before: tuple[float, float] | None) -> float | None:
    """Return for which share of the time the processors rested since `processors` was asked; None if nobody says."""
    now = processors()
    if before is None or now is None or now[1] <= before[1]:
        return None
    return 1 - (now[0] - before[0]) / (now[1] - before[1])
