"""The store in one SQLite file: one writer, group commit, any number of readers."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw

from covey.core.board.tasks import Status
from covey.core.events import FIRST, Begun
from covey.core.fleet.sessions import COVEY
from covey.core.nouns import CountRow
from covey.errors import CoveyError, Unavailable
from covey.store.engine.connection import Connection, unavailable
from covey.store.engine.migrations import migrate, schema
from covey.store.engine.rows import Change
from covey.store.engine.transaction import Head, read_head
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


class Ground:
    """A store's own files, and the lock of whoever writes it.

    SQLite holds the files open and would go on for ever in ones that have no name any more: all that it acknowledges
    then is lost with the process. So they are looked at before every transaction, which takes a few microseconds.
    """

    def __init__(self, database: Path, lock: Path | None = None) -> None:
        self.database = database
        self._names = [str(database), f"{database}-wal", *([str(lock)] if lock else [])]
        self._marks: dict[str, os.stat_result] = {}
        self.note()

    def note(self) -> None:
        """Remember the files as they are: called when nobody but we can have changed them."""
        for name in self._names:
            if (mark := _mark(name)) is not None:
                self._marks[name] = mark

    def look(self) -> tuple[str | None, bool]:
        """Say why the files are not what we noted, None if they are; and whether others wrote into the store's."""
        is_written = False
        for name in self._names:
            before = self._marks.get(name)
            if before is None:
                continue
            now = _mark(name)
            what = Path(name).name
            if now is None:
                return f"{what} was removed while the daemon ran.", is_written
            if not os.path.samestat(now, before):
                return f"{what} was replaced while the daemon ran.", is_written
            if now.st_size < before.st_size:
                return f"{what} was cut short while the daemon ran.", is_written
            if name == self._names[0]:
                is_written = now.st_mtime_ns != before.st_mtime_ns
        return None, is_written

    def are_ours(self) -> bool:
        """Say whether every name still leads to the file that we noted under it, be it longer or shorter by now."""
        return all(self.is_ours(name) for name in self._names)

    def is_ours(self, name: str) -> bool:
        """Say whether a name still leads to the file that we noted under it."""
        before, now = self._marks.get(name), _mark(name)
        return before is not None and now is not None and os.path.samestat(before, now)


