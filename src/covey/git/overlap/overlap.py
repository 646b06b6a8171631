"""Where open branches come close to each other: what each changes, and which ones git cannot merge, from objects alone.

No checkout is looked at, and whatever a merge writes is gone with the look.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from covey.core import overlaps
from covey.core.leases.write_policy import Write
from covey.core.overlaps import Hunk
from covey.errors import ToolFailed
from covey.files import status
from covey.git import refs
from covey.git.candidates.candidates import folders_above, readable
from covey.git.candidates.incoming import Inspector, is_readable
from covey.git.guard.commit_paths import witnessed
from covey.git.identity import HEADS, LANDED, NO_PROMPT, TASK_BRANCHES
from covey.git.overlap import branch_reader as reading
from covey.git.overlap.branch_reader import READ_TIMEOUT_S, BranchChanges, FileChange
from covey.git.project import Project, blob
from covey.git.run import git, quoted, try_git, without_unreadable
from covey.values import dataclass

_BRANCHES = HEADS + TASK_BRANCHES
MAX_COMPARED_PATHS = 1000
"""How many files that several branches change are compared line by line."""
MAX_KEPT_CHANGES = 50_000
"""Changes of one file whose lines are remembered."""
MEMORY_FOLDER = "/dev/shm"
MIN_FREE_BYTES = 256 * 1024 * 1024
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
    found = refs.listed(project, _BRANCHES, head, LANDED)
    branches = {name.removeprefix(_BRANCHES): tip for name, tip in found.items() if name.startswith(_BRANCHES)}
    return Tips(found.get(LANDED) or found.get(head), branches)


def stamp(project: Project, main: str) -> tuple[int, ...]:
    """Return what changes whenever a branch may have moved; looking at it costs nothing."""
    heads = project.common / "refs" / "heads"
    places = (heads / "covey", (heads / main).parent, project.common / "refs" / "covey", project.common / "packed-refs")
    # git changes a ref by writing a file, or by an entry of a folder that comes or goes.
    found = (status(place, follow=True) for place in places)
    return tuple(0 if each is None else each.st_mtime_ns for each in found)


class Branches:
    """Compares open branches, and remembers of each what it changes for as long as it is open."""

    def __init__(self, project: Project, inspector: Inspector | None = None) -> None:
        self.project = project
        self._inspector = inspector
        """Looks first whether git can be asked about a branch at all, where nobody else has."""
        self._main = ""
        self._attributes: bytes | None = None
        self._looks: dict[str, BranchChanges] = {}
        self._hunks: dict[tuple[str, str], tuple[Hunk, ...]] = {}
        self._with_main: dict[str, tuple[str, ...]] = {}
        """What each tip, by its commit, was last seen to change in conflict with main."""

    def look(self, main: str, wanted: Collection[str]) -> dict[str, BranchChanges]:
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
            self._looks |= without_unreadable(lambda some: reading.looks(self.project, main, some), missing)
        return self._looks

    def _absorbed(self, main: str) -> frozenset[str]:
        """Return the commits that main has gained since the last look."""
        before, self._main = self._main, main
        if before in ("", main):
            return frozenset()
        self._attributes = None
        asked = try_git("rev-list", main, f"^{before}", at=self.project.common, patience=READ_TIMEOUT_S)
        if asked.returncode != 0:
            self._looks = {}
        return frozenset(asked.stdout.decode().split())

    # Two branches

    def compare(self, main: str, pairs: Collection[Pair]) -> dict[Pair, Contact]:
        """Return how each pair meets; both were looked at before. A pair that git fails on is left out.

        The same change on both sides is not an overlap, nor is what one of them took from the other.
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

    def meet(self, main: str, pairs: Iterable[Pair]) -> dict[Pair, Contact]:
        """Return how each pair of two different branches meets, but for what one of them has against main.

        A branch that git could not read was left out when it was looked at, and its pairs are left out here.
        """
        there = {*self._looks, main}
        known = [pair for pair in dict.fromkeys(pairs) if there.issuperset(pair) and pair[0] != pair[1]]
        tips = dict.fromkeys(tip for pair in known for tip in pair if tip != main)
        with_main = self.compare(main, [(tip, main) for tip in tips])
        found = self.compare(main, [pair for pair in known if pair[1] != main])
        return {pair: contact for pair in known if (contact := (found | with_main).get(pair)) is not None}

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
        one, other = pair
        of_both = set(map(readable, self._looks[one].files)).intersection(map(readable, self._looks[other].files))
        with_main = {*self._with_main.get(one, ()), *self._with_main.get(other, ())}
        return tuple(name for name in conflicts if name in of_both or name not in with_main)

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

    def _is_close(self, one: FileChange, other: FileChange) -> bool:
        """Say whether two changes of one file touch the same lines or neighbouring ones.

        If they began from different contents, the lines of the first are shifted to those of the other; where it is not
        known how far, the changes count as close.
        """
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
        if len(self._hunks) > MAX_KEPT_CHANGES:
            self._hunks = {}
        paths = list(dict.fromkeys(name for names in shared.values() for name in names))[:MAX_COMPARED_PATHS]
        looked = frozenset(paths)
        wanted = {
            change: trees
            for (one, other), names in shared.items()
            for name in looked.intersection(names)
            for trees, change in _changes(self._looks[one], self._looks[other], name)
            if change not in self._hunks and change[0] != change[1]
        }
        if wanted:
            self._hunks |= {
                change: (Hunk(0, overlaps.WHOLE_FILE_END, overlaps.WHOLE_FILE_END, change[1]),) for change in wanted
            }
            between = list(dict.fromkeys(wanted.values()))
            self._hunks |= without_unreadable(lambda trees: reading.hunks(self.project, trees, paths), between)

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
            if self._attributes is None:
                self._attributes = blob(self.project, f"{main}:.gitattributes")
            if self._attributes:
                (Path(folder) / ".gitattributes").write_bytes(self._attributes)
            (Path(folder) / "objects").mkdir()
            return without_unreadable(lambda some: self._merge_in(Path(folder), some), pairs)

    def _merge_in(self, folder: Path, pairs: Sequence[Pair]) -> dict[Pair, tuple[str, ...]]:
        env = {
            "GIT_DIR": str(self.project.common),
            "GIT_WORK_TREE": str(folder),
            "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(str(self.project.common / "objects")),
            **NO_PROMPT,
        }
        words = ("-c", "core.fsync=none", "merge-tree", "--write-tree", "--stdin", "-z", "--name-only", "--messages")
        asked = "".join(f"{one} {other}\n" for one, other in pairs).encode()
        allowed = "--allow-unrelated-histories"  # one such pair would end it for all
        printed = git(*words, allowed, at=folder, env=env, stdin=asked, patience=READ_TIMEOUT_S)
        return dict(zip(pairs, reading.conflicts(printed), strict=True))

    # What was written

    def written(
        self, olds: dict[str, BranchChanges | None], since: float, places: Mapping[str, Path] | None = None
    ) -> dict[str, list[Write]]:
        """Return the paths that new commits wrote, for each new tip with the branch as it was; and when.

        A commit's own date proves nothing: it counts for as much as the file that git keeps it in, and nothing was
        committed before the last time at which the branch was seen without it. But it may have been on disk for long
        before that: `places` names the worktree of each tip.
        """
        before = {tip: old or BranchChanges(tip) for tip, old in olds.items() if tip in self._looks}
        fresh = {tip: self._looks[tip].own - old.own for tip, old in before.items()}
        commits = reading.commits(self.project, frozenset().union(*fresh.values()))
        found: dict[str, list[Write]] = {}
        for tip, own in fresh.items():
            now = self._looks[tip].files
            old = before[tip].files
            changed = {name for name in old.keys() | now.keys() if old.get(name) != now.get(name)}
            made = [commits[commit] for commit in own & commits.keys()]
            times = _last_times(changed, made, 0.0 if olds[tip] is None else since)
            place = (places or {}).get(tip)
            if place is not None and place.is_dir():
                times |= self._lay_there(place, now, times)
            found[tip] = [
                Write(readable(name), at, name in now and now[name].is_new) for name, at in sorted(times.items())
            ]
        return found

    def _lay_there(self, place: Path, now: dict[bytes, FileChange], times: dict[bytes, float]) -> dict[bytes, float]:
        """Return which of some paths lie in a worktree as they were committed, and did so before that."""
        found: dict[bytes, float] = {}
        for name in list(times)[:MAX_COMPARED_PATHS]:
            if name in now:
                content = None if now[name].is_gone else now[name].new
                at = witnessed(place, os.fsdecode(name), content, times[name])
                if at is not None and at < times[name]:
                    found[name] = at
        return found

    def get(self, tip: str) -> BranchChanges | None:
        """Return what a commit was seen to change."""
        return self._looks.get(tip)


