"""Write what was found in a worktree into the object store: files as they lie on disk, whatever filters say."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable
from dataclasses import field
from pathlib import Path

from covey.git import objects
from covey.git.identity import RESCUE_REFS
from covey.git.rescue.archive import size_below
from covey.git.rescue.rescue_repository import NotWhole, PrivateGit, refs_git
from covey.git.rescue.scan import (
    BEYOND,
    GITLINK,
    SKIPPED,
    SPECIAL,
    SYMLINK,
    Disk,
    FoundFile,
    LeftOut,
    Place,
    Staged,
    Tracked,
    noted_of,
    reflog_lines,
)
from covey.git.run import checked
from covey.values import dataclass

GIT_READS_BYTES = 32 * 1024 * 1024
"""Bytes from which on git reads a file itself; smaller ones are handed to it many at a time."""
MAX_RESCUE_BYTES = 1024**3
"""Bytes that one rescue stores, by the length of files or by what they take on disk, whichever is more."""
MAX_IGNORED_BYTES = 100 * 1024 * 1024
"""Bytes of ignored files that a rescue keeps, the smallest first."""
LEFT_TO_FILTER_BYTES = 1024 * 1024
"""Bytes from which on an unchanged file with a filter of its own (LFS) is left to that filter."""
MAX_HEAD_MOVES = 1000
"""Moves of HEAD that are followed back for commits that nothing else reaches."""
WORKTREE_STATE = (
    "HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_*", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE",
    "BISECT_*", "SQUASH_MSG", "COMMIT_EDITMSG", "rebase-merge", "rebase-apply", "sequencer", "logs/HEAD",
    "refs/bisect", "refs/worktree", "refs/rewritten", "config.worktree", "info/sparse-checkout", "sharedindex.*",
)  # fmt: skip
"""What git keeps of one worktree beside HEAD's commit and the index."""
UNDERWAY = (
    "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer",
)  # fmt: skip

_OID = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")


@dataclass(frozen=True)
class Entry:
    """One path of the worktree that is not as HEAD has it."""

    path: bytes
    status: str
    mode: int
    oid: str
    size: int
    reason: bool = True
    """Whether it would be lost; an unchanged file that a filter converts is stored, but does not cause a rescue."""


@dataclass
class Kept:
    """What was kept of a worktree's files."""

    entries: list[Entry] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    smudged: list[bytes] = field(default_factory=list)
    """Files that the checkout's own filter brings back."""
    repositories: list[bytes] = field(default_factory=list)
    vanished: set[bytes] = field(default_factory=set)
    """Files that had gone when they were to be read."""
    caches_only: bool = True
    """Whether all that is ignored can be made again."""


class Blobs:
    """Collects contents and writes them many at a time."""

    def __init__(self, git: PrivateGit) -> None:
        self._git = git
        self._pending: dict[str, bytes] = {}
        self._size = 0

    def add(self, content: bytes) -> str:
        """Return the name of a content that will be there after `flush`."""
        oid = objects.name_of("blob", content, len(self._git.zero))
        if oid not in self._pending:
            self._pending[oid] = content
            self._size += len(content)
            if self._size > GIT_READS_BYTES:
                self.flush()
        return oid

    def flush(self) -> None:
        """Write what was collected."""
        if self._pending:
            parts = [b"blob\ndata %d\n%b\n" % (len(content), content) for content in self._pending.values()]
            self._git.run("fast-import", "--quiet", "--depth=0", stdin=b"".join(parts))
        self._pending, self._size = {}, 0


def keep_files(
    git: PrivateGit,
    base: dict[bytes, Tracked],
    index: dict[bytes, list[Staged]],
    disk: Disk,
    index_time: int,
) -> Kept:
    """Store every file that is not as HEAD has it, and say which they are."""
    kept = Kept(left_out=list(disk.left_out))
    clean = _noted_as_clean(base, index, disk, index_time)
    filtered = _filtered(git, clean)
    blobs = Blobs(git)
    ignored: list[tuple[bool, int, bytes]] = []
    stored = 0
    for path, found in disk.files.items():
        known = base.get(path)
        if path in clean and known is not None and _is_as_committed(path, found, known, filtered.get(path), kept):
            continue
        if known is None and path not in index and not found.untracked:
            ignored.append((found.cache, found.stat.st_size, path))
            continue
        status = "changed" if known else "added" if path in index else "untracked"
        stored += max(found.stat.st_size, found.stat.st_blocks * 512)
        _must_fit(git, stored)
        entry = _store(git, blobs, path, found, status, kept, reason=path not in clean)
        if entry is not None and (known is None or (entry.oid, entry.mode) != (known.oid, known.mode)):
            kept.entries.append(entry)
    for path, found in disk.repositories.items():
        if found.untracked:
            kept.repositories.append(path)
            stored += size_below(git.worktree, path)
            _must_fit(git, stored)
        else:
            ignored.append((found.cache, size_below(git.worktree, path), path))
    _keep_ignored(git, blobs, disk, ignored, kept)
    blobs.flush()
    _note_deleted(git, base, index, disk, kept)
    return kept


