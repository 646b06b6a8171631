"""What a run came to that is no longer alive, and what is learnt from it."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from covey import files, trash
from covey.agents import streams
from covey.agents.agent import Agent, traits_of
from covey.app.context import Call
from covey.app.costs import costs
from covey.app.fleet import runs as life
from covey.app.fleet.sessions import alert
from covey.app.history import run_streams
from covey.app.history.run_streams import Output, Reader
from covey.app.history.transcripts import TRANSCRIPT_FILE, plain, raw, readable, reader_by, whole
from covey.app.people import egress_rules
from covey.core.board import tasks
from covey.core.board.tasks import Task
from covey.core.costs.budgets import is_own
from covey.core.fleet import runs
from covey.core.fleet.launches import Observation
from covey.core.fleet.outcomes import NEVER_BEGAN_S, Again, Crashed, Evidence, HandIn, PutOff, Verdict, judge
from covey.core.fleet.run_end import is_stopped
from covey.core.fleet.run_state import RunState
from covey.core.fleet.runs import PROCESS, TMUX, Outcome, Run
from covey.core.fleet.signals import Failed, Trouble
from covey.core.leases import hooks
from covey.core.people.alerts import AlertKind
from covey.core.people.commands import egress as way_rules
from covey.core.people.commands.pushes import Push
from covey.errors import CoveyError
from covey.git.candidates import candidates
from covey.git.guard.guard import read_settings
from covey.git.identity import task_branch
from covey.git.landing import pushes_seen
from covey.git.rescue.rescue import Rescued
from covey.git.worktrees import task_branches
from covey.git.worktrees.task_branches import BranchState
from covey.loops.fleet import ref_repair
from covey.loops.fleet.attend import Attendant
from covey.loops.fleet.fleet_memory import FleetMemory
from covey.loops.fleet.rescues import is_full, note_rescue, put_in_safety, set_aside
from covey.loops.fleet.run_launch import MISSED, SEEN
from covey.loops.fleet.start import Starter, newest_main
from covey.loops.runtime import Runtime, going_on
from covey.runners.process import ProcessRunner
from covey.runners.tmux import place_of

MAX_LOST_IN_A_ROW = 5
"""Lost runs of one task in a row after which it counts as the task's own fault."""
CRASHES_UNTIL_ALERT = 3
"""Crashes in a row of which a person is told."""
NOTED = "Its reflog says so. Look at what the remote has now: covey cannot take it back."
SEEN_THERE = "The remote has what was made in that run. If you pushed it yourself, all is well."
HELP = {
    Trouble.KEY: " (Log in with the program itself, or set its key where you type covey up; then covey down, covey up."
    " It tries again every 5 minutes.)",
    Trouble.CREDIT: " (It tries again every 5 minutes.)",
}
"""What a person can do about a trouble."""
ALERTS = {
    Trouble.LIMIT: AlertKind.AGENT_LIMIT,
    Trouble.OVERLOAD: AlertKind.AGENT_OVERLOAD,
    Trouble.CONNECTION: AlertKind.AGENT_CONNECTION,
    Trouble.KEY: AlertKind.AGENT_KEY,
    Trouble.CREDIT: AlertKind.AGENT_CREDIT,
    Trouble.CORRUPT: AlertKind.AGENT_CORRUPT,
}
"""What a person is told of when a provider put a run off; a share of a budget that is spent is no news."""
READ_BYTES = 64 * 1024
"""Bytes of what a run printed of which its story is made."""
STORY_TAIL_BYTES = 4000
"""Bytes of the end of the output that a story carries."""
NOTHING_MORE = ("= done", "= done, as it said")
"""Last lines that tell nothing."""

_STEP = re.compile(r"\x1b\[[0-9;]*[CGH]")
"""How a program goes on at another place of its screen."""

log = logging.getLogger("covey.fleet")


