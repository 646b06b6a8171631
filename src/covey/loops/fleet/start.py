"""Starting a run: its worktree is prepared, and its program begins to work in it."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field, replace

from covey.agents import registry
from covey.agents.agent import Agent
from covey.app import runs as life
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core.judge import Again, is_cache
from covey.core.merges import State
from covey.core.prompts import Left
from covey.core.runs import Ending, Run
from covey.errors import CoveyError, Refused, ToolFailed
from covey.git import candidates, put_back
from covey.git.guard import write_guard
from covey.git.rescue import Rescued
from covey.git.rescue import show as show_rescue
from covey.git.worktrees import NoPlace, default_folder
from covey.loops import keeping, outfit, tree
from covey.loops.desk import Desk
from covey.loops.rescues import is_full, note_rescue, put_in_safety, set_aside
from covey.loops.starts import Starts
from covey.loops.watches import Watches

log = logging.getLogger("covey.fleet")


PLACE = "the place of the worktrees"
"""Of what a person is told when there is none."""
PLACE_EVERY, PLACE_AGAIN = 1.0, 60.0
"""Seconds between two looks at the folder of the worktrees, and between two tries where it only looks well."""


class NotOurs(CoveyError):
    """A branch is in somebody else's hands, or is nothing that git would check out."""


