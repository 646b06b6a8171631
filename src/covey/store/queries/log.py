"""The log in a transaction: appending to it, and reading it, by what its events have to do with and over a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, nextafter
from typing import Any

from covey.core.board.tasks import Added, Edited
from covey.core.events import Event, Line, digest
from covey.core.nouns import NAMES, NOUN_OF, Noun, Payload, Row
from covey.store.engine import rows
from covey.store.engine.rows import Change
from covey.store.engine.transaction import AMONG, Head, R, Transaction, among, where

EVENT = "seq, time, actor, kind, subject, data, key, prev"
_APPEND = f"INSERT INTO events ({EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_APPEND_TO_ORIGIN = (
    "INSERT INTO origin_events (log, seq, time, actor, kind, subject, data, key, prev, hash, withheld)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_TURNS = "subject = ? AND kind IN ('session.registered', 'session.changed', 'session.removed')"
_FEWER = (
    "SELECT time, kind, data FROM events WHERE seq IN (SELECT max(seq) FROM events"
    f" WHERE {_TURNS} AND seq >= ? AND seq < ? GROUP BY floor((time - ?) / ?)) ORDER BY seq"
)
"""Of each part of a time only the last turn: of a session that never rests, more would take seconds to read."""
_ABOUT = {
    "session": {"runs": "session", "merges": "session", "questions": "session", "leases": "holder"},
    "task": {"runs": "task", "merges": "task", "questions": "task", "leases": "task"},
}
"""In which column of which table a session or a task is named."""
_WITH_TASK = {"run-": "runs", "merge-": "merges", "question-": "questions", "lease-": "leases"}


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
        noun: Noun[R] = NOUN_OF[row]
        seq = self.head.seq + 1
        name = f"{noun.name}-{seq}"
        assert noun.first is not None
        return self.record(by, name, event, None, noun.first(name, seq, event, self.now, by))

    def advance(self, row: R, event: Payload, by: str) -> R:
        """Write a row as it is after one more event, and the event."""
        noun: Noun[R] = NOUN_OF[type(row)]
        assert noun.apply is not None
        subject = str(rows.TABLE_OF[type(row)].key_of(row)[0])
        return self.record(by, subject, event, row, noun.apply(row, event, self.now, by))

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
        found = self.db.rows(sql, (among(subjects),))
        return max((seq for (seq,) in found if seq is not None), default=0)

    # What is read of it for people

    def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        origin: str | None = None,
        kind: str | None = None,
        subject: str | None = None,
        actor: str | None = None,
        since: float | None = None,
        until: float | None = None,
        session: str | None = None,
        task: str | None = None,
        kinds: Sequence[str] = (),
        without: Sequence[str] = (),
        newest: bool = False,
        limit: int = 1000,
    ) -> list[Event]:
        """Return the events that fit, in the order of the log, ours or an imported one; with `newest`, the last.

        A kind that ends in a dot stands for all of its noun; `session` and `task` take all that has to do with one.
        """
        if newest and until is not None and before is None and origin is None:
            before = self.first_since(nextafter(until, inf))  # so that the way back begins there, and not at the end
        terms, of_kinds = _of_kinds([*kinds, *([] if kind is None else [kind])], without)
        place = [("seq > ?", after), ("seq < ?", before), ("log = ?", origin)]
        told = [("subject = ?", subject), ("actor = ?", actor), ("time >= ?", since), ("time <= ?", until)]
        clause, values = where([*place, *told], *terms)
        values = [*of_kinds, *values]
        for noun, name in (("session", session), ("task", task)):
            if name is not None:
                clause, values = _about(noun, name, clause, values)
        table, order = "events" if origin is None else "origin_events", "DESC" if newest else "ASC"
        sql = f"SELECT {EVENT} FROM {table} {clause}ORDER BY seq {order} LIMIT ?"
        found = [Event(*row) for row in self.db.rows(sql, (*values, limit))]
        return found[::-1] if newest else found

    def last_event(self, subject: str | None = None, kind: str | None = None, actor: str | None = None) -> Event | None:
        """Return the last event of a kind that happened to something, or what an actor did last."""
        return next(iter(self.events(subject=subject, kind=kind, actor=actor, limit=1, newest=True)), None)

    def first_since(self, moment: float) -> int:
        """Return the number of the first event that is not before a time, found without reading those before it."""
        low, high = 1, self.head.seq + 1
        while low < high:
            middle = (low + high) // 2
            found = self.db.rows("SELECT time FROM events WHERE seq >= ? ORDER BY seq LIMIT 1", (middle,))
            if found and found[0][0] < moment:
                low = middle + 1
            else:
                high = middle
        return low

    def tasks_of(self, subjects: set[str]) -> dict[str, str]:
        """Return the task of each run, merge, question and lease among some subjects."""
        found: dict[str, str] = {}
        for prefix, table in _WITH_TASK.items():
            some = [name for name in subjects if name.startswith(prefix)]
            sql = f"SELECT id, task FROM {table} WHERE id IN {AMONG} AND task IS NOT NULL"
            found |= dict(self.db.rows(sql, (among(some),)) if some else ())
        return found

    def turns(self, session: str, part: range, since: float, until: float, limit: int) -> list[tuple[float, str, str]]:
        """Return time, kind and data of a session's changes in a part of the log, and of the last one before it.

        Where there are more than `limit`, the time from `since` until `until` is cut into as many parts, and of each
        only the last change is returned.
        """
        asked = f"SELECT time, kind, data FROM events WHERE {_TURNS}"
        before = self.db.rows(f"{asked} AND seq < ? ORDER BY seq DESC LIMIT 1", (session, part.start))
        within = (session, part.start, part.stop)
        found = self.db.rows(f"{asked} AND seq >= ? AND seq < ? ORDER BY seq LIMIT ?", (*within, limit + 1))
        if len(found) > limit:
            found = self.db.rows(_FEWER, (*within, since, (until - since) / limit))
        return [(time, kind, data) for time, kind, data in (*before, *found)]

    def daemon_turns(self, first: int) -> list[tuple[float, str]]:
        """Return when the daemon started and stopped from an event on, and the last time before it."""
        asked = "SELECT time, kind FROM events WHERE subject = 'daemon' AND kind LIKE 'daemon.%'"
        before = self.db.rows(f"{asked} AND seq < ? ORDER BY seq DESC LIMIT 1", (first,))
        found = self.db.rows(f"{asked} AND seq >= ? ORDER BY seq", (first,))
        return [(time, kind) for time, kind in (*before, *found)]

    def last_changes(self, session: str, limit: int) -> list[tuple[float, str]]:
        """Return time and data of the last changes of a session, the newest first."""
        sql = "SELECT time, data FROM events WHERE subject = ? AND kind = 'session.changed' ORDER BY seq DESC LIMIT ?"
        return [(time, data) for time, data in self.db.rows(sql, (session, limit))]

    def has_happened(self, subject: str, kinds: Sequence[str], after: int) -> bool:
        """Say whether an event of one of these kinds happened to something after another."""
        marks = ", ".join("?" * len(kinds))
        sql = f"SELECT 1 FROM events WHERE subject = ? AND seq > ? AND kind IN ({marks}) LIMIT 1"
        return bool(self.db.rows(sql, (subject, after, *kinds)))

    # Imported logs

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
        self.db.run(_APPEND_TO_ORIGIN, (log, *line.event.__dict__.values(), line.hash, int(bool(line.withheld))))

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


def _of_kinds(kinds: Sequence[str], without: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the terms for events of some kinds, and without others."""
    terms: list[str] = []
    values: list[str] = []
    for names, word in ((kinds, ""), (without, "NOT ")):
        alike = ["(kind > ? AND kind < ?)" if name.endswith(".") else "kind = ?" for name in names]
        terms += [f"{word}({' OR '.join(alike)})"] if alike else []
        for name in names:
            values += (name, f"{name[:-1]}/") if name.endswith(".") else (name,)  # the slash comes after the dot
    return terms, values


def _about(noun: str, name: str, clause: str, values: list[Any]) -> tuple[str, list[Any]]:
    """Return the clause for what has to do with one thing: each way to it is an index of its own, and no scan."""
    ways = [*(["actor = ?"] if noun == "session" else []), "subject = ?"]
    ways += [f"subject IN (SELECT id FROM {table} WHERE {column} = ?)" for table, column in _ABOUT[noun].items()]
    union = " UNION ".join(f"SELECT seq FROM events {clause}AND {way}" for way in ways)
    return f"WHERE seq IN ({union}) ", [value for _ in ways for value in (*values, name)]
