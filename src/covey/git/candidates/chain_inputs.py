"""What a chain is built from: the commits that each branch adds, and which paths it and main have changed.

Three processes read it for any number of branches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path

from covey.errors import NotFound, ToolFailed
from covey.git import objects, straight
from covey.git.candidates import PATIENCE, Author
from covey.git.carry import Change, Entry
from covey.git.project import Project
from covey.git.run import git, try_git
from covey.git.straight import Commit
from covey.values import dataclass

Trees = tuple[str, str]
_DATE = re.compile(r"[0-9]{1,18} [+-][0-9]{4}")
_FIELDS = ["%m", "%H", "%T", "%P", "%an", "%ae", "%ad", "%B"]
KEPT = 1000
"""Commits up to which the last answer is kept: what joins is looked at, and then built, from the same ones."""
_last: dict[tuple[object, ...], list[Commit]] = {}
_differences: dict[tuple[Path, str, str], list[Change]] = {}
"""In which paths trees differ that were compared of late: what joins is compared, and then built, with the same."""


@dataclass(frozen=True)
class Work:
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
    if any(not name.isprintable() for name in names):
        raise NotFound("The name of a commit holds no line ends and the like.")
    tree, *found = [None if each is None else each.name for each in objects.infos(project, names)]
    must = [_there(name, commit) for name, commit in zip(wanted, found, strict=False)]
    others = [commit for commit in found[len(wanted) :] if commit is not None]
    return Base(must[0], _there(base, tree)), must[1:], others


def _there(name: str, commit: str | None) -> str:
    if commit is None:
        raise NotFound(f"There is no commit {name}.")
    return commit


def works(project: Project, base: str, tips: Sequence[str]) -> tuple[dict[str, Work], dict[str, Commit]]:
    """Return what each tip adds to `base`, and every commit that was read, in one process."""
    read = _commits(project, base, tips)
    graph = {commit.name: commit for commit in read}
    return {tip: _work(tip, graph, read) for tip in tips}, graph


def _work(tip: str, graph: dict[str, Commit], read: Sequence[Commit]) -> Work:
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
    return Work(tip, tuple(commit for commit in read if commit.name in own), known if own else ())


def _commits(project: Project, base: str, tips: Sequence[str]) -> list[Commit]:
    """Return the commits that base lacks, parents before children, and those where they left it.

    Commits do not change: who asks the same again gets the same, unless the repository got more history meanwhile.
    """
    key = (project.common, _shallow(project), base, *tips)
    found = _last.get(key)
    if found is None:
        found = straight.commits(project, base, tips)
        found = _read_commits(project, base, tips) if found is None else found
        if len(found) <= KEPT and all(objects.FULL.fullmatch(name) for name in (base, *tips)):
            _last.clear()
            _last[key] = found
    return found


def _shallow(project: Project) -> int:
    """Return when the repository was last given more, or less, of a history that it has only in part."""
    try:
        return os.stat(project.common / "shallow").st_mtime_ns
    except OSError:
        return 0


def _read_commits(project: Project, base: str, tips: Sequence[str]) -> list[Commit]:
    form = "".join(f"{field_}%x00" for field_ in _FIELDS)
    words = ("rev-list", "--stdin", "--boundary", "--topo-order", "--reverse", "--no-commit-header", "--date=raw")
    asked = "".join(f"{name}\n" for name in (*tips, f"^{base}")).encode()
    encoded = ("--encoding=UTF-8", f"--format={form}")
    printed = git(*words, *encoded, at=project.common, stdin=asked, patience=PATIENCE)
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
    read = straight.differences(project, differing)
    if read is None:
        compared = _compare(project, differing)
    else:
        compared = {pair: each.changes for pair, each in read.items()}
    _keep(project, compared)
    return found | compared


def _compare(project: Project, differing: Sequence[Trees]) -> dict[Trees, list[Change]]:
    found: dict[Trees, list[Change]] = {pair: [] for pair in differing}
    asked = "".join(f"{one} {other}\n" for one, other in differing).encode()
    words = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
    fields = iter(git(*words, at=project.common, stdin=asked, patience=PATIENCE).split(b"\0"))
    these: list[Change] = []
    answered = set()
    for meta in fields:
        heads, _, entry = meta.rpartition(b"\n")
        for head in heads.decode().splitlines():  # more than one where trees differ only in how they are written
            one, other = head.split(" ")
            these = found[one, other]
            answered.add((one, other))
        if entry:
            old_mode, new_mode, old, new, _ = entry.lstrip(b":").split(b" ")
            these.append(Change(next(fields), _entry(old_mode, old), _entry(new_mode, new)))
    if unread := [pair for pair in differing if pair not in answered]:
        # git only complains of a tree that is not there, and goes on as if nothing differed.
        raise ToolFailed(f"git cannot compare the trees {unread[0][0][:12]} and {unread[0][1][:12]}.")
    return found


def _keep(project: Project, read: dict[Trees, list[Change]]) -> None:
    """Keep in which paths trees differ, as long as that is little: their names say all that is in them."""
    if sum(map(len, read.values())) > KEPT:
        return
    if sum(map(len, _differences.values())) + len(_differences) > KEPT:
        _differences.clear()
    _differences.update({(project.common, *pair): changes for pair, changes in read.items()})


def is_whole(project: Project, tip: str, base: str) -> bool:
    """Say whether everything that a tip adds to a base is there to be read."""
    words = ("rev-list", "--objects", "--quiet", "--end-of-options", tip, f"^{base}")
    return try_git(*words, at=project.common, patience=PATIENCE).returncode == 0


def _entry(mode: bytes, name: bytes) -> Entry | None:
    return None if mode == b"000000" else (mode, name)


@dataclass
class Touched:
    """The paths that one side of a merge has changed, in a form that tells quickly whether another comes near them."""

    paths: set[bytes] = field(default_factory=set)
    changed: set[bytes] = field(default_factory=set)
    """Those that were there before and are there still."""
    above: set[bytes] = field(default_factory=set)
    """The folders that the paths lie in."""
    gone_from: set[bytes] = field(default_factory=set)
    new_in: set[bytes] = field(default_factory=set)
    """The folders that files were taken from or put into, and those above them."""

    def add(self, changes: Iterable[Change]) -> Touched:
        """Take in more changes."""
        for change in changes:
            folders = list(_folders(change.path))
            self.paths.add(change.path)
            self.above.update(folders)
            if change.old is not None and change.new is not None:
                self.changed.add(change.path)
            if change.new is None:
                self.gone_from.update(folders)
                if not folders:
                    self.gone_from.add(b"")
            if change.old is None:
                self.new_in.update(folders, (b"",))
        return self

    def is_apart_from(self, other: Touched) -> bool:
        """Say whether git merges the two by taking each path from the side that changed it, whatever its settings.

        It compares contents only where both changed a path, or one took it away that the other changed. What it does
        with folders that got another name needs files that went from a folder into which the other side put some.
        """
        return self.paths.isdisjoint(other.paths) and self.meets_only_in_files(other)

    def meets_only_in_files(self, other: Touched) -> bool:
        """Say whether git merges the two path by path: then what a third one does elsewhere changes nothing of it."""
        return (
            (self.paths & other.paths) <= (self.changed & other.changed)
            and self.paths.isdisjoint(other.above)
            and self.above.isdisjoint(other.paths)
            and self.gone_from.isdisjoint(other.new_in)
            and self.new_in.isdisjoint(other.gone_from)
        )


def _folders(path: bytes) -> Iterator[bytes]:
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)
