"""What lies in a worktree: its HEAD, its index and every file on disk, read without changing or running any of it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from dataclasses import field
from pathlib import Path

from covey.git.project import Project
from covey.git.rescue.rescue_repository import NotWhole, PrivateGit, refs_git
from covey.git.worktrees import worktree_admin
from covey.values import dataclass

GITLINK = 0o160000
SYMLINK = 0o120000
SKIPPED = 0x40000000
"""The flag of an index entry whose file is meant to be absent."""
MAX_RESCUE_FILES = 1_000_000
"""Files that HEAD and index do not know, and one rescue looks at."""
MAX_RESCUE_DEPTH = 500
"""Folders in each other that one rescue enters."""
CACHE_TAG = b"CACHEDIR.TAG"
SPECIAL = "neither a file nor a link"
BEYOND = "ignored, and beyond the limit"
GIT_READS = (b".gitignore", b".gitattributes")
"""What git reads of a checkout by itself."""

_SYMBOLIC = re.compile(r"ref: (refs/\S+)\s*\Z")
_OBJECT_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_TREE_LINE = re.compile(rb"(\d{6}) \w+ ([0-9a-f]+) +(\d+|-)\t([^\0]+)\0")
_INDEX_LINE = re.compile(
    rb"(\d{6}) ([0-9a-f]+) (\d)\t([^\0]+)\0"
    rb"  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: (\d+)\n  uid: (\d+)\tgid: (\d+)\n"
    rb"  size: (\d+)\tflags: ([0-9a-f]+)\n"
)


@dataclass(frozen=True)
class Place:
    """Where a worktree is, and the folder in which git keeps its HEAD and index; None if that is lost."""

    worktree: Path
    own: Path | None


@dataclass(frozen=True)
class Head:
    """The branch and the commit of a worktree, as far as they can be told."""

    branch: str | None
    commit: str | None


@dataclass(frozen=True)
class Tracked:
    """A file as HEAD has it."""

    mode: int
    oid: str
    size: int


@dataclass(frozen=True)
class Staged:
    """One entry of the index, with what git noted of the file when it last knew it to be the same."""

    mode: int
    oid: str
    stage: int
    noted: tuple[int, ...]
    flags: int


@dataclass(frozen=True)
class LeftOut:
    """Something that a rescue did not keep."""

    path: bytes
    size: int
    why: str


@dataclass(frozen=True)
class FoundFile:
    """A file or link on disk: `untracked` tells what git does not know from what it was told to ignore."""

    stat: os.stat_result
    untracked: bool
    cache: bool


@dataclass
class Disk:
    """All that lies in a worktree."""

    files: dict[bytes, FoundFile] = field(default_factory=dict)
    folders: dict[bytes, int] = field(default_factory=dict)
    repositories: dict[bytes, FoundFile] = field(default_factory=dict)
    """What no tree of git can hold: the .git of nested repositories, and names like it."""
    left_out: list[LeftOut] = field(default_factory=list)
    unread: set[bytes] = field(default_factory=set)


def find_place(project: Project, worktree: Path) -> Place:
    """Return where git keeps what belongs to a worktree, also if the worktree has lost the way there."""
    entry = worktree / ".git"
    if entry.is_dir() and os.path.samefile(entry, project.common):
        return Place(worktree, project.common)
    common, named = project.common.resolve(), worktree_admin.pointed_at(worktree)
    if named and (own := (worktree / named)).is_dir() and own.resolve().parent == common / "worktrees":
        return Place(worktree, own.resolve())
    places = (worktree, worktree.resolve())
    entries = worktree_admin.entries(common)
    return Place(worktree, next((own for own in entries if worktree_admin.place(own) in places), None))


def read_head(project: Project, place: Place) -> Head:
    """Return the worktree's HEAD; if it is damaged, the last one that its reflog tells of."""
    said = worktree_admin.read_small(place.own / "HEAD") if place.own else ""
    symbolic = _SYMBOLIC.match(said)
    branch = symbolic.group(1) if symbolic else None
    wanted = branch or (said if _OBJECT_NAME.match(said) else None)
    if wanted is None and place.own is not None:
        lines = reflog_lines(place.own)
        wanted = lines[-1][1] if lines else None
    if wanted is None:
        return Head(None, None)
    asked = refs_git(project, "rev-parse", "--verify", "--quiet", f"{wanted}^{{commit}}")
    return Head(branch, asked.stdout.decode().strip() if asked.returncode == 0 else None)


