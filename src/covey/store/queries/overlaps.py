"""The overlaps of branches and the hot files in a transaction."""

from __future__ import annotations

from covey.core.overlaps import HotFile, Overlap, OverlapLevel
from covey.store.engine.transaction import Transaction, where


class Overlaps(Transaction):
    """What is found of overlaps and hot files."""

    def hot_files(self, *, cooled: bool = False) -> list[HotFile]:
        """Return the files that are hot, or were before somebody declared them cool, those that collided last first."""
        return self.find(HotFile, f"{'' if cooled else 'WHERE cooled IS NULL '}ORDER BY last DESC, path")

    def open_overlaps(self, level: OverlapLevel | None = None) -> list[Overlap]:
        """Return the overlaps that there are, of one level or of all."""
        clause, values = where([("level = ?", level)], "gone IS NULL")
        return self.find(Overlap, f"{clause}ORDER BY id", values)

    def overlaps_since(self, moment: float) -> list[Overlap]:
        """Return the overlaps that have changed since a time."""
        return self.find(Overlap, "WHERE changed >= ?", (moment,))