def between(project: Project, base: str, pairs: Sequence[Pair]) -> set[Pair]:
    """Return those pairs of tips that git cannot merge, beyond what one of them has against `base`.

    A branch that stands on another does not clash with it. A few processes do it for all of them.
    """
    if not pairs:
        return set()
    branches = Branches(project)
    branches.look(base, list(dict.fromkeys(chain.from_iterable(pairs))))
    return {pair for pair, contact in branches.meet(base, pairs).items() if contact.conflicts}


def changed(project: Project, base: str, tips: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the paths that each tip changes since it left `base`; a file that got another name counts under both."""
    looked = reading.looks(project, base, list(dict.fromkeys(tips))) if tips else {}
    unrelated = [tip for tip, look in looked.items() if look.own and look.trees is None]
    if unrelated:
        raise ToolFailed(f"{unrelated[0][:12]} has no common ancestor with {base[:12]}.")
    return {tip: looked[tip].paths for tip in tips}


def _quick_place() -> str | None:
    """Return a folder that no disk is behind, if there is room: what merges write is needed for a moment only."""
    with contextlib.suppress(OSError):
        room = os.statvfs(MEMORY_FOLDER)
        if room.f_bavail * room.f_frsize >= MIN_FREE_BYTES and os.access(MEMORY_FOLDER, os.W_OK | os.X_OK):
            return MEMORY_FOLDER
    return None


def _is_under(files: Iterable[bytes], others: dict[bytes, FileChange]) -> bool:
    """Say whether some file lies in a folder that has the name of another."""
    return any(folder in others for name in files for folder in folders_above(name))


def _changes(
    one: BranchChanges, other: BranchChanges, name: bytes
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the trees and the contents between which one file has to be compared."""
    assert one.trees is not None and other.trees is not None
    mine, theirs = one.files[name], other.files[name]
    yield one.trees, (mine.old, mine.new)
    yield other.trees, (theirs.old, theirs.new)
    if mine.old != theirs.old:
        yield (one.trees[0], other.trees[0]), (mine.old, theirs.old)


def _last_times(
    wanted: set[bytes], commits: Iterable[tuple[float, list[bytes]]], earliest: float
) -> dict[bytes, float]:
    """Return when each of some paths was last written by commits, which name their times and paths."""
    times: dict[bytes, float] = {}
    for at, names in commits:
        for name in wanted.intersection(names):
            times[name] = max(times.get(name, earliest), at)
    return times
