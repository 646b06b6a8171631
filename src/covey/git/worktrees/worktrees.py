"""The worktrees of sessions and of the merge queue: made many at once, used again from task to task, removed for good.

covey's own are known by a record in its state folder, written before git makes one and removed after it is gone: what
has no record is somebody else's and is never touched. Whatever a crash leaves between the two is mended by the next
`prepare`. A worktree's lock is lent to the git that works in it, so that a git which outlives us is waited for.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from subprocess import CompletedProcess

from covey import files, trash
from covey.errors import Invalid, Refused, ToolFailed, Unavailable
from covey.git import entries, others, refs
from covey.git.guard import session_env
from covey.git.identity import (
    Identity,
    Replaced,
    identify,
    opened,
    read_identity,
    why_not,
    why_not_entry,
    why_not_usable,
)
from covey.git.locks import clear_left_behind, held
from covey.git.project import Project
from covey.git.refs import Order
from covey.git.run import complaint, try_git
from covey.git.upstream import Upstream
from covey.values import dataclass

BRANCHES = "covey/"
"""What the branches of sessions begin with."""
CHECKOUT_PATIENCE = 600.0
LONG_AGO_NS = 1_000_000_000 * 10**9
"""When a file was written, for tools that compare times, that is as it was when something was built from it."""
PLACE_HINT = "Make that possible, or name another folder: worktrees under [sessions] in covey.toml."
NEEDS_A_PERSON = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP,
                            errno.ENAMETOOLONG, errno.ENOENT))  # fmt: skip
"""Why a folder cannot be made that only a person can change."""
TRASH = ".covey-trash-"
OLD = "old-worktrees"
"""The folder of removed worktrees, until they are gone from the disk."""
PUT_OUT_TRIES = 3
"""Times that a worktree is moved there: whoever has emptied that folder removes it."""
QUICK_S = 0.1
"""Seconds for which a removal is waited for; what is large goes in the background."""
ASIDE = ".covey-aside-"

_NAME = re.compile(r"\.?[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_ALONE = ("-c", "core.filesRefLockTimeout=5000", "-c", "core.packedRefsTimeout=10000", "-c", "core.trustctime=true",
          "-c", "core.checkStat=default", "-c", "core.ignoreStat=false")  # fmt: skip
"""Locks are waited for; nothing of the user's runs when covey works in a worktree but the filters that files need."""
_SPARSE = r"^(core\.sparsecheckout(cone)?|index\.sparse)$"
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "covey"), ("EMAIL", "covey@agents.local"))
}


class NoPlace(Unavailable):
    """No worktree can be made where the settings want them, and waiting does not change that."""


@dataclass(frozen=True)
class Worktree:
    """One worktree of covey's: its branch if it is on one, and its commit if it has one."""

    name: str
    path: Path
    git_dir: Path | None
    """Where git keeps its index and HEAD; None if git does not know it, or no longer."""
    branch: str | None
    head: str | None


@dataclass(frozen=True)
class _Record:
    """What we know of a worktree that we made, or had begun to make."""

    name: str
    path: Path
    id: str
    made: Identity | None = None
    """Which folder the checkout is, and which the entry; None until both are made."""
    entry_made: Identity | None = None


@dataclass(frozen=True)
class Aside:
    """A worktree that was put out of use as it was."""

    path: Path
    """Where its files are now."""
    entry: Path | None
    """Where git's folder of it is now, if it was ours."""
    has_moved: bool
    """Whether the files are in a folder of covey's for such; else they are where they were, and not covey's."""


