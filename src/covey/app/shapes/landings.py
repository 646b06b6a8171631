"""What is asked and answered about the moves of main."""

from __future__ import annotations

from msgspec import Struct

from covey.app.shapes.forms import Asked, Limit
from covey.core import landings


class ListLandings(Asked, frozen=True, kw_only=True):
    """How many moves of main, the newest first."""

    limit: Limit = 50


class LandingRow(Struct, frozen=True, kw_only=True):
    """One move of main: from which commit to which, with which merges, after which gate, and where it was pushed."""

    id: str
    branch: str
    before: str
    commit: str
    merges: tuple[str, ...]
    gate: str | None
    untested: bool
    made: float
    remote: str | None
    pushed: float | None

    @staticmethod
    def of(landing: landings.Landing) -> LandingRow:
        """Return a landing as it is answered."""
        return LandingRow(**{name: getattr(landing, name) for name in LandingRow.__struct_fields__})
