"""What lies about that has had its time: found by covey's own records, and by nothing that only looks like its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from covey import config, files
from covey.app.context import Context
from covey.app.history.transcripts import TRANSCRIPT_FILE
from covey.app.merging import gate_logs
from covey.core.board.tasks import Task
from covey.core.history import retention
from covey.core.history.retention import Kept, RetainedKind
from covey.core.merging.merges import Merge, MergeState
from covey.errors import CoveyError
from covey.git.candidates.candidates import is_ancestor
from covey.git.identity import TASK_BRANCHES
from covey.git.project import Project
from covey.git.rescue.rescue import Rescued, find_rescues
from covey.git.rescue.rescue_repository import SCRATCH_FOLDER
from covey.git.worktrees import checkouts
from covey.git.worktrees.worktree_files import OLD_WORKTREES
from covey.git.worktrees.worktrees import Worktrees, default_folder
from covey.runners.tmux import TmuxRunner
from covey.store.tx import Tx
from covey.values import dataclass

OUTPUT = "output"
TRASH_FOLDERS = (OLD_WORKTREES, "old-caches", SCRATCH_FOLDER)
"""Folders in which nothing is but what is being removed, or what a rescue needs for a moment."""
OLD_OR_MUCH = "too old, or the oldest of too much"
ENDED = ("done", "dropped")
MEASURED_ENTRIES = 20_000
"""Files of one folder whose sizes are added up; a folder with more is told as at least so large."""


@dataclass(frozen=True)
class Leftover(Kept):
    """One thing that is kept, or goes: where it is, its bytes, since when it is as it is, and why it goes."""

    kind: RetainedKind
    why: str
    path: Path | None = None
    tip: str = ""
    """The commit at which a branch is."""
    rescued: Rescued | None = None
    left: str = ""
    """Why it is still there although it should have been removed; a worktree that was has been `saved`."""
    saved: Rescued | None = None


@dataclass(frozen=True)
class Records:
    """What is there at one moment, and what the rows say of it."""

    project: Project
    now: float
    keep: config.Log
    main: str
    worktrees: Worktrees
    tips: dict[str, str]
    """The commit of each branch of covey's."""
    terminals: dict[str, float]
    """The tmux sessions of covey's own server at which nobody looks, and when each last printed something."""
    runs: dict[str, str | None]
    """Runs on disk, or in a terminal, that have ended, with the status of their task."""
    removed: dict[str, float]
    """Sessions that are removed, and since when."""
    present: frozenset[str]
    """Worktrees whose session is there."""
    tasks: dict[str, Task]
    """By the branch."""
    landed: dict[str, Merge]
    """By the branch: the last merge of its task, if that has landed."""


def gather(context: Context, project: Project, kinds: Collection[RetainedKind]) -> Records:
    """Look at what is there, and then at what the rows say of it: nobody waits for git or tmux in a transaction."""
    worktrees = Worktrees(project, default_folder(project, context.config.sessions.worktrees))
    tips = worktrees.tips() if RetainedKind.BRANCH in kinds else {}
    terminals = _terminals_of(project) if RetainedKind.TERMINAL in kinds else {}
    names = {_run_of(name) for name in _names(project.runs)} | terminals.keys()

    def read(tx: Tx) -> Records:
        merges = {branch: tx.last_merge(branch.removeprefix(TASK_BRANCHES)) for branch in tips}
        tasks = {branch: tx.task(branch.removeprefix(TASK_BRANCHES)) for branch in tips if _is_known(tx, branch)}
        sessions = [session for name in worktrees.names() if (session := tx.session(name)) is not None]
        return Records(
            project=project,
            now=context.pulses.clock.now().wall,
            keep=context.config.log,
            main=context.config.target,
            worktrees=worktrees,
            tips=tips,
            terminals=terminals,
            runs=tx.ended_among(names),
            removed=tx.removed_sessions(),
            present=frozenset(each.name for each in sessions if not each.removed),
            tasks={branch: task for branch, task in tasks.items() if task is not None},
            landed={branch: one for branch, one in merges.items() if one and one.state is MergeState.LANDED},
        )

    found: Records = context.read(read)
    return found


