"""The fleet: brings every session that covey runs to where its row says that it shall be."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import shutil
from collections import Counter
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

from covey.agents import registry, streams
from covey.agents.agent import Agent
from covey.app import costs, journals, questions
from covey.app import fleet as verbs
from covey.app import runs as life
from covey.app.pulses import of_session
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core import sessions, tasks, watch
from covey.core.budgets import is_own
from covey.core.dispatch import Step, next_step, why_end
from covey.core.judge import Again, Crashed, Evidence, HandIn, PutOff, Verdict, judge
from covey.core.launches import Observation
from covey.core.pace import Wait, believed
from covey.core.questions import Question
from covey.core.runs import TMUX, Ending, Outcome, Run
from covey.core.sessions import COVEY, Goal, Session, State
from covey.core.signals import Trouble
from covey.core.tasks import Task
from covey.errors import CoveyError, Refused
from covey.git import candidates
from covey.git.guard import write_guard
from covey.git.rescue import Rescued, expire, rescue
from covey.git.rescue_git import SCRATCH
from covey.loops import outfit, tree
from covey.loops.attending import Attendant, Watched
from covey.loops.desk import Desk
from covey.loops.hearing import finish, overhear
from covey.loops.starts import Starts, gap_of
from covey.loops.transcripts import keep_transcript, transcript_of
from covey.runners.tmux import place_of
from covey.store import rows
from covey.store.rows import Change

LOOK_EVERY = 0.1
"""Seconds between two looks while something runs."""
REST_EVERY = 1.0
ASK_EVERY = 10.0
"""Seconds until it is asked again whether a budget has become larger."""
LEAST = 0.02
STRAYS_EVERY = 30.0
EXPIRE_EVERY = 6 * 3600.0
SCRATCH_FOR = 3600.0
"""Seconds after which what a killed rescue left is nobody's any more."""
STUMBLE = 0.25
STUMBLE_MOST = 300.0
"""Seconds before a step that failed is taken again, at first and at most."""
SHOWN_AFTER = 3.0
"""Seconds that a session waits before people are shown that it does."""
LOST = 5
"""Lost runs of one task in a row after which it counts as the task's own fault."""
LEAVE_PATIENCE = 30.0
OFTEN = 3
"""Crashes in a row of which a person is told."""
HELP = {
    Trouble.KEY: " (Log in with the program itself, or set its key where you type covey up; then covey down, covey up."
    " It tries again every 5 minutes.)",
    Trouble.CREDIT: " (It tries again every 5 minutes.)",
}
"""What a person can do about a trouble."""
HANDED_IN = 5
"""The last commits that a session handed in and that its worktree may still know of."""
TAIL = 4000
"""Bytes of the end of the output that a story carries."""

_STEP = re.compile(r"\x1b\[[0-9;]*[CGH]")
"""How a program goes on at another place of its screen."""

log = logging.getLogger("covey.fleet")


class NotOurs(CoveyError):
    """A branch or a worktree is in somebody else's hands."""


@dataclass(frozen=True)
class View:
    """The rows that matter to the fleet, as they stand together."""

    seq: int
    paused: bool
    sessions: list[Session]
    runs: dict[str, Run]
    tasks: dict[str, Task]
    holders: frozenset[str]
    over: frozenset[str]
    decided: dict[str, list[Question]]
    """What was decided of the questions of each run, and it has not been told."""


