"""This moment, told to whoever looks: what each session does, the machine, limits; nobody looks, nothing is done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from msgspec import structs

from covey.app.clock import Clock
from covey.app.fleet.live import Basis, LiveFull, LiveRow, basis, of_store
from covey.core.board.waiting import Cause
from covey.core.costs.spending import Used, whole
from covey.core.fleet.live import Limit, Machine, Size
from covey.core.fleet.run_state import RunState
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import SessionState
from covey.core.history.actions import Action, action_of
from covey.errors import CoveyError
from covey.git.candidates.candidates import resolve
from covey.git.diffstat import size_of
from covey.git.worktrees.worktrees import Worktrees
from covey.loops.fleet.fleet_memory import FleetMemory, Watched
from covey.loops.runtime import Runtime, cancel, going_on, wait_at_most
from covey.runners import machine
from covey.store.engine.rows import Change

ACT_EVERY = 0.2
"""Seconds after which another action may be told."""
TELL_EVERY = 1.0
"""Seconds after which anything else may be told."""
MEASURE_EVERY = 5.0
"""Seconds between two times that the changes of one worktree are counted."""
MEASURE_AGAIN_S = 60.0
"""Seconds after which a worktree is counted again that could not be."""
MACHINE_EVERY = 2.0
FIRST_LOOK = 0.3
"""Seconds between two looks at the machine, and between the first two, from which it is known how busy it is."""
HEARS = ("session.", "run.", "task.", "merge.", "gate.", "overlap.", "fleet.")
"""The events from which the store's part of this moment is made."""
Tell = Callable[[str, object], None]

log = logging.getLogger("covey.live")


@dataclass
class Measured:
    """How large the changes of a run are, when that was counted, and after what."""

    size: Size | None = None
    at: float = -1e9
    after: object = None


@dataclass
class Moment:
    """Puts this moment together from what the fleet remembers, and what was counted of worktrees."""

    memory: FleetMemory
    worktrees: Worktrees
    clock: Clock
    measured: dict[str, Measured] = field(default_factory=dict)
    """How large the changes of each run are, as they were last counted."""
    _machine: Machine = field(default_factory=Machine)
    _looked: float = -1e9
    _ticks: tuple[float, float] | None = None
    _actions: dict[str, tuple[object, Action | None]] = field(default_factory=dict)

    def whole(self, found: Basis) -> LiveFull:
        """Return this moment whole: what the store tells of it, with what only memory tells laid over that."""
        for forgotten in [run for run in list(self._actions) if run not in self.memory.runs]:
            self._actions.pop(forgotten, None)
        rows = [self._row(row, found.written) for row in found.rows]
        limits = tuple(self._limits())
        return structs.replace(of_store(found), machine=self._look_at_machine(), limits=limits, sessions=rows)

    def _row(self, row: LiveRow, written: dict[str, Used]) -> LiveRow:
        run = row.run or ""
        watched = self.memory.runs.get(run)
        if watched is None:
            return row
        counted = written.get(run, Used())
        used = whole(watched.used.values()) if watched.used else counted
        action, context = self._action(run, watched.session, watched.heard), watched.heard.context
        size = self.measured.get(run, Measured()).size
        # Memory may know of a first deed before the store was read again: who does something has started.
        begun = action is not None and row.state is SessionState.STARTING
        return structs.replace(
            row,
            state=SessionState.WORKING if begun else row.state,
            action=None if action is None else action.text,
            action_at=None if action is None else action.since,
            context=None if context is None else round(min(max(context, 0.0), 1.0), 3),
            cost=round(row.cost + max(used.cost - counted.cost, 0.0), 6),
            tokens=row.tokens + max(used.tokens - counted.tokens, 0),
            memory=watched.memory,
            plus=None if size is None else size.plus,
            minus=None if size is None else size.minus,
            files=None if size is None else size.files,
        )

    def _action(self, run: str, session: str, heard: RunState) -> Action | None:
        """Return what a run does; worked out only when it has let us know something since."""
        mark = _mark(heard)
        known = self._actions.get(run)
        if known is not None and known[0] == mark:
            return known[1]
        action = action_of(heard, str(self.worktrees.path(session)))
        if action is not None and action.since is not None:
            now = self.clock.now()
            action = replace(action, since=round(now.wall - now.awake + action.since, 1))
        self._actions[run] = (mark, action)
        return action

    def _look_at_machine(self) -> Machine:
        at = self.clock.now().awake
        if at - self._looked < (FIRST_LOOK if self._machine.cpu is None else MACHINE_EVERY):
            return self._machine
        self._looked = at
        total, free = machine.memory()
        before, self._ticks = self._ticks, machine.processors()
        cpu = None
        if before is not None and self._ticks is not None and self._ticks[1] > before[1]:
            cpu = round((self._ticks[0] - before[0]) / (self._ticks[1] - before[1]), 3)
        self._machine = Machine(cpu, None if total is None or free is None else total - free, total)
        return self._machine

    def _limits(self) -> Iterable[Limit]:
        now = self.clock.now()
        at, wall = now.awake, now.wall
        for agent, pace in list(self.memory.starts.paces.items()):
            if pace.closed is not None and at < pace.closed:
                yield Limit(agent, round(wall + pace.closed - at), pace.why)
            elif pace.limit is not None:
                yield Limit(agent, None, f"at most {max(int(pace.limit), 1)} at once: {pace.why}")
        known = {pace.why for pace in list(self.memory.starts.paces.values())}
        told = dict.fromkeys(wait.why for wait, _ in list(self.memory.waits.values()) if wait.news)
        yield from (Limit("", None, why) for why in told if why not in known)


