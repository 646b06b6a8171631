"""What the machine has left, and how busy it is."""

from __future__ import annotations


def free_memory() -> int | None:
    """Return the bytes that programs can still get without swapping, None where nobody says."""
    return memory()[1]


def memory() -> tuple[int | None, int | None]:
    """Return the bytes of memory in all, and those that programs can still get, None where nobody says."""
    found: dict[str, int] = {}
    try:
        with open("/proc/meminfo", encoding="ascii") as about:
            for line in about:
                name, _, rest = line.partition(":")
                if name in ("MemTotal", "MemAvailable"):
                    found[name] = int(rest.split()[0]) * 1024
                if len(found) == 2:
                    break
    except (OSError, ValueError, IndexError):
        pass
    return found.get("MemTotal"), found.get("MemAvailable")


def processors() -> tuple[float, float] | None:
    """Return for how long the processors have worked, and were there in all, since the start; None if nobody says."""
    try:
        with open("/proc/stat", encoding="ascii") as about:
            times = [float(word) for word in about.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return (sum(times) - times[3] - times[4], sum(times)) if len(times) > 4 else None