def reflog_lines(own: Path) -> list[tuple[str, str]]:
    """Return from where to where HEAD moved, the latest last."""
    try:
        lines = (own / "logs" / "HEAD").read_bytes().decode(errors="replace").splitlines()
    except OSError:
        return []
    moves = (line.split(" ", 2)[:2] for line in lines)
    return [(move[0], move[1]) for move in moves if len(move) == 2 and all(map(_OBJECT_NAME.match, move))]


def read_tree(git: PrivateGit, commit: str | None) -> dict[bytes, Tracked] | None:
    """Return every file of a commit by its path, or None if it cannot be read."""
    if commit is None:
        return None
    asked = git.ask("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    if asked.returncode != 0:
        return None
    return {
        path: Tracked(int(mode, 8), oid.decode(), -1 if size == b"-" else int(size))
        for mode, oid, size, path in _TREE_LINE.findall(asked.stdout)
    }


def read_raw_index(place: Place) -> tuple[bytes | None, int]:
    """Return the index byte for byte, and when it was written; nothing if it cannot be read."""
    if place.own is None:
        return None, 0
    try:
        with open(os.open(place.own / "index", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            return (file.read(), status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (None, 0)
    except OSError:
        return None, 0


def read_index(git: PrivateGit, place: Place, raw: bytes | None) -> dict[bytes, list[Staged]] | None:
    """Put an index into the private folder and return its entries, or None if it cannot be read."""
    if place.own is None or raw is None:
        return None
    try:
        for shared in place.own.glob("sharedindex.*"):
            shutil.copy2(shared, git.folder / shared.name)
    except OSError:
        return None
    git.index.write_bytes(raw)
    asked = git.ask("ls-files", "-z", "--stage", "--debug")
    if asked.returncode != 0:
        git.index.unlink(missing_ok=True)
        return None
    entries: dict[bytes, list[Staged]] = {}
    for mode, oid, stage, path, *noted, flags in _INDEX_LINE.findall(asked.stdout):
        entry = Staged(int(mode, 8), oid.decode(), int(stage), tuple(map(int, noted)), int(flags, 16))
        entries.setdefault(path, []).append(entry)
    return entries


def noted_of(found: os.stat_result) -> tuple[int, ...]:
    """Return of a file on disk what git notes of it in the index."""
    second = 1_000_000_000
    changed, modified = found.st_ctime_ns, found.st_mtime_ns
    facts = (
        *divmod(changed, second),
        *divmod(modified, second),
        found.st_ino,
        found.st_uid,
        found.st_gid,
        found.st_size,
    )
    return tuple(fact & 0xFFFFFFFF for fact in facts)


def look_at_disk(git: PrivateGit, known: set[bytes], links: set[bytes]) -> Disk:
    """Walk the whole worktree, nested repositories too; `known` are paths of HEAD or index, `links` its submodules."""
    disk = Disk()
    scanned = _scan(git, disk, known)
    asked = git.ask("ls-files", "-z", "--others", "--exclude-standard")
    # If git cannot tell what is ignored, nothing is: too much is kept then, never too little.
    told = asked.returncode == 0
    others = {path for path in asked.stdout.split(b"\0") if path}
    traits = {b"": (not told, False)}
    for folder, found in scanned:
        prefix = folder + b"/" if folder else b""
        untracked, cache = traits.get(folder, (False, False))
        untracked = untracked or prefix in others or folder in links
        cache = cache or any(name == CACHE_TAG for name, _ in found)
        for name, status in found:
            path = prefix + name
            if not folder and name == b".git" and not _is_foreign(git, status):
                continue
            if _is_no_tree_name(name, status):
                mine = not folder or untracked or any(known_path.startswith(prefix) for known_path in known)
                disk.repositories[path] = FoundFile(status, mine, cache)
            elif stat.S_ISDIR(status.st_mode):
                disk.folders[path] = stat.S_IMODE(status.st_mode)
                traits[path] = (untracked, cache or name == b"__pycache__")
            else:
                _note_file(disk, path, FoundFile(status, untracked or path in others, cache))
    return disk


def _note_file(disk: Disk, path: bytes, found: FoundFile) -> None:
    if stat.S_ISREG(found.stat.st_mode) or stat.S_ISLNK(found.stat.st_mode):
        disk.files[path] = found
    else:
        disk.left_out.append(LeftOut(path, 0, SPECIAL))


def _scan(git: PrivateGit, disk: Disk, known: set[bytes]) -> list[tuple[bytes, list[tuple[bytes, os.stat_result]]]]:
    """List every folder of a worktree, each before those in it, on its own file system and within the limits."""
    root = os.fsencode(git.worktree)
    device = os.lstat(root).st_dev
    listed: list[tuple[bytes, list[tuple[bytes, os.stat_result]]]] = []
    pending, strange = [b""], 0
    while pending:
        folder = pending.pop()
        git.patience()
        prefix = folder + b"/" if folder else b""
        found: list[tuple[bytes, os.stat_result]] = []
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    try:
                        found.append((entry.name, entry.stat(follow_symlinks=False)))
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        disk.left_out.append(LeftOut(prefix + entry.name, 0, _reason(error)))
        except OSError as error:
            disk.left_out.append(LeftOut(prefix, 0, _reason(error)))
            disk.unread.add(folder)
            continue
        found.sort()
        strange += sum(prefix + name not in known for name, _ in found)
        folders = [(name, status) for name, status in found if stat.S_ISDIR(status.st_mode)]
        below = [(prefix + name, status) for name, status in folders if name.lower() != b".git"]
        _check_limits(folder, strange, [path for path, status in below if status.st_dev != device])
        _must_not_wait(prefix, found)
        listed.append((folder, found))
        pending += [path for path, _ in below]
    return listed


def _check_limits(folder: bytes, strange: int, mounted: list[bytes]) -> None:
    if mounted:
        raise NotWhole(f"{os.fsdecode(mounted[0])!r} is another file system.")
    if folder.count(b"/") > MAX_RESCUE_DEPTH:
        raise NotWhole(f"More than {MAX_RESCUE_DEPTH:,} folders lie in each other.")
    if strange > MAX_RESCUE_FILES:
        raise NotWhole(f"There are more than {MAX_RESCUE_FILES:,} files that git does not know.")


def _must_not_wait(prefix: bytes, found: list[tuple[bytes, os.stat_result]]) -> None:
    """Refuse a pipe or device where git reads a file of its own: it would wait for ever."""
    for name, status in found:
        kind = stat.S_IFMT(status.st_mode)
        if name in GIT_READS and kind not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
            raise NotWhole(f"{os.fsdecode(prefix + name)!r} is neither a file nor a link, and git would wait for it.")


def _reason(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()


def _is_foreign(git: PrivateGit, status: os.stat_result) -> bool:
    """Say whether the .git of the worktree itself is a repository of its own, put in the place of git's pointer."""
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not os.path.samestat(status, os.stat(git.project.common))


def _is_no_tree_name(name: bytes, status: os.stat_result) -> bool:
    folded = name.lower()
    return folded == b".git" or (folded == b".gitmodules" and stat.S_ISLNK(status.st_mode))
