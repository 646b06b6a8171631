"""The queue as a whole in a transaction: how it stands, its gates, landings and flakes."""

from __future__ import annotations

from collections.abc import Sequence

from covey.core import gates, landings
from covey.core.queue import standing
from covey.store import rows
from covey.store.transaction import Transaction, parts


class Queue(Transaction):
    """What is found of the queue, its gates, landings and flakes."""

    def standing(self) -> standing.Standing:
        """Return how the merge queue stands."""
        return self.get(rows.QUEUE, standing.QUEUE) or standing.Standing()

    def running_gates(self) -> list[gates.Gate]:
        """Return the gates of which nobody knows how they ended, the oldest first."""
        return self.find(rows.GATES, "WHERE state = 'running' ORDER BY ordinal")

    def last_gates(self, limit: int) -> list[gates.Gate]:
        """Return the last gates, the newest first."""
        return self.find(rows.GATES, "ORDER BY ordinal DESC LIMIT ?", (limit,))

    def gates_of(self, merge: str, limit: int) -> list[gates.Gate]:
        """Return the last gates in which a merge was tested, the newest first."""
        quoted = f'%"{merge}"%'
        return self.find(rows.GATES, "WHERE merges LIKE ? ORDER BY ordinal DESC LIMIT ?", (quoted, limit))

    def has_passed(self, commit: str, checks: str) -> bool:
        """Say whether a commit passed these checks as it is."""
        sql = "SELECT 1 FROM gates WHERE state = 'passed' AND \"commit\" = ? AND checks = ? AND code = 0 LIMIT 1"
        return bool(self.db.rows(sql, (commit, checks)))

    def has_worked(self, checks: str) -> bool:
        """Say whether any commit has ever passed the commands of these checks, with whatever else they were given."""
        commands, _, whole = checks.rpartition("-")
        # Gates of an older covey have the whole alone.
        sql = "SELECT 1 FROM gates WHERE state = 'passed' AND (checks LIKE ? OR checks = ?) AND code = 0 LIMIT 1"
        return bool(self.db.rows(sql, (f"{commands}-%", whole)))

    def last_landings(self, limit: int) -> list[landings.Landing]:
        """Return the last moves of main, the newest first."""
        return self.find(rows.LANDINGS, "ORDER BY ordinal DESC LIMIT ?", (limit,))

    def landing(self, landing_id: str) -> landings.Landing | None:
        """Return a move of main."""
        return self.get(rows.LANDINGS, landing_id)

    def landings_between(self, after: int, before: int, limit: int) -> list[landings.Landing]:
        """Return the moves of main between two places in the log, the oldest first."""
        where = "WHERE ordinal > ? AND ordinal < ? ORDER BY ordinal LIMIT ?"
        return self.find(rows.LANDINGS, where, (after, before, limit))

    def flakes(self, limit: int) -> list[gates.Flake]:
        """Return the tests that flaked, those that did so last first."""
        return self.find(rows.FLAKES, "ORDER BY last DESC, test LIMIT ?", (limit,))

    def flaked(self, tests: Sequence[str]) -> list[gates.Flake]:
        """Return those of some tests that have flaked."""
        found: list[gates.Flake] = []
        for part, marks in parts(tests):
            found += self.find(rows.FLAKES, f"WHERE test IN ({marks}) ORDER BY test", part)
        return found