@dataclass
class Starter:
    """Starts runs that have begun."""

    desk: Desk
    starts: Starts
    watches: Watches
    not_before: dict[str, float] = field(default_factory=dict)
    """When each session may begin a run again, by the clock that stands still while the machine sleeps."""
    no_place: str = ""
    """Why no worktree can be made, as it was last seen."""
    _place_again: float = -1e9
    """When that is looked at again."""
    _template: str | None = None
    """The setting that was looked at."""

    async def start(self, run: Run) -> None:
        """Prepare a run's worktree and start its program; done twice it is done once."""
        work = await self.desk.write(lambda call: life.work(call, run))
        if work is None:
            gone = Ending(f"{run.task} is no longer with {run.session}.")
            await self.desk.write(lambda call: life.ending(call, run, gone))
            return
        try:
            found = await self.desk.beside(lambda: keeping.keep(self.desk))
            if found:
                await self.desk.write(lambda call: keeping.tell(call, found, run, "began"))
            base, head, rescued = await self.desk.beside(lambda: self._prepare(work))
        except NotOurs as error:  # the fault of this task's branch, so no other task has to wait for it
            refused = Again(str(error))
            await self.desk.write(lambda call: life.judged(call, run, refused, None))
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

        await self.desk.write(write)
        self.starts.told.discard(("", PLACE))  # if there is none later, that is news

    def _prepare(self, work: life.Work) -> tuple[str, str, Rescued | None]:
        desk, run = self.desk, work.run
        config = desk.app.house.config
        base = newest_main(desk)
        if put_back.is_touched(desk.project, config.target):  # just now: what it held before was seen
            base = desk.seen.get(config.target, base)
        rescued = put_in_safety(desk, run.session, run.task, f"before {run.id} on {run.task}")
        try:
            head, goes_on = self._check_out(work, base)
        except (ToolFailed, OSError) as error:
            rescued = self._make_anew(work, str(error)) or rescued
            head, goes_on = self._check_out(work, base)
        guard = write_guard(desk.project, desk.project.state / "hooks", config.target)
        git = desk.worktrees.session_env(run.session, guard)
        folder = desk.project.state / "runs" / run.id
        path = desk.worktrees.path(run.session)
        common = desk.project.common
        entry = desk.worktrees.git_dir(run.session)
        brief = replace(work.brief, kept=head != base, left=self._left(work, is_there=goes_on))
        work = replace(work, brief=brief)
        url, credential = desk.url, desk.credential(run.id)
        launch = outfit.launch(work, config, folder, path, git, url, credential, common=common, entry=entry)
        desk.runner.start(run.id, launch)
        return base, head, rescued

    def _left(self, work: life.Work, *, is_there: bool) -> list[Left]:
        """Return what was left of the task uncommitted; its session's own `is_there` if it goes on where it was."""
        found: list[Left] = []
        for session, ref in work.left:
            if is_there and session == work.run.session:
                continue
            with contextlib.suppress(CoveyError, OSError, ValueError):  # it may have had its time
                files = show_rescue(self.desk.project, ref).files
                names = [each["path"] for each in files if each["status"] != "ignored" and not is_cache(each["path"])]
                found += [Left(session, ref, names)] if names else []
        return found

    def _check_out(self, work: life.Work, base: str) -> tuple[str, bool]:
        """Bring a run's worktree onto its branch; return the commit it is at, and whether it is as it was left."""
        desk, run, branch = self.desk, work.run, work.brief.branch
        try:
            # Who takes a conversation up again finds the files as they were when it was left.
            head = desk.worktrees.take_up(run.session, branch) if self._resumes(work) and work.lies else None
            if head is not None:
                return head, True
            if not work.carried:
                tree.set_aside(desk.project, desk.worktrees, run.task, branch, base, is_first=work.is_first)
            return desk.worktrees.prepare(run.session, branch, self._begins(work, base)), False
        except Refused as error:
            if tree.is_held(desk.project, branch):
                raise NotOurs(f"{error.message} {error.hint}") from error
            raise

    def _make_anew(self, work: life.Work, why: str) -> Rescued | None:
        """Let go of what keeps a run from its worktree: the branch if git would not check it out, else the worktree."""
        desk, run, branch = self.desk, work.run, work.brief.branch
        tip = candidates.resolve(desk.project, f"refs/heads/{branch}")
        if tip is not None and not tree.can_be_checked_out(desk.project, tip):
            with contextlib.suppress(CoveyError, OSError):
                desk.worktrees.release(run.session)
            tree.give_up(desk.project, run.task, branch)
            raise NotOurs(f"git does not check out {tip[:12]}, which was on {branch}: {why}")
        if is_full(desk) or self.starts.failures.get(run.session):
            raise ToolFailed(why)  # a new worktree would not help, or did not
        return set_aside(desk, run.session, run.task, f"before {run.id} on {run.task}; it could not be used: {why}")

    def _begins(self, work: life.Work, base: str) -> str:
        """Return where a branch begins: at the newest main, but on work that came back and was done on another."""
        project, earlier = self.desk.project, work.elsewhere
        if earlier is None or candidates.resolve(project, f"refs/heads/{work.brief.branch}") is not None:
            return base
        tip = candidates.resolve(project, earlier)
        return base if tip is None or candidates.is_ancestor(project, tip, base) else tip

    def _resumes(self, work: life.Work) -> bool:
        agent = agent_of(self.desk, work.run.agent)
        return work.conversation is not None and agent is not None and agent.traits.resumes

    async def _has_no_place(self, run: Run, error: NoPlace) -> None:
        """End a run for which no worktree can be made; the whole fleet waits, and one person is told once."""
        log.warning("%s could not start: %s", run.id, error)
        self.watches.forget(run)
        self.no_place = f"{error.message} {error.hint}"
        self._place_again = self.desk.awake() + PLACE_AGAIN
        await self.desk.write(lambda call: life.unstartable(call, run, error.message))

    def forgive(self, session: str) -> None:
        """Let a session start as soon as it can: a person says so."""
        self.not_before.pop(session, None)
        self._place_again = -1e9

    def why_no_place(self) -> str:
        """Say why no worktree can be made, empty if one can; another folder in the settings counts at once."""
        desk, at = self.desk, self.desk.awake()
        template = desk.app.house.config.sessions.worktrees
        if at < self._place_again and template == self._template:
            return self.no_place
        self._place_again, self._template = at + PLACE_EVERY, template
        try:
            if self.no_place:
                desk.worktrees.folder = default_folder(desk.project, template)
            desk.worktrees.must_have_place()
            self.no_place = ""
        except CoveyError as error:
            self.no_place = f"{error.message} {error.hint}".strip()
        return self.no_place

    async def cannot_start(self, run: Run, what: str) -> None:
        """End a run whose program could not be started, and let its session wait."""
        log.warning("%s could not start: %s", run.id, what)
        self.watches.forget(run)
        failed_before = bool(self.starts.failures.get(run.session))

        def end(call: Call) -> None:
            life.unstartable(call, run, what)
            if not failed_before:
                alert(call, "cannot_start", f"{run.session} cannot start: {what}", run.session, run.task)

        await self.desk.write(end)
        wait = self.starts.failed(run.session, self.desk.app.house.config)
        self.not_before[run.session] = self.desk.awake() + wait


def newest_main(desk: Desk) -> str:
    """Return where new work begins: never on what had passed and was then rejected or dropped."""
    config = desk.app.house.config
    main = tree.begin(desk.project, config.target, config.project.main)
    if main is not None and not put_back.is_touched(desk.project, config.target):
        desk.seen[config.target] = main  # before a session begins that might change it
    newest = desk.worktrees.newest_main(config.target, config.project.remote, lambda commit: _has_passed(desk, commit))
    if main is None or newest == main:
        return newest
    unwanted = desk.app.store.read(lambda tx: tx.unwanted(tree.UNWANTED))
    return newest if tree.taken_back(desk.project, newest, main, unwanted) is None else main


def _has_passed(desk: Desk, commit: str) -> bool:
    """Say whether a commit waits for main because it has passed."""
    waiting = desk.app.store.read(lambda tx: tx.open_merges())
    return any(merge.candidate == commit and merge.state is State.PASSED for merge in waiting)


def agent_of(desk: Desk, name: str) -> Agent | None:
    """Return an agent, None if it was taken out of the settings while it ran."""
    try:
        return registry.find(name, desk.app.house.config.declared())
    except CoveyError:
        return None
