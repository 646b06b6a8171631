"""The parts of a rescue, written as one tree: what it says of itself, and all that it keeps."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Any

from covey.git.candidates.candidates import folders_above
from covey.git.rescue.archive import write_tar
from covey.git.rescue.keep import Blobs, Kept, write_work_tree
from covey.git.rescue.rescue_repository import PrivateGit
from covey.git.rescue.scan import GITLINK, Disk, Head, Place, Staged, Tracked
from covey.values import dataclass

FORMAT_VERSION = 1
MAX_LISTED = 200
"""Of what was left out, how much meta.json lists; files.json lists all."""


@dataclass(frozen=True)
class Counts:
    """How much a rescue keeps, by kind."""

    changed: int = 0
    deleted: int = 0
    added: int = 0
    untracked: int = 0
    ignored: int = 0
    staged: int = 0
    nested: int = 0
    commits: int = 0
    left_out: int = 0
    left_out_bytes: int = 0


@dataclass(frozen=True)
class FoundWork:
    """All that was found in one worktree."""

    place: Place
    head: Head
    base: dict[bytes, Tracked]
    index: dict[bytes, list[Staged]]
    disk: Disk
    kept: Kept
    state: list[Path]
    raw_index: bytes | None


def staged_oids(work: FoundWork) -> set[str]:
    """Return the objects that the index names and HEAD does not have."""
    named = {entry.oid for entries in work.index.values() for entry in entries if entry.mode != GITLINK}
    return named - {known.oid for known in work.base.values()}


def staged_paths(work: FoundWork) -> int:
    """Return of how many paths the index has another version than HEAD, or none."""
    if work.raw_index is None or not (work.index or work.base):
        return 0
    if not work.index:  # it is damaged, or all was removed from it
        return len(work.base)
    same = sum(
        1
        for path, entries in work.index.items()
        if len(entries) == 1
        and (known := work.base.get(path)) is not None
        and (entries[0].stage, entries[0].oid, entries[0].mode) == (0, known.oid, known.mode)
    )
    return len(work.index.keys() | work.base.keys()) - same


@dataclass(frozen=True)
class Tars:
    """Folders that were kept as they are: each nested repository, and git's own files of the worktree."""

    nested: list[str]
    state: str | None


def write_parts(git: PrivateGit, work: FoundWork) -> Tars:
    """Write the tars of a rescue."""
    jobs = [(git.worktree, [path]) for path in work.kept.repositories]
    if work.place.own is not None and work.state:
        own = work.place.own
        jobs.append((own, [os.fsencode(path.relative_to(own)) for path in work.state]))
    paths = [git.folder / f"{number}.tar" for number in range(len(jobs))]
    for path, (root, names) in zip(paths, jobs, strict=True):
        work.kept.left_out += write_tar(path, root, names)
    lines = "".join(f"{path}\n" for path in paths).encode()
    words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
    tars = git.run(*words, stdin=lines).decode().split() if paths else []
    count = len(work.kept.repositories)
    return Tars(tars[:count], tars[count] if len(tars) > count else None)


