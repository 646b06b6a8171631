"""The queue as a whole in a transaction: how it stands, its gates, landings and flakes."""

from __future__ import annotations

from collections.abc import Sequence

from covey.core.merging import gates, landings
from covey.core.merging.queue import queue_status
from covey.store.engine.transaction import Transaction


class Queue(Transaction):
    """What is found of the queue, its gates, landings and flakes."""

    def standing(self) -> queue_status.QueueStatus:
        """Return how the merge queue stands."""
        return self.get(queue_status.QueueStatus, queue_status.QUEUE) or queue_status.QueueStatus()

    def running_gates(self) -> list[gates.Gate]:
        """Return the gates that have not ended as far as we know, the oldest first."""
        return self.find(gates.Gate, "WHERE state = 'running' ORDER BY ordinal")

    def last_gates(self, limit: int) -> list[gates.Gate]:
        """Return the last gates, the newest first."""
        return self.find(gates.Gate, "ORDER BY ordinal DESC LIMIT ?", (limit,))

    def gates_of(self, merge: str, limit: int) -> list[gates.Gate]:
        """Return the last gates in which a merge was tested, the newest first."""
        quoted = f'%"{merge}"%'
        return self.find(gates.Gate, "WHERE merges LIKE ? ORDER BY ordinal DESC LIMIT ?", (quoted, limit))

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
        return self.find(landings.Landing, "ORDER BY ordinal DESC LIMIT ?", (limit,))

    def landing(self, landing_id: str) -> landings.Landing | None:
        """Return a move of main."""
        return self.get(landings.Landing, landing_id)

    def landings_between(self, after: int, before: int, limit: int) -> list[landings.Landing]:
        """Return the moves of main between two places in the log, the oldest first."""
        where = "WHERE ordinal > ? AND ordinal < ? ORDER BY ordinal LIMIT ?"
        return self.find(landings.Landing, where, (after, before, limit))

    def flakes(self, limit: int) -> list[gates.Flake]:
        """Return the tests that flaked, those that did so last first."""
        return self.find(gates.Flake, "ORDER BY last DESC, test LIMIT ?", (limit,))

    def flaked(self, tests: Sequence[str]) -> list[gates.Flake]:
        """Return those of some tests that have flaked."""
        return self.find_among(gates.Flake, "test", tests, "ORDER BY test")

    def failed_gates(self, commit: str, checks: str) -> list[gates.Gate]:
        """Return the gates in which a commit failed these checks, the oldest first."""
        where = "WHERE state = 'failed' AND \"commit\" = ? AND checks = ? ORDER BY ordinal"
        return self.find(gates.Gate, where, (commit, checks))

    def failed_gates_before(self, gate: gates.Gate, limit: int) -> list[gates.Gate]:
        """Return the gates in which the commit of a gate failed until that ended, the newest first."""
        where = "WHERE state = 'failed' AND \"commit\" = ? AND ended <= ? ORDER BY ordinal DESC LIMIT ?"
        return self.find(gates.Gate, where, (gate.commit, gate.ended, limit))

    def last_passed_gate(self, commit: str) -> gates.Gate | None:
        """Return the last gate that a commit passed."""
        where = "WHERE state = 'passed' AND \"commit\" = ? ORDER BY ordinal DESC LIMIT 1"
        return self.first(gates.Gate, where, (commit,))

    def last_landing(self, branch: str) -> landings.Landing | None:
        """Return the last move of a branch."""
        where = "WHERE branch = ? ORDER BY ordinal DESC LIMIT 1"
        return self.first(landings.Landing, where, (branch,))

    def landings_after(self, branch: str, ordinal: int) -> list[landings.Landing]:
        """Return the moves of a branch after a place in the log, the oldest first."""
        where = "WHERE branch = ? AND ordinal > ? ORDER BY ordinal"
        return self.find(landings.Landing, where, (branch, ordinal))

    def last_pushed(self, branch: str, remote: str) -> landings.Landing | None:
        """Return the last move of a branch that has reached a remote."""
        where = "WHERE branch = ? AND remote = ? ORDER BY ordinal DESC LIMIT 1"
        return self.first(landings.Landing, where, (branch, remote))

    def has_pushed_since(self, moment: float) -> bool:
        """Say whether a move of main has reached a remote since a time."""
        return bool(self.db.rows("SELECT 1 FROM landings WHERE pushed > ? LIMIT 1", (moment,)))
