"""One transaction: finding and writing rows, and appending to the log. SQL finds, Python decides.

The statements are plain enough for SQLite and PostgreSQL alike; a store brings only the connection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from covey.core import fleet, fold, gates, landings, leases, merges, needs, permits, questions, runs, sessions, tasks
from covey.core.events import FIRST, NAMES, Event, Payload, digest
from covey.core.queue import standing
from covey.core.texts import Blob, Text, blob_of, needs_blob
from covey.store import rows
from covey.store.rows import Change, Table

R = TypeVar("R", bound=Any)
MANY = 100
"""Paths beyond which all leases are looked at, and not those that each could meet."""


class Db(Protocol):
    """A connection inside a transaction; `?` marks a parameter."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...
    def run(self, sql: str, values: Sequence[Any] = ()) -> None: ...
    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]: ...


@dataclass
class Head:
    """The end of the log, as this transaction sees it."""

    log: str
    seq: int
    hash: bytes


class TakesTime(Exception):
    """A job has to be run again where it may take its time."""


@dataclass
class Pulse:
    """When something was last heard of: for people, and on the awake clock of one boot."""

    seen: float
    awake: float
    boot: str


_APPEND = "INSERT INTO events (seq, time, actor, kind, subject, data, key, prev) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_OPEN = "('review', 'queued', 'testing', 'passed')"
_EVENT = "seq, time, actor, kind, subject, data, key, prev"


