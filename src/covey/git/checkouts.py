"""Checkouts: where a branch is checked out, or about to be by a rebase or a bisect under way."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from covey.git import entries
from covey.git.project import Project
from covey.git.run import named_env, try_git
from covey.values import dataclass

UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}


@dataclass(frozen=True)
class Checkout:
    """One checkout that holds a branch: its files, its own git folder, and what stands in the way of moving it."""

    path: Path
    folder: Path
    obstacle: str = ""


def holding(project: Project, branch: str) -> list[Checkout]:
    """Return every checkout of a person that holds a branch, by HEAD or by a rebase or bisect that will return to it.

    A worktree of covey's own never does, whatever its session wrote there. A folder that is gone counts only when its
    worktree is locked, as git asks for drives that come and go: the others are what `git worktree prune` forgets. The
    files are read rather than git asked, since one entry that is half made, or twisted, lets git fail for all of them.
    """
    ours = made_by_covey(project)
    found = []
    for folder in git_folders(project):
        path = None if folder == project.common and project.bare else path_of(project, folder)
        if path is None or (folder.name in ours and folder != project.common):
            continue
        obstacle = _obstacle(folder, branch)
        if obstacle is None:
            continue
        if not os.path.lexists(path / ".git") and folder != project.common:
            if not (folder / "locked").exists():
                continue
            obstacle = "its folder is not there, and its worktree is locked"
        found.append(Checkout(path, folder, obstacle))
    return found


def made_by_covey(project: Project) -> set[str]:
    """Return the names of git's folders of all worktrees that covey made."""
    found = set()
    for record in (project.state / "worktrees").glob("*.made"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found.add(str(json.loads(record.read_bytes())["id"]))
    return found


def _obstacle(folder: Path, branch: str) -> str | None:
    """Return what stands in the way of moving a branch that is checked out here, None if it is not."""
    if _stands_for(folder, branch):
        return f"{begun} is under way there" if (begun := unfinished(folder)) else ""
    returning = _returning_to(folder, branch) if entries.branch(folder) is None else ""
    return f"{returning} of {branch} is under way there" if returning else None


def _stands_for(folder: Path, branch: str) -> bool:
    """Say whether HEAD stands for a branch; a HEAD that is a link is git's oldest way to say so."""
    head = folder / "HEAD"
    named = os.readlink(head).removeprefix("refs/heads/") if head.is_symlink() else entries.branch(folder)
    return _asked_head(folder) == branch if named == ".invalid" else named == branch


def _asked_head(folder: Path) -> str:
    """Return the branch that git says HEAD stands for, where refs are not kept in files."""
    asked = try_git("symbolic-ref", "--quiet", "HEAD", at=folder, env=named_env(folder))
    return os.fsdecode(asked.stdout.strip()).removeprefix("refs/heads/")


def is_on(checkout: Checkout, branch: str) -> bool:
    """Say whether HEAD of a checkout stands for a branch at this moment."""
    return _stands_for(checkout.folder, branch)


def git_folders(project: Project) -> list[Path]:
    """Return the git folder of every checkout: the repository's own, and one for each linked worktree."""
    try:
        linked = sorted(entry for entry in (project.common / "worktrees").iterdir() if entry.is_dir())
    except FileNotFoundError:
        linked = []
    return [project.common, *linked]


def path_of(project: Project, folder: Path) -> Path | None:
    """Return where the files of a git folder's checkout are."""
    if folder == project.common:
        return project.root
    try:
        named = (folder / "gitdir").read_bytes().rstrip(b"\n")
    except OSError:
        return None
    return Path(os.path.normpath(folder / os.fsdecode(named))).parent


def unfinished(folder: Path) -> str:
    """Name what a person has begun in a checkout and not ended, or nothing."""
    return next((what for name, what in UNFINISHED.items() if (folder / name).exists()), "")


def _returning_to(folder: Path, branch: str) -> str:
    """Say whether a checkout without a branch is in the middle of a rebase or bisect of this one."""
    full = f"refs/heads/{branch}"
    for name in ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs"):
        if full in _lines(folder / name):
            return "a rebase"
    return "a bisect" if {branch, full} & set(_lines(folder / "BISECT_START")) else ""


def _lines(path: Path) -> list[str]:
    try:
        return os.fsdecode(path.read_bytes()).splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
