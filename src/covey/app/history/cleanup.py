"""The one cleaner: what is kept for how long, what has had its time, and removing that.

Each step of a removal can be cut short, and the next one finishes it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from covey import trash
from covey.app.context import Call, Context
from covey.app.fleet.sessions import note_rescued
from covey.app.history.leftovers import FOUND_ON_DISK, OUTPUT, Leftover, Records, find, gather
from covey.app.shapes.forms import Answered, Nothing, completed, fields_of
from covey.app.verbs import verb
from covey.core.history import retention
from covey.core.history.retention import ANSWERS_KEPT_S, RULES, RetainedKind, Rule
from covey.core.people.rights import OWNER_ONLY
from covey.errors import CoveyError, Refused, Unavailable
from covey.git.project import Project
from covey.git.rescue import rescue as rescues
from covey.git.rescue.rescue import Rescued
from covey.git.worktrees import foreign_git
from covey.runners.process import ProcessRunner
from covey.runners.tmux import TmuxRunner
from covey.store.engine.pruning import prunable, prune

SHOWN = 100
"""The things of each kind that are told by name."""
WHY_RESCUED = "covey clean found it without a session"
IN_USE = "it is in use again"
_ONE_AT_A_TIME = threading.Lock()


class CleanRow(Struct, frozen=True, kw_only=True):
    """One thing that goes, or went: its bytes, since when it is as it is, and why; `left` says why it is still there.

    `rescue`: the name under which is kept what git would have lost of it.
    """

    name: str
    bytes: int
    at: float
    why: str
    left: str = ""
    rescue: str | None = None


@completed(fields_of(Rule))
class CleanKind(Answered, frozen=True, kw_only=True):
    """One kind of thing: where it lies, how long it is kept, by which settings, and what of it goes, or went.

    `count`, `bytes` and `oldest` tell of all, `some` has the oldest of them. `by`: who removes it, `proof`: by what
    covey knows that it is its own.
    """

    kind: str
    count: int
    bytes: int
    oldest: float | None
    some: tuple[CleanRow, ...]


class Cleaning(Struct, frozen=True, kw_only=True):
    """What is kept, kind by kind, and whether what had its time was removed or is only shown.

    `left` is how much of it is still there although it should have been removed.
    """

    done: bool
    count: int
    bytes: int
    left: int
    kinds: tuple[CleanKind, ...]


def _look(call: Call, asked: Nothing) -> Callable[[], list[Leftover]] | None:
    context, project = call.context, call.context.repository
    return None if project is None else lambda: look(context, project)


def _act(call: Call, asked: Nothing) -> Callable[[], list[Leftover]] | None:
    context, project = call.context, call.context.repository
    return None if project is None else lambda: clear(context, project)


def look(context: Context, project: Project) -> list[Leftover]:
    """Return what on disk has had its time, and change nothing."""
    return list(find(gather(context, project, FOUND_ON_DISK), FOUND_ON_DISK))


def clear(context: Context, project: Project, only: Iterable[RetainedKind] | None = None) -> list[Leftover]:
    """Remove what on disk has had its time, and say what became of each."""
    kinds = FOUND_ON_DISK if only is None else tuple(only)
    records = gather(context, project, kinds)
    return Clearing(records, context).clear(find(records, kinds))


@verb("clean.show", "GET /api/clean", Nothing, Cleaning, may=OWNER_ONLY, long=True, ahead=_look)
def show(call: Call, asked: Nothing) -> Cleaning:
    """Show what is kept for how long, and what has had its time; nothing is removed."""
    return _told(_found(call), _old_rows(call), done=False)


@verb("clean.run", "POST /api/clean", Nothing, Cleaning, may=OWNER_ONLY, long=True, ahead=_act)
def run(call: Call, asked: Nothing) -> Cleaning:
    """Remove what has had its time; a worktree without a session is rescued first, and what is in use stays."""
    found, past, keep = _found(call), _old_rows(call), call.context.config.log
    if past[RetainedKind.ANSWER][0]:
        call.tx.forget_answers(call.tx.now - ANSWERS_KEPT_S)
    if past[RetainedKind.TEXT][0]:
        prune(call.tx, keep_days=keep.keep_days, keep_megabytes=keep.keep_megabytes)
    for each in found:
        note_rescued(call, each.name, each.saved, None)
    call.tx.wrote = True  # whoever lost the answer is told again what went, and not that nothing did
    return _told(found, past, done=True)


def _found(call: Call) -> list[Leftover]:
    if call.seen is None:
        raise Unavailable("Nothing can be cleaned here.")
    found: list[Leftover] = call.seen
    return found


Tally = tuple[int, int, float | None]
"""How much of one kind goes: the number of things, their bytes, and since when the oldest is there."""


def _old_rows(call: Call) -> dict[RetainedKind, Tally]:
    """Return how many rows of the store have had their time."""
    keep = call.context.config.log
    count, size, oldest = call.tx.old_answers(call.tx.now - ANSWERS_KEPT_S)
    texts = prunable(call.tx, keep_days=keep.keep_days, keep_megabytes=keep.keep_megabytes)
    return {
        RetainedKind.ANSWER: (count, size, oldest if count else None),
        RetainedKind.TEXT: (len(texts), sum(each for _, each in texts), None),
    }


def _told(found: Sequence[Leftover], in_store: dict[RetainedKind, Tally], *, done: bool) -> Cleaning:
    by_kind: dict[RetainedKind, list[Leftover]] = {kind: [] for kind in RULES}
    for each in found:
        by_kind[each.kind].append(each)
    kinds = tuple(_kind(kind, some, in_store.get(kind)) for kind, some in by_kind.items())
    return Cleaning(
        done=done,
        count=sum(each.count for each in kinds),
        bytes=sum(each.bytes for each in kinds),
        left=sum(bool(each.left) for each in found),
        kinds=kinds,
    )


def _kind(kind: RetainedKind, found: Sequence[Leftover], tally: Tally | None) -> CleanKind:
    gone = [each for each in found if not each.left]
    own = len(gone), sum(each.size for each in gone), min((each.at for each in gone), default=None)
    count, size, oldest = tally or own
    first = sorted(found, key=lambda each: (not each.left, each.at))[:SHOWN]
    return CleanKind.of(
        RULES[kind],
        kind=kind,
        count=count,
        bytes=size,
        oldest=oldest,
        some=tuple(_row(each) for each in first),
    )


def _row(each: Leftover) -> CleanRow:
    saved = None if each.saved is None else each.saved.name
    return CleanRow(name=each.name, bytes=each.size, at=each.at, why=each.why, left=each.left, rescue=saved)


# Removing


class Clearing:
    """Removes what was found; where somebody may have begun to use it since, the rows are looked at again."""

    def __init__(self, records: Records, context: Context) -> None:
        self._records = records
        self._context = context

    def clear(self, found: Iterable[Leftover]) -> list[Leftover]:
        """Remove each, and say what became of it; one that cannot be removed keeps none of the others."""
        with _ONE_AT_A_TIME:  # the daemon's own cleaner must not drop a rescue on which a removal has just relied
            return [self._clear(each) for each in found]

    def _clear(self, each: Leftover) -> Leftover:
        try:
            match each.kind:
                case RetainedKind.WORKTREE:
                    return self._worktree(each)
                case RetainedKind.RESCUE:
                    left = self._rescue(each)
                case RetainedKind.BRANCH:
                    left = "" if self._records.worktrees.drop_branch(each.name, each.tip) else IN_USE
                case RetainedKind.TERMINAL:
                    left = "" if TmuxRunner(self._records.project.runs).end_unwatched(each.name) else IN_USE
                case _:
                    left = self._remove(each)
        except CoveyError as error:
            left = error.message
        except OSError as error:
            left = f"{error.strerror or error}"
        except (ValueError, RecursionError) as error:  # whatever lies in a worktree, the others are cleaned
            left = f"it cannot be read: {error}"
        return replace(each, left=left)

    def _remove(self, each: Leftover) -> str:
        assert each.path is not None
        is_runs = each.kind in (RetainedKind.OUTPUT, RetainedKind.TRANSCRIPT, RetainedKind.RUN)
        if is_runs and ProcessRunner(self._records.project.runs).look(each.name).alive:
            return IN_USE
        if not trash.remove(each.path):
            return "not all of it could be removed"
        if each.kind is RetainedKind.TRANSCRIPT and not os.path.lexists(each.path.with_name(OUTPUT)):
            trash.remove(each.path.parent)  # nothing is left in it that anybody reads
        return ""

    def _rescue(self, each: Leftover) -> str:
        """Remove a rescue: first the worktree that it only names, so that whoever is stopped finds it again."""
        assert each.rescued is not None
        aside = each.rescued.aside
        if aside is not None and not self._records.worktrees.drop_aside(Path(aside)):
            return "the worktree that was kept aside could not be removed"
        return "" if rescues.drop(self._records.project, each.rescued) else IN_USE

    def _worktree(self, each: Leftover) -> Leftover:
        """Rescue what git would lose of a worktree, and remove it; one that cannot be rescued whole stays."""
        path, saved = each.path, list[Rescued | None]()
        assert path is not None

        def may_go() -> bool:
            session = self._context.read(lambda tx: tx.session(each.name))
            if (session is not None and not session.removed) or foreign_git.is_occupied(path):
                return False
            saved.append(self._put_in_safety(each))
            return True

        is_gone = self._records.worktrees.remove(each.name, may_go)
        return replace(each, left="" if is_gone else IN_USE, saved=saved[0] if saved else None)

    def _put_in_safety(self, each: Leftover) -> Rescued | None:
        assert each.path is not None
        own = self._records.worktrees.git_dir(each.name)
        if own is None or not each.path.is_dir():
            raise Refused("git has lost track of it, so that it cannot be rescued.")
        saved = rescues.rescue(
            self._records.project, each.path, session=each.name, why=WHY_RESCUED, at=self._records.now, own=own,
            reuses=False,  # an earlier rescue of these commits may be about to go
        )  # fmt: skip
        if saved is not None and not saved.whole:
            raise Refused("Some of it cannot be read, so it could not be rescued whole.")
        if saved is not None and saved.again and retention.rescue_goes_soon(made=saved.time, now=self._records.now):
            raise Refused(f"It is rescued only by {saved.name}, which goes soon; clean again after that.")
        return saved
