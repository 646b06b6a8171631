"""The worktrees of sessions and of the merge queue: made many at once, used again from task to task, removed for good.

Whatever a crash leaves half made is mended by the next `prepare`. A worktree's lock is lent to the git that works in
it, so that a git which outlives us is waited for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from covey import files, trash
from covey.errors import Invalid, Refused, ToolFailed
from covey.git import refs
from covey.git.identity import HEADS, TASK_BRANCHES
from covey.git.locks import clear_left_behind, held
from covey.git.project import Project
from covey.git.refs import Order
from covey.git.run import complaint, git, try_git
from covey.git.worktrees import checkouts, foreign_git, worktree_admin
from covey.git.worktrees.upstream import Upstream
from covey.git.worktrees.worktree_files import CHECKOUT_TIMEOUT_S, WorktreeFiles
from covey.git.worktrees.worktree_records import Record, why_not_entry

LONG_AGO_NS = 1_000_000_000 * 10**9
"""When a file was written, for tools that compare times, that is as it was when something was built from it."""


class Worktrees(WorktreeFiles):
    """The worktrees of one project that are covey's; any thread may call, and other processes at the same time."""

    def __init__(self, project: Project, folder: Path) -> None:
        super().__init__(project, folder)
        self.upstream = Upstream(project)
        """Knows the commit from which new branches begin: main with what landed, or the remote's if that is ahead."""

    # What there is

    def list(self) -> list[Record]:
        """Return covey's own worktrees that are on disk or known to git, whole or not."""
        found = self._all_records()
        return [each for each in found if self._entry(each) is not None or os.path.lexists(each.path)]

    def tips(self) -> dict[str, str]:
        """Return the commit of every branch of a session."""
        found = refs.listed(self.project, HEADS + TASK_BRANCHES)
        return {name.removeprefix(HEADS): commit for name, commit in found.items()}

    def merged(self, base: str) -> set[str]:
        """Return the branches of sessions that have nothing which a branch lacks."""
        words = ("for-each-ref", "--format=%(refname:lstrip=2)", f"--merged=refs/heads/{base}")
        listed = git(*words, HEADS + TASK_BRANCHES, at=self.project.common, patience=CHECKOUT_TIMEOUT_S)
        return set(listed.decode(errors="surrogateescape").splitlines())

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
            worktree_admin.forget_unfinished(entry)
            worktree_admin.clear_locks(entry)
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
                worktree_admin.clear_locks(entry)
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

    # The merge queue

    def gate(
        self, name: str, commit: str, *, changed: Collection[bytes] | None = None, kept: Path | None = None
    ) -> Path:
        """Return a worktree with exactly the files of one commit, and on no branch.

        With `changed`, these files are of now, and all others as old as can be: whatever was built is newer than they.
        Where others have worked in it, `kept` is the index as we left it, which tells what they touched.
        """
        with self._alone(name) as lock:
            # On no branch, to move its HEAD moves nothing else; then git need not be asked what the commit is.
            there = self.git_dir(name)
            is_detached = there is not None and worktree_admin.is_whole(there) and worktree_admin.commit(there)
            is_ready = is_detached and worktree_admin.is_commit(commit)
            wanted = commit if is_ready else self._commit(commit)
            entry, path, is_new = self._make(name, wanted)
            worktree_admin.forget_unfinished(entry)
            worktree_admin.clear_locks(entry)
            if not is_ready:
                self._in(entry, path, "update-ref", "--no-deref", "HEAD", wanted, lock=lock)
            if kept is not None and not is_new:
                self._undo(entry, path, lock, kept)
            # With other attributes than what is checked out, the same file may be another: then all are written again.
            attributes = ("diff-index", "--cached", "--quiet", wanted, "--", ":(top,glob)**/.gitattributes")
            if not is_new and self._try_in(entry, path, *attributes, lock=lock).returncode != 0:
                (entry / "index").unlink(missing_ok=True)
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

    def _undo(self, entry: Path, path: Path, lock: int, kept: Path) -> None:
        """Take away whatever somebody else has touched: settings, marks, and every file that is not as we wrote it."""
        for name in ("info", "config.worktree", "index"):
            trash.remove(entry / name)
        self._inherit(entry)
        if not kept.is_file():
            return
        shutil.copyfile(kept, entry / "index")
        # By what the disk says of a file, not by its content: one that was rewritten counts as changed. We look at the
        # change time too: most builds of git compare whole seconds, and a gate can begin and end in one.
        top, since = os.path.realpath(os.fsencode(path)), kept.stat().st_mtime_ns
        named = self._in(entry, path, "ls-files", "-z", lock=lock).split(b"\0")[:-1]
        there = ((file, files.status(os.path.join(top, file))) for file in named)  # what is gone is seen by git
        touched = {file for file, found in there if found is not None and found.st_ctime_ns >= since}
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

    # Branches

    def drop_branch(self, branch: str, tip: str) -> bool:
        """Delete a session's branch if it still stands at `tip`, and say whether it did."""
        _must_be_ours(branch)
        with held(self._branching):
            holder = checkouts.holder(self.project, branch)
            if holder is not None:
                place = checkouts.path_of(self.project, holder) or holder
                raise Refused(f"The branch {branch} is checked out in {place}.", hint="Release it there first.")
            clear_left_behind(self._branch_lock(branch))
            refs.untwist(self.project, f"refs/heads/{branch}")
            if self._tip(branch) != tip:
                return False
            done = refs.change(self.project, Order(f"refs/heads/{branch}", None, tip), patience=CHECKOUT_TIMEOUT_S)
            if done.returncode != 0 and self._tip(branch) == tip:
                raise ToolFailed(f"The branch {branch} could not be deleted: {complaint(done)}.")
            return done.returncode == 0

    def unlock_refs(self) -> dict[str, str]:
        """Remove the locks that a killed git left on branches that are gone, and on the packed refs: none could go.

        Return the commit of every branch of a session.
        """
        heads, tips = self.project.common / "refs" / "heads", self.tips()
        with contextlib.suppress(FileNotFoundError):  # git removes a folder of branches with the last of them
            for lock in (heads / TASK_BRANCHES).rglob("*.lock"):
                if str(lock.relative_to(heads).with_suffix("")) not in tips:
                    clear_left_behind(lock)
        packed = self.project.common / "packed-refs.lock"
        # A git that packs many refs does not touch its lock for long; then it runs somewhere in here.
        if packed.exists() and not foreign_git.are_in((self.project.root, self.project.common, self.folder)):
            clear_left_behind(packed)
        return tips

    def drop_empty_branch(self, branch: str, base: str) -> bool:
        """Delete a session's branch if it has nothing that `base` lacks, and say whether it did."""
        tip = self._tip(branch)
        return tip is not None and not self._is_ahead(tip, self._commit(base)) and self.drop_branch(branch, tip)

    def _free(self, branch: str, besides: Path) -> None:
        """Take a branch away from covey's other worktrees; a user's own keeps it."""
        ours = {self._entry(record): record.name for record in self._all_records()}
        for git_dir in checkouts.git_folders(self.project):
            if git_dir == besides or not worktree_admin.holds(git_dir, branch):
                continue
            if git_dir not in ours:
                if why_not_entry(git_dir, None, self.project.common) is not None:
                    continue  # no checkout of anybody's
                place = checkouts.path_of(self.project, git_dir) or git_dir
                raise Refused(
                    f"The branch {branch} is checked out in {place}, which is not covey's.",
                    hint="Switch to another branch there: covey's own work on it goes on elsewhere.",
                )
            if why_not_entry(git_dir, None, self.project.common) is None:
                worktree_admin.forget_unfinished(git_dir)
                self._detach(git_dir)

    def _detach(self, entry: Path) -> None:
        branch = worktree_admin.branch(entry)
        tip = None if branch is None else self._tip(branch)
        if tip is not None:
            clear_left_behind(entry / "HEAD.lock")
            self._in(entry, entry, "update-ref", "--no-deref", "HEAD", tip)

    def _branch_lock(self, branch: str) -> Path:
        return self.project.common / "refs" / "heads" / f"{branch}.lock"

    @property
    def _branching(self) -> Path:
        """Whoever checks a branch out, or deletes one that nobody has, holds this."""
        return self.project.state / "branches.lock"


