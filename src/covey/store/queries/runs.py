"""The fleet in a transaction: sessions and runs."""

from __future__ import annotations

from collections.abc import Collection

from covey.core.fleet import fleet_state, runs, sessions
from covey.store.engine.transaction import AMONG, Transaction, among, where


class Runs(Transaction):
    """What is found of sessions and runs."""

    def session(self, name: str) -> sessions.Session | None:
        """Return a session."""
        return self.get(sessions.Session, name)

    def fleet(self) -> fleet_state.Fleet:
        """Return whether the fleet stands still."""
        return self.get(fleet_state.Fleet, fleet_state.FLEET) or fleet_state.Fleet()

    def run_sessions(self) -> list[sessions.Session]:
        """Return the sessions that covey runs."""
        return self.find(sessions.Session, "WHERE kind = 'run' AND removed = 0 ORDER BY name")

    def run(self, run_id: str) -> runs.Run | None:
        """Return a run."""
        return self.get(runs.Run, run_id)

    def open_runs(self, session: str | None = None) -> list[runs.Run]:
        """Return the runs that have not ended, the oldest first."""
        clause, values = where([("session = ?", session)], "outcome IS NULL")
        return self.find(runs.Run, f"{clause}ORDER BY ordinal", values)

    def last_runs(self, limit: int, *, session: str | None = None, task: str | None = None) -> list[runs.Run]:
        """Return the last runs of a session, for a task, or of all, the newest first."""
        clause, values = where([("session = ?", session), ("task = ?", task)])
        return self.find(runs.Run, f"{clause}ORDER BY ordinal DESC LIMIT ?", (*values, limit))

    def run_begun_before(self, session: str, moment: float) -> runs.Run | None:
        """Return the last run of a session that had begun at a time."""
        where = "WHERE session = ? AND begun <= ? ORDER BY ordinal DESC LIMIT 1"
        return self.first(runs.Run, where, (session, moment))

    def runs_between(self, session: str, since: float, until: float, limit: int) -> list[runs.Run]:
        """Return the last runs of a session that were under way in a time, the oldest of them first."""
        where = "WHERE session = ? AND begun < ? AND (ended IS NULL OR ended > ?) ORDER BY ordinal DESC LIMIT ?"
        return self.find(runs.Run, where, (session, until, since, limit))[::-1]

    def known_sessions(self) -> list[sessions.Session]:
        """Return the sessions that were not removed."""
        return self.find(sessions.Session, "WHERE removed = 0 ORDER BY name")

    def sessions_known_since(self, moment: float, name: str | None = None) -> list[sessions.Session]:
        """Return the sessions, or one of them, that were not removed or only after a time."""
        clause, values = where([("(removed = 0 OR updated >= ?)", moment), ("name = ?", name)])
        return self.find(sessions.Session, f"{clause}ORDER BY name", values)

    def has_role(self, role: str) -> bool:
        """Say whether a session has this role."""
        return bool(self.db.rows("SELECT 1 FROM sessions WHERE role = ? AND removed = 0 LIMIT 1", (role,)))

    def ended_among(self, names: Collection[str]) -> dict[str, str | None]:
        """Return which of some names are runs that have ended, with the status of their task; None if it has none."""
        sql = "SELECT runs.id, tasks.status FROM runs LEFT JOIN tasks ON tasks.id = runs.task WHERE"
        return dict(self.db.rows(f"{sql} outcome IS NOT NULL AND runs.id IN {AMONG}", (among(names),)))

    def removed_sessions(self) -> dict[str, float]:
        """Return the sessions that covey ran and that are removed, with the time since when."""
        return {each.name: each.updated for each in self.find(sessions.Session, "WHERE kind = 'run' AND removed = 1")}
