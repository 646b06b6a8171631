"""Worktrees made, or made whole again: whatever a crash left of one is mended by the next who needs it.

git works in one by the names of its parts: what a session has written there is not believed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

from covey.errors import Invalid, ToolFailed, Unavailable
from covey.git import refs
from covey.git.candidates.candidates import resolve
from covey.git.identity import AUTHOR_AND_COMMITTER, NO_PROMPT
from covey.git.locks import held
from covey.git.refs import Order
from covey.git.run import checked, complaint, read_config, try_git
from covey.git.worktrees import worktree_admin
from covey.git.worktrees.worktree_records import Record, WorktreeRecords, identify, opened, plain_id
from covey.git.worktrees.worktree_removal import ASIDE_PREFIX, TRASH_PREFIX, is_moved

CHECKOUT_TIMEOUT_S = 600.0
_QUIET = ("-c", "core.filesRefLockTimeout=5000", "-c", "core.packedRefsTimeout=10000", "-c", "core.trustctime=true",
          "-c", "core.checkStat=default", "-c", "core.ignoreStat=false")  # fmt: skip
"""Locks are waited for; nothing of the user's runs when covey works in a worktree but the filters that files need."""
_SPARSE = r"^(core\.sparsecheckout(cone)?|index\.sparse)$"
PLACE_HINT = "Make that possible, or name another folder: worktrees under [sessions] in covey.toml."
NEEDS_A_PERSON = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP,
                            errno.ENAMETOOLONG, errno.ENOENT))  # fmt: skip
"""Why a folder cannot be made that only a person can change."""


class NoPlace(Unavailable):
    """No worktree can be made where the settings want them, and waiting does not change that."""


class WorktreeMaking(WorktreeRecords):
    """Makes the worktrees of one project, and runs git in them by the names of their parts."""

    def must_have_place(self) -> None:
        """Refuse if no worktree can be made in the folder for them, as far as can be seen without making one."""
        place = self.folder
        while not os.path.lexists(place):
            place = place.parent
        why = ""
        if not place.is_dir():
            why = f"{place} is not a folder"
        elif not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            is_fixed = os.statvfs(place).f_flag & os.ST_RDONLY
            why = (
                f"{place} is on a file system that can only be read" if is_fixed else f"covey may not write in {place}"
            )
        if why:
            raise NoPlace(f"No worktree can be made in {self.folder}: {why}.", hint=PLACE_HINT)

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
