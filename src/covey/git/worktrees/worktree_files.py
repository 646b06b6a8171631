"""Worktrees on the disk: made, made whole again after a crash, and put out of use, for good or set aside as they are.

git works in one by the names of its parts: what a session has written there is not believed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

from covey import trash
from covey.errors import Invalid, ToolFailed, Unavailable
from covey.git import refs
from covey.git.candidates.candidates import resolve
from covey.git.identity import AUTHOR_AND_COMMITTER, NO_PROMPT
from covey.git.locks import held
from covey.git.refs import Order
from covey.git.run import checked, complaint, read_config, try_git
from covey.git.worktrees import worktree_admin
from covey.git.worktrees.worktree_records import Record, WorktreeRecords, identify, opened, plain_id, why_not
from covey.values import dataclass

CHECKOUT_TIMEOUT_S = 600.0
_QUIET = ("-c", "core.filesRefLockTimeout=5000", "-c", "core.packedRefsTimeout=10000", "-c", "core.trustctime=true",
          "-c", "core.checkStat=default", "-c", "core.ignoreStat=false")  # fmt: skip
"""Locks are waited for; nothing of the user's runs when covey works in a worktree but the filters that files need."""
_SPARSE = r"^(core\.sparsecheckout(cone)?|index\.sparse)$"
PLACE_HINT = "Make that possible, or name another folder: worktrees under [sessions] in covey.toml."
NEEDS_A_PERSON = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP,
                            errno.ENAMETOOLONG, errno.ENOENT))  # fmt: skip
"""Why a folder cannot be made that only a person can change."""
TRASH_PREFIX = ".covey-trash-"
OLD_WORKTREES = "old-worktrees"
"""The folder of removed worktrees, until they are gone from the disk."""
PUT_OUT_TRIES = 3
"""Times that a worktree is moved there: whoever has emptied that folder removes it."""
QUICK_S = 0.1
"""Seconds for which a removal is waited for; what is large goes in the background."""
ASIDE_PREFIX = ".covey-aside-"


class NoPlace(Unavailable):
    """No worktree can be made where the settings want them, and waiting does not change that."""


@dataclass(frozen=True)
class Aside:
    """A worktree that was put out of use as it was."""

    path: Path
    """Where its files are now."""
    entry: Path | None
    """Where git's folder of it is now, if it was ours."""
    has_moved: bool
    """Whether the files are in a folder of covey's for such; else they are where they were, and not covey's."""


def must_have_place(folder: Path) -> None:
    """Refuse if no worktree can be made in a folder, as far as can be seen without making one."""
    place = folder
    while not os.path.lexists(place):
        place = place.parent
    why = ""
    if not place.is_dir():
        why = f"{place} is not a folder"
    elif not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        is_fixed = os.statvfs(place).f_flag & os.ST_RDONLY
        why = f"{place} is on a file system that can only be read" if is_fixed else f"covey may not write in {place}"
    if why:
        raise NoPlace(f"No worktree can be made in {folder}: {why}.", hint=PLACE_HINT)


