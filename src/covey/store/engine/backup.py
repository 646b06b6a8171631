"""A store read on one snapshot, or copied, while others write to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from covey.errors import Invalid, NotFound, Refused, Unavailable
from covey.store.engine.connection import Connection, unavailable
from covey.store.engine.migrations import migrate, newest, schema


@contextmanager
def snapshot(path: Path) -> Iterator[Connection]:
    """Open a store only to read it, on one snapshot, beside whoever writes; refuse one of a newer schema.

    One of an older schema is read in a copy that is brought up to date: after an upgrade agents commit, and old backups
    are looked at, before anybody has written with the new covey.
    """
    if not os.path.isfile(path):
        raise NotFound(f"There is no file {path}.")
    with unavailable(), closing(Connection(path, reader=True)) as db:
        db.run("BEGIN")
        have, known = schema(db.raw), newest()
        if have > known or not have:
            raise Refused(
                f"{path} has the schema {have}, and this covey reads {known}.",
                hint="Use the covey that wrote it." if have else "covey status brings it up to date.",
            )
        if have == known:
            yield db
            return
        with closing(_brought_up(db, path)) as copy:
            yield copy


def _brought_up(source: Connection, path: Path) -> Connection:
    """Return a copy of a store, in a file that goes with it, in the newest schema, and only to be read."""
    copy = Connection("", reader=False)
    try:
        with copy.raw.backup("main", source.raw, "main") as work:
            work.step(-1)
        source.run("ROLLBACK")  # whoever writes need not wait for who reads the copy
        migrate(copy.raw, path)
        copy.run("PRAGMA query_only = 1")
    except BaseException:
        copy.close()
        raise
    return copy


def backup(source: Path, target: Path) -> int:
    """Copy a store to a file while others write to it; return the copy's last event."""
    if os.path.exists(target):
        raise Refused(f"{target} exists already.", hint="Name a file that does not exist yet.")
    if not os.path.isdir(target.parent):
        raise Invalid(f"{target.parent} is not a folder.")
    part = target.with_name(target.name + ".part")
    try:
        with unavailable(), closing(Connection(source, reader=True)) as reader:
            seq = copy_from(reader, part)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    part.rename(target)
    return seq


def copy_from(source: Connection, part: Path) -> int:
    """Copy a store to a new file as one connection sees it; return the copy's last event."""
    with unavailable():
        _begin_private(part)
        with closing(apsw.Connection(str(part))) as copy:
            # One snapshot, begun by a statement: it waits for a writer that opens or closes the file, a step does not.
            source.rows("BEGIN")
            source.rows("SELECT seq FROM log")
            with copy.backup("main", source.raw, "main") as work:
                work.step(-1)
            source.rows("ROLLBACK")
            copy.execute("PRAGMA journal_mode = DELETE")
            problem = copy.execute("PRAGMA integrity_check").fetchall()[0][0]
            seq = copy.execute("SELECT seq FROM log").fetchall()[0][0]
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
