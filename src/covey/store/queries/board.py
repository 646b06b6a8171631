"""The board in a transaction: tasks, their needs and children, and their order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec.json import encode

from covey.core.board import needs, tasks
from covey.core.nouns import IdRow, NeedRow
from covey.store.engine.transaction import AMONG, Transaction, among

HOLDERS = """
WITH RECURSIVE known(name) AS (
    SELECT min(session) FROM tasks WHERE session IS NOT NULL
    UNION ALL
    SELECT (SELECT min(session) FROM tasks WHERE session > name) FROM known WHERE name IS NOT NULL
)
SELECT name FROM known
WHERE name IS NOT NULL AND EXISTS (SELECT 1 FROM tasks WHERE session = name AND status = 'doing')
"""
"""Goes from name to name in the index: every claim asks it, and DISTINCT would read all that was ever claimed."""
_READY = "status = 'todo' AND unmet = 0 AND open_children = 0"
# The order of `scheduling.hand_out_key`, and below in `_on_board` that of `ranking.key` (core/board).
_READY_IN_LANE = f"WHERE {_READY} AND lane = ? ORDER BY line, priority DESC, rank, ordinal"


class Board(Transaction):
    """What is found and written of tasks."""

    def task(self, task_id: str) -> tasks.Task | None:
        """Return a task."""
        return self.get(tasks.Task, task_id)

    def tasks_named(self, task_ids: Iterable[str]) -> dict[str, tasks.Task]:
        """Return those of some tasks that there are, by their ids."""
        return {task.id: task for task in self.find_among(tasks.Task, "id", task_ids, "ORDER BY id")}

    def task_of_key(self, key: str) -> tasks.Task | None:
        """Return the task that was imported under a key."""
        return self.first(tasks.Task, "WHERE key = ?", (key,))

    def put_task(self, old: tasks.Task | None, new: tasks.Task) -> None:
        """Write a task, and keep the counters in step."""
        self.put(old, new)
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
            self.insert(IdRow(prefix, number))
        return int(number)

    def waiting(self, lane: str, limit: int, offset: int = 0) -> list[tasks.Task]:
        """Return the tasks that are ready in a lane, first in line first."""
        return self.find(tasks.Task, f"{_READY_IN_LANE} LIMIT ? OFFSET ?", (lane, limit, offset))

    def waiting_ids(self, lane: str, limit: int) -> list[str]:
        """Return the ids of the tasks that are ready in a lane, first in line first."""
        return self.column(f"SELECT id FROM tasks {_READY_IN_LANE} LIMIT ?", (lane, limit))

    def at_work(self) -> list[tasks.Task]:
        """Return the tasks at work that have a scope."""
        return self.find(tasks.Task, "WHERE status = 'doing' AND scope <> '[]'")

    def holding(self, session: str) -> int:
        """Return how many tasks a session is at work on."""
        return self.number("SELECT count(*) FROM tasks WHERE session = ? AND status = 'doing'", (session,))

    def held_by(self, session: str) -> list[tasks.Task]:
        """Return the tasks that a session is at work on."""
        return self.find(tasks.Task, "WHERE session = ? AND status = 'doing' ORDER BY ordinal", (session,))

    def holders(self) -> list[str]:
        """Return the sessions at work."""
        return self.column(HOLDERS)

    def in_front_of(self, session: str) -> list[tasks.Task]:
        """Return the tasks for which a session is first in line."""
        return self.find(tasks.Task, "WHERE front = ? ORDER BY ordinal", (session,))

    def board(
        self,
        *,
        status: str | None,
        session: str | None,
        assignee: str | None = None,
        is_open: bool | None = None,
        limit: int,
        after: tasks.Task | None,
    ) -> list[tasks.Task]:
        """Return a page of the board: larger priority first, then by rank, then older."""
        wanted = _board_filter(status, session, assignee, is_open)
        if after is None:
            return self._on_board(wanted, "", (), limit)
        # Two statements, each of which finds its first row by the index.
        place = (after.priority, after.rank, after.ordinal)
        found = self._on_board(wanted, "priority = ? AND (rank, ordinal) > (?, ?)", place, limit)
        if len(found) < limit:
            found += self._on_board(wanted, "priority < ?", place[:1], limit - len(found))
        return found

    def _on_board(
        self, wanted: tuple[list[str], list[str]], term: str, more: Sequence[Any], limit: int
    ) -> list[tasks.Task]:
        terms, values = [*wanted[0], *([term] if term else [])], wanted[1]
        where = f"WHERE {' AND '.join(terms)} " if terms else ""
        order = "ORDER BY priority DESC, rank, ordinal LIMIT ?"  # ranking.key
        return self.find(tasks.Task, f"{where}{order}", (*values, *more, limit))

    def at_work_on(self, paths: Collection[str], status: tasks.Status, limit: int) -> list[tasks.Task]:
        """Return those of the tasks in a status whose text names one of these paths, or is too long to be looked at.

        At most `limit` tasks in that status are looked at.
        """
        named = " OR ".join(["title LIKE ? ESCAPE '!' OR body LIKE ? ESCAPE '!'"] * len(paths))
        patterns = [pattern for path in paths for pattern in (_like(path), _like(encode(path).decode()[1:-1]))]
        # A long body is kept aside, and only its hash stands here.
        where = f"WHERE id IN (SELECT id FROM tasks WHERE status = ? LIMIT ?) AND ({named} OR body LIKE '{{%')"
        return self.find(tasks.Task, where, (status, limit, *patterns))

    def doing(self, limit: int = -1) -> list[tasks.Task]:
        """Return the tasks that sessions are at work on, the oldest first."""
        where = "WHERE status = 'doing' AND session IS NOT NULL ORDER BY ordinal LIMIT ?"
        return self.find(tasks.Task, where, (limit,))

    def held_ids(self) -> dict[str, list[str]]:
        """Return the ids of the tasks that each session is at work on, the oldest first."""
        held: dict[str, list[str]] = {}
        sql = "SELECT session, id FROM tasks WHERE status = 'doing' AND session IS NOT NULL ORDER BY ordinal"
        for session, task in self.db.rows(sql):
            held.setdefault(session, []).append(task)
        return held

    def ready_lanes(self) -> dict[str, tuple[int, float]]:
        """Return how many tasks are ready in each lane, and since when the first of them stands there."""
        sql = f"SELECT lane, count(*), min(updated) FROM tasks WHERE {_READY} GROUP BY lane"
        return {lane: (count, since) for lane, count, since in self.db.rows(sql)}

    def fronts(self) -> list[str]:
        """Return the sessions that are first in line for a task."""
        return self.column("SELECT front FROM tasks WHERE front IS NOT NULL")

    def count_open_added_by(self, session: str) -> int:
        """Return how many tasks a session has added that have not ended; what the owner added is not counted."""
        where = "added_by = ? AND added_by <> 'owner' AND status NOT IN ('done', 'dropped')"
        return self.number(f"SELECT count(*) FROM tasks WHERE {where}", (session,))

    def without_batch(self) -> list[tasks.Task]:
        """Return the tasks that wait, or are on their way to main, and are of no batch."""
        return self.find(tasks.Task, "WHERE status IN ('todo', 'merging') AND batch IS NULL ORDER BY ordinal")

    def quiet_batches(self, before: float) -> list[str]:
        """Return the batches that have an open task which did not change after a time."""
        where = "batch IS NOT NULL AND updated < ? AND status NOT IN ('done', 'dropped')"
        return self.column(f"SELECT DISTINCT batch FROM tasks WHERE {where}", (before,))

    def first_on_board(self, status: str, *, last: bool = False) -> tasks.Task | None:
        """Return the first task in a status, or the last."""
        order = "priority, rank DESC, ordinal DESC" if last else "priority DESC, rank, ordinal"
        return self.first(tasks.Task, f"WHERE status = ? ORDER BY {order} LIMIT 1", (status,))

    def before_on_board(self, task: tasks.Task) -> Iterator[tasks.Task]:
        """Yield the tasks that come before one on the board, the nearest first, found as they are asked for."""
        same = "WHERE priority = ? AND (rank, ordinal) < (?, ?) ORDER BY rank DESC, ordinal DESC LIMIT ? OFFSET ?"
        place = (task.priority, task.rank, task.ordinal)
        larger = "WHERE priority > ? ORDER BY priority, rank DESC, ordinal DESC LIMIT ? OFFSET ?"
        for where, values in ((same, place), (larger, place[:1])):
            offset, size = 0, 4
            while page := self.find(tasks.Task, where, (*values, size, offset)):
                yield from page
                offset, size = offset + size, 64

    def board_size(
        self, *, status: str | None, session: str | None, assignee: str | None = None, is_open: bool | None = None
    ) -> int:
        """Return how many tasks a filter of the board lets through."""
        terms, values = _board_filter(status, session, assignee, is_open)
        if session is None and assignee is None:
            counts = self.counts()
            wanted = {name for name in counts if is_open is None or (name not in tasks.ENDED) is is_open}
            return sum(counts[name] for name in wanted if status in (None, name))
        return self.number(f"SELECT count(*) FROM tasks WHERE {' AND '.join(terms)}", values)

    def counts(self) -> dict[str, int]:
        """Return how many tasks stand in each status."""
        return {
            status: number + self.moved.get(status, 0)
            for status, number in self.db.rows("SELECT status, tasks FROM counts")
        }

    def children(self, parent: str) -> list[tasks.Task]:
        """Return the children of a task."""
        return self.find(tasks.Task, "WHERE parent = ? ORDER BY ordinal", (parent,))

    def needs_of(self, task_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the needs of some tasks, as ids."""
        found: dict[str, list[str]] = {}
        for row in self.edges("task", task_ids):
            found.setdefault(row.task, []).append(row.need)
        return found

    def children_of(self, task_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return the children of some tasks, as ids, each with its parent."""
        sql = f"SELECT id, parent FROM tasks WHERE parent IN {AMONG} ORDER BY parent, ordinal"
        return [(child, parent) for child, parent in self.db.rows(sql, (among(task_ids),))]

    def edges(self, end: str, task_ids: Sequence[str]) -> list[NeedRow]:
        """Return the edges whose `end` (task or need) is among these tasks."""
        return self.find_among(NeedRow, end, task_ids, "ORDER BY task, need")

    def put_needs(self, task: str, wanted: Iterable[needs.Need]) -> None:
        """Make these the needs of a task."""
        self.db.run("DELETE FROM needs WHERE task = ?", (task,))
        for need in wanted:
            self.insert(NeedRow(task, need.task, need.policy))

    def batch(self, name: str) -> list[tasks.Task]:
        """Return the tasks of a batch that have not ended."""
        return self.find(tasks.Task, "WHERE batch = ? AND status NOT IN ('done', 'dropped') ORDER BY ordinal", (name,))


def _board_filter(
    status: str | None, session: str | None, assignee: str | None, is_open: bool | None
) -> tuple[list[str], list[str]]:
    columns = {"status": status, "session": session, "assignee": assignee}
    given = {column: value for column, value in columns.items() if value is not None}
    ended = [] if is_open is None else [f"status {'NOT ' if is_open else ''}IN ('done', 'dropped')"]
    return [*(f"{column} = ?" for column in given), *ended], list(given.values())


def _like(text: str) -> str:
    """Return the pattern that finds a text in a longer one."""
    return "%" + re.sub("([!%_])", r"!\1", text) + "%"
