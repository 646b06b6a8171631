"""What a run came to that is no longer alive, and what is learnt from it."""

from __future__ import annotations

import contextlib
import logging
import re
from dataclasses import dataclass
from pathlib import Path

from covey import files, trash
from covey.agents import streams
from covey.agents.agent import Agent
from covey.app import costs, journals, ways_out
from covey.app import runs as life
from covey.app.sessions import alert
from covey.app.verbs import Call, Lands
from covey.core import hooks, sessions, tasks
from covey.core import ways_out as way_rules
from covey.core.budgets import is_own
from covey.core.heard import Heard
from covey.core.judge import AT_ONCE, Again, Crashed, Evidence, HandIn, PutOff, Verdict, judge
from covey.core.launches import Observation
from covey.core.pace import believed
from covey.core.pushes import Push
from covey.core.runs import TMUX, Outcome, Run
from covey.core.signals import Trouble
from covey.core.tasks import Task
from covey.errors import CoveyError
from covey.git import candidates, incoming, pushes_seen, written
from covey.git.rescue import Rescued
from covey.loops import keeping, tree
from covey.loops.attending import Attendant
from covey.loops.desk import Desk
from covey.loops.hearing import overhear
from covey.loops.outfit import MISSED, SEEN
from covey.loops.rescues import is_full, note_rescue, put_in_safety, set_aside
from covey.loops.starting import Starter, agent_of, newest_main
from covey.loops.starts import Starts
from covey.loops.transcripts import end_of, keep_transcript, transcript_of
from covey.loops.watches import Watches
from covey.loops.ways_out import NOTED, RemoteWatch
from covey.runners.tmux import place_of

LOST = 5
"""Lost runs of one task in a row after which it counts as the task's own fault."""
OFTEN = 3
"""Crashes in a row of which a person is told."""
HELP = {
    Trouble.KEY: " (Log in with the program itself, or set its key where you type covey up; then covey down, covey up."
    " It tries again every 5 minutes.)",
    Trouble.CREDIT: " (It tries again every 5 minutes.)",
}
"""What a person can do about a trouble."""
TAIL = 4000
"""Bytes of the end of the output that a story carries."""

_STEP = re.compile(r"\x1b\[[0-9;]*[CGH]")
"""How a program goes on at another place of its screen."""

log = logging.getLogger("covey.fleet")


