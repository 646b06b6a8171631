"""How much of something one session may make in a minute: a store that fills up by itself, and from which it takes."""

from __future__ import annotations

from covey.values import dataclass

MINUTE_S = 60.0


@dataclass(frozen=True)
class Allowance:
    """What is left of a minute's worth, and when that was so."""

    left: float
    at: float


def take(before: Allowance | None, amount: float, per_minute: float, at: float) -> Allowance | None:
    """Return what is left after taking some, None if there is not enough; what nobody takes is back after a minute."""
    if before is None:
        left = per_minute
    else:
        left = min(per_minute, before.left + max(at - before.at, 0.0) * per_minute / MINUTE_S)
    return Allowance(left - amount, at) if left >= amount else None
