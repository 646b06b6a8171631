"""Removing what has had its time: each step can be cut short, and the next clearing finishes it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

from covey import trash
from covey.app.context import Context
from covey.app.history.leftovers import OUTPUT, Leftover, Records
from covey.core.history import retention
from covey.core.history.retention import RetainedKind
from covey.errors import CoveyError, Refused
from covey.git.rescue import rescue as rescues
from covey.git.rescue.rescue import Rescued
from covey.git.worktrees import foreign_git
from covey.runners.process import ProcessRunner
from covey.runners.tmux import TmuxRunner
from covey.values import dataclass

WHY_RESCUED = "covey clean found it without a session"
IN_USE = "it is in use again"
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Cleared:
    """What became of one thing: gone if `left` is empty, else why it is still there; `rescued` is what was saved."""

    leftover: Leftover
    left: str = ""
    rescued: Rescued | None = None


class Clearing:
    """Removes what was found; where somebody may have begun to use it since, the rows are looked at again."""

    def __init__(self, records: Records, context: Context) -> None:
        self._records = records
        self._context = context

    def clear(self, found: Iterable[Leftover]) -> list[Cleared]:
        """Remove each, and say what became of it; one that cannot be removed keeps none of the others."""
        with _ONE_AT_A_TIME:  # the daemon's own cleaner must not drop a rescue on which a removal has just relied
            return [self._clear(each) for each in found]

    def _clear(self, each: Leftover) -> Cleared:
        try:
            match each.kind:
                case RetainedKind.WORKTREE:
                    return self._worktree(each)
                case RetainedKind.RESCUE:
                    return Cleared(each, self._rescue(each))
                case RetainedKind.BRANCH:
                    is_gone = self._records.worktrees.drop_branch(each.name, each.tip)
                    return Cleared(each, "" if is_gone else IN_USE)
                case RetainedKind.TERMINAL:
                    is_gone = TmuxRunner(self._runs).end_unwatched(each.name)
                    return Cleared(each, "" if is_gone else IN_USE)
                case _:
                    return Cleared(each, self._remove(each))
        except CoveyError as error:
            return Cleared(each, error.message)
        except OSError as error:
            return Cleared(each, f"{error.strerror or error}")
        except (ValueError, RecursionError) as error:  # whatever lies in a worktree, the others are cleaned
            return Cleared(each, f"it cannot be read: {error}")

    @property
    def _runs(self) -> Path:
        return self._records.project.runs

    def _remove(self, each: Leftover) -> str:
        assert each.path is not None
        is_runs = each.kind in (RetainedKind.OUTPUT, RetainedKind.TRANSCRIPT, RetainedKind.RUN)
        if is_runs and ProcessRunner(self._runs).look(each.name).alive:
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

    def _worktree(self, each: Leftover) -> Cleared:
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
        return Cleared(each, "" if is_gone else IN_USE, saved[0] if saved else None)

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
