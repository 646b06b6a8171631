"""When silence ends a claim or a lease: after its whole time to live, counted only while a daemon was watching."""

from __future__ import annotations

from covey.core.fleet.sessions import SessionKind
from covey.values import dataclass

CLOCK_JUMP_S = 5.0
"""Seconds by which the clocks may drift apart between two looks before we call it a jump or a suspend."""


@dataclass(frozen=True)
class Instant:
    """One look at the clocks: wall time, awake time (stands still in suspend), and time since boot."""

    wall: float
    awake: float
    boot: float


@dataclass(frozen=True)
class Watch:
    """Since when we have watched without a gap, on the awake clock."""

    since: float
    last: Instant

    @staticmethod
    def begin(now: Instant) -> Watch:
        """Begin to watch."""
        return Watch(now.awake, now)

    def look(self, now: Instant) -> Watch:
        """Return the watch after another look: it starts over after a suspend or a clock jump."""
        awake = now.awake - self.last.awake
        jumped = (
            abs((now.wall - self.last.wall) - awake) > CLOCK_JUMP_S
            or abs((now.boot - self.last.boot) - awake) > CLOCK_JUMP_S
        )
        return Watch(now.awake if jumped else self.since, now)

    def expired(self, seen: float | None, ttl: float) -> bool:
        """Say whether a whole `ttl` has passed under our eyes since something was `seen` on the awake clock."""
        start = self.since if seen is None else max(seen, self.since)
        return self.last.awake - start >= ttl


def claim_ttl(kind: SessionKind, *, outside: float, run: float) -> float | None:
    """Return how long a claim survives silence: `run` or `outside` seconds by who holds it; a person's has no end."""
    match kind:
        case SessionKind.RUN:
            return run
        case SessionKind.OUTSIDE:
            return outside
        case SessionKind.PERSON:
            return None