@dataclass
class Closer:
    """Closes runs that are no longer alive."""

    runtime: Runtime
    memory: FleetMemory
    starter: Starter
    attendant: Attendant
    looks: set[asyncio.Task[None]] = field(default_factory=set)
    """Looks at remotes that are under way."""

    async def close(self, run: Run, seen: Observation) -> None:
        """See what a run came to that is no longer alive."""
        if not seen.known:  # it was told to end, and never began
            await self.runtime.in_run_thread(lambda: self.runtime.runner.stop(run.id))
        if seen.failure is not None and run.ending is None:
            await self.starter.cannot_start(run, seen.failure)
            await self.runtime.in_git_thread(lambda: self.runtime.runner.forget(run.id))
            return
        task = await self.runtime.read(lambda call: call.tx.task(run.task))
        merge = await self.runtime.read(lambda call: call.tx.last_merge(run.task))
        rejected = merge.commit if merge is not None and merge.session == run.session else None
        assert task is not None
        await ref_repair.keep(self.runtime, run, "ended")
        evidence, rescued = await self.runtime.in_git_thread(lambda: self._evidence(run, seen, task, rejected))
        verdict = judge(evidence)
        watched = self.memory.of(run)
        await self.attendant.spend(run, watched)
        agent = self.runtime.agent(run.agent)
        await self.attendant.mailing.close(run, agent, watched.heard, seen, watched.journal_path)
        unseen = seen.code is None and run.ending is None and not isinstance(verdict, HandIn | PutOff)
        is_fresh = isinstance(verdict, Again) and verdict.fresh
        lost = unseen and not is_fresh
        if lost:
            last = await self.runtime.read(lambda call: call.tx.last_runs(MAX_LOST_IN_A_ROW, task=run.task))
            lost = len(last) < MAX_LOST_IN_A_ROW or any(one.outcome is not Outcome.LOST for one in last[1:])
        if watched.learnt is None:
            watched.learnt = (None, None) if lost else self._learn(run, verdict)
        pushed = await self.runtime.in_git_thread(
            lambda: pushes_seen.noted(self.runtime.project, run.session, run.begun)
        )
        sent = [each for each in dict.fromkeys(watched.heard.sent) if self._led_out(run, each, pushed)]

        def write(call: Call) -> None:
            egress_rules.tell_pushed(call, run.session, run.task, pushed, NOTED)
            egress_rules.tell_sent(call, run.session, run.task, sent)
            self._write_down(call, run, seen, verdict, rescued, lost=lost)

        await self.runtime.write(write)
        self._look_at_remotes(run, run.base, evidence.head, pushed)
        self.memory.runs.pop(run.id, None)
        await self.runtime.in_git_thread(lambda: self._tidy(run))

    def _led_out(self, run: Run, command: str, pushed: list[Push]) -> bool:
        """Say whether a command led out; a push of which is told otherwise is told once."""
        ways = way_rules.found(command, str(self.runtime.worktrees.path(run.session)))
        return any(way.kind is way_rules.EgressKind.SENDS or not pushed for way in ways)

    async def give_up(self, run: Run, seen: Observation, why: str) -> None:
        """End a run that cannot be stopped or judged, so that its session goes on: its worktree is kept aside."""
        rescued = None
        with going_on(log, f"the worktree of {run.session} could not be kept aside"):
            reason = f"{run.id} on {run.task} could not be brought to an end: {why}"
            rescued = await self.runtime.in_git_thread(lambda: set_aside(self.runtime, run.session, run.task, reason))
        verdict = Again(f"covey could not see what came of it: {why}", fresh=True)

        def write(call: Call) -> None:
            note_rescue(call, run.session, rescued, run.task)
            life.judged(call, run, verdict, seen.code)
            if seen.alive:
                alert(call, AlertKind.DOES_NOT_END, f"Something of {run.id} still lives: {why}", run.session, run.task)

        await self.runtime.write(write)
        self.memory.runs.pop(run.id, None)
        await self.runtime.in_git_thread(lambda: self._tidy(run))

    def _write_down(
        self, call: Call, run: Run, seen: Observation, verdict: Verdict, rescued: Rescued | None, *, lost: bool
    ) -> None:
        """Write down the end of a run: lost, or as it was judged, with the alert that goes with it."""
        note_rescue(call, run.session, rescued, run.task)
        if rescued is not None and rescued.aside is None:
            life.note(call, run, runs.Left(rescued.ref))
        watched = self.memory.of(run)
        until, news = watched.learnt or (None, None)
        life.note(call, run, runs.wrote(watched.wrote))
        if watched.heard.conversation is not None:  # nobody may have looked after a run that ended soon
            life.note_conversation(call, run, watched.heard.conversation)
        costs.count(call, run, watched.used, self.runtime.today().name, whole=watched.whole)
        if watched.missed:
            life.note(call, run, runs.Missed(calls=watched.missed, why=life.MISSED))
        if lost:
            life.lost(call, run, "Nobody saw it end: it was killed, or the machine was.", seen.code)
            return
        life.judged(call, run, verdict, seen.code, until)
        task = call.tx.task(run.task)
        blocked = task is not None and task.status is tasks.Status.BLOCKED
        if blocked and self._blames_task(run):
            self.memory.starts.failures.pop(run.session, None)  # its next task has nothing to do with them
            self.memory.not_before.pop(run.session, None)
        told = isinstance(verdict, Crashed) and blocked
        if news is not None and not told:  # of a task that is blocked a person knows by that
            alert(call, news[0], news[1][: life.EVIDENCE_CHARS], run.session, run.task)

    def _blames_task(self, run: Run) -> bool:
        """Say whether what failed was the task itself: its agent runs it as a script, and the next may do well."""
        return traits_of(self.runtime.agent(run.agent)).script

    def _learn(self, run: Run, verdict: Verdict) -> tuple[float | None, tuple[AlertKind, str] | None]:
        """Learn from how a run went; return until when its session waits, and the alert that a person gets."""
        starts = self.memory.starts
        config, at, wall = self.runtime.app.context.config, self.runtime.awake(), self.runtime.wall()
        if is_stopped(run):
            return (wall + starts.failed(run.session, config) if run.stalled else None), None
        if isinstance(verdict, PutOff):
            return self._learn_put_off(run, verdict)
        if isinstance(verdict, Again) and verdict.gave_up:
            wait = starts.failed(run.session, config)
            self.memory.not_before[run.session] = at + wait
            often = not self._blames_task(run) and starts.gave_up(run.agent, run.task, verdict.what, at)
            message = f"{run.agent} gives up one task after another, and is stopped for a while: {verdict.what}"
            tells = often and starts.is_news(run.agent, "gives up")
            return wall + wait, (AlertKind.AGENT_GIVES_UP, message) if tells else None
        if isinstance(verdict, Crashed):
            wait = starts.failed(run.session, config)
            often = starts.failures[run.session] >= CRASHES_UNTIL_ALERT
            message = f"{run.session} crashes again and again on {run.task}: {verdict.what}"
            tells = often and starts.is_news(run.agent, f"crash {run.task}")
            return wall + wait, (AlertKind.CRASHES, message) if tells else None
        if isinstance(verdict, HandIn):
            starts.went_well(run.session, run.agent)
        return None, None

    def _learn_put_off(self, run: Run, verdict: PutOff) -> tuple[float, tuple[AlertKind, str] | None]:
        """Learn that a provider refused a run; a reset that it names counts, but not for ever."""
        starts = self.memory.starts
        at, wall = self.runtime.awake(), self.runtime.wall()
        named = self.attendant.watchdog.slow_down(run, verdict.trouble, verdict.what, verdict.until)
        message = f"{run.session} cannot go on with {run.task}: {verdict.what}{HELP.get(verdict.trouble, '')}"
        kind = ALERTS.get(verdict.trouble)
        news = (kind, message) if kind is not None and starts.is_news(run.agent, verdict.trouble) else None
        wait = starts.failed(run.session, self.runtime.app.context.config)
        closed = starts.paces[run.agent].closed
        return named or wall + max(wait, 0.0 if closed is None else closed - at), news

    def _evidence(
        self, run: Run, seen: Observation, task: Task, rejected: str | None
    ) -> tuple[Evidence, Rescued | None]:
        runtime = self.runtime
        watched, agent = self.memory.of(run), runtime.agent(run.agent)
        heard, traits = watched.heard, traits_of(agent)
        # First of all: what cannot be rescued whole is out of use then, and git is not asked about it.
        rescued = put_in_safety(runtime, run.session, run.task, f"{run.id} on {run.task} ended")
        told = self._hear_out(run, seen, agent)
        result = heard.result
        if task.kind is tasks.Kind.REPORT and result is None and not traits.speaks:
            result = heard.said.strip() or None
        watched.missed = missed_hooks(runtime, run, heard) if traits.hooks else 0
        # A daemon that was killed right after it had started the program has not noted where its branch began.
        base = run.base or newest_main(runtime)
        found, unreadable = self._found(run, base, rescued)
        watched.wrote = self._wrote(run, base, found)
        context, lands = runtime.app.context, None
        if context.commits is not None and found.head is not None and found.ahead:
            lands = context.commits(run.session, found.head, context.config.target)
        stopped = run.ending if run.fault and heard.result is None else None  # it may have ended by itself meanwhile
        return (
            Evidence(
                kind=task.kind,
                code=seen.code,
                stopped=stopped,
                failed=heard.failed,
                trouble=heard.trouble,
                share=run.money is not None and not is_own(run.money, context.config.budget.run),
                until=heard.until,
                speaks=traits.speaks,
                script=traits.script,
                at_once=watched.at_work < NEVER_BEGAN_S,
                result=result,
                ahead=found.ahead,
                branch=task_branch(run.task),
                head=found.head,
                writes=None if lands is None else lands.writes,
                rejected=rejected,
                refused=watched.refused,
                dirty=found.dirty,
                unreadable=unreadable,
                rescued=rescued.ref if rescued else None,
                tail=told[-STORY_TAIL_BYTES:],
            ),
            rescued,
        )

    def _hear_out(self, run: Run, seen: Observation, agent: Agent | None) -> str:
        """Take in all that a run has said, also where programs complain, and return the end of it in words."""
        watched = self.memory.of(run)
        self.attendant.hear_out(run, watched, agent, seen.size)
        complaint = "" if watched.heard.is_over else self.runtime.runner.errors(run.id).decode(errors="replace")
        if agent is not None and agent.traits.speaks:
            for signal in [each for line in complaint.splitlines() for each in agent.read(line)]:
                if isinstance(signal, Failed):  # it said nothing else there
                    watched.heard.take(signal, self.runtime.awake())
        told = self._story(run, agent, seen.size)
        return f"{told.rstrip()}\n{complaint.strip()}" if complaint.strip() else told

    def _story(self, run: Run, agent: Agent | None, size: int) -> str:
        """Return the end of what a run printed in words, "" if it cannot be told: that changes nothing of its work."""
        runner = self.runtime.runner
        try:
            told = end_of(runner, self.runtime.project.run_folder(run.id), run, agent, size)
            if not told.strip() and run.runner == TMUX:
                told = drawn(runner.output(run.id, max(size - STORY_TAIL_BYTES, 0))[0].decode(errors="replace"))
            return told
        except Exception:
            log.exception("the end of the output of %s cannot be told", run.id)
            return ""

    def _wrote(self, run: Run, base: str, found: BranchState) -> tuple[str, ...]:
        """Return the files that a run changed, whether it committed them or not."""
        began, committed = run.head or base, list[str]()
        if found.head is not None and found.head != began:
            with contextlib.suppress(CoveyError, OSError):  # git says elsewhere what it cannot read
                project, target = self.runtime.project, self.runtime.app.context.config.target
                main = candidates.resolve(project, f"refs/heads/{target}") or base
                committed = candidates.changed_between(project, began, found.head, main)
        return (*committed, *found.dirty)

    def _found(self, run: Run, base: str, rescued: Rescued | None) -> tuple[BranchState, str | None]:
        """Return what a run left, and why that cannot be told if it cannot; what git cannot read is never built on."""
        runtime, branch = self.runtime, task_branch(run.task)
        if rescued is not None and rescued.aside is not None:
            return BranchState(), f"Its worktree was out of use and is kept aside: {rescued.why}."
        try:
            found = task_branches.look(runtime.project, runtime.worktrees.path(run.session), branch, base)
            if found.head is not None and found.ahead:
                task_branches.keep(runtime.project, run.task, found.head)
            return found, None
        except (CoveyError, OSError) as error:
            said = error.message if isinstance(error, CoveyError) else str(error)
            if is_full(runtime):
                raise
            with contextlib.suppress(CoveyError, OSError):
                runtime.worktrees.release(run.session)
                task_branches.give_up(runtime.project, run.task, branch)
            return BranchState(), f"git cannot read what it committed: {said}"

    def _tidy(self, run: Run) -> None:
        """Keep what a run that has ended said, free its branch, and remove what was only needed while it lived."""
        with going_on(log, f"{run.id} could not be tidied up after"):  # it is over all the same
            if self.runtime.worktrees.path(run.session).exists():
                self.runtime.worktrees.release(run.session)
            self.runtime.runner.forget(run.id)
        folder = self.runtime.project.run_folder(run.id)
        trash.remove(place_of(folder))
        with going_on(log, f"the transcript of {run.id} could not be kept"):  # its output is still there
            if folder.is_dir() and not folder.is_symlink():
                run_streams.close_journal(folder)
                keep_transcript(folder, transcript_of(self.runtime.runner, folder, run, self.runtime.agent(run.agent)))

    # What it may have pushed

    def _look_at_remotes(self, run: Run, base: str | None, head: str | None, told: list[Push]) -> None:
        """Begin to look whether a remote has what a run made: a push leaves no trace here that has to be true.

        That is in nobody's way, and what was `told` of it already is not told again.
        """
        if base is not None and head is not None and base != head:
            look = asyncio.ensure_future(self._look_for_pushed(run, base, head, told))
            self.looks.add(look)
            look.add_done_callback(self.looks.discard)

    async def _look_for_pushed(self, run: Run, base: str, head: str, told: list[Push]) -> None:
        with going_on(log, f"the remotes could not be looked at after {run.id}"):
            found = await self.runtime.in_background(lambda: self._pushed(base, head))
            known = {(push.remote, ref.lstrip("+")) for push in told for ref in push.refs}
            fresh = [
                Push(push.remote, refs)
                for push in found
                if (refs := tuple(ref for ref in push.refs if (push.remote, ref) not in known))
            ]
            if fresh:
                await self.runtime.write(
                    lambda call: egress_rules.tell_pushed(call, run.session, run.task, fresh, SEEN_THERE)
                )

    def _pushed(self, base: str, head: str) -> list[Push]:
        project, target = self.runtime.project, self.runtime.app.context.config.target
        remotes = read_settings(project).remotes
        commits = pushes_seen.made(project, base, head, target) if remotes else set()
        return pushes_seen.seen(project, remotes, commits) if commits else []


