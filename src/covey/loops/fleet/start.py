"""Starting a run: its worktree is prepared, and its program begins to work in it."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, replace

from covey.agents.agent import traits_of
from covey.app.context import Call
from covey.app.fleet import runs as life
from covey.app.fleet.sessions import alert
from covey.app.merging import merge_lookup
from covey.core.board.waiting import Cause
from covey.core.fleet.outcomes import Again, is_cache
from covey.core.fleet.prompts import UncommittedWork
from covey.core.fleet.runs import Ending, Run
from covey.core.merging.merges import MergeState
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError, DidNotRun, Refused, ToolFailed
from covey.git.candidates import candidates
from covey.git.guard.guard import session_env, write_guard
from covey.git.landing import main_restore
from covey.git.rescue.rescue import Rescued
from covey.git.rescue.rescue import show as show_rescue
from covey.git.worktrees import checkouts, task_branches
from covey.git.worktrees.worktree_files import NoPlace, must_have_place
from covey.git.worktrees.worktrees import default_folder
from covey.loops.fleet import ref_repair, run_launch
from covey.loops.fleet.fleet_memory import FleetMemory
from covey.loops.fleet.rescues import is_full, note_rescue, put_in_safety, set_aside
from covey.loops.runtime import Runtime

log = logging.getLogger("covey.fleet")


PLACE_EVERY, PLACE_AGAIN = 1.0, 60.0
"""Seconds between two looks at the folder of the worktrees, and between two tries where it only looks well."""


class NotOurs(CoveyError):
    """A branch is in somebody else's hands, or is nothing that git would check out."""