@dataclass
class Fleet:
    """Looks at every session, judges what is to be done, and does it; one thing at a time for each."""

    desk: Desk
    hold: bool = False
    """Start nothing new: only bring to an end what is to end."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _watched: dict[str, Watched] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _nothing: dict[str, int] = field(default_factory=dict)
    _beginning: Counter[str] = field(default_factory=Counter)
    """How many runs of each agent are about to begin."""
    _waits: dict[str, tuple[Wait, float]] = field(default_factory=dict)
    """Why a session that could work does not, and since when."""
    _not_before: dict[str, float] = field(default_factory=dict)
    _stumbles: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How often the steps of a session failed in a row, and when to try again."""
    _any: bool = True
    _swept: float = -1e9
    _asked: float = -1e9
    _expired: float = -1e9

    def __post_init__(self) -> None:
        self.starts = Starts(self.desk.free_memory, self.desk.chance)
        self.attendant = Attendant(self.desk, self.starts)
        self.desk.app.house.why = self.why
        self.desk.app.house.weight = self.weight
        self.desk.app.house.forgive = self.forgive

    def hear(self, changes: Iterable[Change]) -> None:
        """Look again soon, if these changes can matter to a session that covey runs."""
        if self._any or any(change.kind.startswith(("session.", "fleet.")) for change in changes):
            self.news.set()

    async def run(self) -> None:
        """Look and act for ever."""
        while True:
            running = False
            try:
                running = await self.tick()
            except CoveyError as error:
                log.warning("the fleet could not be looked after: %s", error)
            except Exception:
                log.exception("the fleet's loop failed")
            await asyncio.sleep(LEAST)
            try:
                async with asyncio.timeout(LOOK_EVERY if running else REST_EVERY):
                    await self.news.wait()
            except TimeoutError:
                pass
            self.news.clear()

    def why(self, name: str) -> tuple[watch.Verdict | None, Wait | None]:
        """Return what the watchdog last thought of a session's run, and why it does not start one."""
        mine = [each for run, each in list(self._watched.items()) if self._owners.get(run) == name]
        watched = mine[-1] if mine else None
        wait = self._waits.get(name)
        return (None if watched is None else watched.verdict), (None if wait is None else wait[0])

    def forgive(self, agent: str, session: str) -> None:
        """Let a session start as soon as it can, and others of its agent: a person says so."""
        self.starts.forgive(agent, session)
        self._not_before.pop(session, None)
        self._waits.pop(session, None)

    def weight(self, name: str) -> int:
        """Return the bytes of memory that a session's run took when it was last weighed."""
        return sum(each.memory for run, each in list(self._watched.items()) if self._owners.get(run) == name)

    async def stop(self) -> None:
        """Wait for what is under way; the runs themselves go on."""
        busy = list(self._busy.values())
        if busy:
            await asyncio.wait(busy, timeout=LEAVE_PATIENCE)

    async def tick(self) -> bool:
        """Take the next step for every session that has none under way, and say whether something runs."""
        busy = set(self._busy)  # who is busy now may be seen as it was before its step
        view = await self.desk.read(self._look)
        self._any = bool(view.sessions)
        open_runs = list(view.runs.values())
        self.desk.running = dict(Counter(run.agent for run in open_runs if not run.person))
        seen = await self._see(open_runs) if open_runs else {}
        for session in view.sessions:
            self.desk.app.house.pulses.hear(of_session(session.name))
            if (
                session.name not in busy | self._busy.keys()
                and self.desk.awake() >= self._stumbles.get(session.name, (0, -1e9))[1]
            ):
                run = view.runs.get(session.name)
                self._step(view, session, run, None if run is None else seen[run.id])
        await self._sweep()
        return bool(open_runs or self._busy)

    async def _see(self, open_runs: list[Run]) -> dict[str, Observation]:
        runner = self.desk.runner
        return await self.desk.near(lambda: {run.id: runner.look(run.id) for run in open_runs})

    def _look(self, call: Call) -> View:
        tx = call.tx
        runs = {run.session: run for run in tx.open_runs()}
        found = tx.run_sessions()
        batch_names = {session.batch for session in found if session.batch}
        return View(
            tx.head.seq,
            tx.fleet().paused,
            found,
            runs,
            {run.task: task for run in runs.values() if (task := tx.task(run.task)) is not None},
            frozenset(tx.holders()),
            frozenset(name for name in batch_names if verbs.is_over(call, name)),
            _by_run(questions.untold(call)) if runs else {},
        )

    # Judging

    def _step(self, view: View, session: Session, run: Run | None, seen: Observation | None) -> None:
        ending = None
        if run is not None and seen is not None:
            limit = self.desk.app.house.config.sessions.run_minutes * 60
            at_work = self._at_work(run, seen)
            theirs = life.is_theirs(view.tasks.get(run.task), run)
            ending = why_end(session, run, theirs=theirs, at_work=at_work, limit=limit, printed=seen.size)
            ending = ending or self.attendant.why_over(run, self._watch(run))
        holds = session.name in view.holders
        step = next_step(session, run, seen, paused=view.paused, holds=holds, ending=ending)
        work = self._work(view, step, session, run, seen, ending)
        if work is not None:
            task = asyncio.create_task(self._guarded(session, work, news=step is not Step.READ))
            self._busy[session.name] = task

    def _work(
        self,
        view: View,
        step: Step,
        session: Session,
        run: Run | None,
        seen: Observation | None,
        ending: Ending | None,
    ) -> Coroutine[Any, Any, None] | None:
        match step:
            case Step.BEGIN:
                return self._begin_if_wise(view, session)
            case Step.REST:
                still = view.paused or session.goal is Goal.PAUSED
                rests = run is None and session.goal is not Goal.STOPPED and is_news(session, still=still)
                return self._rest(session, still=still) if rests else None
            case Step.LET_GO:
                return self._let_go(session)
            case Step.REMOVE:
                return self._remove(session)
            case _:
                pass
        assert run is not None and seen is not None
        match step:
            case Step.START:
                return None if self.hold else self._start(run)
            case Step.READ:
                due = self.attendant.is_due(self._watch(run), seen) or run.id in view.decided
                return self._attend(view, session, run, seen) if due else None
            case Step.HOLD | Step.GO_ON:
                return self._hold(run, on=step is Step.HOLD)
            case Step.END:
                assert ending is not None
                return self._end(run, ending)
            case Step.STOP:
                return self._stop(run)
            case _:
                return self._judge(run, seen)

    def _begin_if_wise(self, view: View, session: Session) -> Coroutine[Any, Any, None] | None:
        if session.batch in view.over and session.name not in view.holders:
            return self._leave(session)
        if self.hold or self._nothing.get(session.name) == view.seq:
            return None
        at = self.desk.awake()
        if session.attached:
            return self._begin(session, view.seq, None)
        if at < self._not_before.get(session.name, -1e9) or self._is_put_off(view, session):
            return None
        agent = self._agent(session.agent or "")
        if agent is None:
            return self._begin(session, view.seq, None)
        config, soon = self.desk.app.house.config, self._beginning[agent.name]
        wait = self.starts.why_wait(agent, config, list(view.runs.values()), at, self.desk.wall(), soon)
        if wait is not None:
            return self._wait(session, wait, at)
        if soon and gap_of(agent, config) > 0:
            return None
        self._beginning[agent.name] += 1
        return self._begin(session, view.seq, agent)

    def _is_put_off(self, view: View, session: Session) -> bool:
        """Say whether a session waits after its last run; who waits for anything else asks again: it may be there."""
        later = (session.until or 0.0) > self.desk.wall()
        return later and session.name in view.holders and session.name not in self._waits

    def _wait(self, session: Session, wait: Wait, at: float) -> Coroutine[Any, Any, None] | None:
        """Remember why a session waits, and let people see it if it takes long."""
        since = self._waits.setdefault(session.name, (wait, at))[1]
        self._waits[session.name] = (wait, since)
        if not wait.news or session.state in (State.LIMITED, State.STALLED) or at - since < SHOWN_AFTER:
            return None
        until = None if wait.until is None else self.desk.wall() + wait.until - at
        self._not_before[session.name] = at + REST_EVERY  # one with nothing to do shows nothing, and would try for ever
        return self._show_wait(session, wait, until)

    async def _show_wait(self, session: Session, wait: Wait, until: float | None) -> None:
        news: bool | None = None  # what is asked once is answered once, however often it is written

        def write(call: Call) -> None:
            nonlocal news
            known = self.starts.knows(session.agent or "")  # of the trouble behind it
            if life.waits(call, session.name, wait, until) and not known:
                news = self.starts.is_news("", wait.about or wait.why) if news is None else news
                if news:
                    alert(call, "waits", f"{session.name} waits: {wait.why}", session.name, None)

        await self.desk.write(write)

    def _watch(self, run: Run) -> Watched:
        if run.id not in self._watched:
            self._watched[run.id] = Watched(self.desk.awake())
            self._owners[run.id] = run.session
        return self._watched[run.id]

    def _at_work(self, run: Run, seen: Observation) -> float:
        """Return for how many seconds a run has not stood still, been put off, or waited for a person."""
        watched, now = self._watch(run), self.desk.awake()
        if watched.looked is None:
            watched.at_work = 0.0  # of a run that we take up, nobody knows for how long it stood still
        elif not seen.held and not is_kept(watched):
            watched.at_work += now - watched.looked
        watched.looked = now
        return watched.at_work

    async def _guarded(self, session: Session, work: Coroutine[Any, Any, None], *, news: bool) -> None:
        """Take a step, whatever comes of it; `news`: another may follow at once."""
        try:
            await work
            self._stumbles.pop(session.name, None)
        except CoveyError as error:
            log.warning("%s: %s", session.name, error)
            self._stumble(session.name)
        except Exception:
            log.exception("a step for %s failed", session.name)
            self._stumble(session.name)
        finally:
            del self._busy[session.name]
            if news:
                self.news.set()

    def _stumble(self, name: str) -> None:
        """Take the next step for a session later: what failed now would most likely fail again at once."""
        count = self._stumbles.get(name, (0, 0.0))[0] + 1
        self._stumbles[name] = (count, self.desk.awake() + min(STUMBLE * 2**count, STUMBLE_MOST))

    # Acting

    async def _rest(self, session: Session, *, still: bool) -> None:
        if is_news(session, still=still):
            state = State.PAUSED if still else State.IDLE
            evidence = "it was told to stand still" if still else "nothing keeps it from going on"
            await self.desk.write(lambda call: life.show(call, session.name, state, evidence))

    async def _leave(self, session: Session) -> None:
        def leave(call: Call) -> None:
            now = call.tx.session(session.name)
            if now is not None and not now.removed and session.batch and verbs.is_over(call, session.batch):
                event = sessions.leave(now, at_work=False, force=False, why=f"{session.batch} is over")
                if event is not None:
                    call.put_session(now, now.name, event, by=COVEY)

        await self.desk.write(leave)

    async def _let_go(self, session: Session) -> None:
        await self.desk.write(lambda call: verbs.let_go(call, session.name))

    async def _begin(self, session: Session, seq: int, agent: Agent | None) -> None:
        try:
            day = self.desk.today()
            run = await self.desk.write(lambda call: life.begin(call, session.name, day))
            if agent is not None and isinstance(run, Run):
                self.starts.began(agent, self.desk.awake())
        finally:
            if agent is not None:
                self._beginning[agent.name] -= 1
        if isinstance(run, Wait):
            if run.news:
                await self._show_wait(session, run, run.until)
            self._waits[session.name] = (run, self.desk.awake())
            self._not_before[session.name] = self.desk.awake() + (ASK_EVERY if run.news else REST_EVERY)
            return
        self._waits.pop(session.name, None)
        if run is None:
            self._nothing[session.name] = seq
            if session.state in (State.PAUSED, State.LIMITED):
                await self._rest(session, still=False)
            return
        await self._start(run)

    async def _start(self, run: Run) -> None:
        """Prepare a run's worktree and start its program; done twice it is done once."""
        work = await self.desk.write(lambda call: life.work(call, run))
        if work is None:
            await self._end(run, Ending(f"{run.task} is no longer with {run.session}."))
            return
        try:
            base, rescued = await self.desk.beside(lambda: self._prepare(work))
        except NotOurs as error:  # the fault of this task's branch, so no other task has to wait for it
            refused = Again(str(error))
            await self.desk.write(lambda call: life.judged(call, run, refused, None))
            return
        except CoveyError as error:
            await self._cannot_start(run, str(error))
            return

        def write(call: Call) -> None:
            self._note(call, run, rescued)
            life.started(call, work, base)

        await self.desk.write(write)

    def _prepare(self, work: life.Work) -> tuple[str, Rescued | None]:
        desk, run = self.desk, work.run
        config = desk.app.house.config
        base = self._newest_main()
        rescued = self._rescue(run.session, run.task, f"before {run.id} on {run.task}")
        branch = work.brief.branch
        try:
            # Who takes a conversation up again finds the files as they were when it was left.
            head = desk.worktrees.take_up(run.session, branch) if self._resumes(work) and work.lies else None
            if head is None:
                if not work.carried:
                    tree.set_aside(desk.project, desk.worktrees, run.task, branch, base)
                head = desk.worktrees.prepare(run.session, branch, base)
        except Refused as error:
            if tree.is_held(desk.project, branch):
                raise NotOurs(f"{error.message} {error.hint}") from error
            raise
        guard = write_guard(desk.project, desk.project.state / "hooks")
        git = desk.worktrees.session_env(run.session, guard)
        folder = desk.project.state / "runs" / run.id
        path = desk.worktrees.path(run.session)
        common = desk.project.common
        entry = desk.worktrees.git_dir(run.session)
        kept = head != base
        launch = outfit.launch(work, config, folder, path, git, desk.url, kept=kept, common=common, entry=entry)
        desk.runner.start(run.id, launch)
        return base, rescued

    def _resumes(self, work: life.Work) -> bool:
        agent = self._agent(work.run.agent)
        return work.conversation is not None and agent is not None and agent.traits.resumes

    def _newest_main(self) -> str:
        """Return where new work begins: never on what had passed and was then rejected or dropped."""
        desk, named = self.desk, self.desk.app.house.config.project
        newest = desk.worktrees.newest_main(named.main, named.remote)
        main = candidates.resolve(desk.project, f"refs/heads/{named.main}")
        if main is None or newest == main:
            return newest
        unwanted = desk.app.store.read(lambda tx: tx.unwanted(tree.UNWANTED))
        return newest if tree.taken_back(desk.project, newest, main, unwanted) is None else main

    async def _cannot_start(self, run: Run, what: str) -> None:
        log.warning("%s could not start: %s", run.id, what)
        self._forget(run)
        failed_before = bool(self.starts.failures.get(run.session))

        def end(call: Call) -> None:
            life.unstartable(call, run, what)
            if not failed_before:
                alert(call, "cannot_start", f"{run.session} cannot start: {what}", run.session, run.task)

        await self.desk.write(end)
        wait = self.starts.failed(run.session, self.desk.app.house.config)
        self._not_before[run.session] = self.desk.awake() + wait

    async def _attend(self, view: View, session: Session, run: Run, seen: Observation) -> None:
        """Look after a run that is alive."""
        decided = view.decided.get(run.id, [])
        await self.attendant.attend(run, session, self._watch(run), self._agent(run.agent), seen, decided)

    def _agent(self, name: str) -> Agent | None:
        """Return an agent, None if it was taken out of the settings while it ran."""
        try:
            return registry.find(name, self.desk.app.house.config.declared())
        except CoveyError:
            return None

    async def _hold(self, run: Run, *, on: bool) -> None:
        await self.desk.near(lambda: self.desk.runner.hold(run.id, on=on))
        state, evidence = (State.PAUSED, "it stands still") if on else (State.WORKING, f"{run.id} goes on")
        await self.desk.write(lambda call: life.show(call, run.session, state, evidence))

    async def _end(self, run: Run, ending: Ending) -> None:
        await self.desk.write(lambda call: life.ending(call, run, ending))

    async def _stop(self, run: Run) -> None:
        await self.desk.near(lambda: self.desk.runner.stop(run.id))

    async def _judge(self, run: Run, seen: Observation) -> None:
        """See what a run came to that is no longer alive."""
        if not seen.known:  # it shall end, and never began
            await self.desk.near(lambda: self.desk.runner.stop(run.id))
        if seen.failure is not None and run.ending is None:
            await self._cannot_start(run, seen.failure)
            await self.desk.beside(lambda: self.desk.runner.forget(run.id))
            return
        task = await self.desk.read(lambda call: call.tx.task(run.task))
        merge = await self.desk.read(lambda call: call.tx.last_merge(run.task))
        rejected = merge.commit if merge is not None and merge.session == run.session else None
        assert task is not None
        evidence, rescued = await self.desk.beside(lambda: self._evidence(run, seen, task, rejected))
        verdict = judge(evidence)
        watched = self._watch(run)
        await self.attendant.spend(run, watched)
        unseen = seen.code is None and run.ending is None and not isinstance(verdict, HandIn | PutOff)
        lost = unseen and not _is_fresh(verdict) and not await self.desk.read(lambda call: self._lost_often(call, run))
        if watched.learnt is None:
            watched.learnt = (None, None) if lost else self._learn(run, verdict)
        until, news = watched.learnt
        await self.desk.write(lambda call: self._close(call, run, seen, verdict, rescued, lost, until, news))
        self._forget(run)
        await self.desk.beside(lambda: self._tidy(run))

    def _forget(self, run: Run) -> None:
        self._watched.pop(run.id, None)
        self._owners.pop(run.id, None)

    def _close(
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
        self._note(call, run, rescued)
        watched = self._watch(run)
        if watched.heard.conversation is not None:  # nobody may have looked after a run that ended soon
            life.talks(call, run, watched.heard.conversation)
        costs.count(call, run, watched.used, self.desk.today().name, whole=watched.whole)
        if lost:
            life.lost(call, run, "Nobody saw it end: it was killed, or the machine was.", seen.code)
            return
        life.judged(call, run, verdict, seen.code, until)
        task = call.tx.task(run.task)
        told = isinstance(verdict, Crashed) and task is not None and task.status is tasks.Status.BLOCKED
        if news is not None and not told:  # of a task that is blocked a person knows by that
            alert(call, news[0], news[1][: life.EVIDENCE], run.session, run.task)

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
            self._not_before[run.session] = at + wait
            often = self.starts.gave_up(run.agent, run.task, verdict.what, at)
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
        path = desk.worktrees.path(run.session)
        watched, agent = self._watch(run), self._agent(run.agent)
        heard = watched.heard
        self.attendant.listen(run, watched, agent, seen.size)
        finish(heard, watched.tail, self.attendant.source(run, watched, agent)[1], desk.awake())
        complaint = "" if heard.is_over else desk.runner.errors(run.id).decode(errors="replace")
        if agent is not None and agent.traits.speaks:
            overhear(heard, agent.read, complaint, desk.awake())
        result, speaks = heard.result, agent is not None and agent.traits.speaks
        if task.kind is tasks.Kind.REPORT and result is None and not speaks:
            result = heard.said.strip() or None
        printed, _ = desk.runner.output(run.id, max(seen.size - TAIL, 0))
        told = heard.said if speaks and heard.said.strip() else printed.decode(errors="replace")
        told = drawn(told) if run.runner == TMUX else told
        told = f"{told.rstrip()}\n{complaint.strip()}" if complaint.strip() else told
        # A daemon that was killed right after it had started the program has not noted where its branch began.
        base = run.base or self._newest_main()
        found = tree.look(desk.project, path, life.branch_of(run.task), base)
        stopped = run.ending if run.fault else None
        rescued = self._rescue(run.session, run.task, f"{run.id} on {run.task} ended") if found.there else None
        if found.head is not None and found.ahead:
            tree.keep(desk.project, run.task, found.head)
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
                result=result,
                ahead=found.ahead,
                head=found.head,
                rejected=rejected,
                dirty=found.dirty,
                rescued=rescued.ref if rescued else None,
                tail=told[-TAIL:],
            ),
            rescued,
        )

    def _rescue(self, session: str, task: str | None, why: str) -> Rescued | None:
        """Put in safety what lies in a session's worktree and git would not keep; what it handed in is safe already."""
        path = self.desk.worktrees.path(session)
        if not path.exists():
            return None
        handed_in = self.desk.app.store.read(lambda tx: tx.handed_in_by(session, HANDED_IN))
        safe = [commit for commit in handed_in if candidates.resolve(self.desk.project, commit)]
        return rescue(self.desk.project, path, session=session, why=why, task=task, at=self.desk.wall(), safe=safe)

    def _note(self, call: Call, run: Run, rescued: Rescued | None) -> None:
        if rescued is not None and not rescued.again:
            note_rescue(call, run.session, rescued, run.task)

    def _tidy(self, run: Run) -> None:
        """Keep what a run that has ended said, free its branch, and remove what was only needed while it lived."""
        if self.desk.worktrees.path(run.session).exists():
            self.desk.worktrees.release(run.session)
        self.desk.runner.forget(run.id)
        folder = self.desk.project.state / "runs" / run.id
        shutil.rmtree(place_of(folder), ignore_errors=True)
        try:
            if folder.is_dir():
                journals.close(folder)
                keep_transcript(folder, transcript_of(self.desk.runner, folder, run, self._agent(run.agent)))
        except OSError as error:  # its output is still there
            log.warning("the transcript of %s could not be kept: %s", run.id, error)

    async def _remove(self, session: Session) -> None:
        """Put a session's work in safety, then end it and all that is left of it."""
        desk = self.desk
        rescued = await desk.beside(lambda: self._rescue(session.name, None, "it was removed"))
        past = await desk.read(lambda call: call.tx.last_runs("session", session.name, 10_000))
        if rescued is not None and not rescued.again:
            await desk.write(lambda call: note_rescue(call, session.name, rescued, None))
        await desk.beside(lambda: self._clear(session, past))

        def part(call: Call) -> None:
            now = call.tx.session(session.name)
            if now is not None and not now.removed:
                verbs.part(call, now)

        await desk.write(part)
        for memory in (self._nothing, self.starts.failures, self._not_before, self._waits):
            memory.pop(session.name, None)

    def _clear(self, session: Session, past: list[Run]) -> None:
        desk = self.desk
        desk.worktrees.remove(session.name)
        main = desk.app.house.config.project.main
        for task in dict.fromkeys(run.task for run in past):
            with contextlib.suppress(Refused):  # somebody looks at it; then it is theirs
                desk.worktrees.drop_empty_branch(life.branch_of(task), main)
        for run in past:
            desk.runner.forget(run.id)

    async def _sweep(self) -> None:
        """Now and then clear away what has had its time."""
        now = self.desk.awake()
        if now - self._swept >= STRAYS_EVERY:
            self._swept = now
            await self._disband_strays()
        if now - self._asked >= REST_EVERY:
            self._asked = now
            if await self.desk.read(lambda call: bool(call.tx.questions_over(call.tx.now))):
                await self.desk.write(questions.expire)
        if now - self._expired >= EXPIRE_EVERY:
            self._expired = now
            await self._expire_rescues()
            await self._expire_runs()

    async def _expire_rescues(self) -> None:
        """Let rescues go whose session ended long ago."""
        gone = await self.desk.read(lambda call: {one.name: one.updated for one in _removed(call)})
        project, wall = self.desk.project, self.desk.wall()
        for ref in await self.desk.beside(lambda: expire(project, gone.get, wall)):
            log.info("%s has had its time", ref)

    async def _expire_runs(self) -> None:
        """Let go of what runs and gates printed that ended long ago; the log keeps what came of them."""
        days = self.desk.app.house.config.log.keep_days
        alive = await self.desk.read(lambda call: {run.id for run in call.tx.open_runs()})
        folder, old = self.desk.project.state / "runs", self.desk.wall() - days * 86_400
        await self.desk.beside(lambda: tree.expire(folder, alive, old))
        await self.desk.beside(lambda: tree.clear(self.desk.project.state / SCRATCH, self.desk.wall() - SCRATCH_FOR))

    async def _disband_strays(self) -> None:
        """Give tasks whose batch has lost all its sessions back to the board."""

        def strays(call: Call) -> list[str]:
            old = call.tx.now - STRAYS_EVERY * 2
            sql = "SELECT DISTINCT batch FROM tasks WHERE batch IS NOT NULL AND updated < ?"
            alive = {session.batch for session in call.tx.run_sessions()}
            closed = "status NOT IN ('done', 'dropped')"
            return [name for (name,) in call.tx.db.rows(f"{sql} AND {closed}", (old,)) if name not in alive]

        for name in await self.desk.read(strays):
            await self.desk.write(lambda call, name=name: verbs.disband(call, name))  # type: ignore[misc]


