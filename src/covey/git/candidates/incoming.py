"""Incoming: what commits bring that main lacks, read object by object and held against the rules before any merge.

One process lists it for any number of branches. git's own programs fail in many ways on objects that were made by
hand, some with an assertion: nothing but reading is done here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise

from covey.core.figures import size
from covey.core.merging import commit_rules, tree_rules
from covey.core.merging.tree_rules import Entry, Finding, Folder
from covey.errors import ToolFailed
from covey.git import objects
from covey.git.candidates import chain_inputs
from covey.git.candidates.candidates import MERGE_TIMEOUT_S, resolve
from covey.git.candidates.chain_inputs import BranchCommits
from covey.git.project import Project
from covey.git.run import first_of, git
from covey.values import dataclass

MAX_OBJECTS = 500_000
MAX_READ_BYTES = 128 * 1024**2
"""Commits and folders that are read at once."""
MAX_SETTINGS_BYTES = 1024**2
"""A .gitmodules or .gitattributes up to which it is read."""
MAX_FORKS = 20
MAX_KNOWN_COMMITS = 10_000
"""How many commits the findings are remembered for."""
MAX_TOLD_FINDINGS = 3
MAX_ASKED_ENTRIES = 500
"""How many odd entries main is asked about: it may have them already."""
_TOO_LARGE = Finding("it brings more than can be looked at", is_odd=True, is_heavy=True)


class _TooMuch(ToolFailed):
    """Work brings more objects, or larger ones, than are read."""


@dataclass
class _New:
    """The objects that some tips bring."""

    forks: list[str] = field(default_factory=list)
    commits: dict[str, commit_rules.Read] = field(default_factory=dict)
    trees: dict[bytes, list[Entry] | None] = field(default_factory=dict)
    """The entries of each folder that have to be looked at; None for one that is broken."""
    plain: set[bytes] = field(default_factory=set)
    """Folders in which no entry can be wrong or odd by itself."""
    folders: dict[bytes, Folder] = field(default_factory=dict)
    kinds: dict[bytes, str] = field(default_factory=dict)
    large: dict[bytes, int] = field(default_factory=dict)
    settings: dict[bytes, Entry] = field(default_factory=dict)
    """The files by which git is told of submodules, and how to check files out, by their paths in the tip at hand."""


class Inspector:
    """Looks at what wants to land, and remembers what it found of each commit, as long as main only grows."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Finding, ...]] = {}

    def look(self, project: Project, base: str, tips: Sequence[str]) -> dict[str, tuple[Finding, ...]]:
        """Return what is wrong or odd with what each tip brings beyond `base`."""
        fresh = [tip for tip in tips if tip not in self._known]
        if len(self._known) > MAX_KNOWN_COMMITS:
            self._known, fresh = {}, list(tips)
        # What is odd may be on main by now, by a person's hand.
        fresh += [tip for tip in tips if any(each.is_odd for each in self._known.get(tip, ()))]
        self._known |= look(project, base, fresh)
        return {tip: self._known[tip] for tip in tips}


def broken(findings: Iterable[Finding]) -> list[str]:
    """Return what of findings nobody can let land."""
    return [each.what for each in findings if not each.is_odd]


def is_readable(findings: Iterable[Finding]) -> bool:
    """Say whether git can be asked about a commit without harm to whoever asks."""
    return all(each.is_odd and not each.is_heavy for each in findings)


def told(whats: Sequence[str]) -> str:
    """Return the first of several findings in one sentence."""
    return "; ".join(whats[:MAX_TOLD_FINDINGS]) + (
        f"; and {len(whats) - MAX_TOLD_FINDINGS} more" if len(whats) > MAX_TOLD_FINDINGS else ""
    )


def look(project: Project, base: str, tips: Sequence[str]) -> dict[str, tuple[Finding, ...]]:
    """Return what is wrong or odd with what each tip brings beyond `base`; one that cannot be read spoils no other."""
    wanted = list(dict.fromkeys(tips))
    if not wanted:
        return {}
    if _are_fine(project, base, wanted):
        return dict.fromkeys(wanted, ())
    try:
        new = _read(project, base, wanted)
        return {tip: _without_old(project, base, new, _findings(project, base, new, tip)) for tip in wanted}
    except ToolFailed as error:
        if len(wanted) > 1:
            half = len(wanted) // 2
            return look(project, base, wanted[:half]) | look(project, base, wanted[half:])
        if isinstance(error, _TooMuch):
            return {wanted[0]: (_TOO_LARGE,)}
        if resolve(project, base) is None:
            raise  # git itself, or the disk, is at fault
        return {wanted[0]: (Finding(f"git cannot read all of it: {error.message.rstrip('.')}"),)}


