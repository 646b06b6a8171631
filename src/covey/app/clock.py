"""The clocks, behind one door so that tests can turn them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from covey.core.leases.expiry import Instant


class Clock(Protocol):
    """Three clocks and the boot that they belong to."""

    boot_id: str

    def now(self) -> Instant: ...


class SystemClock:
    """The machine's own clocks."""

    def __init__(self) -> None:
        try:
            self.boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            self.boot_id = "unknown"

    def now(self) -> Instant:
        """Look at all three at once."""
        boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return Instant(time.time(), time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(boot))