def is_news(session: Session, *, still: bool) -> bool:
    """Say whether it has to be shown that a session without a run stands still, or does so no longer."""
    return session.state is not State.PAUSED if still else session.state in (State.PAUSED, State.LIMITED)


def is_kept(watched: Watched) -> bool:
    """Say whether a run waits for its provider or a person, and so is not at work."""
    asks = watched.verdict is not None and watched.verdict.state is State.NEEDS_YOU
    return asks or watched.heard.limited is not None


def drawn(text: str) -> str:
    """Return the words of what a program drew on a terminal."""
    lines = (streams.shown(_STEP.sub(" ", line)) for line in re.split(r"[\r\n]+", text))
    return "\n".join(line for line in lines if line)


def _is_fresh(verdict: Verdict) -> bool:
    return isinstance(verdict, Again) and verdict.fresh


def _by_run(decided: list[Question]) -> dict[str, list[Question]]:
    found: dict[str, list[Question]] = {}
    for question in decided:
        found.setdefault(question.run or "", []).append(question)
    return found


def _removed(call: Call) -> list[Session]:
    return call.tx.find(rows.SESSIONS, "WHERE kind = 'run' AND removed = 1")


def note_rescue(call: Call, name: str, rescued: Rescued, task: str | None) -> None:
    """Write down that work was put in safety."""
    session = call.tx.session(name)
    if session is not None:
        counts = rescued.counts
        files = counts.changed + counts.deleted + counts.added + counts.untracked + counts.ignored
        event = sessions.Rescued(rescued.ref, rescued.commit, rescued.why, files, task)
        call.put_session(session, name, event, by=COVEY)