def default_folder(project: Project, template: str) -> Path:
    """Return the folder of the worktrees that a template names, seen from the project's root.

    Refuse one where git would show the worktrees among the user's files, or keeps its own.
    """
    own = project.root.name.removesuffix(".git")
    repo = own if own and not own.startswith(".") else project.root.parent.name
    try:
        said = Path(template.format(repo=repo)).expanduser()
    except (KeyError, IndexError, ValueError, RuntimeError) as error:
        raise Invalid(
            f"The folder of the worktrees {template!r} makes no sense: {error}.", hint="Only {repo} is known in it."
        ) from error
    folder = (project.root / said).resolve()
    hint = 'The default is sessions.worktrees = "../{repo}.worktrees"; one that git ignores will do as well.'
    common, state = project.common.resolve(), project.state.resolve()
    if folder.is_relative_to(common) and not (folder.is_relative_to(state) and folder != state):
        raise Invalid(f"{folder} is where git keeps the repository: no place for worktrees.", hint=hint)
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    asked = try_git(
        "rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--git-common-dir", at=there, discover=True
    ).stdout.decode(errors="surrogateescape").splitlines()  # fmt: skip
    if len(asked) != 2 or asked[0] != "true" or Path(asked[1]).resolve() != common:
        return folder
    if try_git("check-ignore", "--quiet", "--no-index", str(folder / "x"), at=there, discover=True).returncode != 0:
        raise Invalid(f"{folder} is inside a checkout of this repository: git would show it there.", hint=hint)
    return folder


def _must_be_ours(branch: str) -> None:
    if not branch.startswith(TASK_BRANCHES) or branch == TASK_BRANCHES:
        raise Invalid(f"{branch!r} is not a branch of a session.", hint=f"Those begin with {TASK_BRANCHES}.")