def fingerprint(work: FoundWork, tars: Tars, *, is_underway: bool) -> str:
    """Return what two rescues have in common that keep the same, if no commit depends on them."""
    entries = [entry for entry in work.kept.entries if entry.reason]
    index = [
        (path, [(each.mode, each.oid, each.stage, each.flags) for each in staged])
        for path, staged in sorted(work.index.items())
        if len(staged) > 1
        or (known := work.base.get(path)) is None
        or (known.mode, known.oid) != (staged[0].mode, staged[0].oid)
    ]
    of_head = is_underway or index or any(entry.status in ("changed", "deleted", "added") for entry in entries)
    parts = (
        sorted((entry.path, entry.status, entry.mode, entry.oid) for entry in entries),
        index,
        # What was changed means little without what it was changed from; on which branch that was, ours or none by
        # now, is a part of it only in the middle of something.
        (work.head if is_underway else work.head.commit) if of_head else None,
        sorted(zip(work.kept.repositories, tars.nested, strict=True)),
        tars.state if is_underway else None,
        sorted((each.path, each.size) for each in work.kept.left_out),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def write_rescue(
    git: PrivateGit,
    work: FoundWork,
    tars: Tars,
    kinds: dict[str, str],
    staged: int,
    tips: list[str],
    who: dict[str, Any],
) -> tuple[str, dict[str, Any]]:
    """Write all parts of a rescue, and return its tree and what it says of itself."""
    kept = work.kept
    work_tree = write_work_tree(git, work.head.commit, kept)
    meta = {
        "version": FORMAT_VERSION,
        **who,
        "worktree": _text(os.fsencode(git.worktree)),
        "own": None if work.place.own is None else _text(os.fsencode(work.place.own)),
        "branch": work.head.branch,
        "head": work.head.commit,
        "counts": asdict(_counts(kept, staged, tips)),
        "nested": [_text(path) for path in kept.repositories],
        "left_out": _left_out(kept)[:MAX_LISTED],
    }
    blobs = [_json(meta), _json(_files(work))] + ([work.raw_index] if work.raw_index is not None else [])
    names = ["meta.json", "files.json", "index"]
    lines = [f"100644 blob {oid}\t{name}" for name, oid in zip(names, _write_blobs(git, blobs), strict=False)]
    lines += [f"040000 tree {work_tree}\twork"]
    lines += [f"100644 blob {tars.state}\tstate.tar"] if tars.state else []
    others = [f"100644 blob {oid}\t{oid}" for oid, kind in kinds.items() if kind == "blob"]
    others += [f"040000 tree {oid}\t{oid}" for oid, kind in kinds.items() if kind == "tree"]
    if others:
        lines.append(f"040000 tree {_tree(git, others)}\tstaged")
    if tars.nested:
        tree = _tree(git, [f"100644 blob {oid}\t{number}.tar" for number, oid in enumerate(tars.nested)])
        lines.append(f"040000 tree {tree}\tnested")
    return _tree(git, lines), meta


def write_note(git: PrivateGit, who: dict[str, Any], commits: int) -> tuple[str, dict[str, Any]]:
    """Write what is said of a worktree that is kept aside, and return its tree."""
    meta = {"version": FORMAT_VERSION, **who, "counts": asdict(Counts(commits=commits)), "nested": [], "left_out": []}
    files: dict[str, Any] = {"files": [], "modes": {}, "folders": [], "checkout": [], "left_out": []}
    oids = _write_blobs(git, [_json(meta), _json(files)])
    names = ("meta.json", "files.json")
    return _tree(git, [f"100644 blob {oid}\t{name}" for name, oid in zip(names, oids, strict=True)]), meta


def _counts(kept: Kept, staged: int, tips: list[str]) -> Counts:
    by_status = [entry.status for entry in kept.entries if entry.reason]
    words = ("changed", "deleted", "added", "untracked", "ignored")
    return Counts(
        **{word: by_status.count(word) for word in words},
        staged=staged,
        nested=len(kept.repositories),
        commits=len(tips),
        left_out=len(kept.left_out),
        left_out_bytes=sum(entry.size for entry in kept.left_out),
    )


def _left_out(kept: Kept) -> list[dict[str, Any]]:
    return [{"path": _text(entry.path), "size": entry.size, "why": entry.why} for entry in kept.left_out]


def _files(work: FoundWork) -> dict[str, Any]:
    """Return every path that is not as HEAD has it, and what no tree of git can say."""
    disk, kept = work.disk, work.kept
    gone = {entry.path for entry in kept.left_out}
    kept_paths = [path for path in disk.files if path not in gone] + kept.repositories
    filled = {folder for path in kept_paths for folder in folders_above(path)}
    regular = {path: found.stat.st_mode for path, found in disk.files.items() if stat.S_ISREG(found.stat.st_mode)}
    modes = {path: own for path, mode in regular.items() if (own := stat.S_IMODE(mode)) not in (0o644, 0o755)}
    modes |= {path: mode for path, mode in disk.folders.items() if mode != 0o755}
    return {
        "files": [
            {"path": _text(entry.path), "status": entry.status, "mode": f"{entry.mode:06o}", "size": entry.size}
            for entry in sorted(kept.entries, key=lambda entry: entry.path)
            if entry.reason
        ],
        "modes": {_text(path): mode for path, mode in modes.items()},
        "folders": [_text(path) for path in disk.folders if path not in filled],
        "checkout": [_text(path) for path in kept.smudged],
        "left_out": _left_out(kept),
    }


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _json(value: dict[str, Any]) -> bytes:
    # ASCII only: so a name that is not UTF-8 comes back as it was.
    return json.dumps(value, indent=1).encode() + b"\n"


def _write_blobs(git: PrivateGit, contents: list[bytes]) -> list[str]:
    blobs = Blobs(git)
    names = [blobs.add(content) for content in contents]
    blobs.flush()
    return names


def _tree(git: PrivateGit, lines: list[str]) -> str:
    return git.run("mktree", stdin="".join(f"{line}\n" for line in lines).encode()).decode().strip()


def write_commit(git: PrivateGit, tree: str, parents: list[str], message: str) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    return git.run("commit-tree", tree, *words, stdin=message.encode()).decode().strip()
