"""The log in a transaction: appending to it, and reading it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from covey.core import fold
from covey.core.events import NAMES, Event, Payload, digest
from covey.core.tasks import Added, Edited
from covey.store import rows
from covey.store.rows import Change
from covey.store.transaction import Head, Transaction

_APPEND = "INSERT INTO events (seq, time, actor, kind, subject, data, key, prev) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_EVENT = "seq, time, actor, kind, subject, data, key, prev"


class Log(Transaction):
    """What is appended to the log, and read of it."""

    def append(self, actor: str, subject: str, payload: Payload, row: fold.Row | None = None) -> int:
        """Append an event and return its number in the log."""
        kind = NAMES[type(payload)]
        seq = self.head.seq + 1
        event = Event(seq, self.now, actor, kind, subject, rows.encode_payload(payload), self.key, self.head.hash)
        self.db.run(_APPEND, (seq, self.now, actor, kind, subject, event.data, self.key, event.prev))
        self.head = Head(self.head.log, seq, digest(event))
        self.changes.append(Change(seq, kind, subject, row, payload))
        self.wrote = True
        return seq

    @property
    def next_seq(self) -> int:
        """Return the number that the next event will have."""
        return self.head.seq + 1

    def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        kind: str | None = None,
        subject: str | None = None,
        actor: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 1000,
        newest: bool = False,
        origin: str | None = None,
    ) -> list[Event]:
        """Return events in the order of the log, ours or an imported one; with `newest`, the last that fit."""
        terms: list[str] = ["seq > ?"]
        values: list[Any] = [after]
        for term, value in (
            ("log = ?", origin),
            ("seq < ?", before),
            ("subject = ?", subject),
            ("actor = ?", actor),
            ("time >= ?", since),
            ("time <= ?", until),
        ):
            if value is not None:
                terms.append(term)
                values.append(value)
        if kind is not None:
            terms.append("kind LIKE ?" if kind.endswith(".") else "kind = ?")
            values.append(kind + "%" if kind.endswith(".") else kind)
        order = "DESC" if newest else "ASC"
        table = "events" if origin is None else "origin_events"
        sql = f"SELECT {_EVENT} FROM {table} WHERE {' AND '.join(terms)} ORDER BY seq {order} LIMIT ?"
        found = [Event(*row) for row in self.db.rows(sql, (*values, limit))]
        return found[::-1] if newest else found

    def all_events(self, after: int = 0) -> Iterator[Event]:
        """Yield the log in order without holding it in memory."""
        return (
            Event(*row) for row in self.db.stream(f"SELECT {_EVENT} FROM events WHERE seq > ? ORDER BY seq", (after,))
        )

    def last_event_of(self, actor: str) -> Event | None:
        """Return what an actor did last."""
        found = self.db.rows(f"SELECT {_EVENT} FROM events WHERE actor = ? ORDER BY seq DESC LIMIT 1", (actor,))
        return Event(*found[0]) if found else None

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

    def last_event(self, subject: str, kind: str) -> Event | None:
        """Return the last event of a kind that happened to something."""
        sql = f"SELECT {_EVENT} FROM events WHERE subject = ? AND kind = ? ORDER BY seq DESC LIMIT 1"
        found = self.db.rows(sql, (subject, kind))
        return Event(*found[0]) if found else None
