"""What a session is about to commit, or has committed: the paths, and when each was last written.

What the guard's hooks tell of a commit that is not made yet is read from a body.

A body is a list of fields, each with a NUL behind it: the worktree, then lists, each beginning with its name.

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
from itertools import pairwise
from pathlib import Path

from covey.core.leases.write_policy import Write
from covey.errors import Invalid
from covey.git import objects, refs
from covey.git.candidates.candidates import merge_base, readable
from covey.git.identity import LANDED, UPSTREAM_MAIN
from covey.git.overlap import branch_reader
from covey.git.project import Project
from covey.git.run import git
from covey.values import dataclass

PATHS_PER_COMMAND = 500
"""Paths that are asked of git in one command."""
MAX_COMPARED_BYTES = 64 * 1024 * 1024
"""Bytes from which on a file is not compared with what was committed."""
PATHS_TIMEOUT_S = 120.0
_CUT_OFF = Invalid("What the guard asks about was cut off, or comes from another covey.")
Known = Callable[[Sequence[str]], Collection[str]]
"""Returns those of some paths that are not new."""


@dataclass(frozen=True)
class _NewContent:
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
    before = {path: entry.content for path, entry in _entries(lists.get("/before", []))}
    written = {path: entry for path, entry in _entries(lists["/written"]) if entry.content != before.get(path)}
    elsewhere = set(written) if "/nowhere" in lists else set(lists["/elsewhere"])
    old = [path for path, entry in written.items() if not entry.added]
    there = set(old) if known is None or not old else known(old)
    return [
        Write(
            _text(path),
            now if path in elsewhere else changed(worktree, path, now, gone=entry.gone),
            new=entry.added or path not in there,
        )
        for path, entry in written.items()
    ]


def _text(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def unless_undone(
    project: Project, main: str, branch: str | None, body: bytes, writes: Sequence[Write], denied: Collection[str]
) -> list[Write]:
    """Return writes without those denied ones that put back what main has: that does not count as a write.

    Main is where it is now, or where a branch left it. It asks git, so it is for what would else be denied.
    """
    _, lists = _lists(body)
    entries = {path: entry for path, entry in _entries(lists["/written"]) if _text(path) in denied}
    wanted = {path: None if entry.gone else entry.content for path, entry in entries.items()}
    differs = set(wanted)
    told = mains(project, main)
    if branch is not None and told:
        told += merge_base(project, f"refs/heads/{branch}", *told).split()
    for commit in told:
        lines = (line.partition("\t") for line in _listed(project, sorted(differs), "-r", commit))
        facts = ((path, head.split(" ")) for head, _, path in lines)
        there = {path: f"{mode} {blob}" for path, (mode, _, blob) in facts}  # what is not there is left out
        differs = {path for path in differs if there.get(path) != wanted[path]}
    kept = {_text(path) for path in differs}
    undone = {_text(path) for path in wanted} - kept
    return [write for write in writes if write.path not in undone]


def main_refs(main: str) -> tuple[str, ...]:
    """Return the refs that say where main is: covey's own and the branch, since a session may write any remote's."""
    return (f"refs/heads/{main}", LANDED, UPSTREAM_MAIN)


def mains(project: Project, main: str) -> list[str]:
    """Return the commits at which main is by now, as far as we know; nothing is fetched."""
    return list(dict.fromkeys(refs.listed(project, *main_refs(main)).values()))


def known_on(project: Project, main: str, scope: Sequence[str]) -> Known | None:
    """Return a lookup of which paths exist on main, None for a scope that does not ask whether a path is new."""
    if not any(pattern.startswith("new:") for pattern in scope):
        return None
    return lambda paths: set(_listed(project, paths, "--name-only", f"refs/heads/{main}"))


def _listed(project: Project, paths: Sequence[str], *words: str) -> Iterator[str]:
    """Yield what git tells of some paths in a commit, a few hundred in one command."""
    for start in range(0, len(paths), PATHS_PER_COMMAND):
        named = (*words, "--", *paths[start : start + PATHS_PER_COMMAND])
        told = git("--literal-pathspecs", "ls-tree", "-z", "--full-tree", *named, at=project.common)
        yield from filter(None, os.fsdecode(told).split("\0"))


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


def _entries(fields: list[str]) -> Iterator[tuple[str, _NewContent]]:
    try:
        for told, path in zip(fields[::2], fields[1::2], strict=True):
            _, mode, _, blob, status = told.split(" ")
            yield path, _NewContent(f"{mode} {blob}", status == "A", status == "D")
    except ValueError:
        raise _CUT_OFF from None


# What was committed


def lands(
    project: Project, known: Sequence[str], commit: str, now: float, worktree: Path | None, *, dated: bool = False
) -> tuple[Write, ...]:
    """Return what a commit would land on main, each path with the last moment at which it can have been written.

    `known`: where main is. Whoever made a commit can give it any date, but not its file; one that was packed since is
    of now, or `dated` as it says. Where the disk holds the same content, that was written by the time it tells.
    """
    entries = _beyond(project, known, commit)
    own = git("rev-list", commit, *(f"^{each}" for each in known), "--", at=project.common).decode().split()
    times: dict[str, float] = {}
    for name, (said, paths) in branch_reader.commits(project, own).items():
        at = said if dated else branch_reader.made(project, name, now)
        for path in map(os.fsdecode, paths):
            times[path] = max(times.get(path, 0.0), at)
    latest = max(times.values(), default=now)
    found: list[Write] = []
    for path, entry in entries.items():
        at = min(times.get(path, latest), now)
        seen = None if worktree is None else witnessed(worktree, path, None if entry.gone else entry.content, now)
        found.append(Write(readable(os.fsencode(path)), at if seen is None else min(at, seen), entry.added))
    return tuple(found)


def _beyond(project: Project, known: Sequence[str], commit: str) -> dict[str, _NewContent]:
    """Return what a commit has that main had neither where they parted nor has now."""
    if not known:
        return {}
    base = merge_base(project, commit, *known) or known[0]
    found = _differing(project, base, commit)
    for each in known:
        if found and each != base:
            others = _differing(project, each, commit)
            found = {path: entry for path, entry in found.items() if path in others}
    return found


def _differing(project: Project, old: str, new: str) -> dict[str, _NewContent]:
    words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
    told = os.fsdecode(git(*words, "--end-of-options", old, new, at=project.common, patience=PATHS_TIMEOUT_S))
    return dict(_entries([field for field in told.split("\0") if field]))


# The disk


@dataclass(frozen=True)
class _Trail:
    """The way to a path, as far as it goes."""

    folders: list[os.stat_result]
    last: os.stat_result | None = None
    """What lies at its end, or stands in its way; None if nothing does."""
    whole: bool = False


def changed(worktree: Path, path: str, now: float, *, gone: bool = False) -> float:
    """Return when a path changed last: the file, what stands in its way, or else the folder in which it is not.

    It was not there before a folder above it came to its place. Moving a folder changes its own ctime, not its mtime,
    and that of the folder above; one in which an entry came or went since can no longer be told from one that stayed.
    """
    try:
        trail = _trail(worktree, path)
    except OSError:
        return now
    if gone and trail.whole:
        return now  # one that is gone only from git was never touched on disk
    times = [trail.folders[-1].st_ctime if trail.last is None else trail.last.st_ctime]
    for above, folder in pairwise(trail.folders):
        if folder.st_ctime_ns > folder.st_mtime_ns:
            times.append(min(folder.st_ctime, above.st_ctime))
    return max(times)


def _trail(worktree: Path, path: str) -> _Trail:
    place = str(worktree)
    folders = [os.lstat(place)]
    for part in path.split("/"):
        place = f"{place}/{part}"
        try:
            found = os.lstat(place)
        except FileNotFoundError:
            return _Trail(folders)
        if not stat.S_ISDIR(found.st_mode):
            return _Trail(folders, found, place == f"{worktree}/{path}")
        folders.append(found)
    return _Trail(folders[:-1], folders[-1], True)


def witnessed(worktree: Path, path: str, content: str | None, now: float) -> float | None:
    """Return when a path came to be on disk as it was committed, None if it is not so there.

    `content`: its blob, with its mode before it if that counts too; None if it is gone.
    """
    try:
        trail = _trail(worktree, path)
        if content is None:
            same = not trail.whole
        else:
            mode, _, blob = content.rpartition(" ")
            same = trail.whole and trail.last is not None and _holds(worktree / path, trail.last, mode, blob)
    except OSError:
        return None
    return changed(worktree, path, now) if same else None


def _holds(place: Path, found: os.stat_result, mode: str, blob: str) -> bool:
    """Say whether a file has some content by itself, or but for its line ends; no filter of anybody's is asked."""
    if stat.S_ISLNK(found.st_mode):
        kind, data = "120000", os.fsencode(os.readlink(place))
    elif stat.S_ISREG(found.st_mode) and found.st_size < MAX_COMPARED_BYTES:
        kind = "100755" if found.st_mode & stat.S_IXUSR else "100644"
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(MAX_COMPARED_BYTES)
    else:
        return False
    if mode not in ("", kind):
        return False
    contents = (data, data.replace(b"\r\n", b"\n")) if b"\r\n" in data else (data,)
    return any(objects.name_of("blob", content, len(blob)) == blob for content in contents)
