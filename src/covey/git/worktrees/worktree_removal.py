"""Worktrees put out of use: removed for good, or set aside as they are."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from covey import trash
from covey.git.locks import held
from covey.git.worktrees.worktree_records import Record, WorktreeRecords, plain_id, why_not
from covey.values import dataclass

TRASH_PREFIX = ".covey-trash-"
OLD_WORKTREES = "old-worktrees"
"""The folder of removed worktrees, until they are gone from the disk."""
PUT_OUT_TRIES = 3
"""Times that a worktree is moved there: whoever has emptied that folder removes it."""
QUICK_S = 0.1
"""Seconds for which a removal is waited for; what is large goes in the background."""
ASIDE_PREFIX = ".covey-aside-"


@dataclass(frozen=True)
class Aside:
    """A worktree that was put out of use as it was."""

    path: Path
    """Where its files are now."""
    entry: Path | None
    """Where git's folder of it is now, if it was ours."""
    has_moved: bool
    """Whether the files are in a folder of covey's for such; else they are where they were, and not covey's."""


class WorktreeRemoval(WorktreeRecords):
    """Takes the worktrees of one project out of use."""

    def remove(self, name: str, may_go: Callable[[], bool] = lambda: True) -> bool:
        """Remove a worktree for good, whole or half made; one that is not there, or not covey's, is left as it is.

        `may_go` is asked when nobody else can use it any more; the answer says whether it went.
        """
        with self._alone(name):
            record = self._record(name)
            if record is None or self._was_never_made(record):
                self._record_file(name).unlink(missing_ok=True)
                self._lock_file(name).unlink(missing_ok=True)
                return True
            self._must_be_ours(record)
            if not may_go():
                return False
            entry = self._entry(record)
            if entry is None:
                self._must_not_be_foreign(record)
            away = self._put_out(record)
            with held(self.project.worktrees_lock):
                if entry is not None:  # out of git's sight in one step: others read the entries at any moment
                    unlisted = self.project.state / f"{TRASH_PREFIX}{secrets.token_hex(4)}"
                    entry.rename(unlisted)
                    trash.remove(unlisted)
                    with contextlib.suppress(OSError):
                        entry.parent.rmdir()
            self._record_file(name).unlink(missing_ok=True)
            self._lock_file(name).unlink(missing_ok=True)
        self._sweep(record.path.parent)
        if not trash.remove(away, patience_s=QUICK_S):
            self.clear_old()
        with contextlib.suppress(OSError):
            self._old.rmdir()
        return True

    def _put_out(self, record: Record) -> Path:
        """Take the files of a worktree out of sight in one step, and return where they are now."""
        name = f"{record.name}-{secrets.token_hex(4)}"
        for _ in range(PUT_OUT_TRIES):
            self._old.mkdir(exist_ok=True)
            if is_moved(record.path, self._old / name):
                return self._old / name
        with contextlib.suppress(FileNotFoundError):  # another file system: then beside, as long as it takes
            record.path.rename(record.path.with_name(f"{TRASH_PREFIX}{name}"))
        return self._old / name

    def clear_old(self) -> None:
        """See that what was removed goes from the disk, without waiting for it; whoever ends us does not end that."""
        with contextlib.suppress(FileNotFoundError):
            if any(self._old.iterdir()):
                trash.remove_later(self._old)

    def set_aside(self, name: str, *, for_good: bool = False) -> Aside | None:
        """Put a worktree out of use as it is, so that the next is a new one; None if there is none.

        What is not the folder that we made is left where it is, and the next is made at another place. `for_good`: no
        next one comes.
        """
        with self._alone(name):
            record = self._record(name)
            if record is None:
                return None
            mark = secrets.token_hex(4)
            if not os.path.lexists(record.path):  # its files are gone, but git's folder of it may be in the way
                entry = self._set_entry_aside(record, f"{name}-{mark}.entry")
                self._record_file(name).unlink(missing_ok=True)
                return None if entry is None else Aside(entry, entry, has_moved=False)
            path = record.path.with_name(f"{ASIDE_PREFIX}{name}-{mark}")
            has_moved = why_not(record.path, record.made, self.project.common) is None and is_moved(record.path, path)
            entry = self._set_entry_aside(record, f"{name}-{mark}.entry")
            if has_moved or for_good:
                self._record_file(name).unlink(missing_ok=True)
            else:
                fresh = self.folder / f"{name}-{mark}"
                self._write_record(Record(name, fresh, plain_id(f"{name}-{mark}")))
            return Aside(path if has_moved else record.path, entry, has_moved)

    def _set_entry_aside(self, record: Record, name: str) -> Path | None:
        """Move git's folder of a worktree among covey's own files; of a link there only the link goes."""
        entry, aside = self._entry_folder(record), self.project.aside
        aside.mkdir(exist_ok=True)
        with held(self.project.worktrees_lock):
            if entry.is_symlink():
                entry.unlink()
                return None
            moved = is_moved(entry, aside / name)
            with contextlib.suppress(OSError):
                entry.parent.rmdir()
        return aside / name if moved else None

    def drop_aside(self, path: Path) -> bool:
        """Remove a worktree that was set aside, and what git kept of it; say whether nothing is left."""
        if path.parent != self.folder or not path.name.startswith(ASIDE_PREFIX):
            return True  # it was never moved, so it is not ours
        entry = self.project.aside / f"{path.name.removeprefix(ASIDE_PREFIX)}.entry"
        return all([trash.remove(path), trash.remove(entry)])

    def _sweep(self, folder: Path) -> None:
        """Delete what is in the trash, also of a removal that was cut short, and the folder if it is empty then."""
        with contextlib.suppress(FileNotFoundError):
            for found in folder.glob(f"{TRASH_PREFIX}*"):
                trash.remove(found)
        with held(self.project.worktrees_lock):  # or an entry that is just being drawn up would be taken for trash
            for found in self.project.state.glob(f"{TRASH_PREFIX}*"):
                trash.remove(found)
            with contextlib.suppress(OSError):
                folder.rmdir()

    @property
    def _old(self) -> Path:
        return self.project.state / OLD_WORKTREES


def is_moved(source: Path, target: Path) -> bool:
    """Move a file or folder on its file system, and say whether that was possible."""
    try:
        source.rename(target)
    except OSError:
        return False
    return True
