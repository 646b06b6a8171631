"""The fleet in a transaction: sessions and runs."""

from __future__ import annotations

from covey.core import fleet, runs, sessions
from covey.store import rows
from covey.store.transaction import Transaction


class Runs(Transaction):
    """What is found of sessions and runs."""

    def session(self, name: str) -> sessions.Session | None:
        """Return a session."""
        return self.get(rows.SESSIONS, name)

    def fleet(self) -> fleet.Fleet:
        """Return whether the fleet stands still."""
        return self.get(rows.FLEET, fleet.FLEET) or fleet.Fleet()

    def run_sessions(self) -> list[sessions.Session]:
        """Return the sessions that covey runs."""
        return self.find(rows.SESSIONS, "WHERE kind = 'run' AND removed = 0 ORDER BY name")

    def run(self, run_id: str) -> runs.Run | None:
        """Return a run."""
        return self.get(rows.RUNS, run_id)

    def open_runs(self, session: str | None = None) -> list[runs.Run]:
        """Return the runs that have not ended, the oldest first."""
        if session is None:
            return self.find(rows.RUNS, "WHERE outcome IS NULL ORDER BY ordinal")
        return self.find(rows.RUNS, "WHERE outcome IS NULL AND session = ? ORDER BY ordinal", (session,))

    def last_runs(self, column: str, value: str, limit: int) -> list[runs.Run]:
        """Return the last runs of a session or for a task, the newest first."""
        return self.find(rows.RUNS, f"WHERE {column} = ? ORDER BY ordinal DESC LIMIT ?", (value, limit))
