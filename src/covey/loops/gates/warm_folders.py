"""Warm gates: folders of the worktree as a green main left them, lent to each gate and never written by one.

What a gate leaves in them is kept by its commit, and lent to others only once that commit is in main. A gate whose
commit lacks a file that the kept folders were made with gets none of them: what was built from it may still be there.
Files that differ from then are newer than all that was built; all others are older. So a tool that builds anew what is
older than its source does that neither too often nor too seldom.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import stat
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

from covey import files, trash
from covey.config import Config
from covey.errors import CoveyError, ToolFailed
from covey.git.candidates import candidates, commits_since
from covey.git.project import Project
from covey.values import dataclass

FOLDER, OLD = "caches", "old-caches"
"""The folder of what is kept, and of what nobody is lent any more and is not removed yet."""
MAX_AGE_DAYS = 1.0
"""How old what is lent may be: then a gate begins without it, and what that leaves is lent."""
MAX_COMMITS_KEPT = 8
"""How many commits' folders are kept for one group of settings."""
MAX_SETTINGS_KEPT = 3
MAX_FILES_KEPT, MAX_BYTES_KEPT, MAX_DEPTH = 300_000, 8 * 1024**3, 100
"""What is kept at most of one commit."""
OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")
"""How the kernel marks a folder that hides what lies under it."""

log = logging.getLogger("covey.gates")


@dataclass(frozen=True)
class Lent:
    """What a gate finds in its worktree besides its commit."""

    folder: Path
    """It holds the named folders, each at its path."""
    paths: tuple[str, ...]
    changed: frozenset[bytes]
    """The files that are not as they were when these were made."""


class _TooMuch(Exception):
    """What a gate left is too large to be kept."""


