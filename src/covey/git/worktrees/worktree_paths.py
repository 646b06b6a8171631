"""Where a path that an agent names really lies: in its own worktree, in another's, or beyond all of them."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from covey.core.leases.write_policy import Write
from covey.git.guard import commit_paths
from covey.git.project import Project
from covey.git.worktrees.checkout_status import uncommitted
from covey.git.worktrees.worktrees import Worktrees
from covey.values import dataclass

STATUS_TIMEOUT_S = 5.0
"""Seconds that a look at a worktree may take."""
MAX_NAMED = 10_000
"""Names that are looked at to find where the patterns of a command lead."""
_WILD = re.compile(r"[*?\[]")
_ANY = re.compile(r"[*?]+")
"""What stands for something in a pattern; a shell may take one letter for several of ours."""


@dataclass(frozen=True)
class OwnedPath:
    """A path relative to the writer's worktree, or whose place it is instead; neither if it is nobody's of ours."""

    path: str | None = None
    whose: str | None = None


@dataclass(frozen=True)
class PathOwners:
    """The folders of one project."""

    project: Project
    worktrees: Worktrees

    def of(self, worktree: Path, cwd: str, given: str) -> OwnedPath:
        """Return where a path lies, through symbolic links and `..`; it need not be there yet."""
        try:
            real = os.path.realpath(os.path.join(worktree, cwd, given))
        except (OSError, ValueError):  # too many links, or no path at all
            return OwnedPath()
        inside = _below(real, os.path.realpath(worktree))
        if inside is not None:
            is_git = inside in ("", ".git") or inside.startswith(".git/")
            return OwnedPath(whose="git itself") if is_git else OwnedPath(inside)
        if _below(real, os.path.realpath(self.project.common)) is not None:
            return OwnedPath(whose="git itself, and all worktrees share it")
        other = _below(real, os.path.realpath(self.worktrees.folder))
        if other:
            return OwnedPath(whose=f"the worktree of {other.partition('/')[0]}")
        if _below(real, os.path.realpath(self.project.root)) is not None:
            return OwnedPath(whose="the checkout of the person in charge")
        return OwnedPath()


def write_of(worktree: Path, path: str, now: float, *, tracked: bool = True) -> Write:
    """Return when a path was last written: by the change time of the file, or of its folder if it is gone."""
    return Write(path, commit_paths.changed(worktree, path, now), new=not tracked and os.path.lexists(worktree / path))


def unsaved(project: Project, worktree: Path, now: float) -> list[Write]:
    """Return what differs from the last commit in a worktree, untracked files too; fails if that takes too long."""
    return [
        write_of(worktree, path, now, tracked=code not in ("??", "A ", "AM"))
        for code, path in uncommitted(project, worktree, STATUS_TIMEOUT_S, apart=True)
        if path.isprintable()
    ]


def _below(path: str, folder: str) -> str | None:
    """Return a path relative to a folder, None if it is not in it."""
    if path == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder.rstrip("/") + "/") else None


def leads_out(paths: Iterable[str], folder: Path) -> bool:
    """Say whether one of some paths, or a name that a pattern may stand for, leads out of a folder by a link.

    What is not there leads nowhere; a pattern with too many names to look at may lead anywhere.
    """
    top = os.path.realpath(folder)
    left = [_from(os.path.join(top, path), str(folder), top) for path in paths]
    for _ in range(MAX_NAMED):
        if not left:
            return False
        place, parts = left.pop()
        at = next((number for number, part in enumerate(parts) if _WILD.search(part)), None)
        if at is not None:
            left += _named("/".join([place, *parts[:at]]), parts[at], parts[at + 1 :])
        elif _below(os.path.realpath("/".join([place, *parts])), top) is None:
            return True
    return True


def _from(path: str, *folders: str) -> tuple[str, list[str]]:
    """Return a path as the folder that it is in, where nothing is a pattern, and its parts below that."""
    below, folder = next(((below, each) for each in folders if (below := _below(path, each)) is not None), (path, ""))
    return folder, [part for part in below.split("/") if part]


def _named(folder: str, pattern: str, rest: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the places for which a pattern may stand, with what follows it: all that a shell finds there, or more."""
    deep = len(pattern) > 1 and not pattern.strip("*")
    if deep:
        yield folder, rest
    known, bracket, _ = pattern.lower().partition("[")
    wanted = _ANY.sub("*", known) + ("*" if bracket else "")
    for entry in _entries(folder):
        if deep and entry.is_dir(follow_symlinks=False):
            yield entry.path, [pattern, *rest]
        elif fnmatch.fnmatchcase(entry.name.lower(), wanted) and (entry.is_symlink() or not rest or entry.is_dir()):
            yield entry.path, rest


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:  # whoever reads there finds nothing either
        return []


def is_another_repository(folders: Iterable[str], worktree: Path) -> bool:
    """Say whether git, begun in one of some folders, may find another repository there than that of a worktree.

    Its settings may name any program, and whoever can write files can write one.
    """
    top = os.path.realpath(worktree)
    for folder in folders:
        place = os.path.realpath(os.path.join(top, folder))
        while place != top:
            if _below(place, top) is None or any(os.path.lexists(f"{place}/{name}") for name in (".git", "HEAD")):
                return True
            place = os.path.dirname(place)
    return False