def _is_known(tx: Tx, branch: str) -> bool:
    """Say whether covey worked on a branch, or had it handed in: else a person may have made one of that name."""
    task = branch.removeprefix(TASK_BRANCHES)
    return bool(tx.last_runs(1, task=task)) or any(merge.branch == branch for merge in tx.merges_of(task))


def _terminals_of(project: Project) -> dict[str, float]:
    try:
        return TmuxRunner(project.runs).unwatched()
    except (CoveyError, OSError):  # a tmux that does not answer keeps nobody from cleaning the rest
        return {}


def find(records: Records, kinds: Iterable[RetainedKind]) -> Iterator[Leftover]:
    """Yield what has had its time, kind by kind; one that cannot be looked at now is left for another time."""
    for kind in kinds:
        with contextlib.suppress(CoveyError, OSError):
            yield from _FINDERS[kind](records)


# Runs and gates


def old_outputs(runs: Path, keep: config.Log, now: float) -> list[Leftover]:
    """Return what runs printed that is too old, or the oldest of too much; what has no transcript stays."""
    names = [name for name in _names(runs) if files.status(runs / name / TRANSCRIPT_FILE) is not None]
    return _old_or_much(RetainedKind.OUTPUT, {name: runs / name / OUTPUT for name in names}, keep, now)


def _old_or_much(kind: RetainedKind, paths: Mapping[str, Path], keep: config.Log, now: float) -> list[Leftover]:
    found = [
        Leftover(name, status.st_mtime, status.st_size, kind, OLD_OR_MUCH, path)
        for name, path in paths.items()
        if (status := files.status(path)) is not None
    ]
    return retention.past_age_or_size(found, keep_days=keep.keep_days, keep_megabytes=keep.keep_megabytes, now=now)


def _transcripts(records: Records) -> list[Leftover]:
    found: list[Leftover] = []
    for name in _names(records.project.runs) & records.runs.keys():
        path, task = records.project.runs / name / TRANSCRIPT_FILE, records.runs[name]
        if (status := files.status(path)) is not None:
            why = "its task is not known any more" if task is None else "the oldest of too much"
            has_ended, one = task in ENDED, (name, status.st_mtime, status.st_size, RetainedKind.TRANSCRIPT, why, path)
            found.append(Leftover(*one, is_known=task is not None, is_open=task is not None and not has_ended))
    keep = records.keep
    return retention.transcripts_past(
        found, keep_days=keep.keep_days, keep_megabytes=keep.transcript_megabytes, now=records.now
    )


def _run_of(name: str) -> str:
    """Return the run that a folder is of, also if it was moved aside to make way for one."""
    return name.partition(".before-")[0]


def _run_folders(records: Records) -> Iterator[Leftover]:
    """Yield the folders of ended runs without a transcript, when they are old."""
    runs, old = records.project.runs, records.now - records.keep.keep_days * retention.DAY_S
    for name in sorted(_names(runs)):
        found = files.status(runs / name) if _run_of(name) in records.runs else None
        if found is None or found.st_mtime >= old or files.status(runs / name / TRANSCRIPT_FILE) is not None:
            continue
        yield Leftover(name, found.st_mtime, measure(runs / name), RetainedKind.RUN, "too old", runs / name)


def old_gate_logs(folder: Path, keep: config.Log, now: float) -> list[Leftover]:
    """Return what gates printed that is too old, or the oldest of too much."""
    names = [name for name in _names(folder) if name.endswith((gate_logs.SUFFIX, gate_logs.DRAFT))]
    return _old_or_much(RetainedKind.GATE_LOG, {name: folder / name for name in names}, keep, now)


# Rescues, and what is being removed