class Worktrees:
    """The worktrees of one project that are covey's; any thread may call, and other processes at the same time."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        self.folder = folder
        self.upstream = Upstream(project)
        self._records = project.state / "worktrees"

    # What there is

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

    def path(self, name: str) -> Path:
        """Return where a worktree is, or would be made."""
        record = self._record(name)
        return self.folder / _checked(name) if record is None else record.path

    def is_known(self, name: str) -> bool:
        """Say whether covey made this worktree, or meant to; what lies at its place otherwise is somebody else's."""
        return self._record(name) is not None

    def git_dir(self, name: str) -> Path | None:
        """Return the folder in which git keeps index and HEAD of a worktree, or None if there is none."""
        record = self._record(name)
        return None if record is None else self._entry(record)

    def why_not_ours(self, name: str) -> str | None:
        """Say why what stands at the place of a worktree must not be touched; None if it may, or nothing is there."""
        record = self._record(name)
        return None if record is None else self._why_not(record)

    def _why_not(self, record: _Record) -> str | None:
        common, entry = self.project.common, self.project.common / "worktrees" / record.id
        why = why_not(record.path, record.made, common) or why_not_entry(entry, record.entry_made, common)
        return why or why_not_usable(record.path)

    def _must_be_ours(self, record: _Record) -> None:
        why = self._why_not(record)
        if why is not None:
            raise Replaced(f"{why}.", hint="covey leaves it alone, and makes another worktree for the next run.")

    def ours(self, name: str) -> Path | None:
        """Return where a worktree is, None if there is none; refuse if something else stands there."""
        record = self._record(name)
        if record is None or not os.path.lexists(record.path):
            return None
        self._must_be_ours(record)
        entry = self.project.common / "worktrees" / record.id
        if entry.is_dir():
            entries.lead_home(entry)
        return record.path

    def list(self) -> list[Worktree]:
        """Return covey's own worktrees that are on disk or known to git, whole or not."""
        found = [(record, self._entry(record)) for record in self._all_records()]
        tips = self.tips() if found else {}
        return [
            self._worktree(record, entry, tips)
            for record, entry in found
            if entry is not None or os.path.lexists(record.path)
        ]

    def _worktree(self, record: _Record, entry: Path | None, tips: dict[str, str]) -> Worktree:
        branch = None if entry is None else entries.branch(entry)
        commit = None if entry is None else entries.commit(entry)
        return Worktree(record.name, record.path, entry, branch, commit if branch is None else tips.get(branch))

    def tips(self) -> dict[str, str]:
        """Return the commit of every branch of a session."""
        printed = self._git("for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads/" + BRANCHES)
        pairs = (line.split(" ", 1) for line in printed.decode(errors="surrogateescape").splitlines())
        return {name: commit for commit, name in pairs}

    # Sessions

    def prepare(self, name: str, branch: str, base: str) -> str:
        """Bring a session's worktree onto its branch, clean but for ignored files, and return the commit it is at.

        A branch that has commits which `base` lacks is carried on; any other begins at `base`. Whatever is not
        committed there is gone afterwards: the caller has rescued it.
        """
        _must_be_ours(branch)
        with self._alone(name) as lock:
            refs.untwist(self.project, f"refs/heads/{branch}")
            start = self._commit(base)
            entry, path, is_new = self._make(name, start)
            entries.forget_unfinished(entry)
            entries.clear_locks(entry)
            with held(self._branching):  # or whoever drops empty branches takes it before it is checked out
                clear_left_behind(self._branch_lock(branch))
                self._free(branch, besides=entry)
                tip = self._tip(branch)
                if tip is None or not self._is_ahead(tip, start):
                    self._move(Order(f"refs/heads/{branch}", start, tip or ""), lock)
                    tip = start
                self._in(entry, path, "symbolic-ref", "HEAD", f"refs/heads/{branch}", lock=lock)
            self._reset(entry, path, lock, ("-ffd",) if not is_new else ())
            return tip

    def take_up(self, name: str, branch: str) -> str | None:
        """Bring a session's worktree back onto its branch as it was left, changes and all, and return its commit.

        None, and nothing has changed, if the branch has moved since or the worktree was at something else.
        """
        _must_be_ours(branch)
        with self._alone(name) as lock:
            refs.untwist(self.project, f"refs/heads/{branch}")
            path, entry = self.ours(name), self.git_dir(name)
            if entry is None or path is None:
                return None
            with held(self._branching):
                tip = self._tip(branch)
                head = self._try_in(entry, path, "rev-parse", "--verify", "--quiet", "HEAD", lock=lock)
                if tip is None or head.returncode != 0 or head.stdout.decode().strip() != tip:
                    return None
                entries.clear_locks(entry)
                clear_left_behind(self._branch_lock(branch))
                self._free(branch, besides=entry)
                self._in(entry, path, "symbolic-ref", "HEAD", f"refs/heads/{branch}", lock=lock)
                return tip

    def release(self, name: str) -> None:
        """Let a worktree's branch go, so that another may have it; its files stay."""
        with self._alone(name):
            entry = self.git_dir(name) if self.ours(name) is not None else None
            if entry is not None:
                self._detach(entry)

    def session_env(self, name: str, guard: Path) -> dict[str, str]:
        """Return the environment with which a session's git is its own, and keeps its hands off what all share."""
        return session_env(self.project, name, guard, self.path(name))

    # The merge queue

    def gate(
        self, name: str, commit: str, *, changed: Collection[bytes] | None = None, kept: Path | None = None
    ) -> Path:
        """Return a worktree with exactly the files of one commit, and on no branch.

        With `changed`, these files are of now, and all others as old as can be: whatever was built is newer than they.
        Where others have worked in it, `kept` is the index as we left it, which tells what they touched.
        """
        with self._alone(name) as lock:
            is_ready = entries.is_commit(commit) and self._is_detached(name)  # then git need not be asked what it is
            wanted = commit if is_ready else self._commit(commit)
            entry, path, is_new = self._make(name, wanted)
            entries.forget_unfinished(entry)
            entries.clear_locks(entry)
            if not is_ready:
                self._in(entry, path, "update-ref", "--no-deref", "HEAD", wanted, lock=lock)
            if kept is not None and not is_new:
                self._undo(entry, path, lock, kept)
            if not is_new and self._is_read_otherwise(entry, path, lock, wanted):
                (entry / "index").unlink(missing_ok=True)  # Then every file is written anew.
            try:
                self._reset(entry, path, lock, () if is_new else ("-ffdx",), wanted)
            except ToolFailed:
                self._commit(wanted)  # or it says that there is none
                raise
            (entry / "ORIG_HEAD").unlink(missing_ok=True)
            if changed is not None:
                self._date(entry, path, lock, changed)
            if kept is not None:
                shutil.copyfile(entry / "index", kept)
            return path

    def _is_read_otherwise(self, entry: Path, path: Path, lock: int, wanted: str) -> bool:
        """Say whether a commit has other attributes than what is checked out, so that the same file may be another."""
        words = ("diff-index", "--cached", "--quiet", wanted, "--", ":(top,glob)**/.gitattributes")
        return self._try_in(entry, path, *words, lock=lock).returncode != 0

    def _is_detached(self, name: str) -> bool:
        """Say whether there is a worktree that is on no branch, so that to move its HEAD moves nothing else."""
        entry = self.git_dir(name)
        return entry is not None and entries.is_whole(entry) and entries.commit(entry) is not None

    def _undo(self, entry: Path, path: Path, lock: int, kept: Path) -> None:
        """Take away whatever somebody else has touched: settings, marks, and every file that is not as we wrote it."""
        for name in ("info", "config.worktree", "index"):
            trash.remove(entry / name)
        self._inherit(entry)
        if not kept.is_file():
            return
        shutil.copyfile(kept, entry / "index")
        # Without a look at what is in them: a file that was written anew is another, whatever it says. We look at the
        # change time too: most builds of git compare whole seconds, and a gate can begin and end in one.
        top, since = os.path.realpath(os.fsencode(path)), kept.stat().st_mtime_ns
        named = self._in(entry, path, "ls-files", "-z", lock=lock).split(b"\0")[:-1]
        touched = {file for file in named if _changed_at(os.path.join(top, file)) >= since}
        touched |= {*self._in(entry, path, "diff-files", "--name-only", "-z", lock=lock).split(b"\0")[:-1]}
        for file in touched:
            place = os.path.join(top, file)
            if os.path.realpath(os.path.dirname(place)) == os.path.dirname(place):  # not behind a link to elsewhere
                trash.remove(Path(os.fsdecode(place)))

    def tracked(self, name: str) -> Sequence[bytes]:
        """Return the files of a worktree's commit, but for those that a sparse checkout leaves out."""
        record = self._record(name)
        entry = None if record is None else self._entry(record)
        if record is None or entry is None:
            return []
        listed = self._try_in(entry, record.path, "ls-files", "-t", "-z").stdout.split(b"\0")
        return [line[2:] for line in listed if line and line[:1] != b"S"]

    def _date(self, entry: Path, path: Path, lock: int, changed: Collection[bytes]) -> None:
        """Set when files were written: those that changed now, the others long ago."""
        now, top, is_dated = time.time_ns(), os.fsencode(path), False
        for name in self._in(entry, path, "ls-files", "-z", lock=lock).split(b"\0")[:-1]:
            wanted = now if name in changed else LONG_AGO_NS
            with contextlib.suppress(OSError):
                file = os.path.join(top, name)
                if os.lstat(file).st_mtime_ns != wanted:
                    os.utime(file, ns=(wanted, wanted), follow_symlinks=False)
                    is_dated = True
        if is_dated:
            self._try_in(entry, path, "update-index", "-q", "--refresh", lock=lock)

    # Removal

    def remove(self, name: str) -> None:
        """Remove a worktree for good, whole or half made; one that is not there, or not covey's, is left as it is."""
        with self._alone(name):
            record = self._record(name)
            if record is None or self._was_never_made(record):
                self._record_file(name).unlink(missing_ok=True)
                self._lock_file(name).unlink(missing_ok=True)
                return
            self._must_be_ours(record)
            entry = self._entry(record)
            if entry is None:
                self._must_not_be_foreign(record)
            away = self._put_out(record)
            with held(self._adding):
                if entry is not None:
                    self._discard(entry)
            self._record_file(name).unlink(missing_ok=True)
            self._lock_file(name).unlink(missing_ok=True)
        self._sweep(record.path.parent)
        if not trash.remove(away, patience_s=QUICK_S):
            self.clear_old()
        with contextlib.suppress(OSError):
            self._old.rmdir()

    def _put_out(self, record: _Record) -> Path:
        """Take the files of a worktree out of sight in one step, and return where they are now."""
        name = f"{record.name}-{secrets.token_hex(4)}"
        for _ in range(PUT_OUT_TRIES):
            self._old.mkdir(exist_ok=True)
            if _moved(record.path, self._old / name):
                return self._old / name
        with contextlib.suppress(FileNotFoundError):  # another file system: then beside, as long as it takes
            record.path.rename(record.path.with_name(f"{TRASH}{name}"))
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
            path = record.path.with_name(f"{ASIDE}{name}-{mark}")
            has_moved = why_not(record.path, record.made, self.project.common) is None and _moved(record.path, path)
            entry = self._set_entry_aside(record, f"{name}-{mark}.entry")
            if has_moved or for_good:
                self._record_file(name).unlink(missing_ok=True)
            else:
                fresh = self.folder / f"{name}-{mark}"
                self._write_record(_Record(name, fresh, _plain_id(f"{name}-{mark}")))
            return Aside(path if has_moved else record.path, entry, has_moved)

    def _set_entry_aside(self, record: _Record, name: str) -> Path | None:
        """Move git's folder of a worktree among covey's own files; of a link there only the link goes."""
        entry, aside = self.project.common / "worktrees" / record.id, self.project.state / "aside"
        aside.mkdir(exist_ok=True)
        with held(self._adding):
            if entry.is_symlink():
                entry.unlink()
                return None
            moved = _moved(entry, aside / name)
            with contextlib.suppress(OSError):
                entry.parent.rmdir()
        return aside / name if moved else None

    def drop_aside(self, path: Path) -> bool:
        """Remove a worktree that was set aside, and what git kept of it; say whether nothing is left."""
        if path.parent != self.folder or not path.name.startswith(ASIDE):
            return True  # it was never moved, so it is not ours
        entry = self.project.state / "aside" / f"{path.name.removeprefix(ASIDE)}.entry"
        return all([trash.remove(path), trash.remove(entry)])

    def _discard(self, entry: Path) -> None:
        """Take an entry out of git's sight in one step: others read the entries at any moment."""
        aside = self.project.state / f"{TRASH}{secrets.token_hex(4)}"
        entry.rename(aside)
        trash.remove(aside)
        with contextlib.suppress(OSError):
            entry.parent.rmdir()

    def _sweep(self, folder: Path) -> None:
        """Delete what is in the trash, also of a removal that was cut short, and the folder if it is empty then."""
        with contextlib.suppress(FileNotFoundError):
            for found in folder.glob(f"{TRASH}*"):
                trash.remove(found)
        with held(self._adding):  # or an entry that is just being drawn up would be taken for trash
            for found in self.project.state.glob(f"{TRASH}*"):
                trash.remove(found)
            with contextlib.suppress(OSError):
                folder.rmdir()

    # Branches

    def is_ahead(self, branch: str, base: str) -> bool:
        """Say whether a branch has a commit that `base` lacks; one that does not exist has none."""
        tip = self._tip(branch)
        return tip is not None and self._is_ahead(tip, self._commit(base))

    def drop_branch(self, branch: str, tip: str) -> bool:
        """Delete a session's branch if it still stands at `tip`, and say whether it did."""
        _must_be_ours(branch)
        with held(self._branching):
            holder = next((entry for entry in self._git_dirs() if entries.holds(entry, branch)), None)
            if holder is not None:
                raise Refused(
                    f"The branch {branch} is checked out in {self._place(holder)}.", hint="Release it there first."
                )
            clear_left_behind(self._branch_lock(branch))
            refs.untwist(self.project, f"refs/heads/{branch}")
            if self._tip(branch) != tip:
                return False
            done = refs.change(self.project, Order(f"refs/heads/{branch}", None, tip), patience=CHECKOUT_PATIENCE)
            if done.returncode != 0 and self._tip(branch) == tip:
                raise ToolFailed(f"The branch {branch} could not be deleted: {complaint(done)}.")
            return done.returncode == 0

    def unlock_refs(self) -> None:
        """Remove the locks that a killed git left on branches that are gone, and on the packed refs: none could go."""
        heads, tips = self.project.common / "refs" / "heads", self.tips()
        with contextlib.suppress(FileNotFoundError):  # git removes a folder of branches with the last of them
            for lock in (heads / BRANCHES).rglob("*.lock"):
                if str(lock.relative_to(heads).with_suffix("")) not in tips:
                    clear_left_behind(lock)
        packed = self.project.common / "packed-refs.lock"
        # A git that packs many refs does not touch its lock for long; then it runs somewhere in here.
        if packed.exists() and not others.are_in((self.project.root, self.project.common, self.folder)):
            clear_left_behind(packed)

    def drop_empty_branch(self, branch: str, base: str) -> bool:
        """Delete a session's branch if it has nothing that `base` lacks, and say whether it did."""
        tip = self._tip(branch)
        return tip is not None and not self._is_ahead(tip, self._commit(base)) and self.drop_branch(branch, tip)

    def newest_main(self, main: str, remote: str, has_passed: Callable[[str], bool] | None = None) -> str:
        """Return the commit from which new branches begin: main with what landed, or the remote's if that is ahead."""
        return self.upstream.newest(main, remote, has_passed)

    def _free(self, branch: str, besides: Path) -> None:
        """Take a branch away from covey's other worktrees; a user's own keeps it."""
        ours = {self._entry(record): record.name for record in self._all_records()}
        for git_dir in self._git_dirs():
            if git_dir == besides or not entries.holds(git_dir, branch):
                continue
            if git_dir not in ours:
                if why_not_entry(git_dir, None, self.project.common) is not None:
                    continue  # no checkout of anybody's
                raise Refused(
                    f"The branch {branch} is checked out in {self._place(git_dir)}, which is not covey's.",
                    hint="Switch to another branch there: covey's own work on it goes on elsewhere.",
                )
            if why_not_entry(git_dir, None, self.project.common) is None:
                entries.forget_unfinished(git_dir)
                self._detach(git_dir)

    def _detach(self, entry: Path) -> None:
        branch = entries.branch(entry)
        tip = None if branch is None else self._tip(branch)
        if tip is not None:
            clear_left_behind(entry / "HEAD.lock")
            self._in(entry, entry, "update-ref", "--no-deref", "HEAD", tip)

    def _branch_lock(self, branch: str) -> Path:
        return self.project.common / "refs" / "heads" / f"{branch}.lock"

    def _git_dirs(self) -> Sequence[Path]:
        return [self.project.common, *entries.entries(self.project.common)]

    def _place(self, git_dir: Path) -> Path:
        return self.project.root if git_dir == self.project.common else entries.place(git_dir) or git_dir

    # Making and mending

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
            entries.mend(entry, record.path, base)
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
            with held(self._adding):
                self._complete_all(base)
                entry = self.project.common / "worktrees" / _free_id(self.project.common, name)
                self._write_record(_Record(name, path, entry.name))
                new = self.project.state / f"{TRASH}{secrets.token_hex(4)}"
                entries.draw_up(new, path, base)
                self._inherit(new)
                self._make_folder()
                entries.link(path, entry)
                entry.parent.mkdir(exist_ok=True)
                new.rename(entry)
                self._note(_Record(name, path, entry.name), entry)
                return entry
        except OSError as error:
            said = f"The worktree {path} cannot be made: {error.strerror}."
            if error.errno in NEEDS_A_PERSON:
                raise NoPlace(said, hint=PLACE_HINT) from error
            raise Unavailable(said) from error

    def _make_folder(self) -> None:
        """Make the folder of the worktrees: who may not look into the repository may not look into its copies."""
        closed = os.stat(self.project.root).st_mode & os.stat(self.project.common).st_mode
        self.folder.mkdir(mode=closed & 0o777 | 0o700, parents=True, exist_ok=True)

    def _note(self, record: _Record, entry: Path) -> None:
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

    def _keep_to_sparse(self, entry: Path) -> None:
        """Leave of a worktree's own settings how sparse it is: its session can write others, with programs in them."""
        own = entry / "config.worktree"
        if not os.path.lexists(own):
            return
        words = ("config", "-z", "--file", str(own), "--type=bool", "--get-regexp", _SPARSE)
        is_plain = own.is_file() and not own.is_symlink()
        said = self._try(*words).stdout.decode(errors="replace").split("\0") if is_plain else []
        own.unlink()
        for key, _, value in (pair.partition("\n") for pair in said if pair):
            self._try("config", "--file", str(own), key, value)

    def _is_set(self, name: str) -> bool:
        return self._try("config", "--type=bool", name).stdout == b"true\n"

    def _complete_all(self, base: str) -> None:
        """Complete the entries of ours that a crash of the machine cut off: git fails for all while one is so."""
        for record in self._all_records():
            entry = self.project.common / "worktrees" / record.id
            if (entry / "gitdir").exists() and not entries.is_whole(entry) and self._entry(record) is not None:
                entries.complete(entry, base)

    def _is_free(self, path: Path) -> bool:
        """Say whether nobody else's files or worktree are at a place."""
        is_claimed = any(entries.place(entry) == path for entry in entries.entries(self.project.common))
        return not is_claimed and (not os.path.lexists(path) or _is_empty_folder(path))

    def _was_never_made(self, record: _Record) -> bool:
        """Say whether we only meant to make a worktree, and what stands at its place is somebody else's."""
        if record.made is not None or self._entry(record) is not None or not os.path.lexists(record.path):
            return False
        try:
            return self._is_foreign(record)
        except OSError:
            return True  # we may not even look

    def _is_foreign(self, record: _Record) -> bool:
        """Say whether a checkout has taken the place of ours: another repository, or another's worktree."""
        pointed = entries.pointed_at(record.path)
        is_ours = pointed is None or Path(pointed).name == record.id
        is_repository = (record.path / ".git").is_dir()
        return is_repository or not is_ours or (os.path.lexists(record.path) and not record.path.is_dir())

    def _must_not_be_foreign(self, record: _Record) -> None:
        """Refuse a checkout that has taken the place of ours."""
        if self._is_foreign(record):
            raise Refused(f"{record.path} is no longer a worktree of covey's.", hint="Move it away, then try again.")

    def _set_aside(self, record: _Record) -> None:
        """Move the files of a worktree that git has forgotten beside it: nobody could rescue them there."""
        with contextlib.suppress(FileNotFoundError):
            (record.path / ".git").unlink()
        if record.path.exists() and not _is_empty_folder(record.path):
            record.path.rename(record.path.with_name(f"{ASIDE}{record.name}-{secrets.token_hex(4)}"))

    def _set_repository_aside(self, record: _Record) -> None:
        """Keep a repository that the session made in place of its worktree's link."""
        if (record.path / ".git").is_dir() and not (record.path / ".git").is_symlink():
            aside = self.project.state / "aside"
            aside.mkdir(exist_ok=True)
            name = f"{record.name}-{secrets.token_hex(4)}.git"
            if not _moved(record.path / ".git", aside / name):  # another file system
                (record.path / ".git").rename(record.path.with_name(f"{ASIDE}{name}"))

    def _entry(self, record: _Record) -> Path | None:
        """Return git's folder of a worktree that we made, or None if it is gone or has become another's."""
        entry = self.project.common / "worktrees" / record.id
        if entry.is_symlink() or not entry.is_dir():
            return None
        place = entries.place(entry)
        if place is None or place == record.path:
            return entry
        # The repository may have moved together with its worktrees; then both still name each other.
        pointed = entries.pointed_at(record.path)
        has_moved = not os.path.lexists(place / ".git") and pointed is not None and Path(pointed).name == record.id
        return entry if has_moved else None

    # Files in a worktree

    def _reset(self, entry: Path, path: Path, lock: int, clean: tuple[str, ...], to: str = "") -> None:
        """Make the files those of HEAD, or HEAD and the files those of a commit; `clean` says what else is removed."""
        self._keep_to_sparse(entry)
        if clean:
            self._show_all(entry, path, lock)
        done = self._try_reset(entry, path, lock, to)
        if done.returncode != 0:
            # An index that a crash cut off is made anew.
            (entry / "index").unlink(missing_ok=True)
            done = self._try_reset(entry, path, lock, to)
        if done.returncode != 0:
            raise ToolFailed(f"The files of {path} could not be checked out: {complaint(done)}.")
        if clean and self._try_clean(entry, path, lock, clean).returncode != 0:
            _make_writable(path)
            done = self._try_clean(entry, path, lock, clean)
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

    def _try_reset(self, entry: Path, path: Path, lock: int, to: str) -> CompletedProcess[bytes]:
        return self._try_in(entry, path, "reset", "--quiet", "--hard", *((to, "--") if to else ()), lock=lock)

    def _try_clean(self, entry: Path, path: Path, lock: int, clean: tuple[str, ...]) -> CompletedProcess[bytes]:
        return self._try_in(entry, path, "clean", "--quiet", *clean, lock=lock)

    # git

    def _commit(self, name: str) -> str:
        done = self._try("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.returncode != 0:
            raise Invalid(f"There is no commit {name}.")
        return done.stdout.decode().split()[-1]

    def _tip(self, branch: str) -> str | None:
        done = self._try("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def _is_ahead(self, tip: str, base: str) -> bool:
        return tip != base and self._try("merge-base", "--is-ancestor", tip, base).returncode != 0

    def _move(self, order: Order, lock: int) -> None:
        done = refs.change(self.project, order, keep=(lock,), patience=CHECKOUT_PATIENCE)
        if done.returncode != 0:
            raise ToolFailed(f"{order.name} could not be moved: {complaint(done)}.")

    def _git(self, *words: str, lock: int | None = None) -> bytes:
        return _checked_output(words, self._try(*words, lock=lock))

    def _try(self, *words: str, lock: int | None = None) -> CompletedProcess[bytes]:
        env = {"GIT_DIR": str(self.project.common), "GIT_TERMINAL_PROMPT": "0", **_IDENTITY}
        keep = () if lock is None else (lock,)
        return try_git(*_ALONE, *words, at=self.project.common, env=env, keep=keep, patience=CHECKOUT_PATIENCE)

    def _in(self, entry: Path, path: Path, *words: str, lock: int | None = None) -> bytes:
        return _checked_output(words, self._try_in(entry, path, *words, lock=lock))

    def _try_in(
        self, entry: Path, path: Path, *words: str, lock: int | None = None, stdin: bytes | None = None
    ) -> CompletedProcess[bytes]:
        """Run git in a worktree by naming its parts: what a session has written in its `.git` is not believed."""
        env = {
            "GIT_DIR": str(entry), "GIT_COMMON_DIR": str(self.project.common), "GIT_WORK_TREE": ".",
            "GIT_TERMINAL_PROMPT": "0", **_IDENTITY,
        }  # fmt: skip
        keep = () if lock is None else (lock,)
        # By its descriptor: whatever takes the place of this folder from now on is not worked in.
        with opened(path) as folder:
            at = Path(f"/proc/self/fd/{folder}")
            return try_git(*_ALONE, *words, at=at, env=env, keep=keep, stdin=stdin, patience=CHECKOUT_PATIENCE)

    # Records and locks

    @property
    def _old(self) -> Path:
        return self.project.state / OLD

    @property
    def _adding(self) -> Path:
        return self.project.state / "worktrees.lock"

    @property
    def _branching(self) -> Path:
        """Whoever checks a branch out, or deletes one that nobody has, holds this."""
        return self.project.state / "branches.lock"

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[int]:
        with held(self._lock_file(_checked(name))) as lock:
            yield lock

    def _lock_file(self, name: str) -> Path:
        return self._records / f"{name}.lock"

    def _record_file(self, name: str) -> Path:
        return self._records / f"{name}.made"

    def _record(self, name: str) -> _Record | None:
        try:
            said = json.loads(self._record_file(_checked(name)).read_bytes())
            # Relative to the repository, so that both may move together.
            path = Path(os.path.normpath(self.project.common / said["path"]))
            return _Record(
                name, path, said["id"], read_identity(said.get("made")), read_identity(said.get("entry_made"))
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            # Cut off by a crash of the machine: that it exists still says that we made this one.
            path = self.folder / name
            found = (entry for entry in entries.entries(self.project.common) if entries.place(entry) == path)
            return _Record(name, path, next((entry.name for entry in found), _plain_id(name)))

    def _write_record(self, record: _Record) -> None:
        said: dict[str, object] = {"id": record.id, "path": os.path.relpath(record.path, self.project.common)}
        if record.made is not None and record.entry_made is not None:
            said |= {"made": asdict(record.made), "entry_made": asdict(record.entry_made)}
        files.write_whole(self._record_file(record.name), json.dumps(said) + "\n")

    def _all_records(self) -> Sequence[_Record]:
        names = sorted(file.name.removesuffix(".made") for file in self._records.glob("*.made"))
        return [record for record in (self._record(name) for name in names if _NAME.match(name)) if record is not None]


def default_folder(project: Project, template: str) -> Path:
    """Return the folder of the worktrees that a template names, seen from the project's root."""
    own = project.root.name.removesuffix(".git")
    repo = own if own and not own.startswith(".") else project.root.parent.name
    try:
        said = Path(template.format(repo=repo)).expanduser()
    except (KeyError, IndexError, ValueError, RuntimeError) as error:
        raise Invalid(
            f"The folder of the worktrees {template!r} makes no sense: {error}.", hint="Only {repo} is known in it."
        ) from error
    folder = (project.root / said).resolve()
    _must_be_out_of_sight(project, folder)
    return folder


def _must_be_out_of_sight(project: Project, folder: Path) -> None:
    """Refuse a folder where git would show the worktrees among the user's files, or keeps its own."""
    hint = 'The default is sessions.worktrees = "../{repo}.worktrees"; one that git ignores will do as well.'
    common, state = project.common.resolve(), project.state.resolve()
    if folder.is_relative_to(common) and not (folder.is_relative_to(state) and folder != state):
        raise Invalid(f"{folder} is where git keeps the repository: no place for worktrees.", hint=hint)
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    asked = try_git(
        "rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--git-common-dir", at=there, discover=True
    ).stdout.decode(errors="surrogateescape").splitlines()  # fmt: skip
    if len(asked) != 2 or asked[0] != "true" or Path(asked[1]).resolve() != common:
        return
    if try_git("check-ignore", "--quiet", "--no-index", str(folder / "x"), at=there, discover=True).returncode != 0:
        raise Invalid(f"{folder} is inside a checkout of this repository: git would show it there.", hint=hint)


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise Invalid(f"{name!r} cannot be the name of a worktree.", hint="Letters, digits, dots, dashes, underscores.")
    return name


def _must_be_ours(branch: str) -> None:
    if not branch.startswith(BRANCHES) or branch == BRANCHES:
        raise Invalid(f"{branch!r} is no branch of a session.", hint=f"Those begin with {BRANCHES}.")


def _checked_output(words: tuple[str, ...], done: CompletedProcess[bytes]) -> bytes:
    if done.returncode != 0:
        raise ToolFailed(f"git {words[0]} failed: {complaint(done)}.")
    return done.stdout


def _free_id(common: Path, name: str) -> str:
    """Return the name of a new entry, as git would choose it: the folder's, with a number if that is taken."""
    plain = _plain_id(name)
    taken = {entry.name for entry in entries.entries(common)}
    return next(f"{plain}{number or ''}" for number in range(len(taken) + 1) if f"{plain}{number or ''}" not in taken)


def _plain_id(name: str) -> str:
    return re.sub(r"\.lock\Z", "-lock", re.sub(r"\A\.", "-", name.replace("..", "--"))).rstrip(".")


def _is_empty_folder(path: Path) -> bool:
    """Say whether a folder is one, and nothing is in it; one into which we may not look is not."""
    try:
        return path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    except OSError:
        return False


def _is_bare(path: Path) -> bool:
    """Say whether a checkout holds nothing but its link to git."""
    return all(child.name == ".git" for child in path.iterdir())


def _moved(source: Path, target: Path) -> bool:
    """Move a file or folder on its file system, and say whether that was possible."""
    try:
        source.rename(target)
    except OSError:
        return False
    return True


def _changed_at(path: bytes) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0  # what is gone is seen by git


def _make_writable(folder: Path) -> None:
    """Give ourselves back the rights to delete what is in a folder."""
    pending = [folder]
    while pending:
        with contextlib.suppress(OSError):
            top = pending.pop()
            os.chmod(top, 0o700)
            with os.scandir(top) as found:
                pending += [Path(child.path) for child in found if child.is_dir(follow_symlinks=False)]
