"""What every part of a transaction stands on: the connection, the end of the log, and the rows of any table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, TypeVar

from covey.core.events import FIRST
from covey.core.nouns import Row
from covey.store.engine.connection import Connection
from covey.store.engine.rows import TABLE_OF, Change
from covey.values import dataclass

R = TypeVar("R", bound=Row)


@dataclass
class Head:
    """The end of the log, as this transaction sees it."""

    log: str
    seq: int
    hash: bytes


class TakesTime(Exception):
    """A job has to be run again where it may take its time."""


@dataclass
class Transaction:
    """What all parts of `Tx` share: the rows of any table, and what has changed so far.

    One that is not `patient` runs where others wait for it, and may not take its time.
    """

    db: Connection
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

    def get(self, row: type[R], *key: str) -> R | None:
        """Return the row with this key."""
        table = TABLE_OF[row]
        found = self.db.rows(table.get_sql, key)
        return table.decode(found[0]) if found else None

    def find(self, row: type[R], where: str, values: Sequence[Any] = ()) -> list[R]:
        """Return the rows that a clause selects."""
        table = TABLE_OF[row]
        return [table.decode(found) for found in self.db.rows(f"{table.select_sql} {where}", values)]

    def first(self, row: type[R], where: str, values: Sequence[Any] = ()) -> R | None:
        """Return the first of the rows that a clause selects, None if there is none."""
        return next(iter(self.find(row, where, values)), None)

    def find_among(self, row: type[R], column: str, wanted: Iterable[str], order: str = "") -> list[R]:
        """Return the rows that have one of some values in a column, however many values that are."""
        return self.find(row, f"WHERE {column} IN {AMONG} {order}", (among(wanted),))

    def number(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Return the one number that a statement selects."""
        return int(self.db.rows(sql, values)[0][0])

    def column(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the values of the one column that a statement selects."""
        return [value for (value,) in self.db.rows(sql, values)]

    def insert(self, row: Row) -> None:
        """Write a new row."""
        table = TABLE_OF[type(row)]
        self.db.run(table.insert_sql, table.encode(row))
        self.wrote = True

    def put(self, old: R | None, new: R) -> None:
        """Write a row that is new, or what has changed of it."""
        if old is None:
            self.insert(new)
            return
        statement = TABLE_OF[type(new)].update(old, new)
        if statement is not None:
            self.db.run(*statement)
            self.wrote = True

    def delete(self, row: type[Row], *key: str) -> None:
        """Remove a row."""
        self.db.run(TABLE_OF[row].delete_sql, key)
        self.wrote = True

    def settle(self) -> None:
        """Write the counters and the head of the log; called once before the commit."""
        for status, number in self.moved.items():
            if number:
                self.db.run("UPDATE counts SET tasks = tasks + ? WHERE status = ?", (number, status))
        self.moved = {}
        self.db.run("UPDATE log SET seq = ?, hash = ? WHERE id = ?", (self.head.seq, self.head.hash, self.head.log))


def read_head(db: Connection) -> Head:
    """Return the end of the log as it is on disk."""
    found = db.rows("SELECT id, seq, hash FROM log")
    return Head(*found[0]) if found else Head("", 0, FIRST)


def where(wanted: Iterable[tuple[str, Any]], *fixed: str) -> tuple[str, list[Any]]:
    """Return the clause of some terms and of those wanted ones that are given a value; and these values."""
    given = [(term, value) for term, value in wanted if value is not None]
    terms = [*fixed, *(term for term, _ in given)]
    return f"WHERE {' AND '.join(terms)} " if terms else "", [value for _, value in given]


AMONG = "(SELECT value FROM json_each(?))"
"""Any number of values in a statement, given as one."""


def among(values: Iterable[str]) -> str:
    """Return some values as `AMONG` takes them."""
    return json.dumps(list(values), ensure_ascii=False)
