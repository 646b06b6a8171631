"""One connection to the file of a store, and what its disk does to us as one error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from covey.errors import CoveyError, Unavailable


class Connection:
    """apsw behind the narrow door that a transaction needs."""

    def __init__(self, path: Path | str, *, reader: bool, create: bool = True) -> None:
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
        self.run = self.raw.execute

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.run(sql, values).fetchall()

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        return iter(self.run(sql, values))

    def close(self) -> None:
        self.raw.close()


@contextmanager
def unavailable(undo: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Turn what the disk or the file does to us into the one error that says so; `undo` is called after any error."""
    try:
        try:
            yield
        except BaseException:
            undo()
            raise
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
