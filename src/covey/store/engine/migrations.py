"""The schema of a store, brought to the newest number step by step."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import apsw

from covey.core.board.tasks import Edited, author_after
from covey.core.fleet.sessions import OWNER
from covey.core.leases import leases
from covey.errors import Refused, Unavailable
from covey.store.engine import rows

_FILE = re.compile(r"(\d{3})_(\w+)\.sql\Z")
_FOLDER = Path(__file__).parents[1] / "sql" / "sqlite"


def migrations() -> list[tuple[int, str, str]]:
    """Return number, name and text of every migration, in order."""
    found = ((_FILE.match(entry.name), entry) for entry in _FOLDER.iterdir())
    return sorted((int(m[1]), m[2], entry.read_text(encoding="utf-8")) for m, entry in found if m)


@cache
def newest() -> int:
    """Return the number of the last migration."""
    return max(int(m[1]) for m in map(_FILE.match, os.listdir(_FOLDER)) if m)


def migrate(db: apsw.Connection, path: Path, steps: list[tuple[int, str, str]] | None = None) -> None:
    """Bring the schema to the newest number, each step whole or not at all; refuse a newer database."""
    have = schema(db)
    if steps is None and have == newest():
        return
    steps = migrations() if steps is None else steps
    known = max((number for number, _, _ in steps), default=0)
    if have > known:
        raise Refused(
            f"The board in {path} was written by a newer covey: its schema is {have}, this one knows {known}.",
            hint="Use the newer covey; nothing was changed.",
        )
    for number, name, text in steps:
        if number > have:
            _step(db, number, name, text)


def schema(db: apsw.Connection) -> int:
    """Return the number of the last migration that a file has seen."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchall():
        return 0
    return int(str(db.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchall()[0][0]))


def _step(db: apsw.Connection, number: int, name: str, text: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT")
        db.execute(text)
        if number in _AFTER:
            _AFTER[number](db)
        db.execute("INSERT INTO migrations (number, name) VALUES (?, ?)", (number, name))
        db.execute("COMMIT")
    except apsw.Error as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise Unavailable(
            f"The board could not be brought to schema {number} ({name}): {error}.",
            hint="Nothing was changed; the covey that you used before still reads it.",
        ) from error


def _find_leases_anew(db: apsw.Connection) -> None:
    """Make the texts anew under which leases are found."""
    for lease, resource in db.execute("SELECT lease, resource FROM lease_resources").fetchall():
        where = "WHERE lease = ? AND resource = ?"
        values = (leases.index(str(resource)), lease, resource)
        db.execute(f"UPDATE lease_resources SET found = ? {where}", values)


def _tell_authors_anew(db: apsw.Connection) -> None:
    """Find in the log who wrote the words of each task, and who sent its work back."""
    authors: dict[str, str] = {}
    senders: dict[str, dict[float, str]] = {}
    kinds = "('task.added', 'task.edited', 'task.rejected')"
    told = db.execute(f"SELECT time, actor, kind, subject, data FROM events WHERE kind IN {kinds} ORDER BY seq")
    for at, actor, kind, subject, data in told.fetchall():
        task, who = str(subject), str(actor)
        if kind == "task.added":
            authors[task] = who
        elif kind == "task.rejected":
            senders.setdefault(task, {})[float(str(at))] = who
        elif task in authors and isinstance(event := rows.decode_payload(str(kind), str(data)), Edited):
            authors[task] = author_after(authors[task], event, who)
    for task, author in authors.items():
        if author != OWNER:
            db.execute("UPDATE tasks SET author = ? WHERE id = ?", (author, task))
    for task, by in senders.items():
        for (tries,) in db.execute("SELECT tries FROM tasks WHERE id = ?", (task,)).fetchall():
            known = [each | ({"by": by[each["at"]]} if each["at"] in by else {}) for each in json.loads(str(tries))]
            text = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
            db.execute("UPDATE tasks SET tries = ? WHERE id = ?", (text, task))


_AFTER: dict[int, Callable[[apsw.Connection], None]] = {5: _find_leases_anew, 10: _tell_authors_anew}
"""What a migration does after its SQL, in the same transaction, where SQL cannot."""
