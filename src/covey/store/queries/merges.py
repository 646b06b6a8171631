"""The merges in a transaction, and the queue as a whole: how it stands, its gates, landings and flakes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from covey.core.merging import gates, landings, merges
from covey.core.merging.queue import queue_status
from covey.store.engine.transaction import Transaction, where

_OPEN, _LEFT = "('review', 'queued', 'testing', 'passed')", "('rejected', 'withdrawn')"


class Merges(Transaction):
    """What is found of merges, the queue, its gates, landings and flakes."""

    def open_merges(self, task: str | None = None, limit: int = -1) -> list[merges.Merge]:
        """Return what wants to land, of one task or of all, the oldest first."""
        clause, values = where([("task = ?", task)], f"state IN {_OPEN}")
        return self.find(merges.Merge, f"{clause}ORDER BY ordinal LIMIT ?", (*values, limit))

    def count_open_merges(self) -> int:
        """Return how many merges want to land."""
        return self.number(f"SELECT count(*) FROM merges WHERE state IN {_OPEN}")

    def last_merge(self, task: str) -> merges.Merge | None:
        """Return the last merge of a task."""
        return self.first(merges.Merge, "WHERE task = ? ORDER BY ordinal DESC LIMIT 1", (task,))

    def unwanted(self, limit: int) -> list[str]:
        """Return the commits built for merges that were rejected or withdrawn, the newest first."""
        where = f"state IN {_LEFT} AND candidate IS NOT NULL"
        return self.column(f"SELECT candidate FROM merges WHERE {where} ORDER BY ordinal DESC LIMIT ?", (limit,))

    def handed_in_by(self, session: str, limit: int) -> list[str]:
        """Return the commits that a session handed in and that have landed, or are kept until they do; newest first."""
        where = f"session = ? AND state NOT IN {_LEFT}"
        found = self.column(
            f'SELECT "commit" FROM merges WHERE {where} ORDER BY ordinal DESC LIMIT ?', (session, limit)
        )
        return [commit for commit in found if commit is not None]

    def merges_named(self, merge_ids: Iterable[str]) -> dict[str, merges.Merge]:
        """Return those of some merges that there are, by their ids."""
        return {merge.id: merge for merge in self.find_among(merges.Merge, "id", merge_ids)}

    def count_landed_since(self, moment: float) -> int:
        """Return how many merges have landed since a time, and are on main still."""
        sql = "SELECT count(*) FROM merges WHERE state = 'landed' AND ended >= ?"
        return self.number(sql, (moment,))

    def reverts_of(self, merge: str) -> list[merges.Merge]:
        """Return the merges that take a merge out of main, or tried to, the newest first."""
        return self.find(merges.Merge, "WHERE reverts = ? ORDER BY ordinal DESC", (merge,))

    def revert_for(self, task: str) -> merges.Merge | None:
        """Return the merge by which a task began as a revert, None if it is another task."""
        where = "WHERE task = ? AND reverts IS NOT NULL ORDER BY ordinal LIMIT 1"
        return self.first(merges.Merge, where, (task,))

    def last_ended_merges(self, limit: int) -> list[merges.Merge]:
        """Return the last merges that landed or were rejected, the newest first."""
        return self.find(merges.Merge, "WHERE state IN ('landed', 'rejected') ORDER BY ordinal DESC LIMIT ?", (limit,))

    def landed_tips(self, limit: int) -> dict[str, str]:
        """Return the commits that were handed in and landed last, each with the commit that main got for it."""
        sql = (
            'SELECT "commit", coalesce(landed, candidate) FROM merges'
            " WHERE state IN ('landed', 'passed') ORDER BY ordinal DESC LIMIT ?"
        )
        return {str(tip): str(landed) for tip, landed in self.db.rows(sql, (limit,)) if tip and landed}

    def last_merges(self, limit: int) -> list[merges.Merge]:
        """Return the last merges, the oldest of them first."""
        return self.find(merges.Merge, "ORDER BY ordinal DESC LIMIT ?", (limit,))[::-1]

    def merges_of(self, task: str) -> list[merges.Merge]:
        """Return every merge of a task."""
        return self.find(merges.Merge, "WHERE task = ?", (task,))

    def merge_before(self, merge: merges.Merge) -> merges.Merge | None:
        """Return the merge by which the same task was handed in before."""
        where = "WHERE task = ? AND ordinal < ? ORDER BY ordinal DESC LIMIT 1"
        return self.first(merges.Merge, where, (merge.task, merge.ordinal))

    def last_merge_of_branch(self, branch: str, session: str) -> merges.Merge | None:
        """Return the last merge of a branch that was handed in by a session."""
        where = "WHERE branch = ? AND session = ? ORDER BY ordinal DESC LIMIT 1"
        return self.first(merges.Merge, where, (branch, session))

    def merge_landed_in(self, commit: str) -> merges.Merge | None:
        """Return the merge that brought a commit to main."""
        return self.first(merges.Merge, "WHERE landed = ? AND landed IS NOT onto LIMIT 1", (commit,))

    def merge_landed_from(self, commit: str) -> merges.Merge | None:
        """Return the merge by which a commit that was handed in has landed."""
        where = "WHERE \"commit\" = ? AND state = 'landed' LIMIT 1"
        return self.first(merges.Merge, where, (commit,))

    # The queue as a whole

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

    def landing(self, landing_id: str | None) -> landings.Landing | None:
        """Return a move of main, None if none is named."""
        return None if landing_id is None else self.get(landings.Landing, landing_id)

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

    def last_landed(self, branch: str) -> str | None:
        """Return the commit that a branch took last from the queue; without a journal of it, that of any merge."""
        found = self.column('SELECT "commit" FROM landings WHERE branch = ? ORDER BY ordinal DESC LIMIT 1', (branch,))
        found = found or self.column("SELECT landed FROM merges WHERE state = 'landed' ORDER BY ordinal DESC LIMIT 1")
        return found[0] if found else None

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
