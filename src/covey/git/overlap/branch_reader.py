"""What git tells of branches: their commits, files and lines, and how merges end; many questions in one process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field

from covey.core import overlaps
from covey.core.overlaps import Hunk
from covey.errors import ToolFailed
from covey.git.candidates import readable
from covey.git.project import Project
from covey.git.run import complaint, git, try_git
from covey.values import dataclass

PATIENCE = 120.0
BIG = "8m"
"""Files from this size on are taken as a whole: nobody merges them by lines."""
_NOTHING = re.compile(r"0+")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_COMMIT = re.compile(rb"\x01([0-9a-f]{40,64}) (\d+)\x01")


@dataclass(frozen=True)
class File:
    """What a file was and what it is, as git names contents; all zeros if there was, or is, none."""

    old: str
    new: str

    @property
    def is_new(self) -> bool:
        """Say whether it was not there before."""
        return _NOTHING.fullmatch(self.old) is not None

    @property
    def is_gone(self) -> bool:
        """Say whether it is there no more."""
        return _NOTHING.fullmatch(self.new) is not None


@dataclass(frozen=True)
class Look:
    """What a branch changes since it left main."""

    tip: str
    trees: tuple[str, str] | None = None
    """That of the commit where it left main, and its own."""
    own: frozenset[str] = frozenset()
    """The commits that main lacks."""
    files: dict[bytes, File] = field(default_factory=dict)

    @property
    def adds(self) -> bool:
        """Say whether there are files that were not there before."""
        return any(file.is_new for file in self.files.values())

    @property
    def takes_away(self) -> bool:
        """Say whether there are files no more that were there before."""
        return any(file.is_gone for file in self.files.values())


@dataclass(frozen=True)
class _Commit:
    is_own: bool
    tree: str
    parents: tuple[str, ...]


def looks(project: Project, main: str, wanted: Sequence[str]) -> dict[str, Look]:
    """Look at branches, in two processes for all; one more for each that has merged main."""
    graph = _graph(project, main, wanted)
    looks: dict[str, Look] = {}
    for tip in wanted:
        own = _own(graph, tip)
        bases = {parent for commit in own for parent in graph[commit].parents if parent not in own}
        base = _base_tree(project, main, tip, graph, bases) if own else None
        looks[tip] = Look(tip, None if base is None else (base, graph[tip].tree), frozenset(own))
    trees = {look.trees for look in looks.values() if look.trees is not None}
    changed = _files(project, list(trees))
    return {
        tip: Look(tip, look.trees, look.own, changed.get(look.trees or ("", ""), {})) for tip, look in looks.items()
    }


def _graph(project: Project, main: str, wanted: Sequence[str]) -> dict[str, _Commit]:
    """Return the commits that main lacks, and those where they left it."""
    words = ("rev-list", "--stdin", "--boundary", "--no-commit-header", "--format=%m %H %T %P")
    asked = "".join(f"{name}\n" for name in (*wanted, f"^{main}")).encode()
    graph: dict[str, _Commit] = {}
    for line in git(*words, at=project.common, stdin=asked, patience=PATIENCE).decode().splitlines():
        mark, name, tree, *parents = line.split()
        graph[name] = _Commit(mark != "-", tree, tuple(parents))
    return graph


def _own(graph: dict[str, _Commit], tip: str) -> set[str]:
    own: set[str] = set()
    pending = [tip]
    while pending:
        name = pending.pop()
        if name in graph and graph[name].is_own and name not in own:
            own.add(name)
            pending += graph[name].parents
    return own


def _base_tree(project: Project, main: str, tip: str, graph: dict[str, _Commit], bases: set[str]) -> str | None:
    """Return the tree that a branch has in common with main, None if it has nothing to do with it."""
    if len(bases) == 1:
        return graph[bases.pop()].tree
    asked = try_git("merge-base", main, tip, at=project.common, patience=PATIENCE)
    if asked.returncode > 1:
        raise ToolFailed(f"git merge-base failed: {complaint(asked)}.")
    base = asked.stdout.decode().strip()
    return git("rev-parse", f"{base}^{{tree}}", at=project.common).decode().strip() if base else None


def _files(project: Project, trees: Sequence[tuple[str, str]]) -> dict[tuple[str, str], dict[bytes, File]]:
    """Return the files in which trees differ; a file that got another name counts under both."""
    found: dict[tuple[str, str], dict[bytes, File]] = {pair: {} for pair in trees}
    if not trees:
        return found
    asked = "".join(f"{one} {other}\n" for one, other in trees).encode()
    words = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
    fields = iter(git(*words, at=project.common, stdin=asked, patience=PATIENCE).split(b"\0"))
    files: dict[bytes, File] = {}
    for meta in fields:
        heads, _, entry = meta.rpartition(b"\n")
        if heads:
            one, other = heads.rpartition(b"\n")[2].decode().split(" ")
            files = found[one, other]
        if entry:
            _, _, old, new, _ = entry.split(b" ")
            files[next(fields)] = File(old.decode(), new.decode())
    return found


def hunks(
    project: Project, trees: Sequence[tuple[str, str]], paths: Sequence[bytes]
) -> dict[tuple[str, str], tuple[Hunk, ...]]:
    """Return at which lines some files were changed between trees, by their contents before and after."""
    words = ("-c", f"core.bigFileThreshold={BIG}", "diff-tree", "--stdin", "-r", "-p", "-U0", "--full-index")
    plain = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--inter-hunk-context=0")
    asked = "".join(f"{one} {other}\n" for one, other in trees).encode()
    names = [os.fsdecode(path) for path in paths]
    env = {"GIT_LITERAL_PATHSPECS": "1"}
    printed = git(*words, *plain, "--", *names, at=project.common, stdin=asked, env=env, patience=PATIENCE)
    found: dict[tuple[str, str], tuple[Hunk, ...]] = {}
    for change, lines in _sections(printed):
        found[change] = tuple(_section(change[1], lines))
    return found


def _sections(printed: bytes) -> Iterator[tuple[tuple[str, str], list[bytes]]]:
    """Yield the contents before and after, and the lines of each file's change; names in it hold no line ends."""
    change: tuple[str, str] | None = None
    lines: list[bytes] = []
    for line in printed.split(b"\n"):
        if line.startswith((b"diff --git ", b"index ")):
            if change is not None:
                yield change, lines
            change, lines = None, []
            if line.startswith(b"index "):
                old, _, new = line.split(b" ")[1].partition(b"..")
                change = (old.decode(), new.decode())
        elif change is not None:
            lines.append(line)
    if change is not None:
        yield change, lines


