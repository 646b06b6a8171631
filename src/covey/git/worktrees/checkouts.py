"""Checkouts: where a branch is checked out, or about to be by a rebase or a bisect under way."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path

from covey.git import refs
from covey.git.project import Project
from covey.git.run import named_env, try_git
from covey.git.worktrees import worktree_admin
from covey.git.worktrees.worktree_records import UNREADABLE
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

    A folder that is gone counts only when its worktree is locked, as git asks for drives that come and go: the others
    are what `git worktree prune` forgets. The files are read rather than git asked, since one entry that is half made,
    or twisted, lets git fail for all of them.
    """
    found = []
    for checkout in of_people(project):
        obstacle = _obstacle(checkout.folder, branch)
        if obstacle is None:
            continue
        if not checkout.path.is_dir():
            obstacle = "its folder is not there, and its worktree is locked"
        found.append(replace(checkout, obstacle=obstacle))
    return found


def of_people(project: Project) -> list[Checkout]:
    """Return every checkout that is a person's, and those that are gone if they are locked.

    Neither a worktree of covey's own is, whatever its session wrote there, nor one that a session made for itself, nor
    any folder that does not say itself that it belongs to the entry: nobody's files are touched for what an entry says.
    """
    ours = set()
    for record in project.records.glob("*.made"):
        with contextlib.suppress(OSError, *UNREADABLE):  # what else is wrong with a record, its id says whose this is
            ours.add(str(json.loads(record.read_bytes())["id"]))
    found = [] if project.bare else [Checkout(project.root, project.common)]
    for folder in worktree_admin.entries(project.common):
        path = worktree_admin.place(folder)
        if path is None or folder.name in ours:
            continue
        moves = refs.moves(folder / "logs" / "HEAD")
        if moves and all(refs.is_of_a_session(move) for move in moves):
            continue
        is_gone = not os.path.lexists(path / ".git")
        pointed = worktree_admin.pointed_at(path)
        is_its_own = pointed is not None and os.path.realpath(path / pointed) == os.path.realpath(folder)
        if is_its_own or (moves and is_gone and os.path.lexists(folder / "locked")):
            found.append(Checkout(path, folder))
    return found


def _obstacle(folder: Path, branch: str) -> str | None:
    """Return what stands in the way of moving a branch that is checked out here, None if it is not."""
    if is_on(folder, branch):
        return f"{begun} is under way there" if (begun := unfinished(folder)) else ""
    if worktree_admin.branch(folder) is not None:
        return None
    full = f"refs/heads/{branch}"
    names = ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs")
    if any(full in _lines(folder / name) for name in names):
        return f"a rebase of {branch} is under way there"
    is_bisected = {branch, full} & set(_lines(folder / "BISECT_START"))
    return f"a bisect of {branch} is under way there" if is_bisected else None


def is_on(folder: Path, branch: str) -> bool:
    """Say whether HEAD stands for a branch at this moment; a HEAD that is a link is git's oldest way to say so."""
    head = folder / "HEAD"
    named = os.readlink(head).removeprefix("refs/heads/") if head.is_symlink() else worktree_admin.branch(folder)
    if named == ".invalid":  # refs are not kept in files
        asked = try_git("symbolic-ref", "--quiet", "HEAD", at=folder, env=named_env(folder))
        named = os.fsdecode(asked.stdout.strip()).removeprefix("refs/heads/")
    return named == branch


def git_folders(project: Project) -> list[Path]:
    """Return the git folder of every checkout: the repository's own, and one for each linked worktree."""
    return [project.common, *worktree_admin.entries(project.common)]


def holder(project: Project, branch: str) -> Path | None:
    """Return the git folder of a checkout that holds a branch, None if none does."""
    return next((folder for folder in git_folders(project) if worktree_admin.holds(folder, branch)), None)


def path_of(project: Project, folder: Path) -> Path | None:
    """Return where the files of a git folder's checkout are."""
    return project.root if folder == project.common else worktree_admin.place(folder)


def unfinished(folder: Path) -> str:
    """Name what a person has begun in a checkout and not ended, or nothing."""
    return next((what for name, what in UNFINISHED.items() if (folder / name).exists()), "")


def _lines(path: Path) -> list[str]:
    return worktree_admin.read_small(path).splitlines()
