"""The merges in a transaction."""

from __future__ import annotations

from collections.abc import Iterable

from covey.core import merges
from covey.store import rows
from covey.store.transaction import Transaction, parts

_OPEN = "('review', 'queued', 'testing', 'passed')"


class Merges(Transaction):
    """What is found of merges."""

    def open_merges(self, task: str | None = None, limit: int = -1) -> list[merges.Merge]:
        """Return what wants to land, of one task or of all, the oldest first."""
        if task is None:
            return self.find(rows.MERGES, f"WHERE state IN {_OPEN} ORDER BY ordinal LIMIT ?", (limit,))
        return self.find(rows.MERGES, f"WHERE task = ? AND state IN {_OPEN} ORDER BY ordinal LIMIT ?", (task, limit))

    def count_open_merges(self) -> int:
        """Return how many merges want to land."""
        return int(self.db.rows(f"SELECT count(*) FROM merges WHERE state IN {_OPEN}")[0][0])

    def last_merge(self, task: str) -> merges.Merge | None:
        """Return the last merge of a task."""
        return next(iter(self.find(rows.MERGES, "WHERE task = ? ORDER BY ordinal DESC LIMIT 1", (task,))), None)

    def last_landed(self) -> str | None:
        """Return the commit in which the newest merge landed."""
        sql = "SELECT landed FROM merges WHERE state = 'landed' ORDER BY ordinal DESC LIMIT 1"
        found = self.db.rows(sql)
        return str(found[0][0]) if found and found[0][0] is not None else None

    def unwanted(self, limit: int) -> list[str]:
        """Return the commits built for merges that were rejected or withdrawn, the newest first."""
        states = (merges.State.REJECTED.value, merges.State.WITHDRAWN.value)
        where = "state IN (?, ?) AND candidate IS NOT NULL"
        found = self.db.rows(
            f"SELECT candidate FROM merges WHERE {where} ORDER BY ordinal DESC LIMIT ?", (*states, limit)
        )
        return [commit for (commit,) in found]

    def handed_in_by(self, session: str, limit: int) -> list[str]:
        """Return the commits that a session handed in and that have landed, or are kept until they do; newest first."""
        left = (merges.State.REJECTED.value, merges.State.WITHDRAWN.value)
        where = "session = ? AND state NOT IN (?, ?)"
        sql = f'SELECT "commit" FROM merges WHERE {where} ORDER BY ordinal DESC LIMIT ?'
        return [commit for (commit,) in self.db.rows(sql, (session, *left, limit)) if commit is not None]

    def merges_named(self, merge_ids: Iterable[str]) -> dict[str, merges.Merge]:
        """Return those of some merges that there are, by their ids."""
        found: dict[str, merges.Merge] = {}
        for part, marks in parts(list(dict.fromkeys(merge_ids))):
            found |= {each.id: each for each in self.find(rows.MERGES, f"WHERE id IN ({marks})", part)}
        return found

    def count_landed_since(self, moment: float) -> int:
        """Return how many merges have landed since a time, and are on main still."""
        sql = "SELECT count(*) FROM merges WHERE state = 'landed' AND ended >= ?"
        return int(self.db.rows(sql, (moment,))[0][0])

    def reverts_of(self, merge: str) -> list[merges.Merge]:
        """Return the merges that take a merge out of main, or tried to, the newest first."""
        return self.find(rows.MERGES, "WHERE reverts = ? ORDER BY ordinal DESC", (merge,))

    def revert_for(self, task: str) -> merges.Merge | None:
        """Return the merge by which a task began as a revert, None if it is another task."""
        where = "WHERE task = ? AND reverts IS NOT NULL ORDER BY ordinal LIMIT 1"
        return next(iter(self.find(rows.MERGES, where, (task,))), None)

    def last_ended_merges(self, limit: int) -> list[merges.Merge]:
        """Return the last merges that landed or were rejected, the newest first."""
        return self.find(rows.MERGES, "WHERE state IN ('landed', 'rejected') ORDER BY ordinal DESC LIMIT ?", (limit,))

    def landed_tips(self, limit: int) -> dict[str, str]:
        """Return the commits that were handed in and landed last, each with the commit that main got for it."""
        sql = (
            'SELECT "commit", coalesce(landed, candidate) FROM merges'
            " WHERE state IN ('landed', 'passed') ORDER BY ordinal DESC LIMIT ?"
        )
        return {str(tip): str(landed) for tip, landed in self.db.rows(sql, (limit,)) if tip and landed}
