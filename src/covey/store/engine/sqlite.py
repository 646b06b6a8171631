"""The store in one SQLite file: one writer, group commit, any number of readers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw

from covey.core import leases
from covey.core.events import FIRST, Begun
from covey.core.fold import CountRow
from covey.core.sessions import COVEY, OWNER
from covey.core.tasks import Edited, Status, author_after
from covey.errors import CoveyError, Invalid, NotFound, Refused, Unavailable
from covey.store import rows
from covey.store.ground import Ground
from covey.store.rows import Change
from covey.store.transaction import Head, read_head
from covey.store.tx import Tx
from covey.values import dataclass

PAGES_ALONE = 500
"""How many pages the write-ahead log of commands may have before they are brought in: the next command reads them in
half a millisecond. The file is never cut, since writing over what is there needs no journal of the file system."""

T = TypeVar("T")
Job = Callable[[Tx], T]


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of one job of a batch: its value and changes, or the error that undid it."""

    value: T | None
    changes: tuple[Change, ...] = ()
    error: BaseException | None = None

    def result(self) -> T:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


@dataclass(frozen=True)
class Staged:
    """A transaction that only waits for its commit."""

    outcomes: list[Outcome[Any]]
    head: Head
    wrote: bool


class _Spoiled(Exception):
    """A job was refused after it had written; its batch is run again with savepoints."""


class _Connection:
    """apsw behind the narrow door that a transaction needs."""

    def __init__(self, path: Path, *, reader: bool, create: bool = True) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create and not reader else 0)
        self.raw = apsw.Connection(str(path), flags=flags, statementcachesize=200)
        self.raw.set_busy_timeout(10_000)
        self.raw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Keeps a plan when a parameter changes; without it every query over a partial index is compiled anew.
        self.raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        if reader:
            self.raw.execute("PRAGMA query_only = 1")
        else:
            self.raw.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF")
            self.raw.execute("PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864")
            # A savepoint copies the pages that it touches; in memory, not in a file of its own.
            self.raw.execute("PRAGMA temp_store = MEMORY")
        self._execute = self.raw.execute

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._execute(sql, values)

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        return iter(self._execute(sql, values))

    def close(self) -> None:
        self.raw.close()


