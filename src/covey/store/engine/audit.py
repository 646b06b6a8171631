"""The care of the log: whether rows and log say the same, and the rows made anew.

Nothing here trusts what it reads: a damaged byte may stand anywhere, and is reported rather than raised. In a damaged
file a table can lead back to where it began, so every walk over one only goes forward, or ends at what it met before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import apsw
import msgspec

from covey.core.board import tasks
from covey.core.events import FIRST, Begun, Event, Line, Rebuilt, digest, follow
from covey.core.fleet.sessions import COVEY
from covey.core.fold import State
from covey.core.nouns import KINDS, NOUNS, Row
from covey.core.texts import Blob
from covey.errors import CoveyError, NotFound, Refused, Unavailable
from covey.store.engine import rows
from covey.store.engine.backup import snapshot
from covey.store.engine.connection import Connection
from covey.store.engine.rows import Table
from covey.store.engine.transaction import Head
from covey.store.tx import Tx

SHOWN = 50
"""Problems that a report spells out; the rest it only counts."""

Progress = Callable[[str, int, int], None]
"""Told what is being read, how far we are, and how far it goes."""

DAMAGE = (LookupError, TypeError, ValueError, AttributeError, RecursionError, CoveyError, msgspec.MsgspecError)
"""What reading or folding an event raises if the file was altered; anything else is a bug of ours."""
_EVENT = ("seq", "time", "actor", "kind", "subject", "data", "key", "prev")
_TYPES = {(int, float, str, str, str, str, key, bytes) for key in (str, type(None))}
_ORIGIN_EVENT = (*_EVENT, "hash", "withheld")
_ORIGIN_TYPES = {(*types, bytes, int) for types in _TYPES}
_BELOW_ALL_NUMBERS = -(2**63)
_STEP = 10_000


def quiet(what: str, done: int, of: int) -> None:
    """Tell nobody how far we are."""


@dataclass
class Report:
    """What an audit found: how much it read, the first problems, and how many there are."""

    events: int = 0
    rows: int = 0
    problems: list[str] = field(default_factory=list)
    count: int = 0

    @property
    def sound(self) -> bool:
        """Say whether nothing is wrong."""
        return self.count == 0

    def add(self, problem: str) -> None:
        """Note a problem."""
        self.count += 1
        if len(self.problems) < SHOWN:
            self.problems.append(problem)


# Verify


def verify(path: Path, progress: Progress = quiet) -> Report:
    """Check the file of a store on one snapshot, while others may write to it: file, chain, rows and long texts."""
    report = Report()
    try:
        with snapshot(path) as db:
            state = read_log(db, report, progress)
            compare(db, state, report, progress)
            with _noted(report, "blobs"):
                _check_blobs(db, state, report)
            progress("imported logs", 0, 0)
            with _noted(report, "The imported logs"):
                _check_origins(db, report)
            progress("the file", 0, 0)
            with _noted(report, "The file"):
                _check_file(db, report)
    except apsw.Error as error:
        report.add(f"The file: {error}.")
    except Unavailable as error:
        if not isinstance(error.__cause__, (apsw.CorruptError, apsw.NotADBError)):
            raise
        report.add(f"The file: {error.__cause__}.")
    return report


@contextmanager
def _noted(report: Report, what: str) -> Iterator[None]:
    """Make what damage does to our reading into a problem of the report."""
    try:
        yield
    except (*DAMAGE, apsw.CorruptError, apsw.SQLError) as error:
        report.add(f"{what}: it cannot be read: {type(error).__name__} {error}".rstrip(".") + ".")


def read_log(db: Connection, report: Report, progress: Progress = quiet) -> State:
    """Walk the log from its first event to its head, and return all that it says; what is wrong goes to the report."""
    state, head = State(), Head("", 0, FIRST)
    seq, link = 0, cast(bytes | None, FIRST)
    with _noted(report, "The head of the log"):
        head = _read_head(db, report)
    with _noted(report, "The log"):
        for row in _walk(db, report, "The log", "events WHERE", _EVENT):
            seq += 1
            if row[0] != seq:
                report.add(f"Event {seq}: it is missing; the next one is {row[0]}.")
                seq = row[0]
            if seq == 1:
                _check_beginning(row, head, report)
            link = _take_in(state, row, link, report)
            report.events += 1
            if report.events % _STEP == 0:
                progress("events", report.events, head.seq)
    if head.seq != seq:
        report.add(f"The head of the log: it says that event {head.seq} is the last one, but that is {seq}.")
    elif link is not None and head.hash != link:
        report.add(f"The head of the log: its hash is not that of event {seq}.")
    return state


def _read_head(db: Connection, report: Report) -> Head:
    found = db.rows("SELECT CAST(id AS BLOB), seq, hash FROM log")
    if len(found) != 1:
        report.add(f"The head of the log: there are {len(found)} of them.")
    return Head(found[0][0].decode(), *found[0][1:])


def _walk(
    db: Connection, report: Report, name: str, source: str, columns: tuple[str, ...], values: tuple[Any, ...] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield events, each with a larger number than the one before; as bytes where its text is not UTF-8."""
    rest = f"FROM {source} seq > ? ORDER BY seq"
    typed = f"SELECT {', '.join(columns)} {rest}"
    raw = f"SELECT seq, {', '.join(f'CAST({column} AS BLOB)' for column in columns[1:])} {rest} LIMIT 1"
    last = _BELOW_ALL_NUMBERS
    while True:
        try:
            for row in db.stream(typed, (*values, last)):
                if not _is_onward(row, last, name, report):
                    return
                last = row[0]
                yield row
            return
        except UnicodeDecodeError:
            found = db.rows(raw, (*values, last))
        if not _is_onward(found[0] if found else (None,), last, name, report):
            return
        last = found[0][0]
        yield found[0]