@dataclass
class Starter:
    """Starts runs that have begun."""

    runtime: Runtime
    memory: FleetMemory
    _no_place: str = ""
    """Why no worktree can be made, as it was last seen."""
    _template: str | None = None
    """Which setting of a folder for worktrees was looked at."""

    async def start(self, run: Run) -> None:
        """Prepare a run's worktree and start its program; done twice it is done once."""
        work = await self.runtime.write(lambda call: life.work(call, run))
        if work is None:
            gone = Ending(f"{run.task} is no longer with {run.session}.")
            await self.runtime.write(lambda call: life.ending(call, run, gone))
            return
        try:
            await ref_repair.keep(self.runtime, run, "began")
            base, head, rescued = await self.runtime.in_git_thread(lambda: self._prepare(work))
        except NotOurs as error:  # the fault of this task's branch, so no other task has to wait for it
            refused = Again(str(error))
            await self.runtime.write(lambda call: life.judged(call, run, refused, None))
            return
        except NoPlace as error:  # no other session, and no other task, would fare better
            await self._has_no_place(run, error)
            return
        except (CoveyError, OSError) as error:
            await self.cannot_start(run, str(error))
            return

        def write(call: Call) -> None:
            note_rescue(call, run.session, rescued, run.task)
            life.started(call, work, base, head)

        await self.runtime.write(write)
        self.memory.starts.told.discard(("", Cause.PLACE))  # if there is none later, that is news

    def _prepare(self, work: life.Work) -> tuple[str, str, Rescued | None]:
        runtime, run = self.runtime, work.run
        config = runtime.app.context.config
        base = newest_main(runtime)
        if main_restore.is_touched(runtime.project, config.target):  # just now: what it held before was seen
            base = runtime.seen.get(config.target, base)
        rescued = put_in_safety(runtime, run.session, run.task, f"before {run.id} on {run.task}")
        try:
            head, goes_on = self._check_out_twice(work, base)
        except (ToolFailed, OSError) as error:
            rescued = self._make_anew(work, str(error)) or rescued
            head, goes_on = self._check_out(work, base)
        guard = write_guard(runtime.project, runtime.project.hooks, config.target)
        git = session_env(runtime.project, run.session, guard, runtime.worktrees.path(run.session))
        brief = replace(work.brief, kept=head != base, left=self._left(work, is_there=goes_on))
        runtime.runner.start(run.id, run_launch.launch(runtime, replace(work, brief=brief), git))
        return base, head, rescued

    def _left(self, work: life.Work, *, is_there: bool) -> list[UncommittedWork]:
        """Return what was left of the task uncommitted; its session's own `is_there` if it goes on where it was."""
        found: list[UncommittedWork] = []
        for session, ref in work.left:
            if is_there and session == work.run.session:
                continue
            with contextlib.suppress(CoveyError, OSError, ValueError):  # it may have had its time
                files = show_rescue(self.runtime.project, ref).files
                names = [each["path"] for each in files if each["status"] != "ignored" and not is_cache(each["path"])]
                found += [UncommittedWork(session, ref, names)] if names else []
        return found

    def _check_out_twice(self, work: life.Work, base: str) -> tuple[str, bool]:
        """Bring a run's worktree onto its branch, at a second try if need be: git may have been killed."""
        try:
            return self._check_out(work, base)
        except DidNotRun:
            raise
        except (ToolFailed, OSError):
            return self._check_out(work, base)

    def _check_out(self, work: life.Work, base: str) -> tuple[str, bool]:
        """Bring a run's worktree onto its branch; return the commit it is at, and whether it is as it was left."""
        runtime, run, branch = self.runtime, work.run, work.brief.branch
        resumes = work.conversation is not None and traits_of(runtime.agent(run.agent)).resumes
        try:
            # Who takes a conversation up again finds the files as they were when it was left.
            head = runtime.worktrees.take_up(run.session, branch) if resumes and work.lies else None
            if head is not None:
                return head, True
            if not work.carried:
                task_branches.set_aside(
                    runtime.project, runtime.worktrees, run.task, branch, base, is_first=work.is_first
                )
            return runtime.worktrees.prepare(run.session, branch, self._begins(work, base)), False
        except Refused as error:
            if checkouts.holder(runtime.project, branch) is not None:
                raise NotOurs(f"{error.message} {error.hint}") from error
            raise

    def _make_anew(self, work: life.Work, why: str) -> Rescued | None:
        """Let go of what keeps a run from its worktree: the branch if git would not check it out, else the worktree."""
        runtime, run, branch = self.runtime, work.run, work.brief.branch
        tip = candidates.resolve(runtime.project, f"refs/heads/{branch}")
        if tip is not None and not task_branches.can_be_checked_out(runtime.project, tip):
            with contextlib.suppress(CoveyError, OSError):
                runtime.worktrees.release(run.session)
            task_branches.give_up(runtime.project, run.task, branch)
            raise NotOurs(f"git does not check out {tip[:12]}, which was on {branch}: {why}")
        if is_full(runtime) or self.memory.starts.failures.get(run.session):
            raise ToolFailed(why)  # a new worktree would not help, or did not
        return set_aside(runtime, run.session, run.task, f"before {run.id} on {run.task}; it could not be used: {why}")

    def _begins(self, work: life.Work, base: str) -> str:
        """Return where a branch begins: at the newest main, but on work that came back and was done on another."""
        project, earlier = self.runtime.project, work.elsewhere
        if earlier is None or candidates.resolve(project, f"refs/heads/{work.brief.branch}") is not None:
            return base
        tip = candidates.resolve(project, earlier)
        return base if tip is None or candidates.is_ancestor(project, tip, base) else tip

    async def _has_no_place(self, run: Run, error: NoPlace) -> None:
        """End a run for which no worktree can be made; the whole fleet waits, and one person is told once."""
        log.warning("%s could not start: %s", run.id, error)
        self.memory.runs.pop(run.id, None)
        self._no_place = f"{error.message} {error.hint}"
        self.memory.place_again = self.runtime.awake() + PLACE_AGAIN
        await self.runtime.write(lambda call: life.unstartable(call, run, error.message))

    def why_no_place(self) -> str:
        """Say why no worktree can be made, empty if one can; another folder in the settings counts at once."""
        runtime, at = self.runtime, self.runtime.awake()
        template = runtime.app.context.config.sessions.worktrees
        if at < self.memory.place_again and template == self._template:
            return self._no_place
        self.memory.place_again, self._template = at + PLACE_EVERY, template
        try:
            if self._no_place:
                runtime.worktrees.folder = default_folder(runtime.project, template)
            must_have_place(runtime.worktrees.folder)
            self._no_place = ""
        except CoveyError as error:
            self._no_place = f"{error.message} {error.hint}".strip()
        return self._no_place

    async def cannot_start(self, run: Run, what: str) -> None:
        """End a run whose program could not be started, and let its session wait."""
        log.warning("%s could not start: %s", run.id, what)
        self.memory.runs.pop(run.id, None)
        failed_before = bool(self.memory.starts.failures.get(run.session))

        def end(call: Call) -> None:
            life.unstartable(call, run, what)
            if not failed_before:
                alert(call, AlertKind.CANNOT_START, f"{run.session} cannot start: {what}", run.session, run.task)

        await self.runtime.write(end)
        wait = self.memory.starts.failed(run.session, self.runtime.app.context.config)
        self.memory.not_before[run.session] = self.runtime.awake() + wait


def newest_main(runtime: Runtime) -> str:
    """Return where new work begins: never on what had passed and was then rejected or dropped."""
    config = runtime.app.context.config
    main = task_branches.begin(runtime.project, config.target, config.project.main)
    if main is not None and not main_restore.is_touched(runtime.project, config.target):
        runtime.seen[config.target] = main  # before a session begins that might change it

    def waits(commit: str) -> bool:  # for main, because it has passed
        merges = runtime.app.store.read(lambda tx: tx.open_merges())
        return any(merge.candidate == commit and merge.state is MergeState.PASSED for merge in merges)

    newest = runtime.worktrees.upstream.newest(config.target, config.project.remote, waits)
    if main is None or newest == main:
        return newest
    unwanted = runtime.app.store.read(lambda tx: tx.unwanted(merge_lookup.MAX_UNWANTED))
    return newest if task_branches.taken_back(runtime.project, newest, main, unwanted) is None else main
