"""Imported logs in a transaction."""

from __future__ import annotations

from covey.core.events import Line
from covey.store.engine.transaction import Transaction

_INSERT = (
    "INSERT INTO origin_events (log, seq, time, actor, kind, subject, data, key, prev, hash, withheld)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Origins(Transaction):
    """What is found and kept of the logs of other origins."""

    def end_of_origin(self, log: str) -> tuple[int, bytes] | None:
        """Return number and hash of the last event of an imported log; None if there is no such log."""
        found = self.db.rows("SELECT seq, hash FROM origins WHERE log = ?", (log,))
        return (found[0][0], found[0][1]) if found else None

    def ends_of_origins(self) -> list[tuple[str, int, bytes]]:
        """Return each imported log with number and hash of its last event."""
        return [(log, seq, hash) for log, seq, hash in self.db.rows("SELECT log, seq, hash FROM origins")]

    def origin_hash(self, log: str, seq: int) -> bytes | None:
        """Return the hash of an event of an imported log."""
        found = self.db.rows("SELECT hash FROM origin_events WHERE log = ? AND seq = ?", (log, seq))
        return found[0][0] if found else None

    def add_to_origin(self, log: str, line: Line) -> None:
        """Keep an event of an imported log."""
        self.db.run(_INSERT, (log, *line.event.__dict__.values(), line.hash, int(bool(line.withheld))))

    def put_origin(self, log: str, seq: int, hash: bytes) -> None:
        """Note where an imported log ends by now."""
        self.db.run(
            "INSERT INTO origins (log, seq, hash, at) VALUES (?, ?, ?, ?) ON CONFLICT (log)"
            " DO UPDATE SET seq = excluded.seq, hash = excluded.hash, at = excluded.at",
            (log, seq, hash, self.now),
        )
        self.wrote = True

    def drop_origin(self, log: str) -> int:
        """Remove an imported log, and return how many events it had."""
        events = self.number("SELECT count(*) FROM origin_events WHERE log = ?", (log,))
        self.db.run("DELETE FROM origin_events WHERE log = ?", (log,))
        self.db.run("DELETE FROM origins WHERE log = ?", (log,))
        self.wrote = True
        return events
