"""The fleet: brings every session that covey runs to where its row says that it shall be."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

from covey.agents import registry
from covey.agents.agent import Agent
from covey.app import fleet as verbs
from covey.app import runs as life
from covey.app.pulses import of_session
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core import sessions, tasks
from covey.core.dispatch import Step, next_step, why_end
from covey.core.judge import Again, Evidence, Verdict, judge
from covey.core.launches import Observation
from covey.core.runs import Ending, Outcome, Run
from covey.core.sessions import COVEY, Goal, Session, State
from covey.core.tasks import Task
from covey.errors import CoveyError, Refused
from covey.git import candidates
from covey.git.guard import write_guard
from covey.git.rescue import Rescued, expire, rescue
from covey.git.rescue_git import SCRATCH
from covey.loops import outfit, tree
from covey.loops.desk import Desk
from covey.loops.hearing import Heard, finish, listen
from covey.store import rows
from covey.store.rows import Change

LOOK_EVERY = 0.1
"""Seconds between two looks while something runs."""
REST_EVERY = 1.0
LEAST = 0.02
STRAYS_EVERY = 30.0
EXPIRE_EVERY = 6 * 3600.0
SCRATCH_FOR = 3600.0
"""Seconds after which what a killed rescue left is nobody's any more."""
BACKOFF = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
"""Seconds before a session that could not start tries again."""
STUMBLE = 0.25
LOST = 5
"""Lost runs of one task in a row after which it counts as the task's own fault."""
LEAVE_PATIENCE = 30.0
HANDED_IN = 5
"""The last commits that a session handed in and that its worktree may still know of."""
TAIL = 4000
"""Bytes of the end of the output that a story carries."""

log = logging.getLogger("covey.fleet")


class NotOurs(CoveyError):
    """A branch or a worktree is in somebody else's hands."""


@dataclass
class Watched:
    """What we remember of a run while we watch it; lost with us, and made again from its files."""

    heard: Heard = field(default_factory=Heard)
    at_work: float = 0.0
    looked: float | None = None


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


