"""Straight branches: a few commits, one after another, on a commit of main, read without a process of their own.

Most of what lands is such a branch, and git takes longer to start than to answer for it. Here commits and folders are
read through the reader that stays (`objects`). Whatever is not straight, not short or not plainly written is left to
git, which None stands for; what is answered here is what git would answer.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import chain
from pathlib import Path

from covey.core.merging import tree_rules
from covey.core.merging.tree_rules import FILE_MODES, FOLDER, LINK, MODULE, Row
from covey.errors import ToolFailed
from covey.git import objects
from covey.git.candidates.candidates import MERGE_TIMEOUT_S, Author, Change, Entry
from covey.git.project import Project
from covey.values import dataclass

MAX_READ_HERE = 4
"""Branches, or pairs of folders, up to which reading them here takes less than one process."""
MAX_BRANCH_COMMITS = 32
"""Commits that a short branch has at most."""
MAX_WALKED_COMMITS = 200
"""Commits of main among which is looked for the one that a branch stands on."""
MAX_CHANGED_FOLDERS = 500
MAX_CHANGES = 5000
"""Folders and paths that two folders may differ in: one folder under many names would become millions."""
MAX_OBJECT_BYTES = 1024**2
"""A commit or a folder up to which it is read here."""
MAX_REMEMBERED_COMMITS = 2000
"""Commits that are remembered; they do not change."""
MAX_REMEMBERED_CHARS = 10_000
"""Characters of a message up to which its commit is remembered."""
MAX_REMEMBERED_ENTRIES = 8000
"""Entries of the folders that are remembered: what was looked at when it came is then merged."""
KNOWN_MODES = frozenset((*FILE_MODES, FOLDER, LINK, MODULE))
"""What today's git writes."""

_HASH = rb"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_PLAIN_COMMIT = re.compile(
    rb"tree (?P<tree>" + _HASH + rb")\n(?P<parents>(?:parent " + _HASH + rb"\n)*)"
    rb"author (?P<name>[^\s<>](?:[^\n<>]*[^\s<>])?) <(?P<email>[^\s<>]*)> "
    rb"(?P<date>(?:0|[1-9][0-9]{0,10}) (?:\+[0-9]{4}|-(?!0000)[0-9]{4}))\n"
    rb"committer [^\n<>]*<[^\n<>]*> (?P<at>[0-9]{1,11}) [+-][0-9]{4}\n"
    rb"(?P<more>(?:[^\n]+\n)*)\n(?P<message>[^\0]*)"
)
"""A commit that every program reads alike."""
_ODD = (b"encoding ", b"author ", b"committer ")
"""How no further line of it begins."""


@dataclass(frozen=True)
class Commit:
    """One commit of a branch, or the one where it left main."""

    name: str
    tree: str
    parents: tuple[str, ...]
    author: Author
    message: str
    is_own: bool


@dataclass(frozen=True)
class Branch:
    """A straight branch: its commits, the oldest first, and the commit of main that they stand on."""

    own: tuple[Commit, ...]
    fork: Commit


@dataclass(frozen=True)
class Difference:
    """In which paths two folders differ, and the objects that only the second has there, as far as is known."""

    changes: list[Change]
    new: set[bytes]


_commits: dict[tuple[Path, str], tuple[Commit, int]] = {}
"""Commits with the times of their committers."""
_folders: dict[tuple[Path, str], list[Row]] = {}


class _LeaveToGit(Exception):
    """This is nothing that is read here."""


# Commits


def branches(project: Project, base: str, tips: Sequence[str]) -> list[Branch] | None:
    """Return what each tip adds to `base`, all by their full names; None if git has to be asked."""
    is_named = all(objects.FULL.fullmatch(name) for name in (base, *tips))
    if not is_named or len(tips) > MAX_READ_HERE or _is_partial(project):
        return None
    try:
        return [_branch(project, base, tip) for tip in tips]
    except (_LeaveToGit, ToolFailed):
        return None


def _is_partial(project: Project) -> bool:
    """Say whether commits may have other parents here than they name, or objects may be elsewhere."""
    has_other_parents = any((project.common / name).exists() for name in ("shallow", "info/grafts"))
    return has_other_parents or any((project.common / "objects" / "pack").glob("*.promisor"))


def commits(project: Project, base: str, tips: Sequence[str]) -> list[Commit] | None:
    """Return the commits of branches, parents before children, and those that they stand on; None is left to git."""
    found = branches(project, base, tips)
    if found is None:
        return None
    grown = [each for each in found if each.own]
    read = {each.name: each for each in chain((each.fork for each in grown), *(each.own for each in grown))}
    return list(read.values())


def _branch(project: Project, base: str, tip: str) -> Branch:
    way = _way_down(project, tip, base)
    at = _where_it_left(project, base, {commit.name: number for number, commit in enumerate(way)})
    return Branch(tuple(replace(commit, is_own=True) for commit in reversed(way[:at])), way[at])


def _way_down(project: Project, tip: str, base: str) -> list[Commit]:
    """Return a tip and what it stands on, as long as each commit has one parent."""
    way = [_commit(project, tip)[0]]
    while way[-1].name != base and len(way[-1].parents) == 1 and len(way) <= MAX_BRANCH_COMMITS:
        way.append(_commit(project, way[-1].parents[0])[0])
    return way


