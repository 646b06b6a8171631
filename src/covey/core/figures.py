"""Figures as people read them: counts, money, spans of time, ages and sizes, the same on every surface.

The page has the same rules in `figures.js`; one table of examples is held against both.
"""

from __future__ import annotations

from math import floor

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Sequence

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
"""Seconds."""
TENTHS_BELOW_S = 9.95
"""Seconds below which something that was measured is told with tenths."""
MIN_DOLLARS, MAX_DIGITS = 1e-12, 14
HALF_UP = 1 + 1e-12
"""By which a number that lies between two is made to round up, in every language."""


def count(number: int) -> str:
    """Return a number, with commas between its thousands."""
    return f"{number:,}"


def one(number: int, noun: str, many: str = "") -> str:
    """Return a number with its noun: 1 task, 3 tasks."""
    return f"{count(number)} {noun if number == 1 else many or noun + 's'}"


def some(names: Sequence[str], most: int) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def amount(dollars: float) -> str:
    """Return dollars with as many digits as they need: cents, and for less than a dollar three that count.

    What is not nothing never reads as nothing.
    """
    if 0 < abs(dollars) < MIN_DOLLARS:
        dollars = MIN_DOLLARS if dollars > 0 else -MIN_DOLLARS
    digits = 2
    while 0 < abs(dollars) * 10**digits < 99.5 and digits < MAX_DIGITS:
        digits += 1
    text = f"{dollars * HALF_UP:,.{digits}f}"
    return text[: len(text) - digits + 2] + text[len(text) - digits + 2 :].rstrip("0")


def money(dollars: float) -> str:
    """Return dollars as people write them."""
    return f"-${amount(-dollars)}" if dollars < 0 else f"${amount(dollars)}"


def span(seconds: float) -> str:
    """Return how long something lasts, in its largest two units at most."""
    whole = floor(max(seconds, 0) + 0.5)
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min"
    if whole < DAY_S:
        minutes = whole % HOUR_S // MINUTE_S
        return f"{whole // HOUR_S} h {minutes} min" if minutes else f"{whole // HOUR_S} h"
    return f"{whole // DAY_S} d"


def took(seconds: float) -> str:
    """Return how long something took that was measured: tenths count where it was short, seconds within an hour."""
    if seconds < TENTHS_BELOW_S:
        return f"{max(seconds, 0) * HALF_UP:.1f} s"
    minutes, rest = divmod(floor(seconds + 0.5), MINUTE_S)
    return f"{span(seconds)} {rest} s" if rest and 0 < minutes < HOUR_S // MINUTE_S else span(seconds)


def age(seconds: float) -> str:
    """Return how long ago something was."""
    return f"{span(seconds)} ago"


def size(number: int) -> str:
    """Return bytes in the unit that fits them: 340 MB, 1.2 GB."""
    if number < 1000:
        return one(number, "byte")
    if number < 1_000_000:
        return f"{_whole(number / 1000)} kB"
    return f"{_whole(number / 1e6)} MB" if number < 1e9 else f"{number / 1e9 * HALF_UP:,.1f} GB"


def tokens(number: int) -> str:
    """Return a number of tokens where there is little room: 950, 12k, 3.4M."""
    if number < 1000:
        return str(number)
    return f"{_whole(number / 1000)}k" if number < 1e6 else f"{number / 1e6 * HALF_UP:,.1f}M"


def _whole(number: float) -> str:
    return count(floor(number + 0.5))