class SqliteStore:
    """Rows and log in one file; the caller holds the writer's lock while it writes."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        project: str = "",
        lock: Path | None = None,
        ahead: bool = False,
    ) -> None:
        """Open a store; with the `lock` of its one writer, every transaction looks whether its files are there.

        Opened `ahead` of its lock, nothing is written and nothing can be asked before `take_up`, behind the lock.
        """
        self.path = path
        self._project = project
        self._is_ahead = ahead
        self._ground: Ground | None = None
        self.lost: Unavailable | None = None
        """What happened to the files, and where all that was acknowledged is now."""
        self._clock = clock
        self._readers: list[_Connection] = []
        self._guard = threading.Lock()
        with _unavailable():
            if ahead:
                self._open_ahead()
            else:
                self._db = _Connection(path, reader=False)
                self._bring_up_to_date()
            if lock is not None:
                self._ground = Ground(path, lock)

    def _open_ahead(self) -> None:
        """Open the files and read their schema, which takes most of the time, as somebody may be writing them."""
        self._opened = Ground(self.path)
        self._db = _Connection(self.path, reader=False, create=False)
        self._db.run(f"PRAGMA wal_autocheckpoint = {PAGES_ALONE}")
        _schema(self._db.raw)
        if not self._opened.is_ours(str(self.path)):
            raise Unavailable(f"{self.path} was replaced while it was opened.", hint="Try again.")
        self._opened.note()  # the write-ahead log may be there only since it was opened

    def take_up(self) -> None:
        """Make a store that was opened ahead as if it were opened now: whoever asks has just taken the writer's lock.

        Others may have written, restored or migrated it meanwhile.
        """
        with _unavailable():
            if not self._opened.are_ours():
                self.close()
                self._open_ahead()
            self._bring_up_to_date()
            self._opened.note()

    def _bring_up_to_date(self) -> None:
        self._db.run("PRAGMA journal_mode = WAL")
        migrate(self._db.raw, self.path)
        self._head = read_head(self._db)
        if not self._head.log:
            self._begin(self._project)

    def _begin(self, project: str) -> None:
        self._head = Head(os.urandom(16).hex(), 0, FIRST)

        def first(tx: Tx) -> None:
            tx.db.run("INSERT INTO log (id, seq, hash) VALUES (?, 0, ?)", (tx.head.log, FIRST))
            for status in Status:
                tx.insert(rows.COUNTS, CountRow(status, 0))
            tx.append(COVEY, "log", Begun(tx.head.log, project))

        self.write(first)

    @property
    def place(self) -> str:
        """Return what tells this file from another that is put in its place."""
        return str(self.path.stat().st_ino)

    @property
    def head(self) -> Head:
        """Return the end of the log as last committed by this writer."""
        return self._head

    def write(self, job: Job[T]) -> T:
        """Run one job in a transaction of its own."""
        outcome: Outcome[T] = self.run([job])[0]
        return outcome.result()

    def run(self, jobs: Sequence[Job[Any]]) -> list[Outcome[Any]]:
        """Run jobs in one transaction and commit it."""
        return self.commit(self.stage(jobs, patient=True))

    def stage(self, jobs: Sequence[Job[Any]], *, patient: bool = False) -> Staged:
        """Run jobs in one transaction so that one refusal spoils no other; nothing of a refused one is left."""
        with _unavailable(), self._undone_by_errors():
            self.stand()
            try:
                return self._stage(jobs, self._simply, patient)
            except _Spoiled:
                self._db.run("ROLLBACK")
                return self._stage(jobs, self._in_savepoint, patient)

    def _stage(self, jobs: Sequence[Job[Any]], one: Callable[[Tx, Job[Any]], Outcome[Any]], patient: bool) -> Staged:
        self._db.run("BEGIN IMMEDIATE")
        before = self._db.raw.total_changes()
        batch = Tx(self._db, self._head, now=round(self._clock(), 3))
        outcomes: list[Outcome[Any]] = []
        for job in jobs:
            tx = Tx(batch.db, batch.head, batch.now, patient=patient, moved=dict(batch.moved))
            outcome = one(tx, job)
            if outcome.error is None:
                batch.head, batch.moved = tx.head, tx.moved
            outcomes.append(outcome)
        wrote = self._db.raw.total_changes() != before
        if wrote:
            batch.settle()
        return Staged(outcomes, batch.head, wrote)

    def commit(self, staged: Staged) -> list[Outcome[Any]]:
        """Make what was staged last, and return its outcomes; if that fails, nothing of it happened."""
        with _unavailable(), self._undone_by_errors():
            if staged.wrote:
                self.stand()
            self._db.run("COMMIT" if staged.wrote else "ROLLBACK")
        self._head = staged.head
        if staged.wrote and self._ground is not None:
            self._ground.note()
        return staged.outcomes

    def is_standing(self) -> bool:
        """Say whether the files under us are still ours, as far as anybody has looked or can see at once."""
        return self.lost is None and (self._ground is None or self._ground.why_lost() is None)

    def stand(self) -> None:
        """Refuse if the files under us are no more ours; all that was acknowledged is kept in a file of its own first.

        For the writer alone: nobody else may use its connection.
        """
        if self.lost is None and self._ground is not None:
            why = self._ground.why_lost()
            if why is None and self._ground.is_written_by_others() and not self._db.raw.in_transaction:
                why = self._why_written()
            if why is not None:
                if self._db.raw.in_transaction:
                    self._db.run("ROLLBACK")
                self.lost = self._keep(why, self._ground)
        if self.lost is not None:
            raise self.lost

    def _why_written(self) -> str | None:
        """Say what is wrong with a file into which another program wrote, None if it only did what we would do."""
        assert self._ground is not None
        db = _Connection(self.path, reader=True)
        try:
            sound = db.rows("PRAGMA quick_check")[0][0] == "ok" and read_head(db) == self._head
        except (apsw.Error, CoveyError):
            sound = False
        finally:
            db.close()
        if not sound:
            return f"{self.path.name} was written by another program while the daemon ran."
        self._ground.note()
        return None

    def _keep(self, why: str, ground: Ground) -> Unavailable:
        """Copy the store out of the files that we hold open, and return what to say from then on."""
        import logging  # takes as long to import as two claims, and no command comes here

        log = logging.getLogger("covey.store")
        folder = self.path.parent
        target = folder / f"{self.path.name}.rescued-{round(time.time())}-{os.getpid()}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _copy_from(self._db, target)
        except (apsw.Error, OSError, CoveyError) as error:
            target.unlink(missing_ok=True)
            log.critical("%s It could not be copied from the open files: %s", why, error)
            hint = "covey down, then restore covey.db from covey log backup, or covey log import from its refs."
            return Unavailable(f"{why} Nothing more is written, and it could not be copied: {error}.", hint=hint)
        for beside in ("-wal", "-shm"):  # else they would be taken for those of the file that is put in place
            if not self.path.exists() and ground.is_ours(f"{self.path}-wal"):
                Path(f"{self.path}{beside}").unlink(missing_ok=True)
        log.critical("%s All that was acknowledged is in %s; nothing more is written", why, target)
        return Unavailable(
            f"{why} Nothing more is written; all that was acknowledged is in {target}.",
            hint=f"covey down, then put it back: mv {target} {self.path}; covey up",
        )

    @contextmanager
    def _undone_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self._db.raw.in_transaction:
                self._db.run("ROLLBACK")
            raise

    def _simply(self, tx: Tx, job: Job[Any]) -> Outcome[Any]:
        """Run a job without a savepoint, which costs a sixth of a claim: most refusals come before the first write."""
        before = self._db.raw.total_changes()
        outcome = self._attempt(tx, job)
        if outcome.error is not None and self._db.raw.total_changes() != before:
            raise _Spoiled
        return outcome

    def _in_savepoint(self, tx: Tx, job: Job[Any]) -> Outcome[Any]:
        """Run a job so that what it wrote can be undone alone."""
        self._db.run("SAVEPOINT job")
        outcome = self._attempt(tx, job)
        if outcome.error is not None:
            self._db.run("ROLLBACK TO job")
        self._db.run("RELEASE job")
        return outcome

    def _attempt(self, tx: Tx, job: Job[Any]) -> Outcome[Any]:
        try:
            return Outcome(job(tx), tuple(tx.changes))
        except apsw.Error as error:
            if isinstance(error, apsw.ConstraintError) and self._db.raw.in_transaction:
                return Outcome(None, error=error)
            raise
        except Exception as error:  # noqa: BLE001 - the bug of one job must not spoil the others of its batch
            return Outcome(None, error=error)

    def read(self, job: Job[T]) -> T:
        """Run a job that only reads, on one snapshot, beside the writer."""
        if not self.is_standing():
            raise self.lost or Unavailable("The board's file was taken away while the daemon ran.", hint="Try again.")
        with _unavailable(), self._reader() as db:
            db.run("BEGIN")
            try:
                return job(Tx(db, read_head(db), now=round(self._clock(), 3)))
            finally:
                db.run("ROLLBACK")

    @contextmanager
    def _reader(self) -> Iterator[_Connection]:
        if self._is_ahead:  # one who is alone needs no second connection, which would have to read the schema too
            yield self._db
            return
        with self._guard:
            db = self._readers.pop() if self._readers else None
        if db is None:
            db = _Connection(self.path, reader=True)
        try:
            yield db
        except apsw.Error:
            db.close()  # who knows what state it is in
            raise
        except BaseException:
            self._keep_reader(db)
            raise
        self._keep_reader(db)

    def _keep_reader(self, db: _Connection) -> None:
        with self._guard:
            self._readers.append(db)

    def close(self, *, tidy: bool = False) -> None:
        """Close every connection; closing twice is fine. A `tidy` end brings all into the one file."""
        with self._guard:
            for reader in self._readers:
                reader.close()
            self._readers.clear()
        if tidy:
            with contextlib.suppress(apsw.Error):  # a full disk, or a reader in the way: the next opening does it
                self._db.run("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()


@contextmanager
def snapshot(path: Path) -> Iterator[_Connection]:
    """Open a store only to read it, on one snapshot, beside whoever writes; refuse one of another schema."""
    if not path.is_file():
        raise NotFound(f"There is no file {path}.")
    with _unavailable():
        db = _Connection(path, reader=True)
        try:
            db.run("BEGIN")
            have, newest = _schema(db.raw), _newest()
            if have != newest:
                raise Refused(
                    f"{path} has the schema {have}, and this covey reads {newest}.",
                    hint="Use the covey that wrote it." if have > newest else "covey status brings it up to date.",
                )
            yield db
        finally:
            db.close()


def backup(source: Path, target: Path) -> int:
    """Copy a store to a file while others write to it; return the copy's last event."""
    if target.exists():
        raise Refused(f"{target} exists already.", hint="Name a file that does not exist yet.")
    if not target.parent.is_dir():
        raise Invalid(f"{target.parent} is no folder.")
    part = target.with_name(target.name + ".part")
    try:
        seq = _copy(source, part)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.rename(target)
    return seq


