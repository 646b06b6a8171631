"""The log in a transaction: appending to it, and reading it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from covey.core.board.tasks import Added, Edited
from covey.core.events import Event, digest
from covey.core.nouns import NAMES, Payload, Row, first, noun_of
from covey.store.engine import rows
from covey.store.engine.rows import Change
from covey.store.engine.transaction import Head, R, Transaction

EVENT = "seq, time, actor, kind, subject, data, key, prev"
_APPEND = f"INSERT INTO events ({EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class Log(Transaction):
    """What is appended to the log, and read of it."""

    def append(self, actor: str, subject: str, payload: Payload, row: Row | None = None) -> int:
        """Append an event and return its number in the log."""
        kind = NAMES[type(payload)]
        seq = self.head.seq + 1
        event = Event(seq, self.now, actor, kind, subject, rows.encode_payload(payload), self.key, self.head.hash)
        self.db.run(_APPEND, (seq, self.now, actor, kind, subject, event.data, self.key, event.prev))
        self.head = Head(self.head.log, seq, digest(event))
        self.changes.append(Change(seq, kind, subject, row, payload))
        self.wrote = True
        return seq

    def record(self, actor: str, subject: str, event: Payload, before: R | None, after: R) -> R:
        """Write a row as it is after an event, and the event."""
        self.put(before, after)
        self.append(actor, subject, event, after)
        return after

    def begin(self, row: type[R], event: Payload, by: str) -> R:
        """Write the row that an event begins, under a name of its own, and the event."""
        seq = self.next_seq
        name = f"{noun_of(row).name}-{seq}"
        return self.record(by, name, event, None, first(row, name, seq, event, self.now, by))

    def advance(self, row: R, event: Payload, by: str) -> R:
        """Write a row as it is after one more event, and the event."""
        apply = noun_of(type(row)).apply
        assert apply is not None
        subject = str(rows.of(type(row)).key_of(row)[0])
        return self.record(by, subject, event, row, apply(row, event, self.now, by))

    @property
    def next_seq(self) -> int:
        """Return the number that the next event will have."""
        return self.head.seq + 1

    def all_events(self, after: int = 0) -> Iterator[Event]:
        """Yield the log in order without holding it in memory."""
        return (
            Event(*row) for row in self.db.stream(f"SELECT {EVENT} FROM events WHERE seq > ? ORDER BY seq", (after,))
        )

    def words_of(self, task: str) -> list[tuple[str, Added | Edited]]:
        """Return who added and edited a task, and how, in the order of the log."""
        where = "subject = ? AND kind IN ('task.added', 'task.edited')"
        told = self.db.rows(f"SELECT actor, kind, data FROM events WHERE {where} ORDER BY seq", (task,))
        found = [(actor, rows.decode_payload(kind, data)) for actor, kind, data in told]
        return [(actor, event) for actor, event in found if isinstance(event, Added | Edited)]

    def newest_of(self, subjects: Sequence[str]) -> int:
        """Return the number of the last event that happened to any of these, 0 if none did."""
        sql = "SELECT (SELECT max(seq) FROM events WHERE subject = value) FROM json_each(?)"
        found = self.db.rows(sql, (json.dumps(subjects),))
        return max((seq for (seq,) in found if seq is not None), default=0)