def _must_fit(git: PrivateGit, stored: int) -> None:
    git.patience()
    if stored > MAX_RESCUE_BYTES:
        raise NotWhole(f"There are more than {MAX_RESCUE_BYTES // 1024**2:,} MiB that git does not have.")


def _noted_as_clean(
    base: dict[bytes, Tracked], index: dict[bytes, list[Staged]], disk: Disk, index_time: int
) -> set[bytes]:
    """Return the files that git noted as HEAD has them, and that nobody has touched since."""
    clean: set[bytes] = set()
    for path, found in disk.files.items():
        known, staged = base.get(path), index.get(path)
        if known is None or staged is None or len(staged) != 1:
            continue
        same = (staged[0].stage, staged[0].oid, staged[0].mode) == (0, known.oid, known.mode)
        # One written in the same moment as the index may have changed right after.
        settled = known.mode == git_mode(found.stat) and found.stat.st_mtime_ns < index_time
        if same and settled and staged[0].noted == noted_of(found.stat):
            clean.add(path)
    return clean


def _filtered(git: PrivateGit, paths: Iterable[bytes]) -> dict[bytes, str]:
    """Return which paths have a filter or an encoding of their own; sizes tell all other conversions."""
    names = b"".join(path + b"\0" for path in paths)
    asked = git.ask("check-attr", "-z", "--stdin", "filter", "working-tree-encoding", stdin=names)
    if asked.returncode != 0:
        return dict.fromkeys(names.split(b"\0"), "unknown")
    words = asked.stdout.split(b"\0")
    found: dict[bytes, str] = {}
    for path, attribute, value in zip(words[0::3], words[1::3], words[2::3], strict=False):
        if value not in (b"unspecified", b"unset"):
            found.setdefault(path, attribute.decode())
    return found


def git_mode(status: os.stat_result) -> int:
    """Return the mode under which git would keep a file."""
    if stat.S_ISLNK(status.st_mode):
        return SYMLINK
    return 0o100755 if status.st_mode & 0o100 else 0o100644


def _store(
    git: PrivateGit, blobs: Blobs, path: bytes, found: FoundFile, status: str, kept: Kept, *, reason: bool = True
) -> Entry | None:
    """Store one file as it lies on disk; None if it has gone, or cannot be read and is noted as left out."""
    full = os.path.join(os.fsencode(git.worktree), path)
    mode = git_mode(found.stat)
    try:
        if mode == SYMLINK:
            content = os.readlink(full)
        elif found.stat.st_size > GIT_READS_BYTES:
            return Entry(path, status, mode, _store_large(git, full), found.stat.st_size, reason)
        else:
            content = _read(full)
    except FileNotFoundError:
        kept.vanished.add(path)
        return None
    except OSError as error:
        kept.left_out.append(LeftOut(path, found.stat.st_size, (error.strerror or "cannot be read").lower()))
        return None
    return Entry(path, status, mode, blobs.add(content), len(content), reason)


def _store_large(git: PrivateGit, full: bytes) -> str:
    done = git.ask("hash-object", "-w", "--no-filters", "--", os.fsdecode(full))
    if done.returncode != 0:
        os.close(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))  # raises if the file is to blame
    return checked("hash-object", done).decode().strip()


def _read(full: bytes) -> bytes:
    """Read a file, and never wait for one that has become a fifo meanwhile."""
    with open(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, SPECIAL)
        return file.read()


def _keep_ignored(
    git: PrivateGit, blobs: Blobs, disk: Disk, ignored: list[tuple[bool, int, bytes]], kept: Kept
) -> None:
    """Store ignored files up to a number of bytes in all: caches last, the smallest first."""
    total = 0
    kept.caches_only = all(cache for cache, _, _ in ignored)
    for _, size, path in sorted(ignored):
        if total + size > MAX_IGNORED_BYTES:
            kept.left_out.append(LeftOut(path, size, BEYOND))
        elif path in disk.repositories:
            kept.repositories.append(path)
            total += size
        else:
            entry = _store(git, blobs, path, disk.files[path], "ignored", kept)
            if entry is not None:
                kept.entries.append(entry)
                total += entry.size


def _is_as_committed(path: bytes, found: FoundFile, known: Tracked, converts: str | None, kept: Kept) -> bool:
    """Say whether a file that git noted as clean need not be stored; one that a filter made large is noted."""
    if converts is None:
        return found.stat.st_size == known.size
    if converts == "filter" and found.stat.st_size > LEFT_TO_FILTER_BYTES:
        kept.smudged.append(path)
        return True
    return False