def _section(content: str, lines: Sequence[bytes]) -> Iterator[Hunk]:
    begun: tuple[int, int, int] | None = None
    text = hashlib.blake2b(digest_size=8)
    for line in lines:
        head = _HUNK.match(line)
        if head is not None:
            if begun is not None:
                yield Hunk(*begun, text.hexdigest())
            start, old, new = int(head[1]), int(head[2] or 1), int(head[3] or 1)
            begun = (start - 1, start - 1 + old, new) if old else (start, start, new)
            text = hashlib.blake2b(digest_size=8)
        elif begun is None and line.startswith(b"Binary files "):
            yield Hunk(0, overlaps.WHOLE, overlaps.WHOLE, content)
        elif line.startswith((b"+", b"\\")):
            text.update(line + b"\n")
    if begun is not None:
        yield Hunk(*begun, text.hexdigest())


def conflicts(printed: bytes) -> Iterator[tuple[str, ...]]:
    """Yield the files in conflict of each merge: clean or not, a tree, names, then messages, which end with nothing."""
    fields = iter(printed.split(b"\0"))
    for clean in fields:
        if not clean:
            return
        next(fields)
        names = [readable(name) for name in iter(lambda: next(fields), b"")]
        for count in iter(lambda: next(fields), b""):
            paths = [readable(next(fields)) for _ in range(int(count))]
            kind, _ = next(fields), next(fields)
            if clean == b"0" and kind != b"Auto-merging" and not names:
                names = paths  # a few kinds (a folder that was split) leave no file in the list
        yield tuple(dict.fromkeys(names)) if clean == b"0" else ()


def commits(project: Project, wanted: Collection[str]) -> dict[str, tuple[float, list[bytes]]]:
    """Return when each commit was made, and the paths that it wrote; what cannot be read is left out.

    A merge wrote what it has from no parent.
    """
    if not wanted:
        return {}
    try:
        return _commits(project, wanted)
    except ToolFailed:
        if len(wanted) == 1:
            return {}
        half, each = len(wanted) // 2, sorted(wanted)
        return commits(project, each[:half]) | commits(project, each[half:])


def _commits(project: Project, wanted: Collection[str]) -> dict[str, tuple[float, list[bytes]]]:
    words = ("diff-tree", "--stdin", "-r", "--root", "--cc", "--name-only", "-z", "--no-renames")
    asked = "".join(f"{name}\n" for name in wanted).encode()
    form = "--format=%x01%H %ct%x01"
    found: dict[str, tuple[float, list[bytes]]] = {}
    names: list[bytes] = []
    begun = False
    for field_ in git(*words, form, at=project.common, stdin=asked, patience=PATIENCE).split(b"\0"):
        head = _COMMIT.fullmatch(field_.removeprefix(b"\n"))
        if head is not None:
            names, begun = [], True
            commit = head[1].decode()
            found[commit] = (_made(project, commit, float(head[2] or 0)), names)
        elif field_:
            names.append(field_.removeprefix(b"\n") if begun else field_)
            begun = False
    return found


def _made(project: Project, commit: str, said: float) -> float:
    """Return when git wrote a commit; what it says of itself only counts if it was packed since."""
    with contextlib.suppress(OSError):
        return os.stat(project.common / "objects" / commit[:2] / commit[2:]).st_ctime
    return said
