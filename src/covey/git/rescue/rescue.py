"""Never lose work: what git itself would not keep of a worktree, kept in a commit of its own.

`refs/covey/rescue/<session>/<time>` names a commit. Its parents are HEAD and every commit that only the worktree
reaches. Its tree:

    meta.json       who, why and when, how much, and what was left out
    files.json      every path that is not as HEAD has it; modes, empty folders
    work/           the worktree as it lay on disk, without filters; unchanged files are HEAD's own objects
    index           the index, byte for byte
    staged/         objects that the index or an unfinished merge names, by their names
    state.tar       what git keeps of the worktree beside those: an unfinished merge or rebase, the reflog, submodules
    nested/0.tar    the .git of each nested repository, byte for byte
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from covey import files, memory
from covey.errors import CoveyError, NotFound, Refused, ToolFailed
from covey.git import objects, refs
from covey.git.identity import RESCUE_REFS
from covey.git.project import Project
from covey.git.refs import Order
from covey.git.rescue.keep import is_underway, keep_files, kinds_of, named_objects, state_of, unreached
from covey.git.rescue.parts import (
    Counts,
    FoundWork,
    fingerprint,
    staged_oids,
    staged_paths,
    write_commit,
    write_note,
    write_parts,
    write_rescue,
)
from covey.git.rescue.rescue_repository import RESTORE_TIMEOUT_S, PrivateGit, private_git, refs_git
from covey.git.rescue.scan import (
    BEYOND,
    GITLINK,
    SPECIAL,
    Head,
    Place,
    find_place,
    look_at_disk,
    read_head,
    read_index,
    read_raw_index,
    read_tree,
)
from covey.git.run import checked, complaint
from covey.moments import calendar
from covey.values import dataclass

NAME_TRIES = 1000
LARGE_INDEX_BYTES = 200_000
"""An index of some two thousand files."""
_LARGE_RESCUE = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Rescued:
    """One rescue, as it says of itself."""

    name: str
    ref: str
    commit: str
    session: str
    time: float
    why: str = ""
    task: str | None = None
    branch: str | None = None
    head: str | None = None
    counts: Counts
    nested: tuple[str, ...] = ()
    left_out: tuple[dict[str, Any], ...] = ()
    mark: str = ""
    """The same for two rescues that keep the same."""
    aside: str | None = None
    """Where the worktree is, if it could not be rescued whole and is kept as it was."""
    whole: bool = True
    """Whether everything could be read that is not left out on purpose."""
    again: bool = False
    """Whether it was there before."""


@dataclass(frozen=True)
class Details:
    """One rescue with every path in it: `files` and `left_out` have path, status or why, and size."""

    rescued: Rescued
    commits: list[str]
    """The last of the commits that were on no branch."""
    files: list[dict[str, Any]]
    left_out: list[dict[str, Any]]


def rescue(
    project: Project,
    worktree: Path,
    *,
    session: str,
    why: str,
    task: str | None = None,
    at: float,
    safe: Collection[str] = (),
    own: Path | None = None,
    reuses: bool = True,
) -> Rescued | None:
    """Keep what git would lose if the worktree were removed, without changing it; None if there is no such thing.

    What an earlier rescue of the session keeps already makes no new one: that one is returned, as `again`.
    When this raises, the worktree must stay: something in it could not be kept. `own`: git's folder of the worktree,
    if that is known; what the worktree itself says of it is not believed then. `reuses`: commits that an earlier rescue
    of the session keeps are kept by that.
    """
    if not worktree.is_dir():
        return None
    worktree = Path(os.path.abspath(worktree))
    with _turn(own), private_git(project, worktree, is_rescue=True) as git:
        place = find_place(project, worktree) if own is None else Place(worktree, own)
        work = _look(git, place)
        kinds = kinds_of(git, named_objects(work.place, work.state) | staged_oids(work))
        commits = [oid for oid, kind in kinds.items() if kind == "commit"]
        head = work.head.commit
        tips = unreached(git, {*commits, *([head] if head else [])}, session if reuses else None, safe)
        staged = staged_paths(work)
        if not (tips or staged or is_underway(work.place) or work.kept.repositories or _would_lose(work)):
            return None
        tars = write_parts(git, work)
        mark = fingerprint(work, tars, is_underway=is_underway(work.place))
        known = [] if tips else [one for one in find_rescues(project, session) if one.mark == mark]
        if known:
            return replace(known[0], again=True)
        who = {"session": session, "why": why, "task": task, "time": at, "mark": mark, "whole": not _unread(work)}
        tree, meta = write_rescue(git, work, tars, kinds, staged, tips, who)
        parents = [*([head] if head else []), *(tip for tip in tips if tip != head)]
        commit = write_commit(git, tree, parents, f"Rescue of {session}: {why}\n")
    name = _name_it(project, session, at, commit)
    return _described(name, commit, meta)


@contextlib.contextmanager
def _turn(own: Path | None) -> Iterator[None]:
    """Let large worktrees be looked at one after another: each needs kilobytes for every file, and the processor."""
    index = None if own is None else files.status(own / "index")
    if index is None or index.st_size <= LARGE_INDEX_BYTES:
        yield
        return
    with _LARGE_RESCUE:
        try:
            yield
        finally:
            memory.give_back()


def _look(git: PrivateGit, place: Place) -> FoundWork:
    head = read_head(git.project, place)
    tree = read_tree(git, head.commit)
    if tree is None:
        head = Head(head.branch, None)
    base = tree or {}
    raw, index_time = read_raw_index(place)
    index = read_index(git, place, raw)
    if index is None and head.commit is not None:
        git.run("read-tree", head.commit)  # so that git can still tell what is ignored
    entries = index or {}
    links = {path for path, known in base.items() if known.mode == GITLINK}
    links |= {path for path, staged in entries.items() if staged[0].mode == GITLINK}
    disk = look_at_disk(git, base.keys() | entries.keys(), links)
    kept = keep_files(git, base, entries, disk, index_time)
    return FoundWork(place, head, base, entries, disk, kept, state_of(place), raw)


def _would_lose(work: FoundWork) -> bool:
    never_filled = work.raw_index is None and not work.disk.files
    if never_filled:  # made, and its checkout not begun
        return False
    lost = any(entry.reason for entry in work.kept.entries if entry.status != "ignored")
    # What cannot be read cannot be kept either; but it must not go without a word.
    return lost or _unread(work) or not work.kept.caches_only


def _unread(work: FoundWork) -> bool:
    return any(entry.why not in (SPECIAL, BEYOND) for entry in work.kept.left_out)


def note_aside(
    project: Project, place: Place, *, session: str, why: str, task: str | None = None, at: float
) -> Rescued:
    """List a worktree that is kept aside as it is among the rescues; commits that only it reaches are kept with it."""
    who = {"session": session, "why": why, "task": task, "time": at, "aside": str(place.worktree)}
    with private_git(project, project.common, is_rescue=True) as git:
        tips = _tips_of(git, place, session)
        tree, meta = write_note(git, who, len(tips))
        commit = write_commit(git, tree, tips, f"{session}: kept aside\n")
    return _described(_name_it(project, session, at, commit), commit, meta)


def _tips_of(git: PrivateGit, place: Place, session: str) -> list[str]:
    """Return the commits that only a worktree reaches, as far as git can read them."""
    try:
        head = read_head(git.project, place).commit
        named = named_objects(place, state_of(place)) | ({head} if head else set())
        kinds = kinds_of(git, named)
        return unreached(git, [oid for oid, kind in kinds.items() if kind == "commit"], session)
    except (CoveyError, OSError, ValueError):
        return []


def _name_it(project: Project, session: str, at: float, commit: str) -> str:
    """Give a rescue a name that no other ever had at this moment, and return it."""
    moment = calendar("%Y%m%dT%H%M%SZ", at, utc=True)
    for number in range(NAME_TRIES):
        name = f"{session}/{moment}" + (f"-{number}" if number else "")
        done = refs.change(project, Order(RESCUE_REFS + name, commit, ""))
        if done.returncode == 0:
            return name
        if refs_git(project, "rev-parse", "--verify", "--quiet", RESCUE_REFS + name).returncode != 0:
            raise ToolFailed(f"{RESCUE_REFS}{name} could not be made: {complaint(done)}.")
    raise ToolFailed(f"There are {NAME_TRIES} rescues of {session} at {moment} already.")


# Finding


def find_rescues(project: Project, session: str | None = None) -> list[Rescued]:
    """Return the rescues there are, of one session or all, the newest first."""
    below = f"{RESCUE_REFS}{session}/" if session else RESCUE_REFS
    listed = refs_git(project, "for-each-ref", "--format=%(objectname) %(refname)", below)
    if listed.returncode != 0:
        raise ToolFailed(f"The rescues cannot be listed: {complaint(listed)}.")
    found = [line.partition(" ")[::2] for line in listed.stdout.decode().splitlines()]
    metas = objects.texts(project, [f"{commit}:meta.json" for commit, _ in found], patience=RESTORE_TIMEOUT_S)
    rescues = [
        _described(ref.removeprefix(RESCUE_REFS), commit, json.loads(meta) if meta else {})
        for (commit, ref), meta in zip(found, metas, strict=True)
    ]
    return sorted(rescues, key=lambda one: (one.time, len(one.name), one.name), reverse=True)


def _described(name: str, commit: str, meta: dict[str, Any]) -> Rescued:
    said = ("why", "task", "head", "mark", "aside", "whole", "branch")
    return Rescued(
        name=name,
        ref=RESCUE_REFS + name,
        commit=commit,
        session=meta.get("session", name.partition("/")[0]),
        time=meta.get("time", 0.0),
        counts=Counts(**meta.get("counts", {})),
        nested=tuple(meta.get("nested", ())),
        left_out=tuple(meta.get("left_out", ())),
        **{part: meta[part] for part in said if part in meta},
    )


def find_rescue(project: Project, name: str) -> Rescued:
    """Return the rescue that a name means: session/time, a beginning of that, a session's newest, or the whole ref."""
    every = find_rescues(project)
    short = name.removeprefix(RESCUE_REFS)
    exact = [one for one in every if one.name == short] or [one for one in every if one.session == short][:1]
    if exact:
        return exact[0]
    found = [one for one in every if short and one.name.startswith(short)]
    if len(found) > 1:
        some = ", ".join(one.name for one in found[:3])
        raise Refused(f"{len(found)} rescues begin with {name[:80]}.", hint=f"Say more of it: {some}.")
    if not found:
        near = difflib.get_close_matches(short, [one.name for one in every], 1, 0.4)
        hint = f"Did you mean {near[0]}?" if near else "covey rescue list shows what there is."
        raise NotFound(f"There is no rescue {name[:80]}.", hint=hint)
    return found[0]


def show(project: Project, name: str) -> Details:
    """Return one rescue with every path in it."""
    found = find_rescue(project, name)
    (content,) = read_files(project, found.commit, ["files.json"])
    if content is None:
        raise ToolFailed(f"{found.ref} is damaged: it has no files.json.")
    files = json.loads(content)
    parents = checked("rev-parse", refs_git(project, "rev-parse", f"{found.commit}^@")).decode().split()
    tips = parents[len(parents) - found.counts.commits :]  # before them stands HEAD, unless it is one itself
    return Details(found, tips, files["files"], files["left_out"])


def read_files(project: Project, commit: str, names: Iterable[str]) -> list[bytes | None]:
    """Return the contents of some files of a rescue; None for each that is not there."""
    return list(objects.texts(project, [f"{commit}:{name}" for name in names], patience=RESTORE_TIMEOUT_S))


def drop(project: Project, one: Rescued) -> bool:
    """Remove a rescue if it is still as it was found, and say whether it is gone."""
    return refs.change(project, Order(one.ref, None, one.commit)).returncode == 0