def _mark(name: str) -> os.stat_result | None:
    try:
        return os.stat(name, follow_symlinks=False)
    except OSError:
        return None


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
        self._readers: list[Connection] = []
        self._guard = threading.Lock()
        with unavailable():
            if ahead:
                self._open_ahead()
            else:
                self._db = Connection(path, reader=False)
                self._bring_up_to_date()
            if lock is not None:
                self._ground = Ground(path, lock)

    def _open_ahead(self) -> None:
        """Open the files and read their schema, which takes most of the time, as somebody may be writing them."""
        self._opened = Ground(self.path)
        self._db = Connection(self.path, reader=False, create=False)
        self._db.run(f"PRAGMA wal_autocheckpoint = {PAGES_ALONE}")
        schema(self._db.raw)
        if not self._opened.is_ours(str(self.path)):
            raise Unavailable(f"{self.path} was replaced while it was opened.", hint="Try again.")
        self._opened.note()  # the write-ahead log may be there only since it was opened

    def take_up(self) -> None:
        """Make a store that was opened ahead as if it were opened now: whoever asks has just taken the writer's lock.

        Others may have written, restored or migrated it meanwhile.
        """
        with unavailable():
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
                tx.insert(CountRow(status, 0))
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
        with unavailable(self._undo):
            self.stand()
            try:
                return self._stage(jobs, patient)
            except _Spoiled:
                self._db.run("ROLLBACK")
                return self._stage(jobs, patient, apart=True)

    def _stage(self, jobs: Sequence[Job[Any]], patient: bool, *, apart: bool = False) -> Staged:
        self._db.run("BEGIN IMMEDIATE")
        before = self._db.raw.total_changes()
        batch = Tx(self._db, self._head, now=round(self._clock(), 3))
        outcomes: list[Outcome[Any]] = []
        for job in jobs:
            tx = Tx(batch.db, batch.head, batch.now, patient=patient, moved=dict(batch.moved))
            outcome = self._attempt(tx, job, apart=apart)
            if outcome.error is None:
                batch.head, batch.moved = tx.head, tx.moved
            outcomes.append(outcome)
        wrote = self._db.raw.total_changes() != before
        if wrote:
            batch.settle()
        return Staged(outcomes, batch.head, wrote)

    def commit(self, staged: Staged) -> list[Outcome[Any]]:
        """Make what was staged last, and return its outcomes; if that fails, nothing of it happened."""
        with unavailable(self._undo):
            if staged.wrote:
                self.stand()
            self._db.run("COMMIT" if staged.wrote else "ROLLBACK")
        self._head = staged.head
        if staged.wrote and self._ground is not None:
            self._ground.note()
        return staged.outcomes

    def is_standing(self) -> bool:
        """Say whether the files under us are still ours, as far as anybody has looked or can see at once."""
        return self.lost is None and (self._ground is None or self._ground.look()[0] is None)

    def stand(self) -> None:
        """Refuse if the files are no longer ours; everything acknowledged is first copied to a file of its own.

        For the writer alone: nobody else may use its connection.
        """
        if self.lost is None and self._ground is not None:
            why, is_written = self._ground.look()
            if why is None and is_written and not self._db.raw.in_transaction:
                why = self._why_written()
            if why is not None:
                self._undo()
                self.lost = self._keep(why, self._ground)
        if self.lost is not None:
            raise self.lost

    def _why_written(self) -> str | None:
        """Say what is wrong with a file into which another program wrote, None if it only did what we would do."""
        assert self._ground is not None
        with contextlib.closing(Connection(self.path, reader=True)) as db:
            try:
                sound = db.rows("PRAGMA quick_check")[0][0] == "ok" and read_head(db) == self._head
            except (apsw.Error, CoveyError):
                sound = False
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
            from covey.store.engine.backup import copy_from  # as above

            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            copy_from(self._db, target)
        except (apsw.Error, OSError, ImportError, CoveyError) as error:
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

    def _undo(self) -> None:
        if self._db.raw.in_transaction:
            self._db.run("ROLLBACK")

    def _attempt(self, tx: Tx, job: Job[Any], *, apart: bool) -> Outcome[Any]:
        """Run a job; `apart` from the others of its batch, so that what it wrote can be undone alone.

        That takes a savepoint, which costs a sixth of a claim, and most refusals come before the first write.
        """
        before = self._db.raw.total_changes()
        if apart:
            self._db.run("SAVEPOINT job")
        try:
            outcome: Outcome[Any] = Outcome(job(tx), tuple(tx.changes))
        except apsw.Error as error:
            if not isinstance(error, apsw.ConstraintError) or not self._db.raw.in_transaction:
                raise
            outcome = Outcome(None, error=error)
        except Exception as error:  # noqa: BLE001 - the bug of one job must not spoil the others of its batch
            outcome = Outcome(None, error=error)
        if outcome.error is not None and self._db.raw.total_changes() != before:
            if not apart:
                raise _Spoiled
            self._db.run("ROLLBACK TO job")
        if apart:
            self._db.run("RELEASE job")
        return outcome

    def read(self, job: Job[T]) -> T:
        """Run a job that only reads, on one snapshot, beside the writer."""
        if not self.is_standing():
            raise self.lost or Unavailable("The board's file was taken away while the daemon ran.", hint="Try again.")
        with unavailable(), self._reader() as db:
            db.run("BEGIN")
            try:
                return job(Tx(db, read_head(db), now=round(self._clock(), 3)))
            finally:
                db.run("ROLLBACK")

    @contextmanager
    def _reader(self) -> Iterator[Connection]:
        if self._is_ahead:  # one who is alone needs no second connection, which would have to read the schema too
            yield self._db
            return
        with self._guard:
            db = self._readers.pop() if self._readers else None
        if db is None:
            db = Connection(self.path, reader=True)
        is_sound = True
        try:
            yield db
        except apsw.Error:
            is_sound = False  # who knows what state it is in
            raise
        finally:
            if is_sound:
                with self._guard:
                    self._readers.append(db)
            else:
                db.close()

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
