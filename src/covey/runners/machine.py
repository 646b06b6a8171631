"""What the machine has left."""

from __future__ import annotations


def free_memory() -> int | None:
    """Return the bytes that programs can still get without swapping, None where nobody says."""
    try:
        with open("/proc/meminfo", encoding="ascii") as about:
            for line in about:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None