def _are_fine(project: Project, base: str, tips: Sequence[str]) -> bool:
    """Say whether nothing is wrong or odd with straight branches, without a process of their own.

    Here as much counts as new as git would list, or more: what main has elsewhere counts too. So no finding means that
    there is none, and what there is only git's own list tells.
    """
    found = chain_inputs.branches(project, base, tips)
    if found is None:
        return False
    grown = [branch for branch in found if branch.own]
    names = _new_objects(project, grown)
    if names is None:
        return False
    new = _New(forks=[fork.name for branch in grown for fork in branch.forks])
    try:
        _sort(project, new, sorted(names))
        last = [branch.own[-1] for branch in grown]
        if not all(_holds_each_once(bytes.fromhex(tip.tree), new) for tip in last):
            return False
        return not any(finding for tip in last for finding in _findings(project, base, new, tip.name))
    except ToolFailed:
        return False


def _new_objects(project: Project, grown: Sequence[BranchCommits]) -> set[str] | None:
    """Return the commits, folders and files that straight branches bring, None if that takes git's own list."""
    steps = [pair for branch in grown for pair in pairwise((*branch.forks, *branch.own))]
    differ = chain_inputs.differences(project, dict.fromkeys((before.tree, after.tree) for before, after in steps))
    if differ is None:
        return None
    return {after.name for _, after in steps} | {name.hex() for each in differ.values() for name in each.new}


def _holds_each_once(root: bytes, new: _New) -> bool:
    """Say whether no new folder stands in a tree twice: one that is old to git would count as copies of it."""
    seen: set[bytes] = set()
    pending = [root]
    while pending:
        tree = pending.pop()
        if tree in seen:
            return False
        if tree in new.folders:
            seen.add(tree)
            pending += [inner for _, inner in new.folders[tree].folders]
    return True


def _read(project: Project, base: str, tips: Sequence[str]) -> _New:
    words = ("rev-list", "--objects", "--no-object-names", "--boundary")
    bytes_of_one = len(base) + 1
    asked = ("--end-of-options", *tips, f"^{base}")
    listed, is_all = first_of(
        *words, *asked, at=project.common, most=MAX_OBJECTS * bytes_of_one, patience=MERGE_TIMEOUT_S
    )
    if not is_all:
        raise _TooMuch(_TOO_LARGE.what)
    lines = listed.decode().split()
    new = _New(forks=[line[1:] for line in lines if line.startswith("-")])
    names = [line for line in lines if not line.startswith("-")]
    if names:
        _sort(project, new, names)
    return new


def _sort(project: Project, new: _New, names: Sequence[str]) -> None:
    """Learn what each object is, and read commits and folders."""
    wanted, total = [], 0
    for name, found in zip(names, objects.infos(project, names, MERGE_TIMEOUT_S), strict=True):
        if found is None:
            raise ToolFailed(f"git cannot read {name}.")
        new.kinds[bytes.fromhex(name)] = found.kind
        if found.kind == "blob":
            if found.size > tree_rules.LARGEST_FILE_BYTES:
                new.large[bytes.fromhex(name)] = found.size
        else:
            wanted.append(name)
            total += found.size
    if total > MAX_READ_BYTES:
        raise _TooMuch(_TOO_LARGE.what)
    for found, content in objects.contents(project, wanted, MERGE_TIMEOUT_S):
        if found.kind == "commit":
            new.commits[found.name] = commit_rules.read(found.name, content)
        else:
            own = bytes.fromhex(found.name)
            rows = tree_rules.plain_rows(content, len(own))
            if rows is None:
                entries = new.trees[own] = tree_rules.entries(content, len(own))
                rows = [(each.mode.lstrip(b"0"), each.name, each.hash) for each in entries or ()]
            else:  # it may hold thousands: only the new ones are looked at
                new.plain.add(own)
                new.trees[own] = [Entry(*row) for row in rows if row[2] in new.kinds]
            folders = tuple((name, inner) for mode, name, inner in rows if mode == tree_rules.FOLDER)
            longest = max((len(name) for mode, name, _ in rows if mode != tree_rules.FOLDER), default=0)
            new.folders[own] = Folder(folders, len(rows) - len(folders), longest)


def _findings(project: Project, base: str, new: _New, tip: str) -> Iterator[Finding]:
    """Yield what is wrong with what one tip brings; of what only its older commits hold, what is odd does not count."""
    own = _own(new, tip)
    if new.kinds.get(bytes.fromhex(tip), "commit") != "commit":
        yield Finding(f"{tip[:12]} is not a commit")
    for name in own:
        yield from new.commits[name].findings
    roots = [bytes.fromhex(new.commits[name].tree) for name in reversed(own) if new.commits[name].tree]
    yield from tree_rules.check_shape(roots, new.folders)
    seen: set[bytes] = set()
    new.settings = {}
    for number, root in enumerate(reversed(roots)):
        for finding in _walk(new, root, seen, is_tip=number == 0):
            if number == 0 or not finding.is_odd:
                yield finding
    if new.settings:
        yield from _settings(project, base, new)


