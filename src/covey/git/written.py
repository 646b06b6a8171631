"""What a session is about to commit: the paths that the guard's hooks tell, and when each was last written.

A body is a list of fields, each with a NUL behind it: the worktree, then lists of which each begins with its name.

    /before       what the branch landed until now, as `git diff --raw -z` tells it
    /written      what it would land, told likewise
    /elsewhere    paths whose content is not the one on disk, which then says nothing of when they were written
    /nowhere      there is no disk to look at
    /end          nothing was cut off
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from covey.core.force import Write
from covey.errors import Invalid
from covey.git.project import Project
from covey.git.run import git, try_git

AT_ONCE = 500
"""Paths that are asked of git in one command."""
_CUT_OFF = Invalid("What the guard asks about was cut off, or comes from another covey.")
Known = Callable[[Sequence[str]], Collection[str]]
"""Returns those of some paths that are not new."""


@dataclass(frozen=True)
class _Entry:
    """What a path becomes by a commit."""

    content: str
    """Its mode and blob."""
    added: bool
    gone: bool


def read(body: bytes, now: float, known: Known | None = None) -> list[Write]:
    """Return what a body says is written, each path once, by the time at which its file changed last.

    A path is new if this commit brings it, or if `known` does not know it. Fails with Invalid.
    """
    worktree, lists = _lists(body)
    before = dict(_entries(lists.get("/before", [])))
    written = {path: entry for path, entry in _entries(lists["/written"]) if not _is_same(entry, before.get(path))}
    elsewhere = set(written) if "/nowhere" in lists else set(lists["/elsewhere"])
    old = [path for path, entry in written.items() if not entry.added]
    there = set(old) if known is None or not old else known(old)
    return [
        Write(
            _text(path),
            now if path in elsewhere else _changed(worktree, path, now, gone=entry.gone),
            new=entry.added or path not in there,
        )
        for path, entry in written.items()
    ]


def _text(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def unless_undone(
    project: Project, main: str, branch: str | None, body: bytes, writes: Sequence[Write], denied: Collection[str]
) -> list[Write]:
    """Return writes without those of some denied paths to which a body gives back what main has: that is no write.

    Main is where it is now, or where a branch left it. It asks git, so it is for what would else be denied.
    """
    _, lists = _lists(body)
    entries = {path: entry for path, entry in _entries(lists["/written"]) if _text(path) in denied}
    wanted = {path: None if entry.gone else entry.content for path, entry in entries.items()}
    differs = set(wanted)
    for commit in _mains(project, main, branch):
        there = _contents(project, commit, sorted(differs))
        differs = {path for path in differs if there.get(path) != wanted[path]}
    kept = {_text(path) for path in differs}
    undone = {_text(path) for path in wanted} - kept
    return [write for write in writes if write.path not in undone]


def _mains(project: Project, main: str, branch: str | None) -> list[str]:
    """Return the commits at which main is, here and as others know it, and the one at which a branch left it."""
    refs = (f"refs/heads/{main}", f"refs/remotes/*/{main}", "refs/covey/landed")
    told = git("for-each-ref", "--format=%(objectname)", *refs, at=project.common).decode().split()
    if branch is None or not told:
        return told
    base = try_git("merge-base", "--end-of-options", f"refs/heads/{branch}", *told, at=project.common)
    return [*told, *base.stdout.decode().split()]


def _contents(project: Project, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the mode and blob that some paths have in a commit; what is not there is left out."""
    found: dict[str, str] = {}
    words = ("--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", commit, "--")
    for start in range(0, len(paths), AT_ONCE):
        told = os.fsdecode(git(*words, *paths[start : start + AT_ONCE], at=project.common))
        for line in told.split("\0"):
            head, _, path = line.partition("\t")
            if path:
                mode, _, blob = head.split(" ")
                found[path] = f"{mode} {blob}"
    return found


def _is_same(entry: _Entry, before: _Entry | None) -> bool:
    return before is not None and before.content == entry.content


def known_on(project: Project, main: str, scope: Sequence[str]) -> Known | None:
    """Return what tells which paths a branch has, None for a scope that does not ask whether a path is new."""
    if not any(pattern.startswith("new:") for pattern in scope):
        return None
    words = ("--literal-pathspecs", "ls-tree", "-z", "--name-only", "--full-tree", f"refs/heads/{main}", "--")

    def known(paths: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for start in range(0, len(paths), AT_ONCE):
            told = git(*words, *paths[start : start + AT_ONCE], at=project.common)
            found.update(os.fsdecode(told).split("\0"))
        return found

    return known


def _lists(body: bytes) -> tuple[Path, dict[str, list[str]]]:
    worktree, *fields = os.fsdecode(body).split("\0")
    lists: dict[str, list[str]] = {}
    current: list[str] = []
    for field in fields:
        if field.startswith("/"):
            lists[field] = current = []
        elif field:
            current.append(field)
    if "/end" not in lists or "/written" not in lists or "/elsewhere" not in lists or not worktree.startswith("/"):
        raise _CUT_OFF
    return Path(worktree), lists


def _entries(fields: list[str]) -> Iterator[tuple[str, _Entry]]:
    try:
        for told, path in zip(fields[::2], fields[1::2], strict=True):
            _, mode, _, blob, status = told.split(" ")
            yield path, _Entry(f"{mode} {blob}", status == "A", status == "D")
    except ValueError:
        raise _CUT_OFF from None


def _changed(worktree: Path, path: str, now: float, *, gone: bool) -> float:
    """Return when a path changed last: the file, what stands in its way, or else the folder in which it is not."""
    place = str(worktree)
    try:
        found = os.lstat(place)
        for part in path.split("/"):
            place = f"{place}/{part}"
            try:
                found = os.lstat(place)
            except FileNotFoundError:
                return found.st_mtime
            if not stat.S_ISDIR(found.st_mode):
                break
    except OSError:
        return now
    is_there = place == f"{worktree}/{path}"
    return now if gone and is_there else found.st_ctime  # one that is gone only from git was never touched on disk