class Warmth:
    """Keeps and lends the folders that `merge.cache` names; any thread may call."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._folder = project.state / FOLDER
        self._lent: Counter[Path] = Counter()
        self._lock = threading.Lock()

    def lend(self, config: Config, commit: str) -> Lent | None:
        """Return what a gate of this commit may find, None if it has to begin cold; `take_back` ends that."""
        paths = tuple(sorted({path.rstrip("/") for path in config.merge.cache}))
        if not paths:
            with self._lock:
                for entry in list(self._folder.glob("*")):
                    self._remove(entry)
            return None
        with self._lock:
            folder, now = self._folder / _settings(config), time.time()
            kept = self._newest_landed(folder, config.target)
            self._clear(folder, kept, now)
            if kept is None or now - _written(kept) > MAX_AGE_DAYS * 86_400:
                return None
            changed = self._changed(kept.name, commit)
            there = tuple(path for path in paths if (kept / path).is_dir())  # The commit of then had nothing there.
            if changed is None or not there or any(_is_touched(path, changed) for path in there):
                return None  # A layer lends all that was kept, also over what the commit itself has by now.
            self._lent[kept] += 1
            return Lent(kept, there, changed)

    def take_back(self, lent: Lent | None) -> None:
        """Note that a gate has ended that had something lent."""
        if lent is not None:
            with self._lock:
                self._lent[lent.folder] -= 1

    def keep(self, config: Config, commit: str, lent: Lent | None, *, upper: Path | None, tree: Path) -> None:
        """Keep what a gate that passed left: what it wrote over what it was lent, or the folders themselves."""
        paths = tuple(sorted({path.rstrip("/") for path in config.merge.cache}))
        folder = self._folder / _settings(config)
        new = folder / f".{commit}-{os.getpid()}-{threading.get_ident()}"
        if not paths or (folder / commit).exists() or (lent and upper and not any(_at(upper, p) for p in paths)):
            return
        try:
            new.mkdir(mode=0o700, parents=True)
            budget = _Budget()
            for path in self._free_of(commit, paths):
                old = lent.folder / path if lent is not None and path in lent.paths else None
                _take(upper, tree, path, old, new / path, budget)
            with self._lock, contextlib.suppress(OSError):  # one that is as good was kept meanwhile
                new.rename(folder / commit)
        except (OSError, _TooMuch, CoveyError) as error:
            log.warning("what %s left in %s is not kept: %s", commit[:12], ", ".join(paths), error)
        finally:
            trash.remove(new)

    # What is there

    def _newest_landed(self, folder: Path, target: str) -> Path | None:
        """Return what the newest commit left that is in main."""
        found = [entry for entry in folder.glob("*") if not entry.name.startswith(".")]
        newest = {entry.name: entry for entry in sorted(found, key=_written, reverse=True)}
        main = candidates.resolve(self._project, f"refs/heads/{target}")
        try:
            held = None if main is None else commits_since.first_held(self._project, newest, main)
        except ToolFailed:  # git cannot say where one of them is: without warmth a gate is only slower
            return None
        return None if held is None else newest[held]

    def _changed(self, then: str, now: str) -> frozenset[bytes] | None:
        """Return what changed between two commits, None if something is gone, or is another kind of thing."""
        changed = candidates.added_or_modified(self._project, then, now)
        if changed is None or any(os.path.basename(path) == b".gitattributes" for path in changed):
            return None  # With it, the text of other files may have changed in a checkout.
        return changed

    def _free_of(self, commit: str, paths: tuple[str, ...]) -> list[str]:
        """Return at which paths a commit has nothing, nor a file where one of their folders would be."""
        above = {path: set(_above(path)) for path in paths}
        taken = candidates.entries_at(self._project, commit, sorted(set(paths).union(*above.values())))
        if taken is None:
            return []
        files = {path for path, is_folder in taken.items() if not is_folder}
        return [path for path in paths if path not in taken and not above[path] & files]

    # What is removed

    def _clear(self, folder: Path, kept: Path | None, now: float) -> None:
        """Remove what is older than what is lent now, too old or too much, and what was kept for other settings."""
        found = sorted(folder.glob("*"), key=_written, reverse=True)
        older = found[found.index(kept) + 1 :] if kept in found else []
        stale = [each for each in found if now - _written(each) > MAX_AGE_DAYS * 86_400]
        for entry in {*older, *stale, *found[MAX_COMMITS_KEPT:]} - {kept}:
            self._remove(entry)
        others = sorted(self._folder.glob("*"), key=_written, reverse=True)
        for entry in [each for each in others if each != folder][MAX_SETTINGS_KEPT - 1 :]:
            self._remove(entry)

    def _remove(self, entry: Path) -> None:
        """Take something out of sight, unless it is lent; `tidy` removes it."""
        used = any(count > 0 and (lent == entry or entry in lent.parents) for lent, count in self._lent.items())
        if not used:
            self._folder.with_name(OLD).mkdir(mode=0o700, exist_ok=True)
            with contextlib.suppress(OSError):
                entry.rename(self._folder.with_name(OLD) / f"{entry.name}-{token_hex(4)}")

    def tidy(self) -> None:
        """Remove what is out of sight, also of a daemon before us."""
        for entry in self._folder.with_name(OLD).glob("*"):
            trash.remove(entry)


class _Budget:
    """What may still be kept."""

    def __init__(self) -> None:
        self.files, self.bytes = MAX_FILES_KEPT, MAX_BYTES_KEPT

    def spend(self, found: os.stat_result) -> None:
        self.files -= 1
        self.bytes -= found.st_size
        if self.files < 0 or self.bytes < 0:
            raise _TooMuch(f"it is more than {MAX_FILES_KEPT:,} files or {MAX_BYTES_KEPT // 1024**3} GiB")


def _settings(config: Config) -> str:
    """Return what stands for the settings that decide what is in the folders."""
    merge = config.merge
    said = (merge.quick, merge.check, merge.checks, tuple(sorted(merge.cache)), config.target)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


def _written(entry: Path) -> float:
    """Return when something was written; long ago if it is gone by now."""
    found = files.status(entry, follow=True)
    return 0.0 if found is None else found.st_mtime


def _above(path: str) -> list[str]:
    return [path[:at] for at, letter in enumerate(path) if letter == "/"]


def _is_touched(path: str, changed: frozenset[bytes]) -> bool:
    """Say whether anything that was added or changed is at a path, in it, or where one of its folders would be."""
    within, taken = os.fsencode(path) + b"/", {os.fsencode(each) for each in (path, *_above(path))}
    return any(name in taken or name.startswith(within) for name in changed)


def copy(lent: Lent, tree: Path) -> None:
    """Copy what is lent into a worktree, where nothing can be laid over it."""
    for path in lent.paths:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        words = ["cp", "-a", "--reflink=auto", "--", str(lent.folder / path), str(tree / path)]
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            shutil.copytree(lent.folder / path, tree / path, symlinks=True, dirs_exist_ok=True)


def hidden(upper: Path, tree: Path) -> tuple[set[bytes], set[bytes]]:
    """Return what of a worktree is gone in a layer over it, and the folders in which it hides what was there."""
    over, under = os.fsencode(upper), os.fsencode(tree)
    gone, opaque = set(), set()
    for path, entry in _walk(upper, b""):
        is_gone = stat.S_ISCHR(entry.st_mode)
        if not is_gone and stat.S_ISDIR(entry.st_mode) and not _is_opaque(os.path.join(over, path)):
            continue
        with contextlib.suppress(OSError):  # Nothing is there that could be hidden.
            found = os.lstat(os.path.join(under, path))
            if is_gone:
                gone.add(path)
            elif stat.S_ISDIR(found.st_mode):
                opaque.add(path)
    return gone, opaque


def is_hidden(path: bytes, gone: set[bytes], opaque: set[bytes], upper: Path) -> bool:
    """Say whether a file is gone, or lies in a folder that is gone, or in one that hides what was in it before."""
    above = {*candidates.folders_above(path)}
    if not gone.isdisjoint({path, *above}):
        return True
    return not opaque.isdisjoint(above) and not os.path.lexists(os.path.join(os.fsencode(upper), path))


def _walk(top: Path, path: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield all that is in a folder, without following a link, and not deeper than anything sensible is."""
    waiting = [path]
    while waiting:
        here = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(os.path.join(os.fsencode(top), here)) as entries:
            for entry in entries:
                name = os.path.join(here, entry.name)
                found = entry.stat(follow_symlinks=False)
                yield name, found
                if stat.S_ISDIR(found.st_mode) and name.count(b"/") < MAX_DEPTH:
                    waiting.append(name)