@dataclass
class Live:
    """Tells this moment to all who follow: whole to who is new, then only what has changed."""

    runtime: Runtime
    memory: FleetMemory
    moment: Moment
    followers: Callable[[], int]
    tell: Tell
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _new: list[Tell] = field(default_factory=list)
    """Those who have not been told anything yet."""
    _stale: bool = True
    _basis: Basis | None = None
    _read: float = -1e9
    _told: dict[str, Any] = field(default_factory=dict)
    _rows: dict[str, LiveRow] = field(default_factory=dict)
    """What was told of each session."""
    _sent: float = -1e9
    _waits: dict[str, tuple[Cause, float | None]] = field(default_factory=dict)
    """Why sessions do not start, which is in no log."""
    _measuring: asyncio.Task[None] | None = None

    def hear(self, changes: Iterable[Change]) -> None:
        """Read the store again soon: these changes matter to those who follow."""
        self._stale = True

    def greet(self, tell: Tell) -> None:
        """Tell somebody who begins to follow this moment whole."""
        self._new.append(tell)
        self.news.set()

    async def run(self) -> None:
        """Look and tell for ever."""
        while True:
            if not self.followers():
                self._told, self._rows, self._basis, self._stale = {}, {}, None, True  # nobody is there who knows it
                await self.news.wait()
            self.news.clear()
            with going_on(log, "this moment could not be told"):
                await self.tick()
            busy = self._basis is not None and bool(self._basis.runs)
            await wait_at_most(ACT_EVERY if busy or self._stale else TELL_EVERY, self.news)

    async def stop(self) -> None:
        """Let go of what is being counted."""
        await cancel([self._measuring])

    # Telling

    async def tick(self) -> None:
        """Tell whoever is new all of this moment, and everybody else what has changed, if it is time."""
        at = self.runtime.awake()
        waits = {name: (wait.cause, wait.until) for name, wait in self.memory.waiting().items()}
        self._stale, self._waits = self._stale or waits != self._waits, waits
        if self._basis is None or (self._stale and (self._new or at - self._read >= TELL_EVERY)):
            self._basis, self._stale, self._read = None, False, at  # what happens while we read makes it stale again
            self._basis = await self.runtime.read(basis)
        new, self._new = self._new, []
        self._measure_soon(self._basis)
        around = structs.asdict(self.moment.whole(self._basis))
        rows = {row.session: row for row in around.pop("sessions")}
        self._tell_changes(at, rows, around, now=bool(new))  # who is new knows then what all the others know
        for tell in new:
            tell("live", {**around, "sessions": list(rows.values())})

    def _tell_changes(self, at: float, rows: dict[str, LiveRow], around: dict[str, Any], *, now: bool) -> None:
        """Tell everybody what has changed since they were told, and what an agent does now sooner than the rest."""
        if self._told:
            changed = [row for name, row in rows.items() if self._rows.get(name) != row]
            gone = [name for name in self._rows if name not in rows]
            other = {name: value for name, value in around.items() if self._told.get(name) != value}
            due = now or at - self._sent >= (ACT_EVERY if any(map(self._acts, changed)) else TELL_EVERY)
            if not due or not (changed or gone or other):
                return
            self.tell("live", {**other, "sessions": changed} | ({"gone": gone} if gone else {}))
        self._sent, self._rows, self._told = at, rows, around

    def _acts(self, row: LiveRow) -> bool:
        """Say whether a session does something else than it was told to do."""
        before = self._rows.get(row.session)
        return before is None or before.action != row.action

    # Counting what worktrees change

    def _measure_soon(self, now: Basis) -> None:
        """Count the changes of the runs that did something since, one after the other, beside all else."""
        if self._measuring is not None and not self._measuring.done():
            return
        at = self.runtime.awake()
        opened = {run.id: run for run in now.runs.values()}
        for forgotten in self.moment.measured.keys() - opened.keys():
            del self.moment.measured[forgotten]
        due = [
            (run, after)
            for name, watched in list(self.memory.runs.items())
            if (run := opened.get(name)) is not None
            and run.base is not None
            and (after := _after(watched)) != (known := self.moment.measured.setdefault(name, Measured())).after
            and at - known.at >= MEASURE_EVERY
        ]
        if due:
            self._measuring = asyncio.create_task(self._measure(due))

    async def _measure(self, due: list[tuple[Run, object]]) -> None:
        for run, after in due:
            if run.id not in self.moment.measured or run.base is None:
                continue
            size, later = self.moment.measured[run.id].size, 0.0
            try:
                size = await self.runtime.in_background(partial(self._size, run.session, run.base))
            except (CoveyError, OSError) as error:
                log.info("the changes of %s could not be counted: %s", run.session, error)
                later = MEASURE_AGAIN_S  # the others wait for this look
            self.moment.measured[run.id] = Measured(size, self.runtime.awake() + later, after)

    def _size(self, session: str, base: str) -> Size:
        """Return how much a session's branch changes; the main that it began on may have moved, and been taken in."""
        project, target = self.runtime.project, self.runtime.app.context.config.target
        main = resolve(project, f"refs/heads/{target}")
        return size_of(project, self.runtime.worktrees.path(session), *(() if main is None else (main,)), base)


def _after(watched: Watched) -> object:
    """Return what changes whenever a run may have changed files."""
    heard = watched.heard
    return len(heard.used), len(heard.calls), None if heard.used else watched.printed, watched.started


def _mark(heard: RunState) -> object:
    """Return what changes whenever the action of a run may be another."""
    ended = (heard.result is None, heard.failed is None)
    doing = (heard.waits, heard.compacts, heard.put_off, heard.called, heard.last_call)
    return heard.at, len(heard.asks), len(heard.calls), ended, doing
