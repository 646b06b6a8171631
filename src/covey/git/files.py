"""Which files main has."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from covey.git.project import Project
from covey.git.run import git, try_git

_LISTING_PATIENCE_S = 60.0


def tracked(project: Project, branch: str) -> tuple[str, ...]:
    """Return the paths of all files of a branch, none if there is no such branch."""
    asked = try_git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{tree}}", at=project.common)
    return _paths(project.common, asked.stdout.decode().strip()) if asked.returncode == 0 else ()


@lru_cache(maxsize=2)
def _paths(common: Path, tree: str) -> tuple[str, ...]:
    words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
    listed = git(*words, at=common, patience=_LISTING_PATIENCE_S)
    return tuple(path.decode("utf-8", "replace") for path in listed.split(b"\0") if path)
