"""The files under an open store: whether they are still those that were opened, under the same names."""

from __future__ import annotations

import os
from pathlib import Path


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

    def why_lost(self) -> str | None:
        """Say what happened to the files since we noted them, None if nothing that matters."""
        for name in self._names:
            before, now = self._marks.get(name), _mark(name)
            if before is None:
                continue
            what = Path(name).name
            if now is None:
                return f"{what} was removed while the daemon ran."
            if not os.path.samestat(now, before):
                return f"{what} was replaced while the daemon ran."
            if now.st_size < before.st_size:
                return f"{what} was cut short while the daemon ran."
        return None

    def is_written_by_others(self) -> bool:
        """Say whether somebody else has written into the store's file since we noted it."""
        before, now = self._marks.get(self._names[0]), _mark(self._names[0])
        return before is not None and now is not None and before.st_mtime_ns != now.st_mtime_ns

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
