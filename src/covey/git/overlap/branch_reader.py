"""What git tells of branches: their commits, files and lines, and how merges end; many questions in one process."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field

from covey import files
from covey.core import overlaps
from covey.core.overlaps import Hunk
from covey.errors import ToolFailed
from covey.git.candidates import chain_inputs
from covey.git.candidates.candidates import read_merge, readable
from covey.git.identity import BIG_FILE, PLAIN_DIFF
from covey.git.project import Project
from covey.git.run import complaint, git, try_git, without_unreadable
from covey.values import dataclass

READ_TIMEOUT_S = 120.0
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_COMMIT_LINE = re.compile(rb"\x01([0-9a-f]{40,64}) (\d+)\x01")


@dataclass(frozen=True)
class FileChange:
    """What a file was and what it is, as git names contents; empty if there was, or is, none."""

    old: str
    new: str

    @property
    def is_new(self) -> bool:
        """Say whether it was not there before."""
        return not self.old

    @property
    def is_gone(self) -> bool:
        """Say whether it is there no more."""
        return not self.new


@dataclass(frozen=True)
class BranchChanges:
    """What a branch changes since it left main."""

    tip: str
    trees: tuple[str, str] | None = None
    """That of the commit where it left main, and its own."""
    own: frozenset[str] = frozenset()
    """The commits that main lacks."""
    files: dict[bytes, FileChange] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths that it changes; a file that got another name counts under both."""
        return tuple(sorted(map(readable, self.files)))

    @property
    def adds(self) -> bool:
        """Say whether there are files that were not there before."""
        return any(file.is_new for file in self.files.values())

    @property
    def takes_away(self) -> bool:
        """Say whether there are files no more that were there before."""
        return any(file.is_gone for file in self.files.values())


def looks(project: Project, main: str, wanted: Sequence[str]) -> dict[str, BranchChanges]:
    """Look at branches, in two processes for all; one more for each that has merged main."""
    works, graph = chain_inputs.works(project, main, wanted)
    bases = {
        tip: _shared_tree(project, main, tip) if work.fork is None else work.fork.tree
        for tip, work in works.items()
        if work.own
    }
    trees = {tip: (base, graph[tip].tree) for tip, base in bases.items() if base is not None}
    differ = chain_inputs.changes(project, trees.values())
    files = {
        tip: {
            each.path: FileChange(*("" if side is None else side[1].decode() for side in (each.old, each.new)))
            for each in differ[pair]
        }
        for tip, pair in trees.items()
    }
    return {tip: BranchChanges(tip, trees.get(tip), work.names, files.get(tip, {})) for tip, work in works.items()}


def _shared_tree(project: Project, main: str, tip: str) -> str | None:
    """Return the tree that a branch has in common with main, None if it has nothing to do with it."""
    asked = try_git("merge-base", main, tip, at=project.common, patience=READ_TIMEOUT_S)
    if asked.returncode > 1:
        raise ToolFailed(f"git merge-base failed: {complaint(asked)}.")
    base = asked.stdout.decode().strip()
    return git("rev-parse", f"{base}^{{tree}}", at=project.common).decode().strip() if base else None


def hunks(
    project: Project, trees: Sequence[tuple[str, str]], paths: Sequence[bytes]
) -> dict[tuple[str, str], tuple[Hunk, ...]]:
    """Return at which lines some files were changed between trees, by their contents before and after."""
    words = (*BIG_FILE, "diff-tree", "--stdin", "-r", "-p", "-U0", "--full-index")
    plain = ("--no-renames", *PLAIN_DIFF, "--inter-hunk-context=0")
    asked = "".join(f"{one} {other}\n" for one, other in trees).encode()
    names = [os.fsdecode(path) for path in paths]
    env = {"GIT_LITERAL_PATHSPECS": "1"}
    printed = git(*words, *plain, "--", *names, at=project.common, stdin=asked, env=env, patience=READ_TIMEOUT_S)
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
                old, new = line.decode().split(" ")[1].split("..")
                change = (old if old.strip("0") else "", new if new.strip("0") else "")
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
            yield Hunk(0, overlaps.WHOLE_FILE_END, overlaps.WHOLE_FILE_END, content)
        elif line.startswith((b"+", b"\\")):
            text.update(line + b"\n")
    if begun is not None:
        yield Hunk(*begun, text.hexdigest())


def conflicts(printed: bytes) -> Iterator[tuple[str, ...]]:
    """Yield the files in conflict of each merge that `merge-tree --stdin` tells of."""
    fields = iter(printed.split(b"\0"))
    for is_clean in iter(lambda: next(fields), b""):
        _, files, _ = read_merge(fields)
        yield () if is_clean == b"1" else files


def commits(project: Project, wanted: Collection[str]) -> dict[str, tuple[float, list[bytes]]]:
    """Return when each commit was made, and the paths that it wrote; what cannot be read is left out.

    A merge wrote what it has from no parent.
    """
    return without_unreadable(lambda some: _commits(project, some), sorted(wanted)) if wanted else {}


def _commits(project: Project, wanted: Sequence[str]) -> dict[str, tuple[float, list[bytes]]]:
    words = ("diff-tree", "--stdin", "-r", "--root", "--cc", "--name-only", "-z", "--no-renames")
    asked = "".join(f"{name}\n" for name in wanted).encode()
    form = "--format=%x01%H %ct%x01"
    found: dict[str, tuple[float, list[bytes]]] = {}
    names: list[bytes] = []
    begun = False
    for field_ in git(*words, form, at=project.common, stdin=asked, patience=READ_TIMEOUT_S).split(b"\0"):
        head = _COMMIT_LINE.fullmatch(field_.removeprefix(b"\n"))
        if head is not None:
            names, begun = [], True
            commit = head[1].decode()
            found[commit] = (made(project, commit, float(head[2] or 0)), names)
        elif field_:
            names.append(field_.removeprefix(b"\n") if begun else field_)
            begun = False
    return found


def made(project: Project, commit: str, otherwise: float) -> float:
    """Return when git wrote a commit: the time of its file; another if it was packed since."""
    found = files.status(project.common / "objects" / commit[:2] / commit[2:], follow=True)
    return otherwise if found is None else found.st_ctime
