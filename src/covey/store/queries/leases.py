"""The leases in a transaction, found by what they could meet."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from covey.core.leases import leases
from covey.store.engine.transaction import AMONG, Transaction, among, where

MAX_PATHS_ASKED_EACH = 100
"""Above this many paths, all leases are read instead of those that each path could meet."""
OPEN = (leases.LeaseState.LIVE, leases.LeaseState.WAITING)


class Leases(Transaction):
    """What is found of leases, and of what was written into them."""

    def lease(self, lease_id: str) -> leases.Lease | None:
        """Return a lease."""
        return self.get(leases.Lease, lease_id)

    def leases_near(self, resources: Iterable[str]) -> list[leases.Lease]:
        """Return every lease, live or waited for, that could meet one of these resources, the oldest first."""
        wanted = list(dict.fromkeys(resources))
        if not wanted:
            return []
        paths = [leases.index(each) for each in wanted if leases.is_path(each) or each == leases.REPO]
        names = [leases.index(each) for each in wanted if not leases.is_path(each) and each != leases.REPO]
        sql = "SELECT lease FROM lease_resources WHERE found >= ? AND found < ?"
        below = [lease for path in paths for lease in self.column(sql, (path, _beyond(path)))]
        return self._leases_under(paths, names, below)

    def leases_over(self, paths: Iterable[str]) -> list[leases.Lease]:
        """Return every lease, live or waited for, that could cover one of these paths, the oldest first."""
        texts = sorted(f"/{path.casefold()}" for path in paths)
        if len(texts) > MAX_PATHS_ASKED_EACH:  # fewer leases than beginnings of paths
            found = self.db.rows("SELECT lease, found FROM lease_resources WHERE found >= '/' AND found < '0'")
            return self._leases_under(ids=[lease for lease, text in found if _begins_one(text, texts)])
        return self._leases_under(texts)

    def _leases_under(
        self, paths: Iterable[str] = (), names: Iterable[str] = (), ids: Iterable[str] = ()
    ) -> list[leases.Lease]:
        """Return the leases found under some beginning of these paths or under a name, and those of these ids."""
        texts = {path[:end] for path in paths for end in range(1, len(path) + 1)}
        found = f"SELECT lease FROM lease_resources WHERE found IN {AMONG} UNION ALL SELECT value FROM json_each(?)"
        return self.find(leases.Lease, f"WHERE id IN ({found}) ORDER BY fence", (among(texts.union(names)), among(ids)))

    def leases_in(self, state: leases.LeaseState, holder: str | None = None) -> list[leases.Lease]:
        """Return the leases in a state, the oldest first."""
        # The state stands in the statement, since only then its own index is used, and not the whole table read.
        clause, values = where([("holder = ?", holder)], f"state = '{state}'")
        return self.find(leases.Lease, f"{clause}ORDER BY fence", values)

    def count_live_leases(self) -> int:
        """Return how many leases are in force."""
        return self.number("SELECT count(*) FROM leases WHERE state = 'live'")

    def has_others_leases(self, session: str) -> bool:
        """Say whether anyone but a session holds a lease that came from more than an edit."""
        where = "state = 'live' AND origin != 'edit' AND holder != ?"
        return bool(self.db.rows(f"SELECT 1 FROM leases WHERE {where} LIMIT 1", (session,)))

    def lessees(self) -> set[str]:
        """Return who holds a lease, or waits for one."""
        sql = "SELECT DISTINCT holder FROM leases WHERE state = '{}'"  # a state each, for its own index
        return {holder for state in OPEN for holder in self.column(sql.format(state))}

    def open_leases(self, holder: str | None = None) -> list[leases.Lease]:
        """Return the leases in force and those that are waited for, the oldest first."""
        both = [lease for state in OPEN for lease in self.leases_in(state, holder)]
        return sorted(both, key=lambda lease: lease.fence)

    def leases_of_task(self, task: str) -> list[leases.Lease]:
        """Return the leases for a task, ended ones too, the oldest first."""
        return self.find(leases.Lease, "WHERE task = ? ORDER BY fence", (task,))

    def leases_of(self, session: str, task: str | None) -> list[leases.Lease]:
        """Return the live leases of a session and all of its task, ended ones too, the oldest first."""
        return self.find(
            leases.Lease, "WHERE (holder = ? AND state = 'live') OR task = ? ORDER BY fence", (session, task)
        )

    def crossings(self, task: str) -> list[leases.Crossing]:
        """Return what was written for a task into leases of others that have not ended."""
        return self.find(leases.Crossing, "WHERE task = ? ORDER BY at, lease, path", (task,))

    def drop_crossings(self, lease: str) -> None:
        """Forget who wrote into a lease that has ended."""
        self.db.run("DELETE FROM crossings WHERE lease = ?", (lease,))


def _beyond(start: str) -> str:
    """Return the text that comes, by code points, right after all that begin with `start`."""
    head = start.rstrip("\U0010ffff")
    code = ord(head[-1]) + 1
    return head[:-1] + chr(0xE000 if code == 0xD800 else code)


def _begins_one(start: str, texts: Sequence[str]) -> bool:
    """Say whether one of some texts, which are in order, begins with this one."""
    place = bisect_left(texts, start)
    return place < len(texts) and texts[place].startswith(start)