def _note_deleted(
    git: PrivateGit, base: dict[bytes, Tracked], index: dict[bytes, list[Staged]], disk: Disk, kept: Kept
) -> None:
    unread = tuple(folder + b"/" if folder else b"" for folder in disk.unread)
    for path, known in base.items():
        if path in disk.files and path not in kept.vanished:
            continue
        if (unread and path.startswith(unread)) or (known.mode == GITLINK and _is_bare_link(path, disk)):
            continue
        skipped = any(entry.flags & SKIPPED for entry in index.get(path, []))
        is_link = path + b"/.git" in disk.repositories
        kept.entries.append(Entry(path, "deleted", 0, git.zero, 0, reason=not skipped and not is_link))


def _is_bare_link(path: bytes, disk: Disk) -> bool:
    """Say whether a submodule is only an empty folder, as git leaves it until it is wanted."""
    below = path + b"/"
    return path in disk.folders and not any(
        name.startswith(below) for part in (disk.files, disk.folders, disk.repositories) for name in part
    )


def write_work_tree(git: PrivateGit, commit: str | None, kept: Kept) -> str:
    """Write the tree of the whole worktree as it lies on disk: HEAD's, with what is not as HEAD has it."""
    git.index.unlink(missing_ok=True)
    git.run("read-tree", *([commit] if commit else ["--empty"]))
    gone = [entry for entry in kept.entries if entry.status == "deleted"]
    there = [entry for entry in kept.entries if entry.status != "deleted"]
    # What is gone first: a folder may stand where a file was, and the other way round.
    lines = [b"%06o %b\t%b\0" % (entry.mode, entry.oid.encode(), entry.path) for entry in [*gone, *there]]
    git.run("update-index", "-z", "--index-info", stdin=b"".join(lines))
    return git.run("write-tree").decode().strip()


def state_of(place: Place) -> list[Path]:
    """Return what git keeps of a worktree beside HEAD's commit and the index."""
    own = place.own
    if own is None:
        return []
    found = [path for pattern in WORKTREE_STATE for path in sorted(own.glob(pattern)) if os.path.lexists(path)]
    linked = own.parent.name == "worktrees"
    return found + ([own / "modules"] if linked and (own / "modules").is_dir() else [])


def is_underway(place: Place) -> bool:
    """Say whether a merge, rebase, cherry-pick, revert or bisect has begun and not ended."""
    return place.own is not None and any((place.own / name).exists() for name in UNDERWAY)


def named_objects(place: Place, state: list[Path]) -> set[str]:
    """Return the names of objects that the worktree's own files mention, and of its last moves."""
    named: set[str] = set()
    if place.own is not None:
        for old, new in reflog_lines(place.own)[-MAX_HEAD_MOVES:]:
            named |= {old, new}
    for path in state:
        if path.name in ("modules", "FETCH_HEAD") or path.name.startswith("sharedindex."):
            continue
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and file.parent.name != "logs" and file.stat().st_size <= GIT_READS_BYTES:
                named |= {match.decode() for match in _OID.findall(_read(os.fsencode(file)))}
    return named


def kinds_of(git: PrivateGit, oids: Iterable[str]) -> dict[str, str]:
    """Return which of some objects exist, and their kinds."""
    asked = git.run("cat-file", "--batch-check", stdin="".join(f"{oid}\n" for oid in sorted(oids)).encode())
    lines = (line.split() for line in asked.decode().splitlines())
    return {words[0]: words[1] for words in lines if len(words) == 3}


def unreached(git: PrivateGit, commits: Iterable[str], session: str | None, safe: Collection[str] = ()) -> list[str]:
    """Return the least commits that reach all those which no branch, tag or earlier rescue of the session reaches.

    Nor do those count that are `safe`, or older than these.
    """
    wanted = sorted(commits)
    parents = _walk(git, wanted, session, safe)
    if parents is None:
        # Some history has a gap; a ref to that would break the repository's own upkeep.
        each = (_walk(git, [commit], session) for commit in wanted)
        parents = {commit: above for found in each if found for commit, above in found.items()}
    inner = {above for found in parents.values() for above in found}
    return [commit for commit in parents if commit not in inner]


def _walk(
    git: PrivateGit, commits: list[str], session: str | None, safe: Collection[str] = ()
) -> dict[str, list[str]] | None:
    if not commits:
        return {}
    ours = () if session is None else (f"--glob={RESCUE_REFS}{session}/",)
    lines = "".join([*(f"{commit}\n" for commit in commits), *(f"^{commit}\n" for commit in safe)]).encode()
    kept = ("--not", "--branches", "--tags", "--remotes", *ours)
    asked = refs_git(git.project, "rev-list", "--topo-order", "--parents", "--stdin", *kept, stdin=lines)
    if asked.returncode != 0:
        return None
    found = (line.split() for line in asked.stdout.decode().splitlines())
    return {words[0]: words[1:] for words in found}
