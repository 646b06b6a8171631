"""The board in a transaction: tasks, their needs and children, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from covey.core import fold, needs, tasks
from covey.store import rows
from covey.store.transaction import Transaction, parts

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


class Board(Transaction):
    """What is found and written of tasks."""

    def task(self, task_id: str) -> tasks.Task | None:
        """Return a task."""
        return self.get(rows.TASKS, task_id)

    def tasks_named(self, task_ids: Iterable[str]) -> dict[str, tasks.Task]:
        """Return those of some tasks that there are, by their ids."""
        found: dict[str, tasks.Task] = {}
        for part, marks in parts(list(dict.fromkeys(task_ids))):
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

    def waiting_ids(self, lane: str, limit: int) -> list[str]:
        """Return the ids of the tasks that are ready in a lane, first in line first."""
        sql = (
            "SELECT id FROM tasks WHERE status = 'todo' AND unmet = 0 AND open_children = 0 AND lane = ?"
            " ORDER BY line, priority DESC, rank, ordinal LIMIT ?"
        )
        return [task for (task,) in self.db.rows(sql, (lane, limit))]

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
        return [name for (name,) in self.db.rows(HOLDERS)]

    def in_front_of(self, session: str) -> list[tasks.Task]:
        """Return the tasks for which a session is first in line."""
        return self.find(rows.TASKS, "WHERE front = ? ORDER BY ordinal", (session,))

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

    def board_size(
        self, *, status: str | None, session: str | None, assignee: str | None = None, is_open: bool | None = None
    ) -> int:
        """Return how many tasks a filter of the board lets through."""
        terms, values = _board_filter(status, session, assignee, is_open)
        if session is None and assignee is None:
            counts = self.counts()
            wanted = {name for name in counts if is_open is None or (name not in tasks.ENDED) is is_open}
            return sum(counts[name] for name in wanted if status in (None, name))
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
        for part, marks in parts(task_ids):
            sql = f"SELECT id, parent FROM tasks WHERE parent IN ({marks}) ORDER BY parent, ordinal"
            found += [(child, parent) for child, parent in self.db.rows(sql, part)]
        return found

    def edges(self, end: str, task_ids: Sequence[str]) -> list[fold.NeedRow]:
        """Return the edges whose `end` (task or need) is among these tasks."""
        found: list[fold.NeedRow] = []
        for part, marks in parts(task_ids):
            found += self.find(rows.NEEDS, f"WHERE {end} IN ({marks}) ORDER BY task, need", part)
        return found

    def put_needs(self, task: str, wanted: Iterable[needs.Need]) -> None:
        """Make these the needs of a task."""
        self.db.run("DELETE FROM needs WHERE task = ?", (task,))
        for need in wanted:
            self.insert(rows.NEEDS, fold.NeedRow(task, need.task, need.policy))

    def batch(self, name: str) -> list[tasks.Task]:
        """Return the tasks of a batch that have not ended."""
        return self.find(rows.TASKS, "WHERE batch = ? AND status NOT IN ('done', 'dropped') ORDER BY ordinal", (name,))


def _board_filter(
    status: str | None, session: str | None, assignee: str | None, is_open: bool | None
) -> tuple[list[str], list[str]]:
    columns = {"status": status, "session": session, "assignee": assignee}
    given = {column: value for column, value in columns.items() if value is not None}
    ended = [] if is_open is None else [f"status {'NOT ' if is_open else ''}IN ('done', 'dropped')"]
    return [*(f"{column} = ?" for column in given), *ended], list(given.values())
