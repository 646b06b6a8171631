"""The fleet: brings every session that covey runs to the state that its row asks for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Coroutine, Iterable
from dataclasses import field, replace
from typing import Any

from covey.agents.agent import Agent
from covey.app.context import Call
from covey.app.fleet import fleet_verbs as verbs
from covey.app.fleet import runs as life
from covey.app.fleet.heartbeats import of_session
from covey.app.fleet.sessions import alert
from covey.app.people import questions
from covey.core.board.tasks import Task
from covey.core.board.waiting import Cause
from covey.core.fleet import sessions
from covey.core.fleet.launches import Observation
from covey.core.fleet.next_step import Step, next_step, why_end
from covey.core.fleet.run_end import is_theirs
from covey.core.fleet.runs import Ending, Run
from covey.core.fleet.sessions import COVEY, Goal, Session, SessionState
from covey.core.fleet.start_limits import Wait
from covey.core.people.alerts import AlertKind
from covey.core.people.questions import Question
from covey.errors import CoveyError, Unavailable
from covey.loops.fleet import run_launch
from covey.loops.fleet.attend import Attendant
from covey.loops.fleet.close import Closer
from covey.loops.fleet.fleet_memory import FleetMemory, HookReports, Stumble
from covey.loops.fleet.pacing import gap_of
from covey.loops.fleet.rescues import is_full
from covey.loops.fleet.start import Starter
from covey.loops.fleet.tidying import Tidier
from covey.loops.runtime import Runtime, going_on, wait_at_most
from covey.store.engine.rows import Change
from covey.values import dataclass

LOOK_EVERY_S = 0.1
"""Seconds between two looks while something runs."""
REST_EVERY_S = 1.0
ASK_EVERY_S = 10.0
"""Seconds until it is asked again whether a budget has become larger."""
MIN_PAUSE_S = 0.02
STUMBLE_S = 0.25
MAX_STUMBLE_S = 300.0
"""Seconds before a step that failed is taken again, at first and at most."""
MAX_TRIES = 3
"""How often one step for a session may fail in a row; then its run is given up, and the session goes on."""
MAX_WAITS = 10
"""How often a step may find something unavailable before that counts too; a full disk is waited for however long."""
SHOWN_AFTER_S = 3.0
"""Seconds that a session waits before people are shown that it does."""
LEAVE_TIMEOUT_S = 30.0

log = logging.getLogger("covey.fleet")


@dataclass(frozen=True)
class View:
    """The rows that matter to the fleet, as they stand together."""

    seq: int
    sessions: list[Session]
    runs: dict[str, Run]
    paused: bool = False
    tasks: dict[str, Task] = field(default_factory=dict)
    holders: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()
    decided: list[Question] = field(default_factory=list)
    """The questions of runs that were decided, and of which they have not been told."""


@dataclass
class Fleet:
    """Looks at every session, judges what is to be done, and does it; one thing at a time for each."""

    runtime: Runtime
    memory: FleetMemory
    hold: bool = False
    """Start nothing new: only bring to an end what is to end."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _nothing: dict[str, int] = field(default_factory=dict)
    _beginning: Counter[str] = field(default_factory=Counter)
    """How many runs of each agent are about to begin."""
    _any: bool = True

    def __post_init__(self) -> None:
        self.starts = self.memory.starts
        self.attendant = Attendant(self.runtime, self.memory)
        self.starter = Starter(self.runtime, self.memory)
        self.closer = Closer(self.runtime, self.memory, self.starter, self.attendant)
        self.tidier = Tidier(self.runtime)
        self.hook_reports = HookReports(self.runtime, self.memory)

    def hear(self, changes: Iterable[Change]) -> None:
        """Look again soon, if these changes can matter to a session that covey runs."""
        if self._any or any(change.kind.startswith(("session.", "fleet.")) for change in changes):
            self.news.set()

    async def run(self) -> None:
        """Look and act for ever."""
        while True:
            running = False
            with going_on(log, "the fleet could not be looked after"):
                running = await self.tick()
            await asyncio.sleep(MIN_PAUSE_S)
            await wait_at_most(LOOK_EVERY_S if running else REST_EVERY_S, self.news)
            self.news.clear()

    async def stop(self) -> None:
        """Wait for what is under way; the runs themselves go on."""
        busy = [*self._busy.values(), *self.closer.looks]
        if busy:
            await asyncio.wait(busy, timeout=LEAVE_TIMEOUT_S)

    async def tick(self) -> bool:
        """Take the next step for every session that has none under way, and say whether something runs."""
        busy = set(self._busy)  # who is busy now may be seen as it was before its step
        view = await self.runtime.read(self._look)
        self._any = bool(view.sessions)
        open_runs = list(view.runs.values())
        self.runtime.running = dict(Counter(run.agent for run in open_runs if not run.person))
        seen: dict[str, Observation] = {}
        if open_runs:
            look = self.runtime.runner.look
            seen = await self.runtime.in_run_thread(lambda: {run.id: look(run.id) for run in open_runs})
        for session in view.sessions:
            self.runtime.app.context.pulses.hear(of_session(session.name))
            if session.name not in busy | self._busy.keys():
                run = view.runs.get(session.name)
                with going_on(log, f"{session.name} could not be looked after"):
                    self._step(view, session, run, None if run is None else seen[run.id])
        await self.tidier.sweep()
        return bool(open_runs or self._busy)

    def _look(self, call: Call) -> View:
        tx = call.tx
        runs = {run.session: run for run in tx.open_runs()}
        found = tx.run_sessions()
        if not found and not runs:
            return View(tx.head.seq, found, runs)
        batch_names = {session.batch for session in found if session.batch}
        return View(
            tx.head.seq,
            found,
            runs,
            tx.fleet().paused,
            {run.task: task for run in runs.values() if (task := tx.task(run.task)) is not None},
            frozenset(tx.holders()),
            frozenset(name for name in batch_names if verbs.is_over(call, name)),
            questions.untold(call) if runs else [],
        )

    # Judging

    def _step(self, view: View, session: Session, run: Run | None, seen: Observation | None) -> None:
        ending = None
        if run is not None and seen is not None:
            limit = self.runtime.app.context.config.sessions.run_minutes * 60
            watched = self.memory.of(run)
            at_work = watched.work_on(seen, self.runtime.awake())
            theirs = is_theirs(view.tasks.get(run.task), run)
            ending = why_end(session, run, theirs=theirs, at_work=at_work, limit=limit, printed=seen.size)
            ending = ending or self.attendant.why_over(run, watched)
        holds = session.name in view.holders
        step = next_step(session, run, seen, paused=view.paused, holds=holds, ending=ending)
        at = (step, session.goal, None if run is None else (run.id, run.ending))
        stumble = self.memory.stumbles.get(session.name, Stumble(at))
        stumble = stumble if stumble.at == at else Stumble(at)
        if self.runtime.awake() < stumble.not_before:
            return
        work = self._give_up(step, run, seen, stumble) if stumble.faults >= MAX_TRIES else None
        work = work or self._work(view, step, session, run, seen, ending)
        if work is not None:
            task = asyncio.create_task(self._guarded(session, step, stumble, work))
            self._busy[session.name] = task

    def _give_up(
        self, step: Step, run: Run | None, seen: Observation | None, stumble: Stumble
    ) -> Coroutine[Any, Any, None] | None:
        """Return how a session goes on after a step of its run has failed too often; None if only time can help."""
        if run is None or seen is None:
            return None
        match step:
            case Step.START:
                return self.starter.cannot_start(run, stumble.why)
            case Step.READ | Step.HOLD | Step.GO_ON:
                return self._end(run, Ending(f"covey could not look after it: {stumble.why}", fault=True))
            case Step.STOP | Step.JUDGE:
                return self.closer.give_up(run, seen, stumble.why)
            case _:
                return None

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
                return self._rest(session, still=still) if run is None else None
            case Step.LET_GO:
                return self.runtime.write(lambda call: verbs.let_go(call, session.name))
            case Step.REMOVE:
                return self._remove(session)
        assert run is not None and seen is not None
        match step:
            case Step.START:
                return None if self.hold else self.starter.start(run)
            case Step.READ:
                decided = [each for each in view.decided if each.run == run.id]
                due = self.attendant.is_due(run, seen, decided)
                return self.attendant.attend(run, session, seen, decided) if due else None
            case Step.HOLD | Step.GO_ON:
                return self._hold(run, on=step is Step.HOLD)
            case Step.STOP:
                return self.runtime.in_run_thread(lambda: self.runtime.runner.stop(run.id))
            case Step.JUDGE:
                return self.closer.close(run, seen)
        assert ending is not None
        return self._end(run, ending)

    def _begin_if_wise(self, view: View, session: Session) -> Coroutine[Any, Any, None] | None:
        if session.batch in view.over and session.name not in view.holders:
            return self._leave(session)
        if self.hold or self._nothing.get(session.name) == view.seq:
            return None
        at = self.runtime.awake()
        if session.attached:
            return self._begin(session, view.seq, None)
        if at < self.memory.not_before.get(session.name, -1e9) or self._is_put_off(view, session):
            return None
        # Told to the verbs only now: a batch that ends for it ends after its session has said so.
        self.memory.no_place = no_place = self.starter.why_no_place()
        if no_place:
            return self._wait_for_place(session, Wait(no_place, news=True, cause=Cause.PLACE), at)
        agent = self.runtime.agent(session.agent or "")
        if agent is None:
            return self._begin(session, view.seq, None)
        config, soon = self.runtime.app.context.config, self._beginning[agent.name]
        wait = self.starts.why_wait(agent, config, list(view.runs.values()), at, self.runtime.wall(), soon)
        if wait is not None:
            return self._wait(session, wait, at)
        if soon and gap_of(agent, config) > 0:
            return None
        self._beginning[agent.name] += 1
        return self._begin(session, view.seq, agent)

    def _is_put_off(self, view: View, session: Session) -> bool:
        """Say whether a session waits after its last run; who waits for anything else asks again: it may be there."""
        later = (session.until or 0.0) > self.runtime.wall()
        return later and session.name in view.holders and session.name not in self.memory.waits

    def _wait_for_place(self, session: Session, wait: Wait, at: float) -> Coroutine[Any, Any, None]:
        """Let a session wait until a person has seen to the folder of the worktrees, and look again all the while."""
        self.memory.not_before[session.name] = at + REST_EVERY_S
        self.memory.waits[session.name] = (wait, at)
        return self._show_wait(session, wait, None)

    def _wait(self, session: Session, wait: Wait, at: float) -> Coroutine[Any, Any, None] | None:
        """Remember why a session waits, and let people see it if it takes long."""
        until = None if wait.until is None else self.runtime.wall() + wait.until - at
        since = self.memory.waits.get(session.name, (wait, at))[1]
        self.memory.waits[session.name] = (replace(wait, until=None if until is None else round(until)), since)
        if not wait.news or session.state in (SessionState.LIMITED, SessionState.STALLED) or at - since < SHOWN_AFTER_S:
            return None
        # One with nothing to do shows nothing, and would try for ever.
        self.memory.not_before[session.name] = at + REST_EVERY_S
        return self._show_wait(session, wait, until)

    async def _show_wait(self, session: Session, wait: Wait, until: float | None) -> None:
        news: bool | None = None  # what is asked once is answered once, however often it is written

        def write(call: Call) -> None:
            nonlocal news
            known = self.starts.knows(session.agent or "")  # of the trouble behind it
            if life.waits(call, session.name, wait, until) and not known:
                about = wait.cause if wait.lasts else wait.why
                news = self.starts.is_news("", about) if news is None else news
                if news:
                    alert(call, AlertKind.WAITS, f"{session.name} waits: {wait.why}", session.name, None)

        await self.runtime.write(write)

    async def _guarded(self, session: Session, step: Step, stumble: Stumble, work: Coroutine[Any, Any, None]) -> None:
        """Take a step, whatever comes of it; after all but a look another may follow at once."""
        try:
            await work
            self.memory.stumbles.pop(session.name, None)
        except CoveyError as error:
            log.warning("%s: %s", session.name, error)
            await self._stumble(session, step, stumble, error)
        except Exception as error:
            log.exception("a step for %s failed", session.name)
            await self._stumble(session, step, stumble, error)
        finally:
            del self._busy[session.name]
            if step is not Step.READ:
                self.news.set()

    async def _stumble(self, session: Session, step: Step, before: Stumble, error: Exception) -> None:
        """Take the step again later, and show that it failed: it would most likely fail again at once."""
        count = before.count + 1
        may_pass = isinstance(error, Unavailable) and step is not Step.STOP
        waits = may_pass and (count < MAX_WAITS or is_full(self.runtime))
        why = error.message if isinstance(error, CoveyError) else f"{type(error).__name__}: {error}"
        later = self.runtime.awake() + min(STUMBLE_S * 2**count, MAX_STUMBLE_S)
        faults = before.faults + (0 if waits else 1)
        self.memory.stumbles[session.name] = Stumble(before.at, count, faults, later, why)
        if step in (Step.STOP, Step.JUDGE, Step.REMOVE) and count > 1:
            with contextlib.suppress(CoveyError):
                await self._show(session.name, SessionState.STALLED, f"to {step} it failed {count} times: {why}")

    # Acting

    def _rest(self, session: Session, *, still: bool) -> Coroutine[Any, Any, None] | None:
        """Let it be seen that a session without a run stands still, or does so no longer; None if it is seen so."""
        if session.goal is Goal.STOPPED:
            return None
        if still:
            shown = session.state is SessionState.PAUSED
            return None if shown else self._show(session.name, SessionState.PAUSED, "it was told to stand still")
        if session.state not in (SessionState.PAUSED, SessionState.LIMITED):
            return None
        return self._show(session.name, SessionState.IDLE, "nothing keeps it from going on")

    async def _show(self, name: str, state: SessionState, evidence: str) -> None:
        await self.runtime.write(lambda call: life.show(call, name, state, evidence))

    async def _leave(self, session: Session) -> None:
        def leave(call: Call) -> None:
            now = call.tx.session(session.name)
            if now is not None and not now.removed and session.batch and verbs.is_over(call, session.batch):
                event = sessions.leave(now, at_work=False, force=False, why=f"{session.batch} is over")
                if event is not None:
                    call.put_session(now, now.name, event, by=COVEY)

        await self.runtime.write(leave)

    async def _begin(self, session: Session, seq: int, agent: Agent | None) -> None:
        try:
            day = self.runtime.today()
            run = await self.runtime.write(lambda call: life.begin(call, session.name, day))
            if agent is not None and isinstance(run, Run):
                self.starts.began(agent, self.runtime.awake())
        finally:
            if agent is not None:
                self._beginning[agent.name] -= 1
        if isinstance(run, Wait):
            if run.news:
                await self._show_wait(session, run, run.until)
            self.memory.waits[session.name] = (run, self.runtime.awake())
            self.memory.not_before[session.name] = self.runtime.awake() + (ASK_EVERY_S if run.news else REST_EVERY_S)
            return
        self.memory.waits.pop(session.name, None)
        if run is None:
            self._nothing[session.name] = seq
            rest = self._rest(session, still=False)
            if rest is not None:
                await rest
            return
        await self.runtime.in_run_thread(lambda: run_launch.make_way(self.runtime.project.run_folder(run.id)))
        await self.starter.start(run)

    async def _remove(self, session: Session) -> None:
        await self.tidier.remove(session)
        for memory in (self._nothing, self.starts.failures, self.memory.not_before, self.memory.waits):
            memory.pop(session.name, None)

    async def _hold(self, run: Run, *, on: bool) -> None:
        await self.runtime.in_run_thread(lambda: self.runtime.runner.hold(run.id, on=on))
        if on:
            await self._show(run.session, SessionState.PAUSED, "it stands still")
        else:
            await self._show(run.session, SessionState.WORKING, f"{run.id} goes on")

    async def _end(self, run: Run, ending: Ending) -> None:
        await self.runtime.write(lambda call: life.ending(call, run, ending))
