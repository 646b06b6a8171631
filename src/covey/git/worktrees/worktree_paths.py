"""Where a path that an agent names really lies: in its own worktree, in another's, or beyond all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from covey.core.force import Write
from covey.git import written
from covey.git.looks import NO_SUBMODULES, look
from covey.git.project import Project
from covey.git.worktrees import Worktrees
from covey.values import dataclass

PATIENCE = 5.0
"""Seconds that a look at a worktree may take."""


@dataclass(frozen=True)
class Place:
    """A path relative to the writer's worktree, or whose place it is instead; neither if it is nobody's of ours."""

    path: str | None = None
    whose: str | None = None


@dataclass(frozen=True)
class Places:
    """The folders of one project."""

    project: Project
    worktrees: Worktrees

    def of(self, worktree: Path, cwd: str, given: str) -> Place:
        """Return where a path lies, through symbolic links and `..`; it need not be there yet."""
        try:
            real = os.path.realpath(os.path.join(worktree, cwd, given))
        except (OSError, ValueError):  # too many links, or no path at all
            return Place()
        inside = _below(real, os.path.realpath(worktree))
        if inside is not None:
            return Place(inside) if inside and not _is_git(inside) else Place(whose="git itself")
        if _below(real, os.path.realpath(self.project.common)) is not None:
            return Place(whose="git itself, and all worktrees share it")
        other = _below(real, os.path.realpath(self.worktrees.folder))
        if other:
            return Place(whose=f"the worktree of {other.partition('/')[0]}")
        if _below(real, os.path.realpath(self.project.root)) is not None:
            return Place(whose="the checkout of the person in charge")
        return Place()


def write_of(worktree: Path, path: str, now: float, *, tracked: bool = True) -> Write:
    """Return when a path was last written: by the change time of the file, or of its folder if it is gone."""
    return Write(path, written.changed(worktree, path, now), new=not tracked and os.path.lexists(worktree / path))


def unsaved(project: Project, worktree: Path, now: float) -> list[Write]:
    """Return what differs from the last commit in a worktree, untracked files too; fails if that takes too long."""
    with look(project, worktree) as seen:
        told = seen.ask(*_status(), patience=PATIENCE, apart=True)
    if told.returncode:
        return []
    found: list[Write] = []
    for entry in told.stdout.decode(errors="surrogateescape").split("\0"):
        code, path = entry[:2], entry[3:]
        if path and path.isprintable():
            found.append(write_of(worktree, path, now, tracked=code not in ("??", "A ", "AM")))
    return found


def _status() -> tuple[str, ...]:
    return ("status", "--porcelain=v1", "-z", "--no-renames", NO_SUBMODULES, "--untracked-files=all")


def _below(path: str, folder: str) -> str | None:
    """Return a path relative to a folder, None if it is not in it."""
    if path == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder.rstrip("/") + "/") else None


def _is_git(path: str) -> bool:
    return path == ".git" or path.startswith(".git/")


def leads_out(paths: Iterable[str], folder: Path) -> bool:
    """Say whether one of some paths leads out of a folder by a link; what is not there leads nowhere."""
    top = os.path.realpath(folder)
    places = (os.path.realpath(os.path.join(top, path)) for path in paths)
    return not all(place == top or place.startswith(f"{top}/") for place in places)
