"""Where open branches come close to each other: what each changes, and which ones git cannot merge, from objects alone.

No checkout is looked at, and whatever a merge writes is gone with the look.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from covey.core import overlaps
from covey.core.force import Write
from covey.core.overlaps import Hunk
from covey.errors import ToolFailed
from covey.git import overlap_read as reading
from covey.git.candidates import readable
from covey.git.incoming import Inspector, is_readable
from covey.git.landing import LANDED
from covey.git.overlap_read import PATIENCE, File, Look
from covey.git.project import Project
from covey.git.run import git, try_git
from covey.git.written import witnessed
from covey.values import dataclass

BRANCHES = "refs/heads/covey/"
MOST_PATHS = 1000
"""Files that several branches change of which the lines are compared."""
MOST_KEPT = 50_000
"""Changes of one file whose lines are remembered."""
MEMORY = "/dev/shm"
ROOM = 256 * 1024 * 1024
"""Bytes that must be free there."""
Pair = tuple[str, str]
"""Two commits; the second may be main."""


@dataclass(frozen=True)
class Tips:
    """Where the queue builds, and where the branch of each task stands."""

    main: str | None
    branches: dict[str, str]


@dataclass(frozen=True)
class Contact:
    """The files that two branches share, those in which they come close, and those that git cannot merge."""

    shared: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def tips(project: Project, main: str) -> Tips:
    """Return where all branches stand, in one process."""
    head = f"refs/heads/{main}"
    words = ("for-each-ref", "--format=%(objectname) %(refname)", BRANCHES, head, LANDED)
    lines = git(*words, at=project.common).decode(errors="surrogateescape").splitlines()
    found = {name: commit for commit, name in (line.split(" ", 1) for line in lines)}
    branches = {name.removeprefix(BRANCHES): tip for name, tip in found.items() if name.startswith(BRANCHES)}
    return Tips(found.get(LANDED) or found.get(head), branches)


def stamp(project: Project, main: str) -> tuple[int, ...]:
    """Return what changes whenever a branch may have moved; looking at it costs nothing."""
    heads = project.common / "refs" / "heads"
    places = (heads / "covey", (heads / main).parent, project.common / "refs" / "covey", project.common / "packed-refs")
    return tuple(_changed(place) for place in places)


def _changed(place: Path) -> int:
    """Return when a file was written, or an entry of a folder came or went: so git changes a ref."""
    try:
        return os.stat(place).st_mtime_ns
    except OSError:
        return 0


class Branches:
    """Compares open branches, and remembers of each what it changes for as long as it is open."""

    def __init__(self, project: Project, inspector: Inspector | None = None) -> None:
        self.project = project
        self._inspector = inspector
        """Looks first whether git can be asked about a branch at all, where nobody else has."""
        self._main = ""
        self._attributes: bytes | None = None
        self._looks: dict[str, Look] = {}
        self._hunks: dict[tuple[str, str], tuple[Hunk, ...]] = {}
        self._with_main: dict[str, tuple[str, ...]] = {}
        """What each tip, by its commit, was last seen to change in conflict with main."""

    def look(self, main: str, wanted: Collection[str]) -> dict[str, Look]:
        """Return what each of these commits changes; what cannot be read is left out. Others are forgotten."""
        absorbed = self._absorbed(main)
        kept = {tip: look for tip, look in self._looks.items() if tip in wanted}
        self._looks = {tip: look for tip, look in kept.items() if not (look.own & absorbed)}
        self._with_main = {tip: files for tip, files in self._with_main.items() if tip in wanted}
        missing = [tip for tip in wanted if tip not in self._looks]
        if self._inspector is not None:
            found = self._inspector.look(self.project, main, missing)
            missing = [tip for tip in missing if is_readable(found[tip])]
        if missing:
            self._looks |= self._read(main, missing)
        return self._looks

    def _absorbed(self, main: str) -> frozenset[str]:
        """Return the commits that main has gained since the last look."""
        before, self._main = self._main, main
        if before in ("", main):
            return frozenset()
        self._attributes = None
        asked = try_git("rev-list", main, f"^{before}", at=self.project.common, patience=PATIENCE)
        if asked.returncode != 0:
            self._looks = {}
        return frozenset(asked.stdout.decode().split())

    def _read(self, main: str, wanted: Sequence[str]) -> dict[str, Look]:
        try:
            return reading.looks(self.project, main, wanted)
        except ToolFailed:
            if len(wanted) == 1:
                return {}
            half = len(wanted) // 2
            return self._read(main, wanted[:half]) | self._read(main, wanted[half:])

    # Two branches

    def compare(self, main: str, pairs: Collection[Pair]) -> dict[Pair, Contact]:
        """Return how each pair meets; both were looked at before. A pair that git fails on is left out.

        What both change alike is no overlap, and neither is what one of them has from the other.
        """
        apart = [pair for pair in pairs if pair[1] == main or not self._is_stacked(*pair)]
        merges = [pair for pair in apart if self._may_conflict(main, *pair)]
        merged = self._merge(main, merges)
        for (one, other), files in merged.items():
            if other == main:
                self._with_main[one] = files
        shared = {pair: self._shared(*pair) for pair in apart if pair[1] != main}
        close = self._close(shared)
        found: dict[Pair, Contact] = dict.fromkeys(pairs, Contact())
        for pair in apart:
            if pair in merges and pair not in merged:
                del found[pair]
                continue
            conflicts = merged.get(pair, ())
            if pair[1] != main:
                conflicts = self._theirs(pair, conflicts)
            names = tuple(map(readable, shared.get(pair, ())))
            found[pair] = Contact(names, tuple(map(readable, close.get(pair, ()))), conflicts)
        return found

    def _is_stacked(self, one: str, other: str) -> bool:
        """Say whether one branch holds the other."""
        return one == other or other in self._looks[one].own or one in self._looks[other].own

    def _may_conflict(self, main: str, one: str, other: str) -> bool:
        """Say whether git might not be able to merge two commits: by far the most pairs have nothing in common."""
        mine = self._looks[one]
        if other == main:
            return bool(mine.files)
        theirs = self._looks[other]
        if mine.files.keys() & theirs.files.keys():
            return True
        if (mine.adds and theirs.takes_away) or (mine.takes_away and theirs.adds):
            return True  # a folder may have got another name
        return _is_under(mine.files, theirs.files) or _is_under(theirs.files, mine.files)

    def _theirs(self, pair: Pair, conflicts: tuple[str, ...]) -> tuple[str, ...]:
        """Return the conflicts of two branches without those that one of them has with main."""
        one, other = (frozenset(map(readable, self._looks[tip].files)) for tip in pair)
        mains = {name for tip in pair for name in self._with_main.get(tip, ())}
        return tuple(name for name in conflicts if (name in one and name in other) or name not in mains)

    def _shared(self, one: str, other: str) -> list[bytes]:
        mine, theirs = self._looks[one].files, self._looks[other].files
        return [name for name in mine.keys() & theirs.keys() if mine[name].new != theirs[name].new]

    def _close(self, shared: dict[Pair, list[bytes]]) -> dict[Pair, list[bytes]]:
        """Return the files that two branches change at the same lines, or at ones next to each other."""
        self._learn(shared)
        return {
            pair: [name for name in names if self._is_close(self._looks[pair[0]].files[name], other.files[name])]
            for pair, names in shared.items()
            for other in [self._looks[pair[1]]]
        }

    def _is_close(self, one: File, other: File) -> bool:
        mine, theirs = self._hunks.get((one.old, one.new)), self._hunks.get((other.old, other.new))
        if mine is None or theirs is None:
            return False  # only its mode changed, or there are too many files
        if one.old != other.old:
            moves = self._hunks.get((one.old, other.old))
            if moves is None:
                return True
            return overlaps.near(overlaps.shifted(mine, moves), theirs)
        return overlaps.near(mine, theirs)

    def _learn(self, shared: dict[Pair, list[bytes]]) -> None:
        """Find out which lines the files that branches share are changed at, in one process for all."""
        if len(self._hunks) > MOST_KEPT:
            self._hunks = {}
        paths = list(dict.fromkeys(name for names in shared.values() for name in names))[:MOST_PATHS]
        looked = frozenset(paths)
        wanted = {
            change: trees
            for (one, other), names in shared.items()
            for name in looked.intersection(names)
            for trees, change in _changes(self._looks[one], self._looks[other], name)
            if change not in self._hunks and change[0] != change[1]
        }
        if wanted:
            self._hunks |= {change: (Hunk(0, overlaps.WHOLE, overlaps.WHOLE, change[1]),) for change in wanted}
            self._hunks |= self._read_hunks(list(dict.fromkeys(wanted.values())), paths)

    def _read_hunks(self, trees: Sequence[Pair], paths: Sequence[bytes]) -> dict[tuple[str, str], tuple[Hunk, ...]]:
        """Return the lines that changed between trees; what git cannot read spoils no other."""
        try:
            return reading.hunks(self.project, list(trees), list(paths))
        except ToolFailed:
            if len(trees) == 1:
                return {}
            half = len(trees) // 2
            return self._read_hunks(trees[:half], paths) | self._read_hunks(trees[half:], paths)

    # Merging

    def _merge(self, main: str, pairs: Sequence[Pair]) -> dict[Pair, tuple[str, ...]]:
        """Merge every pair, and return the files in conflict of each; how is said by main, as when they land."""
        if not pairs:
            return {}
        place = _quick_place()
        merged = self._merge_at(place, main, pairs)
        if place is not None and len(merged) < len(pairs):  # it may have been too small after all
            merged |= self._merge_at(None, main, [pair for pair in pairs if pair not in merged])
        return merged

    def _merge_at(self, place: str | None, main: str, pairs: Sequence[Pair]) -> dict[Pair, tuple[str, ...]]:
        with tempfile.TemporaryDirectory(prefix="covey-overlap-", dir=place) as folder:
            attributes = self._read_attributes(main)
            if attributes:
                (Path(folder) / ".gitattributes").write_bytes(attributes)
            (Path(folder) / "objects").mkdir()
            return self._merge_in(Path(folder), pairs)

    def _read_attributes(self, main: str) -> bytes:
        if self._attributes is None:
            asked = try_git("cat-file", "blob", f"{main}:.gitattributes", at=self.project.common)
            self._attributes = asked.stdout if asked.returncode == 0 else b""
        return self._attributes

    def _merge_in(self, folder: Path, pairs: Sequence[Pair]) -> dict[Pair, tuple[str, ...]]:
        env = {
            "GIT_DIR": str(self.project.common),
            "GIT_WORK_TREE": str(folder),
            "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(self.project.common / "objects"),
            "GIT_TERMINAL_PROMPT": "0",
        }
        words = ("-c", "core.fsync=none", "merge-tree", "--write-tree", "--stdin", "-z", "--name-only", "--messages")
        asked = "".join(f"{one} {other}\n" for one, other in pairs).encode()
        allowed = "--allow-unrelated-histories"  # one such pair would end it for all
        done = try_git(*words, allowed, at=folder, env=env, stdin=asked, patience=PATIENCE)
        if done.returncode == 0:
            return dict(zip(pairs, reading.conflicts(done.stdout), strict=True))
        if len(pairs) == 1:
            return {}
        half = len(pairs) // 2
        return self._merge_in(folder, pairs[:half]) | self._merge_in(folder, pairs[half:])

    # What was written

    def written(
        self, olds: dict[str, Look | None], since: float, places: Mapping[str, Path] | None = None
    ) -> dict[str, list[Write]]:
        """Return the paths that new commits wrote, for each new tip with the branch as it was; and when.

        A commit's own date proves nothing: it counts for as much as the file that git keeps it in, and nothing was
        committed before the last time at which the branch was seen without it. But it may have lain for long on the
        disk, of which `places` names the worktree of each tip.
        """
        known = [tip for tip in olds if tip in self._looks]
        fresh = {tip: self._looks[tip].own - (old.own if (old := olds[tip]) else frozenset()) for tip in known}
        commits = reading.commits(self.project, {commit for own in fresh.values() for commit in own})
        found: dict[str, list[Write]] = {}
        for tip, own in fresh.items():
            old, now = olds[tip], self._looks[tip].files
            before = old.files if old else {}
            times: dict[bytes, float] = {}
            for commit in own & commits.keys():
                at, names = commits[commit]
                for name in names:
                    if now.get(name) != before.get(name):
                        times[name] = max(times.get(name, 0.0), at, since if old else 0.0)
            place = places.get(tip) if places is not None else None
            if place is not None and place.is_dir():
                times |= self._lay_there(place, now, times)
            found[tip] = [
                Write(readable(name), at, name in now and now[name].is_new) for name, at in sorted(times.items())
            ]
        return found

    def _lay_there(self, place: Path, now: dict[bytes, File], times: dict[bytes, float]) -> dict[bytes, float]:
        """Return which of some paths lie in a worktree as they were committed, and did so before that."""
        found: dict[bytes, float] = {}
        for name in list(times)[:MOST_PATHS]:
            if name in now:
                content = None if now[name].is_gone else now[name].new
                at = witnessed(place, os.fsdecode(name), content, times[name])
                if at is not None and at < times[name]:
                    found[name] = at
        return found

    def get(self, tip: str) -> Look | None:
        """Return what a commit was seen to change."""
        return self._looks.get(tip)


def _quick_place() -> str | None:
    """Return a folder that no disk is behind, if there is room: what merges write is needed for a moment only."""
    with contextlib.suppress(OSError):
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize >= ROOM and os.access(MEMORY, os.W_OK | os.X_OK):
            return MEMORY
    return None


def _quoted(path: Path) -> str:
    """Return a path as it stands in a list that colons part."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _is_under(files: Iterable[bytes], others: dict[bytes, File]) -> bool:
    """Say whether some file lies in a folder that has the name of another."""
    for name in files:
        at = name.find(b"/")
        while at >= 0:
            if name[:at] in others:
                return True
            at = name.find(b"/", at + 1)
    return False


def _changes(one: Look, other: Look, name: bytes) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the trees and the contents between which one file has to be compared."""
    assert one.trees is not None and other.trees is not None
    mine, theirs = one.files[name], other.files[name]
    yield one.trees, (mine.old, mine.new)
    yield other.trees, (theirs.old, theirs.new)
    if mine.old != theirs.old:
        yield (one.trees[0], other.trees[0]), (mine.old, theirs.old)