def _is_onward(row: tuple[Any, ...], last: int, name: str, report: Report) -> bool:
    """Say whether a walk goes on with this row; one that leads back could go on for ever."""
    onward = type(row[0]) is int and row[0] > last
    if not onward:
        report.add(f"{name}: after event {last} comes {_short(row[0])}, so the rest cannot be read.")
    return onward


def _take_in(state: State, row: tuple[Any, ...], link: bytes | None, report: Report) -> bytes | None:
    """Check and fold one event; return its hash, or None if it cannot be read."""
    if tuple(map(type, row)) not in _TYPES:
        report.add(f"Event {row[0]}: it cannot be read.")
        return None
    event = Event(*row)
    if link is not None and event.prev != link:
        report.add(f"Event {event.seq}: it does not carry the hash of the one before.")
    if event.kind not in KINDS:
        report.add(f"Event {event.seq}: its kind {_short(event.kind)} is not known.")
        return digest(event)
    try:
        payload = rows.decode_payload(event.kind, event.data)
        state.fold(
            seq=event.seq, at=event.time, actor=event.actor, kind=event.kind, subject=event.subject, payload=payload
        )
    except DAMAGE as error:
        said = f"{type(error).__name__} {error}".rstrip(".")
        report.add(f"Event {event.seq}: {event.kind} of {_short(event.subject)} makes no sense: {said}.")
    return digest(event)


def _check_beginning(row: tuple[Any, ...], head: Head, report: Report) -> None:
    try:
        begun = rows.decode_payload("log.begun", row[5]) if row[3] == "log.begun" else None
    except DAMAGE:
        begun = None
    if not isinstance(begun, Begun) or begun.log != head.log:
        report.add(f"Event 1: it is not the beginning of the log {_short(head.log)}.")


def compare(db: Connection, state: State, report: Report, progress: Progress = quiet) -> None:
    """Compare every column of every row of every folded table with what the log says."""
    tables = rows.tables()
    with _noted(report, "The rows"):
        for name, wanted in state.rows():
            progress(name, 0, 0)
            with _noted(report, name):
                _compare_table(db, tables[name], wanted, state, report)


def _compare_table(db: Connection, table: Table[Any], wanted: Iterable[Row], state: State, report: Report) -> None:
    get = f"{table.all_sql} WHERE {table.where}"
    met = 0
    for row in wanted:
        key = table.key_of(row)
        found = _fetch(db, table, get, key)
        if found is None:
            report.add(f"{table.name} {_name(key)}: the row is missing.")
            continue
        met += 1
        want = table.encode(row)
        if found != want or tuple(map(type, found)) != tuple(map(type, want)):
            _report_columns(table, key, found, want, report)
    report.rows += met
    if met != db.rows(f"SELECT count(*) FROM (SELECT 1 FROM {table.name} LIMIT ?)", (met + 1,))[0][0]:
        _report_extra(db, table, state, report)