@dataclass
class Tx:
    """What one request may do to the store; nothing of it lasts if the request is refused.

    One that is not `patient` runs where others wait for it, and may not take its time.
    """

    db: Db
    head: Head
    now: float
    key: str | None = None
    patient: bool = True
    changes: list[Change] = field(default_factory=list)
    moved: dict[str, int] = field(default_factory=dict)
    wrote: bool = False

    def take_time(self) -> None:
        """Say that this will be long; who has no patience for it runs it again where it holds up nobody."""
        if not self.patient:
            raise TakesTime

    # The log

    def append(self, actor: str, subject: str, payload: Payload, row: fold.Row | None = None) -> int:
        """Append an event and return its number in the log."""
        kind = NAMES[type(payload)]
        seq = self.head.seq + 1
        event = Event(seq, self.now, actor, kind, subject, rows.encode_payload(payload), self.key, self.head.hash)
        self.db.run(_APPEND, (seq, self.now, actor, kind, subject, event.data, self.key, event.prev))
        self.head = Head(self.head.log, seq, digest(event))
        self.changes.append(Change(seq, kind, subject, row))
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

    # Rows of any table

    def get(self, table: Table[R], *key: str) -> R | None:
        """Return the row with this key."""
        found = self.db.rows(table.get_sql, key)
        return table.decode(found[0]) if found else None

    def find(self, table: Table[R], where: str, values: Sequence[Any] = ()) -> list[R]:
        """Return the rows that a clause selects."""
        return [table.decode(row) for row in self.db.rows(f"{table.select_sql} {where}", values)]

    def insert(self, table: Table[R], row: R) -> None:
        """Write a new row."""
        self.db.run(table.insert_sql, table.encode(row))
        self.wrote = True

    def update(self, table: Table[R], old: R, new: R) -> None:
        """Write what has changed of a row."""
        statement = table.update(old, new)
        if statement is not None:
            self.db.run(*statement)
            self.wrote = True

    def delete(self, table: Table[R], *key: str) -> None:
        """Remove a row."""
        self.db.run(table.delete_sql, key)
        self.wrote = True

    # Tasks

    def task(self, task_id: str) -> tasks.Task | None:
        """Return a task."""
        return self.get(rows.TASKS, task_id)

    def tasks_named(self, task_ids: Iterable[str]) -> dict[str, tasks.Task]:
        """Return those of some tasks that there are, by their ids."""
        found: dict[str, tasks.Task] = {}
        for part, marks in _parts(list(dict.fromkeys(task_ids))):
            found |= {task.id: task for task in self.find(rows.TASKS, f"WHERE id IN ({marks}) ORDER BY id", part)}
        return found

    def task_of_key(self, key: str) -> tasks.Task | None:
        """Return the task that was imported under a key."""
        return next(iter(self.find(rows.TASKS, "WHERE key = ?", (key,))), None)

    def put_task(self, old: tasks.Task | None, new: tasks.Task) -> None:
        """Write a task, and keep the counters in step."""
        if old is None:
            self.insert(rows.TASKS, new)
        else:
            self.update(rows.TASKS, old, new)
        if old is None or old.status is not new.status:
            self.moved[new.status] = self.moved.get(new.status, 0) + 1
            if old is not None:
                self.moved[old.status] = self.moved.get(old.status, 0) - 1

    def next_id(self, prefix: str) -> int:
        """Return the next number under a prefix, which is then never given again."""
        found = self.db.rows("SELECT last FROM ids WHERE prefix = ?", (prefix,))
        number = (found[0][0] if found else 0) + 1
        if found:
            self.db.run("UPDATE ids SET last = ? WHERE prefix = ?", (number, prefix))
        else:
            self.insert(rows.IDS, fold.IdRow(prefix, number))
        return int(number)

    def waiting(self, lane: str, limit: int, offset: int = 0) -> list[tasks.Task]:
        """Return the tasks that are ready in a lane, first in line first."""
        return self.find(
            rows.TASKS,
            "WHERE status = 'todo' AND unmet = 0 AND open_children = 0 AND lane = ?"
            " ORDER BY line, priority DESC, rank, ordinal LIMIT ? OFFSET ?",
            (lane, limit, offset),
        )

    def at_work(self) -> list[tasks.Task]:
        """Return the tasks at work that have a scope."""
        return self.find(rows.TASKS, "WHERE status = 'doing' AND scope <> '[]'")

    def holding(self, session: str) -> int:
        """Return how many tasks a session is at work on."""
        return int(self.db.rows("SELECT count(*) FROM tasks WHERE session = ? AND status = 'doing'", (session,))[0][0])

    def held_by(self, session: str) -> list[tasks.Task]:
        """Return the tasks that a session is at work on."""
        return self.find(rows.TASKS, "WHERE session = ? AND status = 'doing' ORDER BY ordinal", (session,))

    def holders(self) -> list[str]:
        """Return the sessions at work."""
        found = self.db.rows("SELECT DISTINCT session FROM tasks WHERE session IS NOT NULL AND status = 'doing'")
        return [name for (name,) in found]

    def in_front_of(self, session: str) -> list[tasks.Task]:
        """Return the tasks for which a session is first in line."""
        return self.find(rows.TASKS, "WHERE front = ? ORDER BY ordinal", (session,))

    def board(
        self, *, status: str | None, session: str | None, limit: int, after: tasks.Task | None
    ) -> list[tasks.Task]:
        """Return a page of the board: larger priority first, then by rank, then older."""
        if after is None:
            return self._on_board(status, session, "", (), limit)
        # Two statements, each of which finds its first row by the index.
        place = (after.priority, after.rank, after.ordinal)
        found = self._on_board(status, session, "priority = ? AND (rank, ordinal) > (?, ?)", place, limit)
        if len(found) < limit:
            found += self._on_board(status, session, "priority < ?", place[:1], limit - len(found))
        return found

    def _on_board(
        self, status: str | None, session: str | None, term: str, more: Sequence[Any], limit: int
    ) -> list[tasks.Task]:
        terms, values = _board_filter(status, session)
        terms += [term] if term else []
        where = f"WHERE {' AND '.join(terms)} " if terms else ""
        order = "ORDER BY priority DESC, rank, ordinal LIMIT ?"
        return self.find(rows.TASKS, f"{where}{order}", (*values, *more, limit))

    def first_on_board(self, status: str, *, last: bool = False) -> tasks.Task | None:
        """Return the first task in a status, or the last."""
        order = "priority, rank DESC, ordinal DESC" if last else "priority DESC, rank, ordinal"
        return next(iter(self.find(rows.TASKS, f"WHERE status = ? ORDER BY {order} LIMIT 1", (status,))), None)

    def before_on_board(self, task: tasks.Task) -> Iterator[tasks.Task]:
        """Yield the tasks that come before one on the board, the nearest first, found as they are asked for."""
        same = "WHERE priority = ? AND (rank, ordinal) < (?, ?) ORDER BY rank DESC, ordinal DESC LIMIT ? OFFSET ?"
        place = (task.priority, task.rank, task.ordinal)
        larger = "WHERE priority > ? ORDER BY priority, rank DESC, ordinal DESC LIMIT ? OFFSET ?"
        for where, values in ((same, place), (larger, place[:1])):
            offset, size = 0, 4
            while page := self.find(rows.TASKS, where, (*values, size, offset)):
                yield from page
                offset, size = offset + size, 64

    def board_size(self, *, status: str | None, session: str | None) -> int:
        """Return how many tasks a filter of the board lets through."""
        if session is None:
            counts = self.counts()
            return sum(counts.values()) if status is None else counts.get(status, 0)
        terms, values = _board_filter(status, session)
        return int(self.db.rows(f"SELECT count(*) FROM tasks WHERE {' AND '.join(terms)}", values)[0][0])

    def counts(self) -> dict[str, int]:
        """Return how many tasks stand in each status."""
        return {
            status: number + self.moved.get(status, 0)
            for status, number in self.db.rows("SELECT status, tasks FROM counts")
        }

    def children(self, parent: str) -> list[tasks.Task]:
        """Return the children of a task."""
        return self.find(rows.TASKS, "WHERE parent = ? ORDER BY ordinal", (parent,))

    def needs_of(self, task_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the needs of some tasks, as ids."""
        found: dict[str, list[str]] = {}
        for row in self.edges("task", task_ids):
            found.setdefault(row.task, []).append(row.need)
        return found

    def children_of(self, task_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return the children of some tasks, as ids, each with its parent."""
        found: list[tuple[str, str]] = []
        for part, marks in _parts(task_ids):
            sql = f"SELECT id, parent FROM tasks WHERE parent IN ({marks}) ORDER BY parent, ordinal"
            found += [(child, parent) for child, parent in self.db.rows(sql, part)]
        return found

    def edges(self, end: str, task_ids: Sequence[str]) -> list[fold.NeedRow]:
        """Return the edges whose `end` (task or need) is among these tasks."""
        found: list[fold.NeedRow] = []
        for part, marks in _parts(task_ids):
            found += self.find(rows.NEEDS, f"WHERE {end} IN ({marks}) ORDER BY task, need", part)
        return found

    def put_needs(self, task: str, wanted: Iterable[needs.Need]) -> None:
        """Make these the needs of a task."""
        self.db.run("DELETE FROM needs WHERE task = ?", (task,))
        for need in wanted:
            self.insert(rows.NEEDS, fold.NeedRow(task, need.task, need.policy))

    # Sessions, leases, mail

    def session(self, name: str) -> sessions.Session | None:
        """Return a session."""
        return self.get(rows.SESSIONS, name)

    def lease(self, lease_id: str) -> leases.Lease | None:
        """Return a lease."""
        return self.get(rows.LEASES, lease_id)

    def leases_near(self, resources: Iterable[str]) -> list[leases.Lease]:
        """Return every lease, live or waited for, that could meet one of these resources, the oldest first."""
        wanted = list(dict.fromkeys(resources))
        paths = [leases.index(each) for each in wanted if leases.is_path(each) or each == leases.REPO]
        names = [leases.index(each) for each in wanted if not leases.is_path(each) and each != leases.REPO]
        found = self._leases_found([*_beginnings(paths), *names])
        for part in _in_parts(paths, 50):
            below = " OR ".join(["(found >= ? AND found < ?)"] * len(part))
            ends = [end for text in part for end in (text, _beyond(text))]
            found |= {row[0] for row in self.db.rows(f"SELECT lease FROM lease_resources WHERE {below}", ends)}
        return self._leases(found)

    def leases_over(self, paths: Iterable[str]) -> list[leases.Lease]:
        """Return every lease, live or waited for, that could cover one of these paths, the oldest first."""
        texts = sorted(f"/{path.casefold()}" for path in paths)
        if len(texts) > MANY:  # fewer leases than beginnings of paths
            found = self.db.rows("SELECT lease, found FROM lease_resources WHERE found >= '/' AND found < '0'")
            return self._leases({lease for lease, text in found if _begins_one(text, texts)})
        return self._leases(self._leases_found(_beginnings(texts)))

    def _leases_found(self, texts: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part, marks in _parts(texts):
            sql = f"SELECT lease FROM lease_resources WHERE found IN ({marks})"
            found.update(row[0] for row in self.db.rows(sql, part))
        return found

    def _leases(self, lease_ids: Iterable[str]) -> list[leases.Lease]:
        found: list[leases.Lease] = []
        for part, marks in _parts(sorted(lease_ids)):
            found += self.find(rows.LEASES, f"WHERE id IN ({marks})", part)
        return sorted(found, key=lambda lease: lease.fence)

    def live_leases(self, holder: str | None = None) -> list[leases.Lease]:
        """Return the leases in force, the oldest first."""
        return self._leases_in(leases.State.LIVE, holder)

    def waiting_leases(self, holder: str | None = None) -> list[leases.Lease]:
        """Return the leases that are waited for, the first in line first."""
        return self._leases_in(leases.State.WAITING, holder)

    def lessees(self) -> set[str]:
        """Return who holds a lease, or waits for one."""
        states = (leases.State.LIVE, leases.State.WAITING)
        return {
            holder
            for state in states
            for (holder,) in self.db.rows(f"SELECT DISTINCT holder FROM leases WHERE state = '{state}'")
        }

    def open_leases(self, holder: str | None = None) -> list[leases.Lease]:
        """Return the leases in force and those that are waited for, the oldest first."""
        both = [*self.live_leases(holder), *self.waiting_leases(holder)]
        return sorted(both, key=lambda lease: lease.fence)

    def _leases_in(self, state: leases.State, holder: str | None) -> list[leases.Lease]:
        # The state stands in the statement, since only then its own index is used, and not the whole table read.
        where = f"WHERE state = '{state}' " + ("" if holder is None else "AND holder = ? ")
        return self.find(rows.LEASES, f"{where}ORDER BY fence", () if holder is None else (holder,))

    def leases_of_task(self, task: str) -> list[leases.Lease]:
        """Return the leases for a task, ended ones too, the oldest first."""
        return self.find(rows.LEASES, "WHERE task = ? ORDER BY fence", (task,))

    def crossings(self, task: str) -> list[leases.Crossing]:
        """Return what was written for a task into leases of others that have not ended."""
        return self.find(rows.CROSSINGS, "WHERE task = ? ORDER BY at, lease, path", (task,))

    def drop_crossings(self, lease: str) -> None:
        """Forget who wrote into a lease that has ended."""
        self.db.run("DELETE FROM crossings WHERE lease = ?", (lease,))

    # Runs and merges

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

    # The queue as a whole

    def standing(self) -> standing.Standing:
        """Return how the merge queue stands."""
        return self.get(rows.QUEUE, standing.QUEUE) or standing.Standing()

    def running_gates(self) -> list[gates.Gate]:
        """Return the gates of which nobody knows how they ended, the oldest first."""
        return self.find(rows.GATES, "WHERE state = 'running' ORDER BY ordinal")

    def last_gates(self, limit: int) -> list[gates.Gate]:
        """Return the last gates, the newest first."""
        return self.find(rows.GATES, "ORDER BY ordinal DESC LIMIT ?", (limit,))

    def gates_of(self, merge: str, limit: int) -> list[gates.Gate]:
        """Return the last gates in which a merge was tested, the newest first."""
        quoted = f'%"{merge}"%'
        return self.find(rows.GATES, "WHERE merges LIKE ? ORDER BY ordinal DESC LIMIT ?", (quoted, limit))

    def has_passed(self, commit: str, checks: str) -> bool:
        """Say whether a commit passed these checks as it is."""
        sql = "SELECT 1 FROM gates WHERE state = 'passed' AND \"commit\" = ? AND checks = ? AND code = 0 LIMIT 1"
        return bool(self.db.rows(sql, (commit, checks)))

    def last_landings(self, limit: int) -> list[landings.Landing]:
        """Return the last moves of main, the newest first."""
        return self.find(rows.LANDINGS, "ORDER BY ordinal DESC LIMIT ?", (limit,))

    def landing(self, landing_id: str) -> landings.Landing | None:
        """Return a move of main."""
        return self.get(rows.LANDINGS, landing_id)

    def landings_between(self, after: int, before: int, limit: int) -> list[landings.Landing]:
        """Return the moves of main between two places in the log, the oldest first."""
        where = "WHERE ordinal > ? AND ordinal < ? ORDER BY ordinal LIMIT ?"
        return self.find(rows.LANDINGS, where, (after, before, limit))

    def merges_named(self, merge_ids: Iterable[str]) -> dict[str, merges.Merge]:
        """Return those of some merges that there are, by their ids."""
        found: dict[str, merges.Merge] = {}
        for part, marks in _parts(list(dict.fromkeys(merge_ids))):
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

    def last_event(self, subject: str, kind: str) -> Event | None:
        """Return the last event of a kind that happened to something."""
        sql = f"SELECT {_EVENT} FROM events WHERE subject = ? AND kind = ? ORDER BY seq DESC LIMIT 1"
        found = self.db.rows(sql, (subject, kind))
        return Event(*found[0]) if found else None

    def flakes(self, limit: int) -> list[gates.Flake]:
        """Return the tests that flaked, those that did so last first."""
        return self.find(rows.FLAKES, "ORDER BY last DESC, test LIMIT ?", (limit,))

    def flaked(self, tests: Sequence[str]) -> list[gates.Flake]:
        """Return those of some tests that have flaked."""
        found: list[gates.Flake] = []
        for part, marks in _parts(tests):
            found += self.find(rows.FLAKES, f"WHERE test IN ({marks}) ORDER BY test", part)
        return found

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

    def batch(self, name: str) -> list[tasks.Task]:
        """Return the tasks of a batch that have not ended."""
        return self.find(rows.TASKS, "WHERE batch = ? AND status NOT IN ('done', 'dropped') ORDER BY ordinal", (name,))

    # Questions and permits

    def question(self, question_id: str) -> questions.Question | None:
        """Return a question."""
        return self.get(rows.QUESTIONS, question_id)

    def find_questions(self, *, state: str | None, session: str | None, limit: int) -> list[questions.Question]:
        """Return the newest questions that fit, in the order in which they were asked."""
        terms = [(column, value) for column, value in (("state", state), ("session", session)) if value is not None]
        where = f"WHERE {' AND '.join(f'{column} = ?' for column, _ in terms)} " if terms else ""
        values = [value for _, value in terms]
        return self.find(rows.QUESTIONS, f"{where}ORDER BY ordinal DESC LIMIT ?", (*values, limit))[::-1]

    def questions_named(self, session: str, run: str | None, asks: str) -> list[questions.Question]:
        """Return the questions of a run, or of a session outside any, to which the agent gave this name."""
        if run is None:
            where, values = "run IS NULL AND session = ? AND asks = ?", (session, asks)
        else:
            where, values = "run = ? AND asks = ?", (run, asks)
        return self.find(rows.QUESTIONS, f"WHERE {where} ORDER BY ordinal", values)

    def open_questions(self, run: str | None = None) -> list[questions.Question]:
        """Return what nobody has decided, of one run or of all, the oldest first."""
        if run is None:
            return self.find(rows.QUESTIONS, "WHERE state = 'open' ORDER BY ordinal")
        return self.find(rows.QUESTIONS, "WHERE state = 'open' AND run = ? ORDER BY ordinal", (run,))

    def count_open_questions(self) -> int:
        """Return how many questions wait for a person."""
        return int(self.db.rows("SELECT count(*) FROM questions WHERE state = 'open'")[0][0])

    def questions_over(self, now: float) -> list[questions.Question]:
        """Return the open questions whose time is over."""
        return self.find(rows.QUESTIONS, "WHERE state = 'open' AND until <= ? ORDER BY ordinal", (now,))

    def untold_questions(self) -> list[questions.Question]:
        """Return what was decided and whoever asked was not told, as long as its run is open."""
        runs = "SELECT id FROM runs WHERE outcome IS NULL"
        where = f"WHERE run IN ({runs}) AND state IN ('answered', 'expired') AND told = 0"
        return self.find(rows.QUESTIONS, f"{where} ORDER BY ordinal")

    def questions_unsettled(self, session: str) -> list[questions.Question]:
        """Return the questions of a session that are open, or whose answer it has not been told."""
        where = "WHERE session = ? AND state <> 'withdrawn' AND told = 0"
        return self.find(rows.QUESTIONS, f"{where} ORDER BY ordinal", (session,))

    def questions_of_task(self, task: str) -> list[questions.Question]:
        """Return the questions for a task that are open, or whose answer nobody was told."""
        where = "WHERE task = ? AND state <> 'withdrawn' AND told = 0"
        return self.find(rows.QUESTIONS, f"{where} ORDER BY ordinal", (task,))

    def live_permits(self) -> list[permits.Permit]:
        """Return what is allowed, the oldest first."""
        return self.find(rows.PERMITS, "WHERE revoked IS NULL ORDER BY ordinal")

    # Texts

    def keep(self, text: str) -> Text:
        """Return what stands for a text in rows and events; a long one is kept aside by its hash."""
        if not needs_blob(text):
            return text
        blob = blob_of(text)
        self.db.run(
            "INSERT INTO blobs (sha256, size, text, used) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (sha256) DO UPDATE SET used = excluded.used",
            (blob.sha256, blob.size, text, self.now),
        )
        self.wrote = True
        return blob

    def text(self, text: Text) -> str:
        """Return a text in full, or what is left to say of one whose time was over."""
        if not isinstance(text, Blob):
            return text
        found = self.db.rows("SELECT text FROM blobs WHERE sha256 = ?", (text.sha256,))
        return str(found[0][0]) if found else f"[{text.size} bytes, no longer kept; sha256 {text.sha256}]"

    # Scratch

    def pulses(self) -> dict[str, Pulse]:
        """Return when each subject was last heard of."""
        return {row[0]: Pulse(*row[1:]) for row in self.db.rows("SELECT subject, seen, awake, boot FROM pulses")}

    def put_pulse(self, subject: str, pulse: Pulse) -> None:
        """Note that a subject was heard of."""
        self.db.run(
            "INSERT INTO pulses (subject, seen, awake, boot) VALUES (?, ?, ?, ?) ON CONFLICT (subject)"
            " DO UPDATE SET seen = excluded.seen, awake = excluded.awake, boot = excluded.boot",
            (subject, pulse.seen, pulse.awake, pulse.boot),
        )
        self.wrote = True

    def drop_pulse(self, subject: str) -> None:
        """Forget a subject that has ended."""
        self.db.run("DELETE FROM pulses WHERE subject = ?", (subject,))

    def answered(self, principal: str, key: str) -> tuple[bytes, int, bytes] | None:
        """Return request hash, status and answer kept under an idempotency key."""
        found = self.db.rows(
            "SELECT request, status, answer FROM requests WHERE principal = ? AND key = ?", (principal, key)
        )
        return (found[0][0], found[0][1], found[0][2]) if found else None

    def keep_answer(self, principal: str, key: str, request: bytes, status: int, answer: bytes) -> None:
        """Keep an answer under the idempotency key of its request."""
        self.db.run(
            "INSERT INTO requests (principal, key, request, status, answer, at) VALUES (?, ?, ?, ?, ?, ?)",
            (principal, key, request, status, answer, self.now),
        )

    def forget_answers(self, before: float) -> None:
        """Remove the answers that were kept long enough."""
        self.db.run("DELETE FROM requests WHERE at < ?", (before,))
        self.wrote = True

    def put_token(self, digest: bytes, session: str) -> None:
        """Remember a session's token by its hash."""
        self.db.run("INSERT INTO tokens (hash, session, made) VALUES (?, ?, ?)", (digest, session, self.now))
        self.wrote = True

    def token_session(self, digest: bytes) -> str | None:
        """Return the session whose token has this hash."""
        found = self.db.rows("SELECT session FROM tokens WHERE hash = ?", (digest,))
        return str(found[0][0]) if found else None

    def drop_tokens(self, session: str) -> None:
        """Make a session's tokens worthless."""
        self.db.run("DELETE FROM tokens WHERE session = ?", (session,))
        self.wrote = True

    # The end of a transaction

    def settle(self) -> None:
        """Write the counters and the head of the log; called once before the commit."""
        for status, number in self.moved.items():
            if number:
                self.db.run("UPDATE counts SET tasks = tasks + ? WHERE status = ?", (number, status))
        self.moved = {}
        self.db.run("UPDATE log SET seq = ?, hash = ? WHERE id = ?", (self.head.seq, self.head.hash, self.head.log))


def read_head(db: Db) -> Head:
    """Return the end of the log as it is on disk."""
    found = db.rows("SELECT id, seq, hash FROM log")
    return Head(*found[0]) if found else Head("", 0, FIRST)


def _beyond(start: str) -> str:
    """Return the text that comes, by code points, right after all that begin with `start`."""
    head = start.rstrip("\U0010ffff")
    code = ord(head[-1]) + 1
    return head[:-1] + chr(0xE000 if code == 0xD800 else code)


def _beginnings(texts: Iterable[str]) -> list[str]:
    """Return all that some texts begin with, themselves too, each once."""
    return list(dict.fromkeys(text[:end] for text in texts for end in range(1, len(text) + 1)))


def _begins_one(start: str, texts: Sequence[str]) -> bool:
    """Say whether one of some texts, which are in order, begins with this one."""
    place = bisect_left(texts, start)
    return place < len(texts) and texts[place].startswith(start)


def _parts(values: Sequence[str]) -> Iterator[tuple[Sequence[str], str]]:
    """Yield values in parts that fit into one statement, each with its marks."""
    for part in _in_parts(values, 500):
        yield part, ", ".join("?" * len(part))


def _in_parts(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _board_filter(status: str | None, session: str | None) -> tuple[list[str], list[Any]]:
    terms: list[str] = []
    values: list[Any] = []
    if status is not None:
        terms.append("status = ?")
        values.append(status)
    if session is not None:
        terms.append("session = ?")
        values.append(session)
    return terms, values