@dataclass
class Closer:
    """Closes runs that are no longer alive."""

    desk: Desk
    starts: Starts
    watches: Watches
    starter: Starter
    attendant: Attendant

    def __post_init__(self) -> None:
        self.remotes = RemoteWatch(self.desk)

    async def close(self, run: Run, seen: Observation) -> None:
        """See what a run came to that is no longer alive."""
        if not seen.known:  # it shall end, and never began
            await self.desk.near(lambda: self.desk.runner.stop(run.id))
        if seen.failure is not None and run.ending is None:
            await self.starter.cannot_start(run, seen.failure)
            await self.desk.beside(lambda: self.desk.runner.forget(run.id))
            return
        task = await self.desk.read(lambda call: call.tx.task(run.task))
        merge = await self.desk.read(lambda call: call.tx.last_merge(run.task))
        rejected = merge.commit if merge is not None and merge.session == run.session else None
        assert task is not None
        found = await self.desk.beside(lambda: keeping.keep(self.desk))
        if found:
            await self.desk.write(lambda call: keeping.tell(call, found, run, "ended"))
        evidence, rescued = await self.desk.beside(lambda: self._evidence(run, seen, task, rejected))
        verdict = judge(evidence)
        watched = self.watches.of(run)
        await self.attendant.spend(run, watched)
        await self.attendant.close_mail(run, watched, agent_of(self.desk, run.agent), seen)
        unseen = seen.code is None and run.ending is None and not isinstance(verdict, HandIn | PutOff)
        lost = unseen and not _is_fresh(verdict) and not await self.desk.read(lambda call: self._lost_often(call, run))
        if watched.learnt is None:
            watched.learnt = (None, None) if lost else self._learn(run, verdict)
        until, news = watched.learnt
        pushed = await self.desk.beside(lambda: pushes_seen.noted(self.desk.project, run.session, run.begun))
        sent = [each for each in dict.fromkeys(watched.heard.sent) if self._led_out(run, each, pushed)]

        def write(call: Call) -> None:
            ways_out.tell_pushed(call, run.session, run.task, pushed, NOTED)
            ways_out.tell_sent(call, run.session, run.task, sent)
            self._write_down(call, run, seen, verdict, rescued, lost, until, news)

        await self.desk.write(write)
        self.remotes.begin(run, run.base, evidence.head, pushed)
        self.watches.forget(run)
        await self.desk.beside(lambda: self._tidy(run))

    def _led_out(self, run: Run, command: str, pushed: list[Push]) -> bool:
        """Say whether a command led out; a push of which is told otherwise is told once."""
        ways = way_rules.found(command, str(self.desk.worktrees.path(run.session)))
        return any(way.kind is way_rules.Kind.SENDS or not pushed for way in ways)

    async def give_up(self, run: Run, seen: Observation, why: str) -> None:
        """End a run that cannot be stopped or judged, so that its session goes on: its worktree is kept aside."""
        rescued = None
        try:
            reason = f"{run.id} on {run.task} could not be brought to an end: {why}"
            rescued = await self.desk.beside(lambda: set_aside(self.desk, run.session, run.task, reason))
        except (CoveyError, OSError) as error:
            log.warning("the worktree of %s could not be kept aside: %s", run.session, error)
        verdict = Again(f"covey could not see what came of it: {why}", fresh=True)

        def write(call: Call) -> None:
            note_rescue(call, run.session, rescued, run.task)
            life.judged(call, run, verdict, seen.code)
            if seen.alive:
                alert(call, "does_not_end", f"Something of {run.id} still lives: {why}", run.session, run.task)

        await self.desk.write(write)
        self.watches.forget(run)
        await self.desk.beside(lambda: self._tidy(run))

    def _write_down(
        self,
        call: Call,
        run: Run,
        seen: Observation,
        verdict: Verdict,
        rescued: Rescued | None,
        lost: bool,
        until: float | None,
        news: tuple[str, str] | None,
    ) -> None:
        """Write down the end of a run: lost, or as it was judged, with the alert that goes with it."""
        note_rescue(call, run.session, rescued, run.task)
        if rescued is not None and rescued.aside is None:
            life.left(call, run, rescued.ref)
        life.wrote(call, run, self.watches.of(run).wrote)
        watched = self.watches.of(run)
        if watched.heard.conversation is not None:  # nobody may have looked after a run that ended soon
            life.talks(call, run, watched.heard.conversation)
        costs.count(call, run, watched.used, self.desk.today().name, whole=watched.whole)
        life.missed(call, run, watched.missed)
        if lost:
            life.lost(call, run, "Nobody saw it end: it was killed, or the machine was.", seen.code)
            return
        life.judged(call, run, verdict, seen.code, until)
        task = call.tx.task(run.task)
        blocked = task is not None and task.status is tasks.Status.BLOCKED
        if blocked and self._blames_task(run):
            self.starts.forget(run.session)
            self.starter.not_before.pop(run.session, None)
        told = isinstance(verdict, Crashed) and blocked
        if news is not None and not told:  # of a task that is blocked a person knows by that
            alert(call, news[0], news[1][: life.EVIDENCE], run.session, run.task)

    def _blames_task(self, run: Run) -> bool:
        """Say whether what failed was the task itself: its agent runs it as a script, and the next may do well."""
        agent = agent_of(self.desk, run.agent)
        return agent is not None and agent.traits.script

    def _learn(self, run: Run, verdict: Verdict) -> tuple[float | None, tuple[str, str] | None]:
        """Learn from how a run went; return until when its session waits, and the alert that a person gets."""
        config, at, wall = self.desk.app.house.config, self.desk.awake(), self.desk.wall()
        if run.ending is not None and not run.fault and not run.over:
            stalled = run.again and not run.person and run.ending.startswith("Stalled")
            return (wall + self.starts.failed(run.session, config) if stalled else None), None
        if isinstance(verdict, PutOff):
            return self._learn_put_off(run, verdict)
        if isinstance(verdict, Again) and verdict.gave_up:
            wait = self.starts.failed(run.session, config)
            self.starter.not_before[run.session] = at + wait
            often = not self._blames_task(run) and self.starts.gave_up(run.agent, run.task, verdict.what, at)
            message = f"{run.agent} gives up one task after another, and is stopped for a while: {verdict.what}"
            news = ("agent_gives_up", message) if often and self.starts.is_news(run.agent, "gives up") else None
            return wall + wait, news
        if isinstance(verdict, Crashed):
            wait = self.starts.failed(run.session, config)
            often = self.starts.failures[run.session] >= OFTEN
            message = f"{run.session} crashes again and again on {run.task}: {verdict.what}"
            news = ("crashes", message) if often and self.starts.is_news(run.agent, f"crash {run.task}") else None
            return wall + wait, news
        if isinstance(verdict, HandIn):
            self.starts.went_well(run.session, run.agent)
        return None, None

    def _learn_put_off(self, run: Run, verdict: PutOff) -> tuple[float, tuple[str, str] | None]:
        """Learn that a provider refused a run; a reset that it names counts, but not for ever."""
        at, wall = self.desk.awake(), self.desk.wall()
        named = believed(verdict.until, wall)
        awake = None if named is None else at + named - wall
        self.starts.refused(run.agent, self.desk.running.get(run.agent, 1), verdict.trouble, verdict.what, at, awake)
        message = f"{run.session} cannot go on with {run.task}: {verdict.what}{HELP.get(verdict.trouble, '')}"
        tells = verdict.trouble is not Trouble.BUDGET and self.starts.is_news(run.agent, verdict.trouble)
        news = (f"agent_{verdict.trouble}", message) if tells else None
        wait = self.starts.failed(run.session, self.desk.app.house.config)
        closed = self.starts.paces[run.agent].closed
        return named or wall + max(wait, 0.0 if closed is None else closed - at), news

    def _lost_often(self, call: Call, run: Run) -> bool:
        earlier = call.tx.last_runs("task", run.task, LOST)[1:]
        return len(earlier) == LOST - 1 and all(one.outcome is Outcome.LOST for one in earlier)

    def _evidence(
        self, run: Run, seen: Observation, task: Task, rejected: str | None
    ) -> tuple[Evidence, Rescued | None]:
        desk = self.desk
        watched, agent = self.watches.of(run), agent_of(desk, run.agent)
        heard = watched.heard
        # First of all: what cannot be rescued whole is out of use then, and git is not asked about it.
        rescued = put_in_safety(desk, run.session, run.task, f"{run.id} on {run.task} ended")
        self.attendant.hear_out(run, watched, agent, seen.size)
        complaint = "" if heard.is_over else desk.runner.errors(run.id).decode(errors="replace")
        if agent is not None and agent.traits.speaks:
            overhear(heard, agent.read, complaint, desk.awake())
        result, speaks = heard.result, agent is not None and agent.traits.speaks
        if task.kind is tasks.Kind.REPORT and result is None and not speaks:
            result = heard.said.strip() or None
        watched.missed = missed_hooks(desk, run, heard) if agent is not None and agent.traits.hooks else 0
        told = self._story(run, agent, seen.size)
        told = f"{told.rstrip()}\n{complaint.strip()}" if complaint.strip() else told
        # A daemon that was killed right after it had started the program has not noted where its branch began.
        base = run.base or newest_main(desk)
        found, unreadable = self._found(run, base, rescued)
        watched.wrote = self._wrote(run, base, found)
        lands = self.written(run.session, found.head) if found.head is not None and found.ahead else None
        stopped = run.ending if run.fault and heard.result is None else None  # it may have ended by itself meanwhile
        return (
            Evidence(
                kind=task.kind,
                code=seen.code,
                stopped=stopped,
                failed=heard.failed,
                trouble=heard.trouble,
                share=run.money is not None and not is_own(run.money, desk.app.house.config.budget.run),
                until=heard.until,
                speaks=speaks,
                script=agent is not None and agent.traits.script,
                at_once=watched.at_work < AT_ONCE,
                result=result,
                ahead=found.ahead,
                branch=life.branch_of(run.task),
                head=found.head,
                writes=None if lands is None else lands.writes,
                rejected=rejected,
                refused=watched.refused,
                dirty=found.dirty,
                unreadable=unreadable,
                rescued=rescued.ref if rescued else None,
                tail=told[-TAIL:],
            ),
            rescued,
        )

    def _story(self, run: Run, agent: Agent | None, size: int) -> str:
        """Return the end of what a run printed in words, "" if it cannot be told: that changes nothing of its work."""
        runner = self.desk.runner
        try:
            told = end_of(runner, self.desk.project.state / "runs" / run.id, run, agent, size)
            if not told.strip() and run.runner == TMUX:
                told = drawn(runner.output(run.id, max(size - TAIL, 0))[0].decode(errors="replace"))
            return told
        except Exception:
            log.exception("the end of the output of %s cannot be told", run.id)
            return ""

    def _wrote(self, run: Run, base: str, found: tree.Tree) -> tuple[str, ...]:
        """Return the files that a run changed, whether it committed them or not."""
        began, committed = run.head or base, list[str]()
        if found.head is not None and found.head != began:
            with contextlib.suppress(CoveyError, OSError):  # git says elsewhere what it cannot read
                project, target = self.desk.project, self.desk.app.house.config.target
                main = candidates.resolve(project, f"refs/heads/{target}") or base
                committed = candidates.changed_between(project, began, found.head, main)
        return (*committed, *found.dirty)

    def _found(self, run: Run, base: str, rescued: Rescued | None) -> tuple[tree.Tree, str | None]:
        """Return what a run left, and why that cannot be told if it cannot; what git cannot read is never built on."""
        desk, branch = self.desk, life.branch_of(run.task)
        if rescued is not None and rescued.aside is not None:
            return tree.Tree(there=False), f"Its worktree was out of use and is kept aside: {rescued.why}."
        try:
            found = tree.look(desk.project, desk.worktrees.path(run.session), branch, base)
            if found.head is not None and found.ahead:
                tree.keep(desk.project, run.task, found.head)
            return found, None
        except (CoveyError, OSError) as error:
            said = error.message if isinstance(error, CoveyError) else str(error)
            if is_full(desk):
                raise
            with contextlib.suppress(CoveyError, OSError):
                desk.worktrees.release(run.session)
                tree.give_up(desk.project, run.task, branch)
            return tree.Tree(there=True), f"git cannot read what it committed: {said}"

    def written(self, session: str, name: str) -> Lands | None:
        """Return what a session's commit would land, and when that was written; None if git cannot tell."""
        desk = self.desk
        place = desk.worktrees.path(session)
        try:
            commit = candidates.resolve(desk.project, name)
            if commit is None:
                return None
            known = desk.app.store.read(lambda tx: tx.session(session))
            ours = known is not None and known.kind is sessions.Kind.RUN
            mains = written.mains(desk.project, desk.app.house.config.target)
            if mains and not incoming.is_readable(incoming.look(desk.project, mains[0], [commit])[commit]):
                return None  # the queue says why
            worktree = place if place.is_dir() else None
            writes = written.lands(desk.project, mains, commit, desk.wall(), worktree, dated=not ours)
            return Lands(commit, writes)
        except (CoveyError, OSError) as error:
            log.warning("what %s changes cannot be told: %s", name, error)
            return None

    def _tidy(self, run: Run) -> None:
        """Keep what a run that has ended said, free its branch, and remove what was only needed while it lived."""
        try:
            if self.desk.worktrees.path(run.session).exists():
                self.desk.worktrees.release(run.session)
            self.desk.runner.forget(run.id)
        except (CoveyError, OSError) as error:  # the run is over all the same
            log.warning("%s could not be tidied up after: %s", run.id, error)
        folder = self.desk.project.state / "runs" / run.id
        trash.remove(place_of(folder))
        try:
            if folder.is_dir() and not folder.is_symlink():
                journals.close(folder)
                keep_transcript(folder, transcript_of(self.desk.runner, folder, run, agent_of(self.desk, run.agent)))
        except Exception:  # its output is still there
            log.exception("the transcript of %s could not be kept", run.id)


def missed_hooks(desk: Desk, run: Run, heard: Heard) -> int:
    """Return before how many uses of tools a run's hooks were not answered."""
    folder = desk.project.state / "runs" / run.id
    seen, lost = _lines(folder / SEEN), _lines(folder / MISSED)
    return hooks.missed(heard.used, seen, sum(line.split()[1:2] == [hooks.Moment.BEFORE_TOOL] for line in lost))


def _lines(path: Path) -> list[str]:
    try:
        return files.read(path).splitlines()
    except OSError:
        return []  # there was no hook, or it was not seen


def drawn(text: str) -> str:
    """Return the words of what a program drew on a terminal."""
    lines = (streams.shown(_STEP.sub(" ", line)) for line in re.split(r"[\r\n]+", text))
    return "\n".join(line for line in lines if line)


def _is_fresh(verdict: Verdict) -> bool:
    return isinstance(verdict, Again) and verdict.fresh
