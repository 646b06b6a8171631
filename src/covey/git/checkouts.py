"""Checkouts: where a branch is checked out, or about to be by a rebase or a bisect under way."""

from __future__ import annotations

import os
import time
from pathlib import Path

from covey.errors import ToolFailed
from covey.git.project import Project
from covey.git.run import complaint, named_env, try_git
from covey.values import dataclass

TRIES = 20

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
    """Return every checkout that holds a branch, by HEAD or by a rebase or bisect that will return to it.

    A folder that is gone counts only when its worktree is locked, as git asks for drives that come and go: the others
    are what `git worktree prune` forgets.
    """
    folders = _own_folders(project)
    found = []
    for number, facts in enumerate(_listed(project)):
        path = project.root if number == 0 else Path(os.fsdecode(facts[b"worktree"]))
        folder = project.common if number == 0 else folders.get(os.fsencode(path))
        if b"bare" in facts or folder is None:
            continue
        if facts.get(b"branch") == os.fsencode(f"refs/heads/{branch}"):
            obstacle = f"{begun} is under way there" if (begun := unfinished(folder)) else ""
        elif b"detached" in facts and (returning := _returning_to(folder, branch)):
            obstacle = f"{returning} of {branch} is under way there"
        else:
            continue
        if not path.is_dir() or b"prunable" in facts:
            if b"locked" not in facts:
                continue
            obstacle = "its folder is not there, and its worktree is locked"
        found.append(Checkout(path, folder, obstacle))
    return found


def is_on(checkout: Checkout, branch: str) -> bool:
    """Say whether HEAD of a checkout stands for a branch at this moment."""
    head = (checkout.folder / "HEAD").read_bytes().strip()
    if head.startswith(b"ref: ") and not head.endswith(b"/.invalid"):
        return head == os.fsencode(f"ref: refs/heads/{branch}")
    asked = try_git("symbolic-ref", "--quiet", "HEAD", at=checkout.folder, env=named_env(checkout.folder))
    return asked.stdout.strip() == os.fsencode(f"refs/heads/{branch}")


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


def _listed(project: Project) -> list[dict[bytes, bytes]]:
    """Return what git says of each worktree; a list that fails while another worktree is half made is asked again."""
    asked = try_git("worktree", "list", "--porcelain", "-z", at=project.common)
    for _ in range(TRIES):
        if asked.returncode == 0:
            break
        time.sleep(0.01)
        asked = try_git("worktree", "list", "--porcelain", "-z", at=project.common)
    if asked.returncode != 0:
        raise ToolFailed(f"git worktree failed: {complaint(asked)}.")
    records = asked.stdout.split(b"\0\0")
    lines = ([line.partition(b" ") for line in record.split(b"\0") if line] for record in records)
    return [{name: value for name, _, value in record} for record in lines if record]


def _own_folders(project: Project) -> dict[bytes, Path]:
    named = ((path_of(project, folder), folder) for folder in git_folders(project)[1:])
    return {os.fsencode(path): folder for path, folder in named if path is not None}


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
