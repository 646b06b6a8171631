"""What main has that a branch has not, and what branches hold of main that the branch on which work lands lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from covey.core.merging.rejection import Commit, Since
from covey.git.candidates.candidates import (
    MERGE_TIMEOUT_S,
    changed_paths,
    is_ancestor,
    is_held,
    merge_base,
    readable,
    resolve,
)
from covey.git.project import Project
from covey.git.run import git

MAX_COMMITS_OR_PATHS = 300
"""Commits of main that are looked at, and paths of each, and of the branch."""
_LOG_FORMAT = "--format=%x1e%H%x1f%an%x1f%s%x1f"


def since(project: Project, tip: str, onto: str) -> Since:
    """Return what `onto` has that `tip` has not, along main's own line and the newest first, and what `tip` changed."""
    base = merge_base(project, onto, tip)
    paths = tuple(changed_paths(project, onto, tip)[:MAX_COMMITS_OR_PATHS])
    return Since(base=base, onto=onto, paths=paths, commits=_commits(project, tip, onto))


def first_held(project: Project, known: Iterable[str], tip: str) -> str | None:
    """Return the first of some commits that `tip` holds; those that git has forgotten are none."""
    return next((each for each in known if is_held(project, each, tip)), None)


def titles(project: Project, tip: str, since: str | None, limit: int) -> list[str]:
    """Return the newest commits of `tip` that `since` lacks, each with its author and subject."""
    without = () if since is None else (f"^{since}",)
    words = ("log", "--format=%h by %an (%s)", f"-{limit}", tip, *without)
    return git(*words, at=project.common).decode(errors="replace").splitlines()


def ordered(project: Project, tip: str, below: Collection[str]) -> list[str]:
    """Return the commits of `tip` that none of those below holds, the oldest first; git may have forgotten some."""
    asked = "".join(f"{name}\n" for name in (tip, *(f"^{commit}" for commit in sorted(below)))).encode()
    words = ("rev-list", "--topo-order", "--reverse", "--ignore-missing", "--stdin")
    return git(*words, at=project.common, stdin=asked).decode().split()


def missing(project: Project, main: str, base: str, tips: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the commits at which tips left `main` and that `base` lacks, each with the names of these tips."""
    newest = resolve(project, f"refs/heads/{main}")
    if newest is None or is_ancestor(project, newest, base):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for name, tip in tips.items():
        commit = resolve(project, tip)
        shared = "" if commit is None else merge_base(project, newest, commit)
        if shared and not is_ancestor(project, shared, base):
            found[shared] = (*found.get(shared, ()), name)
    return found


def _commits(project: Project, tip: str, onto: str) -> tuple[Commit, ...]:
    words = (
        "log",
        f"-{MAX_COMMITS_OR_PATHS}",
        "--first-parent",
        "--diff-merges=first-parent",
        "--no-renames",
        "--name-only",
        "-z",
    )
    quiet = ("--no-show-signature", "--no-color", "--no-mailmap", "--encoding=UTF-8")
    printed = git(
        *words, *quiet, _LOG_FORMAT, "--end-of-options", f"{tip}..{onto}", at=project.common, patience=MERGE_TIMEOUT_S
    )
    return tuple(_commit(part) for part in printed.split(b"\x1e")[1:])


def _commit(printed: bytes) -> Commit:
    """Read one commit: hash, author and subject, each with its end, and then the paths."""
    name, author, subject, rest = printed.split(b"\x1f", 3)
    paths = [readable(path) for path in rest.strip(b"\0\n").split(b"\0") if path]
    return Commit(name.decode(), readable(author), readable(subject), tuple(paths[:MAX_COMMITS_OR_PATHS]))
