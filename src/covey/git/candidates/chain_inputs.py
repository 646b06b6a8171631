"""What a chain is built from: the commits that each branch adds, and which paths it and main have changed.

Three processes read it for any number of branches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from covey import files
from covey.errors import ToolFailed
from covey.git import objects
from covey.git.candidates import linear_branches
from covey.git.candidates.candidates import MERGE_TIMEOUT_S, Author, Change, Trees, compare, full_names, there
from covey.git.candidates.linear_branches import Commit
from covey.git.project import Project
from covey.git.run import git, try_git
from covey.values import dataclass

_DATE = re.compile(r"[0-9]{1,18} [+-][0-9]{4}")
_FIELDS = ["%m", "%H", "%T", "%P", "%an", "%ae", "%ad", "%B"]
MAX_KEPT_COMMITS = 1000
"""Commits up to which the last answer is kept: what joins is looked at, and then built, from the same ones."""
_last: dict[tuple[object, ...], list[Commit]] = {}
_differences: dict[tuple[Path, str, str], list[Change]] = {}
"""In which paths trees differ that were compared of late: what joins is compared, and then built, with the same."""


@dataclass(frozen=True)
class BranchCommits:
    """What one branch adds to main: its commits, the oldest first, and the commits of main that they stand on."""

    tip: str
    own: tuple[Commit, ...]
    forks: tuple[Commit, ...]

    @property
    def fork(self) -> Commit | None:
        """Return the one commit where the branch left main; None if there are several, or none."""
        return self.forks[0] if len(self.forks) == 1 else None

    @property
    def names(self) -> frozenset[str]:
        """Return the names of its commits."""
        return frozenset(commit.name for commit in self.own)


@dataclass(frozen=True)
class Base:
    """The commit that a chain begins on."""

    commit: str
    tree: str


def resolve_all(
    project: Project, base: str, tips: Sequence[str], held: Sequence[str] = ()
) -> tuple[Base, list[str], list[str]]:
    """Return what the names of a base, of tips and of others stand for; the others may be gone."""
    wanted = (base, *tips)
    names = (f"{base}^{{tree}}", *(f"{name}^{{commit}}" for name in (*wanted, *held)))
    tree, *found = full_names(project, names)
    must = [there(name, commit) for name, commit in zip(wanted, found, strict=False)]
    others = [commit for commit in found[len(wanted) :] if commit is not None]
    return Base(must[0], there(base, tree)), must[1:], others


def works(project: Project, base: str, tips: Sequence[str]) -> tuple[dict[str, BranchCommits], dict[str, Commit]]:
    """Return what each tip adds to `base`, and every commit that was read, in one process."""
    graph = {commit.name: commit for commit in _commits(project, base, tips)}
    return {tip: commits_of(tip, graph) for tip in tips}, graph


def commits_of(tip: str, graph: dict[str, Commit]) -> BranchCommits:
    """Return what one branch adds to main, from the commits that were read, parents before children."""
    own: set[str] = set()
    forks: set[str] = set()
    pending = [tip]
    while pending:
        name = pending.pop()
        if name not in graph or not graph[name].is_own:
            forks.add(name)
        elif name not in own:
            own.add(name)
            pending += graph[name].parents
    known = tuple(graph[name] for name in sorted(forks) if name in graph)
    return BranchCommits(tip, tuple(commit for commit in graph.values() if commit.name in own), known if own else ())


def _commits(project: Project, base: str, tips: Sequence[str]) -> list[Commit]:
    """Return the commits that base lacks, parents before children, and those where they left it.

    Commits do not change: who asks the same again gets the same, unless the repository got more history meanwhile.
    """
    shallow = files.status(project.common / "shallow", follow=True)  # written anew with more, or less, of the history
    key = (project.common, shallow and shallow.st_mtime_ns, base, *tips)
    found = _last.get(key)
    if found is None:
        found = linear_branches.commits(project, base, tips)
        found = read_commits(project, base, tips) if found is None else found
        if len(found) <= MAX_KEPT_COMMITS and all(objects.FULL.fullmatch(name) for name in (base, *tips)):
            _last.clear()
            _last[key] = found
    return found


def read_commits(project: Project, base: str, tips: Sequence[str]) -> list[Commit]:
    """Let git list the commits that base lacks, parents before children, and those where they left it."""
    form = "".join(f"{field_}%x00" for field_ in _FIELDS)
    words = ("rev-list", "--stdin", "--boundary", "--topo-order", "--reverse", "--no-commit-header", "--date=raw")
    asked = "".join(f"{name}\n" for name in (*tips, f"^{base}")).encode()
    encoded = ("--encoding=UTF-8", f"--format={form}")
    printed = git(*words, *encoded, at=project.common, stdin=asked, patience=MERGE_TIMEOUT_S)
    fields = printed.decode("utf-8", "surrogateescape").split("\0")
    found = []
    for at in range(0, len(fields) - 1, len(_FIELDS)):
        mark, name, tree, parents, who, email, date, message = fields[at : at + len(_FIELDS)]
        author = Author(who, email, date if _DATE.fullmatch(date) else "")
        own = mark.strip() != "-"
        found.append(Commit(name, tree, tuple(parents.split()), author, message, own))
    return found


def changes(project: Project, pairs: Iterable[Trees]) -> dict[Trees, list[Change]]:
    """Return the paths in which trees differ, in one process; a file that got another name counts under both."""
    wanted = list(dict.fromkeys(pairs))
    found: dict[Trees, list[Change]] = {pair: _differences.get((project.common, *pair), []) for pair in wanted}
    differing = [pair for pair in wanted if pair[0] != pair[1] and (project.common, *pair) not in _differences]
    if not differing:
        return found
    read = linear_branches.differences(project, differing)
    if read is None:
        compared = compare(project, differing)
        if unread := [pair for pair in differing if pair not in compared]:
            raise ToolFailed(f"git cannot compare the trees {unread[0][0][:12]} and {unread[0][1][:12]}.")
    else:
        compared = {pair: each.changes for pair, each in read.items()}
    _keep(project, compared)
    return found | compared


def _keep(project: Project, read: dict[Trees, list[Change]]) -> None:
    """Keep in which paths trees differ, as long as that is little: their names say all that is in them."""
    if sum(map(len, read.values())) > MAX_KEPT_COMMITS:
        return
    if sum(map(len, _differences.values())) + len(_differences) > MAX_KEPT_COMMITS:
        _differences.clear()
    _differences.update({(project.common, *pair): changes for pair, changes in read.items()})


def is_whole(project: Project, tip: str, base: str) -> bool:
    """Say whether everything that a tip adds to a base is there to be read."""
    words = ("rev-list", "--objects", "--quiet", "--end-of-options", tip, f"^{base}")
    return try_git(*words, at=project.common, patience=MERGE_TIMEOUT_S).returncode == 0