def _at(upper: Path, path: str) -> bool:
    """Say whether a layer has anything at a path, or hides it."""
    instead = any(os.path.lexists(upper / each) and not (upper / each).is_dir() for each in _above(path))
    return instead or os.path.lexists(upper / path)


def _is_real_folder(top: Path, path: str) -> bool:
    """Say whether there is a folder at a path, reached through no link."""
    place = os.path.normpath(os.path.join(os.path.realpath(top), path))
    return os.path.isdir(place) and os.path.realpath(place) == place


def _take(upper: Path | None, tree: Path, path: str, old: Path | None, new: Path, budget: _Budget) -> None:
    """Put together what is at a path: what was written over what was there before, or the folder itself."""
    if upper is None:
        if _is_real_folder(tree, path):
            for name, found in _walk(tree / path, b""):
                if name.count(b"/") >= MAX_DEPTH:
                    raise _TooMuch(f"it is more than {MAX_DEPTH} folders deep")
                budget.spend(found)
                _not_of_the_future(os.path.join(os.fsencode(tree / path), name), found)
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(tree / path, new)
    elif not _at(upper, path):
        if old is not None:
            _link(None, old, new, budget, 0)
    elif _is_real_folder(upper, path):
        _link(upper / path, old, new, budget, 0)


def _link(over: Path | None, under: Path | None, new: Path, budget: _Budget, depth: int) -> None:
    """Make a folder of hard links to what two layers show together; nobody ever writes to such a file again."""
    if depth > MAX_DEPTH:
        raise _TooMuch(f"it is more than {MAX_DEPTH} folders deep")
    new.mkdir(mode=0o755, parents=depth == 0)
    if over is not None and _is_opaque(os.fsencode(over)):
        under = None
    written, before = _by_name(over), _by_name(under)
    for name in {**before, **written}:
        entry = written.get(name) or before[name]
        found = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            _link(_folder(written.get(name)), _folder(before.get(name)), new / name, budget, depth + 1)
        elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
            budget.spend(found)
            os.link(entry.path, new / name, follow_symlinks=False)
            _not_of_the_future(os.fsencode(new / name), found)
    source = over or under
    if source is not None:
        shown = source.stat()
        os.utime(new, ns=(shown.st_atime_ns, shown.st_mtime_ns))


def _by_name(folder: Path | None) -> dict[str, os.DirEntry[str]]:
    return {} if folder is None else {each.name: each for each in os.scandir(folder)}


def _folder(entry: os.DirEntry[str] | None) -> Path | None:
    """Return what an entry of a layer adds to a folder: nothing if it is missing, or something else."""
    return Path(entry.path) if entry is not None and entry.is_dir(follow_symlinks=False) else None


def _not_of_the_future(path: bytes, found: os.stat_result) -> None:
    """Date back what claims to be newer than any file that will ever change."""
    now = time.time_ns()
    if found.st_mtime_ns > now:
        os.utime(path, ns=(now, now), follow_symlinks=False)


def _is_opaque(path: bytes) -> bool:
    for name in OPAQUE:
        with contextlib.suppress(OSError):
            if os.getxattr(path, name, follow_symlinks=False) == b"y":
                return True
    return False
