"""The merges in a transaction."""

from __future__ import annotations

from collections.abc import Iterable

from covey.core.merging import merges
from covey.store.engine.transaction import Transaction, where

_OPEN, _LEFT = "('review', 'queued', 'testing', 'passed')", "('rejected', 'withdrawn')"


class Merges(Transaction):
    """What is found of merges."""

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

    def last_landed(self) -> str | None:
        """Return the commit in which the newest merge landed."""
        sql = "SELECT landed FROM merges WHERE state = 'landed' ORDER BY ordinal DESC LIMIT 1"
        found = self.db.rows(sql)
        return str(found[0][0]) if found and found[0][0] is not None else None

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