def missed_hooks(runtime: Runtime, run: Run, heard: RunState) -> int:
    """Return before how many uses of tools a run's hooks were not answered."""
    folder = runtime.project.run_folder(run.id)
    seen, lost = (files.read_if_any(folder / name).splitlines() for name in (SEEN, MISSED))
    return hooks.missed(heard.used, seen, sum(line.split()[1:2] == [hooks.Moment.BEFORE_TOOL] for line in lost))


def drawn(text: str) -> str:
    """Return the words of what a program drew on a terminal."""
    lines = (streams.shown(_STEP.sub(" ", line)) for line in re.split(r"[\r\n]+", text))
    return "\n".join(line for line in lines if line)


# Its transcript, kept redacted, so that what was printed can go before it


def transcript_of(runner: ProcessRunner, folder: Path, run: Run, agent: Agent | None) -> Iterator[str]:
    """Yield the lines of a run's transcript, redacted; of an agent without a structured stream what it printed.

    `folder`: the run's own.
    """
    output, reader = _source(runner, folder, run, agent)
    plain = agent if reader is None and run.runner == PROCESS else None
    return whole(output, reader, None if plain is None else plain.read)


def end_of(runner: ProcessRunner, folder: Path, run: Run, agent: Agent | None, size: int) -> str:
    """Return the end of a run's transcript as its story tells it; "" of one that draws on a terminal.

    Of an agent with a structured stream that said nothing in it: what else it printed.
    """
    output, reader = _source(runner, folder, run, agent)
    journal = run_streams.find_journal(folder)
    if reader is not None:
        size = size if run.runner == PROCESS or journal is None else journal.size()
        text, _ = readable(output, reader, max(size - READ_BYTES, 0), size, alive=False)
        lines = text.splitlines()
        while lines and lines[-1] in NOTHING_MORE:
            lines.pop()
        return "\n".join(lines) or (_beside(output, size) if run.runner == PROCESS else "")
    if run.runner != PROCESS:
        return ""
    since = max(size - READ_BYTES, 0)
    return (plain(output, agent.read, since, size, alive=False) if agent else raw(output, since, size, alive=False))[0]


def _beside(output: Output, size: int) -> str:
    """Return the end of what was printed without the records of a stream, such as the complaint of a program."""
    since = max(size - READ_BYTES, 0)
    lines = raw(output, since, size, alive=False)[0].splitlines()[1 if since else 0 :]
    return "\n".join(line for line in lines if not line.lstrip().startswith("{"))


def _source(runner: ProcessRunner, folder: Path, run: Run, agent: Agent | None) -> tuple[Output, Reader | None]:
    """Return where a run's words are, and what understands them, if that is more than plain lines."""
    reader, journal = reader_by(agent, folder, run, alive=False)
    return (partial(runner.output, run.id) if journal is None else journal.read), reader


def keep_transcript(folder: Path, lines: Iterable[str]) -> None:
    """Keep the transcript of a run beside its output, whole or not at all; one that is kept already stays."""
    path, draft = folder / TRANSCRIPT_FILE, folder / f"{TRANSCRIPT_FILE}.new"
    if path.exists():
        return
    draft.unlink(missing_ok=True)
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "wb") as opened:
        with gzip.GzipFile("", "wb", 6, opened, mtime=0) as packed:
            for line in lines:
                packed.write(f"{line}\n".encode(errors="replace"))
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(path)