def _fetch(db: Connection, table: Table[Any], get: str, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    try:
        found = db.rows(get, key)
    except UnicodeDecodeError:
        columns = ", ".join(f'typeof("{name}"), CAST("{name}" AS BLOB), "{name}" IS NULL' for name in table.columns)
        raw = db.rows(f"SELECT {columns} FROM {table.name} WHERE {table.where}", key)[0]
        return tuple(_raw_value(*raw[i : i + 3]) for i in range(0, len(raw), 3))
    return found[0] if found else None


def _raw_value(kind: str, data: bytes | None, null: int) -> Any:
    """Return a column that was read as bytes, as near to its value as its bytes allow."""
    if null or data is None:
        return None
    text = data.decode(errors="backslashreplace")
    try:
        return {"integer": int, "real": float}[kind](text) if kind in ("integer", "real") else data.decode()
    except ValueError:
        return data


def _report_columns(
    table: Table[Any], key: tuple[Any, ...], found: tuple[Any, ...], want: tuple[Any, ...], report: Report
) -> None:
    for column, have, say in zip(table.columns, found, want, strict=True):
        if have != say or type(have) is not type(say):
            here, there = _differing(have, say)
            report.add(f"{table.name} {_name(key)}: {column} is {here}, but the log says {there}.")


def _report_extra(db: Connection, table: Table[Any], state: State, report: Report) -> None:
    wanted = next(found for name, found in state.rows() if name == table.name)
    known = {tuple(str(part).encode() for part in table.key_of(row)) for row in wanted}
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in table.key)
    met: set[tuple[bytes, ...]] = set()
    for found in db.stream(f"SELECT {columns} FROM {table.name}"):
        key = tuple(b"" if part is None else bytes(part) for part in found)
        name = _name(map(_text, key))
        if key in met:
            report.add(f"{table.name} {name}: the row is there twice, so the rest cannot be read.")
            return
        met.add(key)
        if key not in known:
            report.add(f"{table.name} {name}: the log knows no such row.")


def _check_blobs(db: Connection, state: State, report: Report) -> None:
    """Check that each long text has its hash, and that those of tasks that have not ended are there."""
    kept: set[str] = set()
    for sha256, size, text in db.stream("SELECT CAST(sha256 AS BLOB), size, CAST(text AS BLOB) FROM blobs"):
        name = _text(sha256)
        if name in kept:
            report.add(f"blobs {_short(name)}: the text is there twice, so the rest cannot be read.")
            return
        if (hashlib.sha256(text).hexdigest(), len(text)) != (name, size):
            report.add(f"blobs {_short(name)}: the text does not have this hash and size.")
        kept.add(name)
    for noun in NOUNS:
        sure = [text for text in noun.texts if text.is_sure]
        for row in state.tables[noun.rows.name].values() if sure and noun.rows is not None else ():
            for text in sure:
                long, task = getattr(row, text.column), state.tables["tasks"].get(getattr(row, text.task))
                if task is None or task.status in tasks.ENDED:
                    continue
                if isinstance(long, Blob) and long.sha256 not in kept:
                    report.add(f"blobs {long.sha256}: a long text of {task.id} is missing.")


def _check_origins(db: Connection, report: Report) -> None:
    """Follow the chain of every imported log to where it is said to end."""
    ends: dict[bytes, tuple[Any, Any]] = {}
    for log, seq, hash in db.stream("SELECT CAST(log AS BLOB), seq, hash FROM origins"):
        if log in ends:
            report.add(f"The imported log {_text(log)}: it is there twice, so the rest cannot be read.")
            break
        ends[log] = (seq, hash)
    for log in {**ends, **dict.fromkeys(_logs_with_events(db))}:
        _check_origin(db, log, ends.get(log), report)


def _logs_with_events(db: Connection) -> Iterator[bytes]:
    last = b""
    while found := db.rows(
        "SELECT CAST(log AS BLOB) FROM origin_events WHERE log > CAST(? AS TEXT) ORDER BY log LIMIT 1", (last,)
    ):
        if found[0][0] <= last:
            return
        last = found[0][0]
        yield last


def _check_origin(db: Connection, log: bytes, end: tuple[Any, Any] | None, report: Report) -> None:
    name = f"The imported log {_text(log)}"
    seq, link = 0, FIRST
    for row in _walk(db, report, name, "origin_events WHERE log = CAST(? AS TEXT) AND", _ORIGIN_EVENT, (log,)):
        if tuple(map(type, row)) not in _ORIGIN_TYPES:
            report.add(f"{name}: event {row[0]} cannot be read.")
            return
        line = Line(Event(*row[:8]), row[8], ("something",) if row[9] else ())
        try:
            follow(_text(log), line, seq, link)
        except Refused as problem:
            report.add(problem.message)
        seq, link = row[0], row[8]
    if end is None:
        report.add(f"{name}: it has events, but is not among the imported ones.")
    elif end != (seq, link):
        report.add(f"{name}: it does not end with the event {_short(end[0])} with which it is said to end.")