def _settings(project: Project, base: str, new: _New) -> Iterator[Finding]:
    """Yield what is wrong with new files by which git is told of submodules, or how to check files out."""
    paths = [path for path, each in new.settings.items() if new.kinds.get(each.hash) == "blob"]
    for path, text in _texts(project, paths, [new.settings[path].hash.hex() for path in paths]):
        if tree_rules.is_modules(new.settings[path]):
            yield from tree_rules.check_modules(text)
            continue
        lines = tree_rules.hindering(text)
        places = [f"{commit}:{os.fsdecode(path)}" for commit in (base, *new.forks[:MAX_FORKS])]
        olds = [old for _, old in _texts(project, [path] * len(places), places)] if lines and b"\n" not in path else []
        for line in sorted(lines - {line for old in olds for line in tree_rules.hindering(old)}):
            what = (
                f"{tree_rules.shown(path)} says {tree_rules.shown(line.encode())}, and git may then not check files out"
            )
            yield Finding(what, is_odd=True)


def _texts(project: Project, paths: Sequence[bytes], names: Sequence[str]) -> Iterator[tuple[bytes, str]]:
    """Yield the texts of files, those that are not there left out."""
    for path, text in zip(paths, objects.texts(project, names, MAX_SETTINGS_BYTES, MERGE_TIMEOUT_S), strict=True):
        if text is not None:
            yield path, text.decode(errors="replace")


def _own(new: _New, tip: str) -> list[str]:
    """Return the commits that a tip brings, itself first."""
    own: dict[str, None] = {}
    pending = [tip]
    while pending:
        name = pending.pop()
        if name in new.commits and name not in own:
            own[name] = None
            pending += new.commits[name].parents
    return list(own)


def _walk(new: _New, root: bytes, seen: set[bytes], *, is_tip: bool) -> Iterator[Finding]:
    """Yield what is wrong with the entries of all new folders below a root that were not seen before."""
    pending = [(root, b"")]
    while pending:
        tree, path = pending.pop()
        if tree in seen or tree not in new.trees or path.count(b"/") > tree_rules.DEEPEST_FOLDERS:
            continue
        seen.add(tree)
        entries = new.trees[tree]
        if entries is None:
            yield Finding(f"the folder {tree_rules.shown(path or b'.')} is broken")
            continue
        if tree not in new.plain:
            yield from tree_rules.check(entries, path)
            new.settings |= {path + each.name: each for each in entries if _is_setting(each, is_tip=is_tip)}
        for each in entries:
            if each.is_folder:
                pending.append((each.hash, path + each.name + b"/"))
            elif each.hash in new.large:
                large = size(new.large[each.hash])
                yield Finding(f"{tree_rules.shown(path + each.name)} has {large}", is_odd=True)
            kind = "tree" if each.is_folder else "blob"
            if each.mode != tree_rules.MODULE and new.kinds.get(each.hash, "") not in ("", kind):
                yield Finding(
                    f"{tree_rules.shown(path + each.name)} is not what its folder says: {new.kinds[each.hash]}"
                )


def _is_setting(entry: Entry, *, is_tip: bool) -> bool:
    """Say whether git is told of submodules by a file, or how to check out what lands."""
    return tree_rules.is_modules(entry) or (is_tip and tree_rules.is_attributes(entry))


def _without_old(project: Project, base: str, new: _New, found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Leave out what main has already at the same place: nobody has to answer for that again."""
    findings = list(dict.fromkeys(found))
    asked = {each.path for each in findings if each.is_odd and each.entry is not None}
    if not asked or len(asked) > MAX_ASKED_ENTRIES:
        return tuple(findings)
    old = {entry for commit in (base, *new.forks[:MAX_FORKS]) for entry in _entries_at(project, commit, asked)}
    return tuple(each for each in findings if each.entry is None or not each.is_odd or not _is_old(each, old))


def _is_old(finding: Finding, old: Collection[tuple[bytes, bytes, bytes]]) -> bool:
    assert finding.entry is not None
    mode, content = finding.entry
    if tree_rules.counts_by_content(finding.path, mode):
        return (finding.path, mode, content) in old
    return any((path, kind) == (finding.path, mode) for path, kind, _ in old)


def _entries_at(project: Project, commit: str, paths: Iterable[bytes]) -> Iterator[tuple[bytes, bytes, bytes]]:
    words = ("ls-tree", "-z", "--full-tree", commit, "--", *map(os.fsdecode, paths))
    for line in git(*words, at=project.common, patience=MERGE_TIMEOUT_S).split(b"\0"):
        if line:
            meta, _, path = line.partition(b"\t")
            mode, _, name = meta.split(b" ")
            yield path, mode.lstrip(b"0"), bytes.fromhex(name.decode())
