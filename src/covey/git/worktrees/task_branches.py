"""The branches on which tasks are worked on: what a run left there, and what is kept of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from covey.core.fleet.outcomes import is_cache
from covey.errors import CoveyError, ToolFailed
from covey.git import refs
from covey.git.candidates import candidates
from covey.git.identity import TASK_REFS, kept_ref
from covey.git.project import Project
from covey.git.refs import Order
from covey.git.rescue.rescue_repository import private_git
from covey.git.run import complaint, git, try_git
from covey.git.worktrees import checkout_status, checkouts
from covey.git.worktrees.worktrees import Worktrees
from covey.values import dataclass


@dataclass(frozen=True)
class BranchState:
    """The tip of the task's branch, whether it has commits that its base lacks, and what was not committed."""

    head: str | None = None
    ahead: bool = False
    dirty: tuple[str, ...] = ()


def look(project: Project, path: Path, branch: str, base: str) -> BranchState:
    """Look at a worktree without changing anything in it."""
    if not path.exists():
        return BranchState()
    tip = try_git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", at=project.common)
    head = tip.stdout.decode().strip() if tip.returncode == 0 else None
    ahead = head is not None and not candidates.is_ancestor(project, head, base)
    return BranchState(head, ahead, _dirty(project, path))


def _dirty(project: Project, path: Path) -> tuple[str, ...]:
    try:
        with checkout_status.look(project, path) as seen:
            asked = seen.run("status", "--porcelain", "-z", "--no-renames", checkout_status.NO_SUBMODULES, patience=300)
    except CoveyError as error:
        return (f"(git cannot read the worktree: {error.message[:200]})",)
    entries = [entry for entry in asked.decode(errors="replace").split("\0") if entry]
    return tuple(entry[3:] for entry in entries if not (entry.startswith("??") and is_cache(entry[3:])))


def taken_back(project: Project, commit: str, main: str, unwanted: Collection[str]) -> str | None:
    """Return the first of some unwanted commits that a commit holds and main does not."""
    if not unwanted:
        return None
    own = set(git("rev-list", commit, f"^{main}", at=project.common).decode().split())
    return next((each for each in unwanted if each in own), None)


def begin(project: Project, target: str, main: str) -> str | None:
    """Return where the branch is on which work lands; an integration branch that is not there yet begins at main."""
    found = candidates.resolve(project, f"refs/heads/{target}")
    at = candidates.resolve(project, f"refs/heads/{main}") if found is None and target != main else None
    if at is None:
        return found
    refs.change(project, Order(f"refs/heads/{target}", at, ""))  # or another has just done so
    return candidates.resolve(project, f"refs/heads/{target}")


def set_aside(project: Project, worktrees: Worktrees, task: str, branch: str, base: str, *, is_first: bool) -> None:
    """Give a task's branch another name if it holds work of which nobody knows: it is not the task's.

    Before its first run a task has no work at all, whatever refs say.
    """
    tip = candidates.resolve(project, f"refs/heads/{branch}")
    if tip is None or candidates.is_ancestor(project, tip, base):
        return
    kept = candidates.resolve(project, f"{TASK_REFS}{task}")
    if kept is not None and not is_first and candidates.is_ancestor(project, kept, tip):
        return
    put(project, kept_ref(task, tip), tip)
    worktrees.drop_branch(branch, tip)


def give_up(project: Project, task: str, branch: str) -> None:
    """Let go of a branch that git cannot check out or read; its commits are kept under another name if git can."""
    name = f"refs/heads/{branch}"
    tip = try_git("rev-parse", "--verify", "--quiet", name, at=project.common).stdout.decode().strip()
    if not tip or checkouts.holder(project, branch) is not None:
        return
    if try_git("rev-list", "--objects", "--quiet", tip, "--", at=project.common).returncode == 0:
        put(project, kept_ref(task, tip), tip)
    refs.change(project, Order(name, None, tip))


def can_be_checked_out(project: Project, commit: str) -> bool:
    """Say whether git would write the files of a commit into a checkout at all, and has them."""
    with private_git(project, project.common) as git:
        asked = (("read-tree", commit), ("rev-list", "--objects", "--no-walk", "--quiet", commit, "--"))
        return all(git.ask(*words).returncode == 0 for words in asked)


def keep(project: Project, task: str, commit: str) -> None:
    """Keep the work of a task reachable, whatever becomes of its branch."""
    put(project, f"{TASK_REFS}{task}", commit)


def let_go(project: Project, tasks: Iterable[str]) -> None:
    """Keep the work of tasks no longer for its own sake: it has landed. Work from outside was never kept."""
    refs.change(project, *(Order(f"{TASK_REFS}{task}", None) for task in dict.fromkeys(tasks)))


def put(project: Project, name: str, commit: str) -> None:
    """Let a ref of covey's own be at a commit, wherever it was."""
    done = refs.change(project, Order(name, commit))
    if done.returncode != 0:
        raise ToolFailed(f"{name} could not be moved: {complaint(done)}.")