def _check_file(db: Connection, report: Report) -> None:
    """Let SQLite check its file: the trees first, since those that are not sound cannot be read through."""
    ((first,),) = db.rows("PRAGMA integrity_check(1)")
    if first != "ok":
        in_trees = first.startswith("***")
        for (problem,) in [(first,)] if in_trees else db.rows(f"PRAGMA integrity_check({SHOWN})"):
            report.add(f"The file: {problem}.")


def _text(data: bytes) -> str:
    return data.decode(errors="backslashreplace")


def _name(key: Iterable[Any]) -> str:
    return "/".join(str(part) for part in key)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}... ({len(text)} characters)"


def _differing(one: Any, other: Any) -> tuple[str, str]:
    """Return two values as text, long ones from where they part."""
    if isinstance(one, str) and isinstance(other, str):
        parting = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
        same = max(0, parting - 20)
        if same:
            return f"...{_short(one[same:])}", f"...{_short(other[same:])}"
    return _short(one), _short(other)


# Rebuild and adopt


def rebuild(tx: Tx, progress: Progress = quiet) -> Rebuilt:
    """Make every row anew from the log alone, if its chain is sound, and say so in the log."""
    return _rebuild(tx, _read_sound_log(tx.db, progress), progress)


def _read_sound_log(db: Connection, progress: Progress) -> tuple[State, int]:
    report = Report()
    state = read_log(db, report, progress)
    if not report.sound:
        raise Refused(
            f"The log itself is damaged, so no rows can be made from it: {report.problems[0]}",
            hint="covey log verify shows all of it; restore a backup, or adopt an export.",
        )
    return state, report.events


def _rebuild(tx: Tx, story: tuple[State, int], progress: Progress) -> Rebuilt:
    state, events = story
    differences = Report()
    compare(tx.db, state, differences, progress)
    for name, wanted in state.rows():
        progress(name, 0, 0)
        tx.db.run(f"DELETE FROM {name}")
        for row in wanted:
            tx.insert(row)
    event = Rebuilt(events, differences.count)
    tx.append(COVEY, "log", event)
    return event


def adopt(tx: Tx, log: str, texts: Iterable[str], progress: Progress = quiet) -> Rebuilt:
    """Make an imported log this project's own, which has nothing but its beginning, with its long texts and rows."""
    seq, hash = _check_adoption(tx, log)
    columns = ", ".join(_EVENT)
    tx.db.run("DELETE FROM events")
    tx.db.run("DELETE FROM log")
    tx.db.run(f"INSERT INTO events ({columns}) SELECT {columns} FROM origin_events WHERE log = ? ORDER BY seq", (log,))
    tx.db.run("INSERT INTO log (id, seq, hash) VALUES (?, ?, ?)", (log, seq, hash))
    tx.drop_origin(log)
    tx.db.run("DELETE FROM pulses")
    tx.head = Head(log, seq, hash)
    for text in texts:
        tx.keep(text)
    state, events = _read_sound_log(tx.db, progress)
    report = Report()
    _check_blobs(tx.db, state, report)
    if not report.sound:
        raise Refused(
            f"The export of {log} is not whole: {report.problems[0]}", hint="Fetch it again, or ask its origin."
        )
    return _rebuild(tx, (state, events), progress)


def _check_adoption(tx: Tx, log: str) -> tuple[int, bytes]:
    """Return where an imported log ends that can be this project's own, or refuse it."""
    if log == tx.head.log:
        raise Refused(f"{log} is this project's own log already.")
    end = tx.end_of_origin(log)
    if end is None:
        raise NotFound(f"There is no imported log {log[:80]!r}.", hint="covey log import takes it in first.")
    own = tx.db.rows("SELECT kind FROM events WHERE kind NOT LIKE 'log.%' AND kind NOT LIKE 'daemon.%' LIMIT 1")
    if own:
        raise Refused(
            f"This project has a history of its own already, with {own[0][0]} in it.", hint="Adopt in a fresh clone."
        )
    if tx.db.rows("SELECT 1 FROM origin_events WHERE log = ? AND withheld = 1 LIMIT 1", (log,)):
        raise Refused(
            f"Something was left out of the log {log} when it was exported, so no rows can be made from it.",
            hint="Fetch the export that was made --with mail --with prompts: covey log import --again --from REMOTE. "
            f"If there is none, its origin makes it: git update-ref -d refs/covey/log/{log}, then "
            "covey log export --with mail --with prompts, and push that with --force.",
        )
    return end