def _copy(source: Path, part: Path) -> int:
    with _unavailable():
        reader = _Connection(source, reader=True)
        try:
            return _copy_from(reader, part)
        finally:
            reader.close()


def _copy_from(source: _Connection, part: Path) -> int:
    """Copy a store to a new file as one connection sees it; return the copy's last event."""
    with _unavailable():
        _begin_private(part)
        copy = apsw.Connection(str(part))
        try:
            # One snapshot, begun by a statement: it waits for a writer that opens or closes the file, a step does not.
            source.rows("BEGIN")
            source.rows("SELECT seq FROM log")
            with copy.backup("main", source.raw, "main") as work:
                work.step(-1)
            source.rows("ROLLBACK")
            copy.execute("PRAGMA journal_mode = DELETE")
            problem = copy.execute("PRAGMA integrity_check").fetchall()[0][0]
            seq = copy.execute("SELECT seq FROM log").fetchall()[0][0]
        finally:
            copy.close()
    if problem != "ok":
        raise Unavailable(f"The copy is damaged: {problem}.", hint="covey log verify checks the source.")
    return int(str(seq))


def _begin_private(path: Path) -> None:
    """Make an empty file that nobody else may read: a store holds all mail and prompts."""
    try:
        path.unlink(missing_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error


_FILE = re.compile(r"(\d{3})_(\w+)\.sql\Z")


_FOLDER = Path(__file__).parent / "sql" / "sqlite"


def migrations() -> list[tuple[int, str, str]]:
    """Return number, name and text of every migration, in order."""
    found = ((_FILE.match(entry.name), entry) for entry in _FOLDER.iterdir())
    return sorted((int(m[1]), m[2], entry.read_text(encoding="utf-8")) for m, entry in found if m)


@cache
def _newest() -> int:
    return max(int(m[1]) for m in map(_FILE.match, os.listdir(_FOLDER)) if m)


def migrate(db: apsw.Connection, path: Path, steps: list[tuple[int, str, str]] | None = None) -> None:
    """Bring the schema to the newest number, each step whole or not at all; refuse a newer database."""
    have = _schema(db)
    if steps is None and have == _newest():
        return
    steps = migrations() if steps is None else steps
    newest = max((number for number, _, _ in steps), default=0)
    if have > newest:
        raise Refused(
            f"The board in {path} was written by a newer covey: its schema is {have}, this one knows {newest}.",
            hint="Use the newer covey; nothing was changed.",
        )
    for number, name, text in steps:
        if number > have:
            _step(db, number, name, text)


def _schema(db: apsw.Connection) -> int:
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


@contextmanager
def _unavailable() -> Iterator[None]:
    """Turn what the disk or the file does to us into the one error that says so."""
    try:
        yield
    except CoveyError:
        raise
    except apsw.FullError as error:
        raise Unavailable("The disk is full, so nothing was written.", hint="Make room and try again.") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise Unavailable(f"The board's file is damaged: {error}.", hint="Restore it from covey log backup.") from error
    except apsw.BusyError as error:
        raise Unavailable("The board is locked by another program.", hint="Try again.") from error
    except apsw.Error as error:
        raise Unavailable(f"The board cannot be written: {error}.", hint="Check disk space and permissions.") from error