def _rescues(records: Records) -> Iterator[Leftover]:
    for one in find_rescues(records.project):
        ended = records.removed.get(one.session)
        if retention.rescue_is_past(made=one.time, session_ended=ended, now=records.now):
            size = 0 if one.aside is None else measure(Path(one.aside))
            why = "its session was removed long ago"
            yield Leftover(one.name, one.time, size, RetainedKind.RESCUE, why, rescued=one)


def _trash(records: Records) -> Iterator[Leftover]:
    for folder in (records.project.state / name for name in TRASH_FOLDERS):
        for name in sorted(_names(folder)):
            found = files.status(folder / name)
            touched = records.now if found is None else max(found.st_mtime, found.st_ctime)
            if records.now - touched > retention.TRASH_KEPT_S:
                path, why = folder / name, "nobody removes it"
                yield Leftover(f"{folder.name}/{name}", touched, measure(path), RetainedKind.TRASH, why, path)


# What a crash left


def _worktrees(records: Records) -> Iterator[Leftover]:
    """Yield the worktrees that covey made and whose session is gone; the merge queue's own are not a session's."""
    for each in records.worktrees.list():
        if each.name.startswith(".") or each.name in records.present:
            continue
        if not records.worktrees.is_proven(each.name) or records.worktrees.why_not_ours(each.name) is not None:
            continue
        if records.worktrees.git_dir(each.name) is None or not each.path.is_dir():
            continue  # git has lost track of it, or its disk is away: what it holds could not be rescued
        found = files.status(each.path)
        at = records.removed.get(each.name, 0.0 if found is None else found.st_mtime)
        yield Leftover(each.name, at, measure(each.path), RetainedKind.WORKTREE, "its session is gone", each.path)


def _branches(records: Records) -> Iterator[Leftover]:
    merged = records.worktrees.merged(records.main)
    for branch, tip in records.tips.items():
        task = records.tasks.get(branch)
        if task is None or checkouts.holder(records.project, branch) is not None:
            continue
        has_landed = _has_landed(records, records.landed.get(branch), tip)
        if retention.branch_is_past(task_ended=task.status in ENDED, has_landed=has_landed, in_main=branch in merged):
            why = "its work has landed" if has_landed else "its task has ended, and main has it all"
            yield Leftover(branch, task.updated, 0, RetainedKind.BRANCH, why, tip=tip)


def _has_landed(records: Records, merge: Merge | None, tip: str) -> bool:
    """Say whether just this commit was handed in, and main still holds what it landed as."""
    if merge is None or merge.commit != tip or merge.landed is None:
        return False
    return is_ancestor(records.project, merge.landed, f"refs/heads/{records.main}")


def _terminals(records: Records) -> Iterator[Leftover]:
    for run, at in records.terminals.items():
        if run in records.runs:
            yield Leftover(run, at, 0, RetainedKind.TERMINAL, "its run has ended")


_FINDERS: dict[RetainedKind, Callable[[Records], Iterable[Leftover]]] = {
    RetainedKind.OUTPUT: lambda each: old_outputs(each.project.runs, each.keep, each.now),
    RetainedKind.TRANSCRIPT: _transcripts,
    RetainedKind.RUN: _run_folders,
    RetainedKind.GATE_LOG: lambda each: old_gate_logs(each.project.state / gate_logs.FOLDER, each.keep, each.now),
    RetainedKind.RESCUE: _rescues,
    RetainedKind.TRASH: _trash,
    RetainedKind.WORKTREE: _worktrees,
    RetainedKind.BRANCH: _branches,
    RetainedKind.TERMINAL: _terminals,
}
FOUND_ON_DISK = tuple(_FINDERS)


# The disk


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def measure(path: Path) -> int:
    """Return the bytes of a file or folder, as far as its first entries tell; no link is followed."""
    found = files.status(path)
    size, waiting, left = 0 if found is None else found.st_size, [path], MEASURED_ENTRIES
    while waiting and left:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                left -= 1
                size += entry.stat(follow_symlinks=False).st_size
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                if not left:
                    break
    return size