def _where_it_left(project: Project, base: str, way: dict[str, int]) -> int:
    """Return the number of the first commit on a way down that `base` holds.

    What base holds is walked down, the newest first, until all that is left to walk lies below that commit: no
    commit above it on the way can be there then, and dates only say how soon this ends.
    """
    first = len(way)
    below: set[str] = set()
    seen, unread = {base}, [base]
    pending: list[tuple[int, str]] = []
    for _ in range(MAX_WALKED_COMMITS):
        if first < len(way) and below.issuperset(unread) and all(name in below for _, name in pending):
            return first
        for name in unread:
            heapq.heappush(pending, (-_commit(project, name)[1], name))
        if not pending:
            break
        _, newest = heapq.heappop(pending)
        parents = _commit(project, newest)[0].parents
        first = min(first, way.get(newest, first))
        if newest in way or newest in below:
            below.update(parents)
        unread = [parent for parent in dict.fromkeys(parents) if parent not in seen]
        seen.update(unread)
    raise _LeaveToGit


def _commit(project: Project, name: str) -> tuple[Commit, int]:
    known = _commits.get((project.common, name))
    if known is None:
        known = _parsed(name, _content(project, name, "commit"))
        if len(_commits) >= MAX_REMEMBERED_COMMITS:
            _commits.clear()
        if len(known[0].message) <= MAX_REMEMBERED_CHARS:
            _commits[project.common, name] = known
    return known


def _parsed(name: str, content: bytes) -> tuple[Commit, int]:
    found = _PLAIN_COMMIT.fullmatch(content)
    if found is None or b"\0" in content or any(line.startswith(_ODD) for line in found["more"].split(b"\n")):
        raise _LeaveToGit
    who, email, date, message = (
        found[part].decode("utf-8", "surrogateescape") for part in ("name", "email", "date", "message")
    )
    parents = tuple(found["parents"].decode().split()[1::2])
    return Commit(name, found["tree"].decode(), parents, Author(who, email, date), message, False), int(found["at"])


def _content(project: Project, name: str, kind: str) -> bytes:
    """Return what an object of this kind and name holds, if that is little and really of this name."""
    (info,) = objects.infos(project, [name], MERGE_TIMEOUT_S)
    if info is None or info.kind != kind or info.size > MAX_OBJECT_BYTES:
        raise _LeaveToGit
    ((_, content),) = objects.contents(project, [name], MERGE_TIMEOUT_S)
    if objects.name_of(kind, content, len(name)) != name:
        raise _LeaveToGit
    return content


# Folders


def differences(project: Project, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Difference] | None:
    """Return how folders differ, each pair by full names, the old one first; None if git has to be asked."""
    wanted = list(pairs)
    if len(wanted) > MAX_READ_HERE:
        return None
    try:
        return {pair: _Comparison(project).compare(*pair) for pair in wanted}
    except (_LeaveToGit, ToolFailed):
        return None


@dataclass
class _Comparison:
    """Two folders that are compared, with those in them."""

    project: Project
    changes: list[Change] = field(default_factory=list)
    new: set[bytes] = field(default_factory=set)
    pending: list[tuple[bytes, str, str]] = field(default_factory=list)

    def compare(self, old: str, new: str) -> Difference:
        self.pending = [(b"", old, new)]
        if old != new:
            self.new.add(bytes.fromhex(new))
        for _ in range(MAX_CHANGED_FOLDERS):
            if not self.pending:
                return Difference(sorted(self.changes, key=lambda change: change.path), self.new)
            self._folder(*self.pending.pop())
        raise _LeaveToGit

    def _folder(self, path: bytes, old: str, new: str) -> None:
        before, after = set(rows(self.project, old)), set(rows(self.project, new))
        gone = {name: (mode, own) for mode, name, own in before - after}
        came = {name: (mode, own) for mode, name, own in after - before}
        if len(self.changes) + len(gone) + len(came) > MAX_CHANGES:
            raise _LeaveToGit
        self.new |= {own for mode, own in came.values() if mode != MODULE}
        for name in {**gone, **came}:
            was, now = gone.get(name), came.get(name)
            inner = (_name_of_folder(was), _name_of_folder(now))
            if any(inner):
                self.pending.append((path + name + b"/", *inner))
            change = Change(path + name, _file(was), _file(now))
            if change.old is not None or change.new is not None:
                self.changes.append(change)


def _name_of_folder(entry: tuple[bytes, bytes] | None) -> str:
    return entry[1].hex() if entry is not None and entry[0] == FOLDER else ""


def _file(entry: tuple[bytes, bytes] | None) -> Entry | None:
    return None if entry is None or entry[0] == FOLDER else (entry[0], entry[1].hex().encode())


def rows(project: Project, tree: str) -> list[Row]:
    """Return the entries of a folder in its order, "" being one without any; whatever is odd is left to git."""
    if not tree:
        return []
    known = _folders.get((project.common, tree))
    if known is None:
        known = tree_rules.rows(_content(project, tree, "tree"), len(tree) // 2)
        if known is None or not {mode for mode, _, _ in known} <= KNOWN_MODES or not tree_rules.is_in_order(known):
            raise _LeaveToGit
        kept = list(_folders.values())  # other threads add to it
        if len(known) + sum(map(len, kept)) > MAX_REMEMBERED_ENTRIES:
            _folders.clear()
        _folders[project.common, tree] = known
    return known
