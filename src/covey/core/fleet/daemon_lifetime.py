"""For how long a daemon stays that a command started only for itself: for as long as anybody needs it."""

from __future__ import annotations

from covey.core.figures import some
from covey.values import dataclass

PAGE_ABSENCE_S = 300.0
"""Seconds for which a page may be away and still counts: it rests while nobody looks, and asks once a minute."""
MAX_SESSION_NAMES = 3


@dataclass(frozen=True, kw_only=True)
class Reliance:
    """Who may need the daemon at this moment, besides those who run a command."""

    kept: bool = False
    """It was started to stay, or a person has asked for that since."""
    page_away: float | None = None
    """Seconds since a page, or whoever else follows what happens, was last there; None if there was none."""
    sessions: tuple[str, ...] = ()
    """Those that are to work, or still have something alive."""
    branches: int = 0
    """Work of people that is on its way to main by itself."""


def reasons(seen: Reliance) -> list[str]:
    """Return for whom the daemon stays, each in a few words; for nobody, if none are left."""
    found = ["covey up, covey open or the like"] if seen.kept else []
    if seen.page_away is not None and seen.page_away <= PAGE_ABSENCE_S:
        found.append("an open page")
    if seen.sessions:
        found.append(f"the sessions at work ({some(seen.sessions, MAX_SESSION_NAMES)})")
    if seen.branches:
        found.append(f"the queue ({seen.branches} of yours on the way to main)")
    return found
