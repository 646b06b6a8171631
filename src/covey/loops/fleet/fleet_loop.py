"""The fleet: brings every session that covey runs to where its row says that it shall be."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Coroutine, Iterable
from dataclasses import field, replace
from typing import Any

from covey.agents.agent import Agent, terminal_of
from covey.app import fleet as verbs
from covey.app import questions
from covey.app import runs as life
from covey.app.pulses import of_session
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core import sessions, watch
from covey.core.dispatch import Step, next_step, why_end
from covey.core.launches import Observation
from covey.core.pace import Wait
from covey.core.questions import Question
from covey.core.runs import Ending, Run
from covey.core.sessions import COVEY, Goal, Session, State
from covey.core.signals import Signal
from covey.core.tasks import Task
from covey.core.waiting import Cause
from covey.errors import CoveyError, Unavailable
from covey.loops import tree
from covey.loops.attending import Attendant
from covey.loops.desk import Desk
from covey.loops.ending import Closer
from covey.loops.rescues import is_full
from covey.loops.starting import PLACE, Starter, agent_of
from covey.loops.starts import Starts, gap_of
from covey.loops.tidying import Tidier
from covey.loops.watches import Watches
from covey.store.rows import Change
from covey.values import dataclass

LOOK_EVERY = 0.1
"""Seconds between two looks while something runs."""
REST_EVERY = 1.0
ASK_EVERY = 10.0
"""Seconds until it is asked again whether a budget has become larger."""
LEAST = 0.02
STUMBLE = 0.25
STUMBLE_MOST = 300.0
"""Seconds before a step that failed is taken again, at first and at most."""
MAX_TRIES = 3
"""How often one step for a session may fail in a row; then its run is given up, and the session goes on."""
MAX_WAITS = 10
"""How often a step may find something unavailable before that counts too; a full disk is waited for however long."""
SHOWN_AFTER = 3.0
"""Seconds that a session waits before people are shown that it does."""
LEAVE_PATIENCE = 30.0

log = logging.getLogger("covey.fleet")


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


@dataclass(frozen=True)
class Stumble:
    """How a step for a session failed, over and over."""

    at: object
    """The step, and what it was taken for: when a person wants something else, that is tried at once."""
    count: int = 0
    faults: int = 0
    """Those of the failures that waiting does not mend."""
    not_before: float = -1e9
    why: str = ""


@dataclass
class Fleet:
    """Looks at every session, judges what is to be done, and does it; one thing at a time for each."""

    desk: Desk
    hold: bool = False
    """Start nothing new: only bring to an end what is to end."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _nothing: dict[str, int] = field(default_factory=dict)
    _beginning: Counter[str] = field(default_factory=Counter)
    """How many runs of each agent are about to begin."""
    _waits: dict[str, tuple[Wait, float]] = field(default_factory=dict)
    """Why a session that could work does not, and since when."""
    _stumbles: dict[str, Stumble] = field(default_factory=dict)
    _any: bool = True

    def __post_init__(self) -> None:
        self.starts = Starts(self.desk.free_memory, self.desk.chance)
        self.attendant = Attendant(self.desk, self.starts)
        self.watches = Watches(self.desk)
        self.starter = Starter(self.desk, self.starts, self.watches)
        self.closer = Closer(self.desk, self.starts, self.watches, self.starter, self.attendant)
        self.tidier = Tidier(self.desk)
        self.desk.app.house.why = self.why
        self.desk.app.house.weight = self.weight
        self.desk.app.house.forgive = self.forgive
        self.desk.app.house.written = self.closer.written

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
        mine = self.watches.of_session(name)
        watched = mine[-1] if mine else None
        return (None if watched is None else watched.verdict), self.wait_of(name)

    def wait_of(self, name: str) -> Wait | None:
        """Return why a session does not start a run, None if nothing keeps it; until when, by the clock on the wall."""
        known = self._waits.get(name)
        if known is not None:
            return known[0]
        left = self.starter.not_before.get(name, -1e9) - self.desk.awake()
        stumble = self._stumbles.get(name)
        if left <= 0 and stumble is not None and stumble.count:
            left = stumble.not_before - self.desk.awake()
        why = "" if stumble is None else stumble.why
        return Wait(why, round(self.desk.wall() + left), cause=Cause.BACKOFF) if left > 0 else None

    def waiting(self) -> dict[str, Wait]:
        """Return why sessions do not start a run, by their names."""
        names = {*list(self._waits), *list(self.starter.not_before), *list(self._stumbles)}
        return {name: wait for name in sorted(names) if (wait := self.wait_of(name)) is not None}

    def waits(self) -> list[str]:
        """Return why sessions that could work wait, of which a person may want to know, each reason once."""
        return list(dict.fromkeys(wait.why for wait, _ in list(self._waits.values()) if wait.news))

    def overhear(self, run: Run, signals: list[Signal], *, brings: bool) -> None:
        """Take in what a run says by its hooks; one without a terminal says the same in its stream.

        `brings`: this hook can bring mail to it, so that none has to be typed.
        """
        watched = self.watches.find(run)
        if watched is None:
            return  # it is over, and nobody shall remember it again
        watched.hooked = watched.hooked or brings
        if terminal_of(run, agent_of(self.desk, run.agent)) is not None:
            watched.overheard += signals

    def forgive(self, agent: str, session: str) -> None:
        """Let a session start as soon as it can, and others of its agent: a person says so."""
        self.starts.forgive(agent, session)
        self.starter.forgive(session)
        self._waits.pop(session, None)

    def weight(self, name: str) -> int:
        """Return the bytes of memory that a session's run took when it was last weighed."""
        return sum(each.memory for each in self.watches.of_session(name))

    async def stop(self) -> None:
        """Wait for what is under way; the runs themselves go on."""
        busy = [*self._busy.values(), *self.closer.remotes.looks]
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
            if session.name not in busy | self._busy.keys():
                run = view.runs.get(session.name)
                self._step(view, session, run, None if run is None else seen[run.id])
        await self.tidier.sweep()
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
            at_work = self.watches.at_work(run, seen)
            theirs = life.is_theirs(view.tasks.get(run.task), run)
            ending = why_end(session, run, theirs=theirs, at_work=at_work, limit=limit, printed=seen.size)
            ending = ending or self.attendant.why_over(run, self.watches.of(run))
        holds = session.name in view.holders
        step = next_step(session, run, seen, paused=view.paused, holds=holds, ending=ending)
        at = (step, session.goal, None if run is None else (run.id, run.ending))
        stumble = self._stumbles.get(session.name, Stumble(at))
        stumble = stumble if stumble.at == at else Stumble(at)
        if self.desk.awake() < stumble.not_before:
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
                return None if self.hold else self.starter.start(run)
            case Step.READ:
                due = self.attendant.is_due(self.watches.of(run), seen) or run.id in view.decided
                return self._attend(view, session, run, seen) if due else None
            case Step.HOLD | Step.GO_ON:
                return self._hold(run, on=step is Step.HOLD)
            case Step.END:
                assert ending is not None
                return self._end(run, ending)
            case Step.STOP:
                return self._stop(run)
            case _:
                return self.closer.close(run, seen)

    def _begin_if_wise(self, view: View, session: Session) -> Coroutine[Any, Any, None] | None:
        if session.batch in view.over and session.name not in view.holders:
            return self._leave(session)
        if self.hold or self._nothing.get(session.name) == view.seq:
            return None
        at = self.desk.awake()
        if session.attached:
            return self._begin(session, view.seq, None)
        if at < self.starter.not_before.get(session.name, -1e9) or self._is_put_off(view, session):
            return None
        self.desk.app.house.no_place = no_place = self.starter.why_no_place()
        if no_place:
            return self._wait_for_place(session, Wait(no_place, news=True, about=PLACE, cause=Cause.PLACE), at)
        agent = agent_of(self.desk, session.agent or "")
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

    def _wait_for_place(self, session: Session, wait: Wait, at: float) -> Coroutine[Any, Any, None]:
        """Let a session wait until a person has seen to the folder of the worktrees, and look again all the while."""
        self.starter.not_before[session.name] = at + REST_EVERY
        self._waits[session.name] = (wait, at)
        return self._show_wait(session, wait, None)

    def _wait(self, session: Session, wait: Wait, at: float) -> Coroutine[Any, Any, None] | None:
        """Remember why a session waits, and let people see it if it takes long."""
        until = None if wait.until is None else self.desk.wall() + wait.until - at
        since = self._waits.get(session.name, (wait, at))[1]
        self._waits[session.name] = (replace(wait, until=None if until is None else round(until)), since)
        if not wait.news or session.state in (State.LIMITED, State.STALLED) or at - since < SHOWN_AFTER:
            return None
        # One with nothing to do shows nothing, and would try for ever.
        self.starter.not_before[session.name] = at + REST_EVERY
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

    async def _guarded(self, session: Session, step: Step, stumble: Stumble, work: Coroutine[Any, Any, None]) -> None:
        """Take a step, whatever comes of it; after all but a look another may follow at once."""
        try:
            await work
            self._stumbles.pop(session.name, None)
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
        waits = may_pass and (count < MAX_WAITS or is_full(self.desk))
        why = error.message if isinstance(error, CoveyError) else f"{type(error).__name__}: {error}"
        later = self.desk.awake() + min(STUMBLE * 2**count, STUMBLE_MOST)
        faults = before.faults + (0 if waits else 1)
        self._stumbles[session.name] = Stumble(before.at, count, faults, later, why)
        if step in (Step.STOP, Step.JUDGE, Step.REMOVE) and count > 1:
            evidence = f"to {step} it failed {count} times: {why}"
            with contextlib.suppress(CoveyError):
                await self.desk.write(lambda call: life.show(call, session.name, State.STALLED, evidence))

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
            self.starter.not_before[session.name] = self.desk.awake() + (ASK_EVERY if run.news else REST_EVERY)
            return
        self._waits.pop(session.name, None)
        if run is None:
            self._nothing[session.name] = seq
            if session.state in (State.PAUSED, State.LIMITED):
                await self._rest(session, still=False)
            return
        await self.desk.near(lambda: tree.make_way(self.desk.project.state / "runs" / run.id))
        await self.starter.start(run)

    async def _remove(self, session: Session) -> None:
        await self.tidier.remove(session)
        for memory in (self._nothing, self.starts.failures, self.starter.not_before, self._waits):
            memory.pop(session.name, None)

    async def _attend(self, view: View, session: Session, run: Run, seen: Observation) -> None:
        """Look after a run that is alive."""
        decided = view.decided.get(run.id, [])
        await self.attendant.attend(run, session, self.watches.of(run), agent_of(self.desk, run.agent), seen, decided)

    async def _hold(self, run: Run, *, on: bool) -> None:
        await self.desk.near(lambda: self.desk.runner.hold(run.id, on=on))
        state, evidence = (State.PAUSED, "it stands still") if on else (State.WORKING, f"{run.id} goes on")
        await self.desk.write(lambda call: life.show(call, run.session, state, evidence))

    async def _end(self, run: Run, ending: Ending) -> None:
        await self.desk.write(lambda call: life.ending(call, run, ending))

    async def _stop(self, run: Run) -> None:
        await self.desk.near(lambda: self.desk.runner.stop(run.id))


def is_news(session: Session, *, still: bool) -> bool:
    """Say whether it has to be shown that a session without a run stands still, or does so no longer."""
    return session.state is not State.PAUSED if still else session.state in (State.PAUSED, State.LIMITED)


def _by_run(decided: list[Question]) -> dict[str, list[Question]]:
    found: dict[str, list[Question]] = {}
    for question in decided:
        found.setdefault(question.run or "", []).append(question)
    return found