@dataclass
class Fleet:
    """Looks at every session, judges what is to be done, and does it; one thing at a time for each."""

    desk: Desk
    hold: bool = False
    """Start nothing new: only bring to an end what is to end."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _watched: dict[str, Watched] = field(default_factory=dict)
    _nothing: dict[str, int] = field(default_factory=dict)
    _failures: dict[str, int] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _stumbles: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How often the steps of a session failed in a row, and when to try again."""
    _any: bool = True
    _swept: float = 0.0
    _expired: float = -EXPIRE_EVERY

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

    async def stop(self) -> None:
        """Wait for what is under way; the runs themselves go on."""
        busy = list(self._busy.values())
        if busy:
            await asyncio.wait(busy, timeout=LEAVE_PATIENCE)

    async def tick(self) -> bool:
        """Take the next step for every session that has none under way, and say whether something runs."""
        view = await self.desk.read(self._look)
        self._any = bool(view.sessions)
        open_runs = list(view.runs.values())
        seen = await self._see(open_runs) if open_runs else {}
        for session in view.sessions:
            self.desk.app.house.pulses.hear(of_session(session.name))
            if session.name not in self._busy and time.monotonic() >= self._stumbles.get(session.name, (0, 0.0))[1]:
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
        )

    # Judging

    def _step(self, view: View, session: Session, run: Run | None, seen: Observation | None) -> None:
        ending = None
        if run is not None and seen is not None:
            limit = self.desk.app.house.config.sessions.run_minutes * 60
            at_work = self._at_work(run, seen)
            theirs = life.is_theirs(view.tasks.get(run.task), run)
            ending = why_end(session, run, theirs=theirs, at_work=at_work, limit=limit, printed=seen.size)
        holds = session.name in view.holders
        step = next_step(session, run, seen, paused=view.paused, holds=holds, ending=ending)
        work = self._work(view, step, session, run, seen, ending)
        if work is not None:
            task = asyncio.create_task(self._guarded(session, work))
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
                return self._rest(session, still=still) if run is None and session.goal is not Goal.STOPPED else None
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
                return self._read(run, seen) if seen.size > self._watch(run).heard.read else None
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
        if time.monotonic() < self._not_before.get(session.name, 0.0):
            return None
        return self._begin(session, view.seq)

    def _watch(self, run: Run) -> Watched:
        return self._watched.setdefault(run.id, Watched())

    def _at_work(self, run: Run, seen: Observation) -> float:
        """Return for how many seconds a run has not stood still."""
        watched, now = self._watch(run), time.monotonic()
        if watched.looked is None:
            watched.at_work = 0.0  # of a run that we take up, nobody knows for how long it stood still
        elif not seen.held:
            watched.at_work += now - watched.looked
        watched.looked = now
        return watched.at_work

    async def _guarded(self, session: Session, work: Coroutine[Any, Any, None]) -> None:
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
            self.news.set()

    def _stumble(self, name: str) -> None:
        """Take the next step for a session later: what failed now would most likely fail again at once."""
        count = self._stumbles.get(name, (0, 0.0))[0] + 1
        self._stumbles[name] = (count, time.monotonic() + min(STUMBLE * 2**count, BACKOFF[-1]))

    def _wait_longer(self, name: str) -> None:
        failures = self._failures.get(name, 0)
        self._failures[name] = failures + 1
        self._not_before[name] = time.monotonic() + BACKOFF[min(failures, len(BACKOFF) - 1)]

    # Acting

    async def _rest(self, session: Session, *, still: bool) -> None:
        state = State.PAUSED if still else State.IDLE
        if session.state is not state and (still or session.state is State.PAUSED):
            evidence = "it was told to stand still" if still else "it was told to go on"
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

    async def _begin(self, session: Session, seq: int) -> None:
        run = await self.desk.write(lambda call: life.begin(call, session.name))
        if run is None:
            self._nothing[session.name] = seq
            if session.state is State.PAUSED:
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
        self._failures.pop(run.session, None)

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
        launch = outfit.launch(work, config, folder, path, git, desk.url, kept=head != base)
        desk.runner.start(run.id, launch)
        return base, rescued

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
        failed_before = bool(self._failures.get(run.session))
        self._wait_longer(run.session)

        def end(call: Call) -> None:
            life.unstartable(call, run, what)
            if not failed_before:
                alert(call, "cannot_start", f"{run.session} cannot start: {what}", run.session, run.task)

        await self.desk.write(end)

    async def _read(self, run: Run, seen: Observation) -> None:
        """Read what a program printed since the last look, and show what it lets us know."""
        heard, agent = self._watch(run).heard, self._agent(run)
        await self.desk.near(lambda: listen(heard, agent, self.desk.runner, run.id, seen.size))
        question, conversation = heard.asks, heard.conversation
        if conversation is not None and conversation != run.conversation:
            await self.desk.write(lambda call: life.talks(call, run, conversation))
        if question is not None:
            await self.desk.write(lambda call: life.asks(call, run, question))
        else:
            await self._works_again(run)

    async def _works_again(self, run: Run) -> None:
        def go_on(call: Call) -> None:
            session = call.tx.session(run.session)
            if session is not None and session.state is State.NEEDS_YOU:
                life.show(call, run.session, State.WORKING, f"{run.id} goes on")

        session = await self.desk.read(lambda call: call.tx.session(run.session))
        if session is not None and session.state is State.NEEDS_YOU:
            await self.desk.write(go_on)

    def _agent(self, run: Run) -> Agent | None:
        """Return the agent of a run, None if it was taken out of the settings while it ran."""
        try:
            return registry.find(run.agent, self.desk.app.house.config.declared())
        except CoveyError:
            return None

    async def _hold(self, run: Run, *, on: bool) -> None:
        await self.desk.near(lambda: self.desk.runner.hold(run.id, on=on))
        question = self._watch(run).heard.asks
        state, evidence = (State.PAUSED, "it stands still") if on else (State.WORKING, f"{run.id} goes on")
        if question is not None and not on:
            state, evidence = State.NEEDS_YOU, question
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
        await self.desk.write(lambda call: self._close(call, run, seen, verdict, rescued))
        self._watched.pop(run.id, None)
        await self.desk.beside(lambda: self._tidy(run))

    def _close(self, call: Call, run: Run, seen: Observation, verdict: Verdict, rescued: Rescued | None) -> None:
        self._note(call, run, rescued)
        if seen.code is None and run.ending is None and not self._lost_often(call, run):
            life.lost(call, run, "Nobody saw it end: it was killed, or the machine was.", seen.code)
        else:
            life.judged(call, run, verdict, seen.code)

    def _lost_often(self, call: Call, run: Run) -> bool:
        earlier = call.tx.last_runs("task", run.task, LOST)[1:]
        return len(earlier) == LOST - 1 and all(one.outcome is Outcome.LOST for one in earlier)

    def _evidence(
        self, run: Run, seen: Observation, task: Task, rejected: str | None
    ) -> tuple[Evidence, Rescued | None]:
        desk = self.desk
        path = desk.worktrees.path(run.session)
        heard, agent = self._watch(run).heard, self._agent(run)
        listen(heard, agent, desk.runner, run.id, seen.size)
        finish(heard, agent)
        result = heard.result
        if task.kind is tasks.Kind.REPORT and result is None:
            result = heard.said.strip() or None
        tail, _ = desk.runner.output(run.id, max(seen.size - TAIL, 0))
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
                result=result,
                ahead=found.ahead,
                head=found.head,
                rejected=rejected,
                dirty=found.dirty,
                rescued=rescued.ref if rescued else None,
                tail=tail.decode(errors="replace"),
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
        return rescue(self.desk.project, path, session=session, why=why, task=task, at=time.time(), safe=safe)

    def _note(self, call: Call, run: Run, rescued: Rescued | None) -> None:
        if rescued is not None and not rescued.again:
            note_rescue(call, run.session, rescued, run.task)

    def _tidy(self, run: Run) -> None:
        """Free the branch of a run that has ended, and remove what was only needed while it lived."""
        if self.desk.worktrees.path(run.session).exists():
            self.desk.worktrees.release(run.session)
        self.desk.runner.forget(run.id)

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
        for memory in (self._nothing, self._failures, self._not_before):
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
        now = time.monotonic()
        if now - self._swept >= STRAYS_EVERY:
            self._swept = now
            await self._disband_strays()
        if now - self._expired >= EXPIRE_EVERY:
            self._expired = now
            await self._expire_rescues()
            await self._expire_runs()

    async def _expire_rescues(self) -> None:
        """Let rescues go whose session ended long ago."""
        gone = await self.desk.read(lambda call: {one.name: one.updated for one in _removed(call)})
        project, wall = self.desk.project, time.time()
        for ref in await self.desk.beside(lambda: expire(project, gone.get, wall)):
            log.info("%s has had its time", ref)

    async def _expire_runs(self) -> None:
        """Let go of what runs and gates printed that ended long ago; the log keeps what came of them."""
        days = self.desk.app.house.config.log.keep_days
        alive = await self.desk.read(lambda call: {run.id for run in call.tx.open_runs()})
        folder, old = self.desk.project.state / "runs", time.time() - days * 86_400
        await self.desk.beside(lambda: tree.expire(folder, alive, old))
        await self.desk.beside(lambda: tree.clear(self.desk.project.state / SCRATCH, time.time() - SCRATCH_FOR))

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
