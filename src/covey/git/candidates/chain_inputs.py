"""What a chain is built from: the commits that each branch adds, and which paths it and main have changed.

Three processes read it for any number of branches. And for straight ones none: most of what lands is a few commits, one
after another, on a commit of main, and git takes longer to start than to answer for it. Their commits and folders are
read through the reader that stays (`objects`). Whatever is not straight, not short or not plainly written is left to
git, which None stands for; what is answered here is what git would answer.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from covey import files
from covey.core.merging import tree_rules
from covey.core.merging.tree_rules import FILE_MODES, FOLDER, LINK, MODULE, Row
from covey.errors import ToolFailed
from covey.git import objects
from covey.git.candidates.candidates import MERGE_TIMEOUT_S, Author, Change, Trees, compare, full_names, there
from covey.git.project import Project
from covey.git.run import git, try_git
from covey.values import dataclass

_DATE = re.compile(r"[0-9]{1,18} [+-][0-9]{4}")
_FIELDS = ["%m", "%H", "%T", "%P", "%an", "%ae", "%ad", "%B"]
MAX_KEPT_COMMITS = 1000
"""Commits up to which the last answer is kept: what joins is looked at, and then built, from the same ones."""
_last: dict[tuple[object, ...], dict[str, Commit]] = {}
_differences: dict[tuple[Path, str, str], list[Change]] = {}
"""In which paths trees differ that were compared of late: what joins is compared, and then built, with the same."""
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

_read: dict[tuple[Path, str], tuple[Commit, int]] = {}
"""Commits of straight branches, with the times of their committers."""
_folders: dict[tuple[Path, str], list[Row]] = {}

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


@dataclass(frozen=True)
class Difference:
    """In which paths two folders differ, and the objects that only the second has there, as far as is known."""

    changes: list[Change]
    new: set[bytes]


class _LeaveToGit(Exception):
    """This is nothing that is read here."""


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
    """Return what each tip adds to `base`, and every commit that was read, in one process, parents before children.

    Commits do not change: who asks the same again gets the same, unless the repository got more history meanwhile.
    """
    shallow = files.status(project.common / "shallow", follow=True)  # written anew with more, or less, of the history
    key = (project.common, shallow and shallow.st_mtime_ns, base, *tips)
    graph = _last.get(key)
    if graph is None:
        straight = branches(project, base, tips)
        if straight is None:
            found = read_commits(project, base, tips)
        else:
            found = [commit for branch in straight if branch.own for commit in (*branch.forks, *branch.own)]
        graph = {commit.name: commit for commit in found}
        if len(graph) <= MAX_KEPT_COMMITS and all(objects.FULL.fullmatch(name) for name in (base, *tips)):
            _last.clear()
            _last[key] = graph
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


# Straight branches


def branches(project: Project, base: str, tips: Sequence[str]) -> list[BranchCommits] | None:
    """Return what straight branches add to `base`, all by their full names; None if git has to be asked."""
    if len(tips) > MAX_READ_HERE or not all(objects.FULL.fullmatch(name) for name in (base, *tips)):
        return None
    # Commits may have other parents here than they name, or objects may be elsewhere.
    if any((project.common / name).exists() for name in ("shallow", "info/grafts")):
        return None
    if any((project.common / "objects" / "pack").glob("*.promisor")):
        return None
    try:
        return [_branch(project, base, tip) for tip in tips]
    except (_LeaveToGit, ToolFailed):
        return None


def _branch(project: Project, base: str, tip: str) -> BranchCommits:
    """Return what a tip adds, from the way down to what it stands on, as long as each commit has one parent."""
    way = [_commit(project, tip)[0]]
    while way[-1].name != base and len(way[-1].parents) == 1 and len(way) <= MAX_BRANCH_COMMITS:
        way.append(_commit(project, way[-1].parents[0])[0])
    at = _where_it_left(project, base, {commit.name: number for number, commit in enumerate(way)})
    return BranchCommits(tip, tuple(replace(commit, is_own=True) for commit in reversed(way[:at])), (way[at],))


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
    known = _read.get((project.common, name))
    if known is None:
        content = _content(project, name, "commit")
        found = _PLAIN_COMMIT.fullmatch(content)
        if found is None or b"\0" in content or any(line.startswith(_ODD) for line in found["more"].split(b"\n")):
            raise _LeaveToGit
        who, email, date, message = (
            found[part].decode("utf-8", "surrogateescape") for part in ("name", "email", "date", "message")
        )
        tree, parents = found["tree"].decode(), tuple(found["parents"].decode().split()[1::2])
        known = Commit(name, tree, parents, Author(who, email, date), message, False), int(found["at"])
        if len(_read) >= MAX_REMEMBERED_COMMITS:
            _read.clear()
        if len(known[0].message) <= MAX_REMEMBERED_CHARS:
            _read[project.common, name] = known
    return known


def _content(project: Project, name: str, kind: str) -> bytes:
    """Return what an object of this kind and name holds, if that is little and really of this name."""
    (info,) = objects.infos(project, [name], MERGE_TIMEOUT_S)
    if info is None or info.kind != kind or info.size > MAX_OBJECT_BYTES:
        raise _LeaveToGit
    ((_, content),) = objects.contents(project, [name], MERGE_TIMEOUT_S)
    if objects.name_of(kind, content, len(name)) != name:
        raise _LeaveToGit
    return content


# Which paths differ


def changes(project: Project, pairs: Iterable[Trees]) -> dict[Trees, list[Change]]:
    """Return the paths in which trees differ, in one process; a file that got another name counts under both."""
    wanted = list(dict.fromkeys(pairs))
    found: dict[Trees, list[Change]] = {pair: _differences.get((project.common, *pair), []) for pair in wanted}
    differing = [pair for pair in wanted if pair[0] != pair[1] and (project.common, *pair) not in _differences]
    if not differing:
        return found
    read = differences(project, differing)
    if read is None:
        compared = compare(project, differing)
        if unread := [pair for pair in differing if pair not in compared]:
            raise ToolFailed(f"git cannot compare the trees {unread[0][0][:12]} and {unread[0][1][:12]}.")
    else:
        compared = {pair: each.changes for pair, each in read.items()}
    if sum(map(len, compared.values())) <= MAX_KEPT_COMMITS:  # little enough to keep: names say all that is in trees
        if sum(map(len, _differences.values())) + len(_differences) > MAX_KEPT_COMMITS:
            _differences.clear()
        _differences.update({(project.common, *pair): each for pair, each in compared.items()})
    return found | compared


def is_whole(project: Project, tip: str, base: str) -> bool:
    """Say whether everything that a tip adds to a base is there to be read."""
    words = ("rev-list", "--objects", "--quiet", "--end-of-options", tip, f"^{base}")
    return try_git(*words, at=project.common, patience=MERGE_TIMEOUT_S).returncode == 0


def differences(project: Project, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Difference] | None:
    """Return how folders differ, each pair by full names, the old one first; None if git has to be asked."""
    wanted = list(pairs)
    if len(wanted) > MAX_READ_HERE:
        return None
    try:
        return {(old, new): _compared(project, old, new) for old, new in wanted}
    except (_LeaveToGit, ToolFailed):
        return None


def _compared(project: Project, old: str, new: str) -> Difference:
    """Compare two folders, with those in them."""
    changes: list[Change] = []
    brought = {bytes.fromhex(new)} if old != new else set()
    pending = [(b"", old, new)]
    for _ in range(MAX_CHANGED_FOLDERS):
        if not pending:
            return Difference(sorted(changes, key=lambda change: change.path), brought)
        path, old, new = pending.pop()
        before, after = set(rows(project, old)), set(rows(project, new))
        gone, came = before - after, after - before
        if len(changes) + len(gone) + len(came) > MAX_CHANGES:
            raise _LeaveToGit
        brought |= {own for mode, _, own in came if mode != MODULE}
        was, now = ({name: own.hex() for mode, name, own in side if mode == FOLDER} for side in (gone, came))
        pending += [(path + name + b"/", was.get(name, ""), now.get(name, "")) for name in was | now]
        lost, got = (
            {name: (mode, own.hex().encode()) for mode, name, own in side if mode != FOLDER} for side in (gone, came)
        )
        changes += [Change(path + name, lost.get(name), got.get(name)) for name in lost | got]
    raise _LeaveToGit


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
