"""Meanwhile: what main has that a branch has not."""

from __future__ import annotations

from covey.core.sent_back import Commit, Since
from covey.git.candidates import PATIENCE, changed_paths, readable
from covey.git.project import Project
from covey.git.run import git, try_git

MOST = 300
"""Commits of main that are looked at, and paths of each, and of the branch."""
_FORMAT = "--format=%x1e%H%x1f%an%x1f%s%x1f"


def since(project: Project, tip: str, onto: str) -> Since:
    """Return what `onto` has that `tip` has not, along main's own line and the newest first, and what `tip` changed."""
    asked = try_git("merge-base", "--end-of-options", onto, tip, at=project.common)
    base = asked.stdout.decode().strip() if asked.returncode == 0 else ""
    paths = tuple(changed_paths(project, onto, tip)[:MOST])
    return Since(base=base, onto=onto, paths=paths, commits=_commits(project, tip, onto))


def _commits(project: Project, tip: str, onto: str) -> tuple[Commit, ...]:
    words = ("log", f"-{MOST}", "--first-parent", "--diff-merges=first-parent", "--no-renames", "--name-only", "-z")
    quiet = ("--no-show-signature", "--no-color", "--no-mailmap", "--encoding=UTF-8")
    printed = git(*words, *quiet, _FORMAT, "--end-of-options", f"{tip}..{onto}", at=project.common, patience=PATIENCE)
    return tuple(_commit(part) for part in printed.split(b"\x1e")[1:])


def _commit(printed: bytes) -> Commit:
    """Read one commit: hash, author and subject, each with its end, and then the paths."""
    name, author, subject, rest = printed.split(b"\x1f", 3)
    paths = [readable(path) for path in rest.strip(b"\0\n").split(b"\0") if path]
    return Commit(name.decode(), readable(author), readable(subject), tuple(paths[:MOST]))