class WorktreeFiles(WorktreeRecords):
    """Makes the worktrees of one project, runs git in them by the names of their parts, and takes them out of use."""

    def _make(self, name: str, base: str) -> tuple[Path, Path, bool]:
        """Return git's folder and the checkout of a worktree that git can use, and whether it is new."""
        record = self._record(name)
        if record is not None and self._was_never_made(record):
            record = None
        if record is not None:
            self._must_be_ours(record)
        entry = None if record is None else self._entry(record)
        if record is not None and entry is not None:
            self._set_repository_aside(record)
            worktree_admin.mend(entry, record.path, base)
            self._note(record, entry)
            return entry, record.path, not (entry / "index").exists() and _is_bare(record.path)
        if record is not None:
            self._must_not_be_foreign(record)
            self._set_aside(record)
        path = self.folder / name if record is None else record.path
        if not self._is_free(path):
            path = self.folder / f"{name}-{secrets.token_hex(4)}"
        return self._add(name, path, base), path, True

    def _add(self, name: str, path: Path, base: str) -> Path:
        """Make an entry and its empty checkout, so that nobody ever sees a part of them.

        Not by `git worktree add`: for some milliseconds its entry has no commit, and whatever looks at all worktrees
        meanwhile (a fetch, a `log --all`) fails.
        """
        try:
            with held(self.project.worktrees_lock):
                self._complete_all(base)
                entry = self.project.common / "worktrees" / _free_id(self.project.common, name)
                self._write_record(Record(name, path, entry.name))
                new = self.project.state / f"{TRASH_PREFIX}{secrets.token_hex(4)}"
                worktree_admin.draw_up(new, path, base)
                self._inherit(new)
                # Who may not look into the repository may not look into its copies.
                closed = os.stat(self.project.root).st_mode & os.stat(self.project.common).st_mode
                self.folder.mkdir(mode=closed & 0o777 | 0o700, parents=True, exist_ok=True)
                worktree_admin.link(path, entry)
                entry.parent.mkdir(exist_ok=True)
                new.rename(entry)
                self._note(Record(name, path, entry.name), entry)
                return entry
        except OSError as error:
            said = f"The worktree {path} cannot be made: {error.strerror}."
            if error.errno in NEEDS_A_PERSON:
                raise NoPlace(said, hint=PLACE_HINT) from error
            raise Unavailable(said) from error

    def _note(self, record: Record, entry: Path) -> None:
        """Note which folders a worktree is made of, so that no others are ever taken for them."""
        common = self.project.common
        now = replace(record, made=identify(record.path, common), entry_made=identify(entry, common))
        if now != record:
            self._write_record(now)

    def _inherit(self, new: Path) -> None:
        """Give a new entry the settings of the first checkout that are that checkout's alone: how sparse it is."""
        patterns, settings = self.project.common / "info" / "sparse-checkout", self.project.common / "config.worktree"
        if patterns.is_file() and self._is_set("core.sparseCheckout"):
            (new / "info").mkdir()
            shutil.copyfile(patterns, new / "info" / "sparse-checkout")
        if settings.is_file() and self._is_set("extensions.worktreeConfig"):
            shutil.copyfile(settings, new / "config.worktree")
            self._keep_to_sparse(new)

    def _complete_all(self, base: str) -> None:
        """Complete the entries of ours that a crash of the machine cut off: git fails for all while one is so."""
        for record in self._all_records():
            entry = self._entry_folder(record)
            if (entry / "gitdir").exists() and not worktree_admin.is_whole(entry) and self._entry(record) is not None:
                worktree_admin.complete(entry, base)

    def _is_free(self, path: Path) -> bool:
        """Say whether nobody else's files or worktree are at a place."""
        is_claimed = any(worktree_admin.place(entry) == path for entry in worktree_admin.entries(self.project.common))
        return not is_claimed and (not os.path.lexists(path) or _is_empty_folder(path))

    def _set_aside(self, record: Record) -> None:
        """Move the files of a worktree that git has forgotten beside it: nobody could rescue them there."""
        (record.path / ".git").unlink(missing_ok=True)
        if record.path.exists() and not _is_empty_folder(record.path):
            record.path.rename(record.path.with_name(f"{ASIDE_PREFIX}{record.name}-{secrets.token_hex(4)}"))

    def _set_repository_aside(self, record: Record) -> None:
        """Keep a repository that the session made in place of its worktree's link."""
        if (record.path / ".git").is_dir() and not (record.path / ".git").is_symlink():
            aside = self.project.aside
            aside.mkdir(exist_ok=True)
            name = f"{record.name}-{secrets.token_hex(4)}.git"
            if not is_moved(record.path / ".git", aside / name):  # another file system
                (record.path / ".git").rename(record.path.with_name(f"{ASIDE_PREFIX}{name}"))

    # git, with the lock of a worktree lent to it

    def _commit(self, name: str) -> str:
        found = resolve(self.project, name)
        if found is None:
            raise Invalid(f"There is no commit {name}.")
        return found

    def _tip(self, branch: str) -> str | None:
        return resolve(self.project, f"refs/heads/{branch}")

    def _is_ahead(self, tip: str, base: str) -> bool:
        return tip != base and self._try("merge-base", "--is-ancestor", tip, base).returncode != 0

    def _move(self, order: Order, lock: int) -> None:
        done = refs.change(self.project, order, keep=(lock,), patience=CHECKOUT_TIMEOUT_S)
        if done.returncode != 0:
            raise ToolFailed(f"{order.name} could not be moved: {complaint(done)}.")

    def _try(self, *words: str) -> CompletedProcess[bytes]:
        env = {"GIT_DIR": str(self.project.common), **NO_PROMPT, **AUTHOR_AND_COMMITTER}
        return try_git(*_QUIET, *words, at=self.project.common, env=env, patience=CHECKOUT_TIMEOUT_S)

    def _in(self, entry: Path, path: Path, *words: str, lock: int | None = None) -> bytes:
        return checked(words[0], self._try_in(entry, path, *words, lock=lock))

    def _try_in(
        self, entry: Path, path: Path, *words: str, lock: int | None = None, stdin: bytes | None = None
    ) -> CompletedProcess[bytes]:
        """Run git in a worktree by naming its parts: what a session has written in its `.git` is not believed."""
        env = {
            "GIT_DIR": str(entry), "GIT_COMMON_DIR": str(self.project.common), "GIT_WORK_TREE": ".",
            **NO_PROMPT, **AUTHOR_AND_COMMITTER,
        }  # fmt: skip
        keep = () if lock is None else (lock,)
        # By its descriptor: whatever takes the place of this folder from now on is not worked in.
        with opened(path) as folder:
            at = Path(f"/proc/self/fd/{folder}")
            return try_git(*_QUIET, *words, at=at, env=env, keep=keep, stdin=stdin, patience=CHECKOUT_TIMEOUT_S)

    # Files in a worktree

    def _reset(self, entry: Path, path: Path, lock: int, clean: tuple[str, ...], to: str = "") -> None:
        """Make the files those of HEAD, or HEAD and the files those of a commit; `clean` says what else is removed."""
        self._keep_to_sparse(entry)
        if clean:
            self._show_all(entry, path, lock)
        reset = ("reset", "--quiet", "--hard", *((to, "--") if to else ()))
        done = self._try_in(entry, path, *reset, lock=lock)
        if done.returncode != 0:
            # An index that a crash cut off is rebuilt.
            (entry / "index").unlink(missing_ok=True)
            done = self._try_in(entry, path, *reset, lock=lock)
        if done.returncode != 0:
            raise ToolFailed(f"The files of {path} could not be checked out: {complaint(done)}.")
        if clean and self._try_in(entry, path, "clean", "--quiet", *clean, lock=lock).returncode != 0:
            _make_writable(path)
            done = self._try_in(entry, path, "clean", "--quiet", *clean, lock=lock)
            if done.returncode != 0:
                raise ToolFailed(f"{path} could not be cleaned: {complaint(done)}.")

    def _show_all(self, entry: Path, path: Path, lock: int) -> None:
        """Undo the marks that hide changed files from git, but for those of a sparse checkout."""
        if not (entry / "index").exists() or (entry / "info" / "sparse-checkout").exists():
            return
        listed = self._try_in(entry, path, "ls-files", "-v", "-z", lock=lock).stdout.split(b"\0")
        skipped = [line[2:] for line in listed if line[:1] in (b"S", b"s")]
        assumed = [line[2:] for line in listed if line[:1].islower()]
        for word, names in (("--no-skip-worktree", skipped), ("--no-assume-unchanged", assumed)):
            if names:
                self._try_in(entry, path, "update-index", word, "-z", "--stdin", lock=lock, stdin=b"\0".join(names))

    def _keep_to_sparse(self, entry: Path) -> None:
        """Leave of a worktree's own settings how sparse it is: its session can write others, with programs in them."""
        own = entry / "config.worktree"
        if not os.path.lexists(own):
            return
        words = ("--file", str(own), "--type=bool", "--get-regexp", _SPARSE)
        is_plain = own.is_file() and not own.is_symlink()
        said = read_config(*words, at=self.project.common) if is_plain else []
        own.unlink()
        for key, value in said:
            self._try("config", "--file", str(own), key, value or "")

    def _is_set(self, name: str) -> bool:
        return self._try("config", "--type=bool", name).stdout == b"true\n"

    # Put out of use

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


def _free_id(common: Path, name: str) -> str:
    """Return the name of a new entry, as git would choose it: the folder's, with a number if that is taken."""
    plain = plain_id(name)
    taken = {entry.name for entry in worktree_admin.entries(common)}
    return next(f"{plain}{number or ''}" for number in range(len(taken) + 1) if f"{plain}{number or ''}" not in taken)


def _is_empty_folder(path: Path) -> bool:
    """Say whether a folder is one, and nothing is in it; one into which we may not look is not."""
    try:
        return path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    except OSError:
        return False


def _is_bare(path: Path) -> bool:
    """Say whether a checkout holds nothing but its link to git."""
    return all(child.name == ".git" for child in path.iterdir())


def _make_writable(folder: Path) -> None:
    """Give ourselves back the rights to delete what is in a folder."""
    pending = [folder]
    while pending:
        with contextlib.suppress(OSError):
            top = pending.pop()
            os.chmod(top, 0o700)
            with os.scandir(top) as found:
                pending += [Path(child.path) for child in found if child.is_dir(follow_symlinks=False)]


def is_moved(source: Path, target: Path) -> bool:
    """Move a file or folder on its file system, and say whether that was possible."""
    try:
        source.rename(target)
    except OSError:
        return False
    return True
