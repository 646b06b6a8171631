"""The overlaps of branches and the hot files in a transaction."""

from __future__ import annotations

from covey.core.overlaps import HotFile, Overlap, OverlapLevel
from covey.store.engine.transaction import Transaction


class Overlaps(Transaction):
    """What is found of overlaps and hot files."""

    def hot_files(self) -> list[HotFile]:
        """Return the files that nobody declared cool, those that collided last first."""
        return self.find(HotFile, "WHERE cooled IS NULL ORDER BY last DESC, path")

    def all_hot_files(self) -> list[HotFile]:
        """Return the files that are or were hot."""
        return self.find(HotFile, "")

    def open_overlaps(self) -> list[Overlap]:
        """Return the overlaps that there are."""
        return self.find(Overlap, "WHERE gone IS NULL ORDER BY id")

    def open_conflicts(self) -> list[Overlap]:
        """Return the branches that cannot be merged with each other."""
        return self.find(Overlap, "WHERE gone IS NULL AND level = ? ORDER BY id", (OverlapLevel.CONFLICT,))

    def overlaps_since(self, moment: float) -> list[Overlap]:
        """Return the overlaps that have changed since a time."""
        return self.find(Overlap, "WHERE changed >= ?", (moment,))
