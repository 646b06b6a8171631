"""This moment, told to whoever looks: what each session does, the machine, limits; nobody looks, nothing is done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from msgspec import to_builtins

from covey.app.live import Basis, LiveRow, basis, over
from covey.core.actions import Action, action_of
from covey.core.events import noun
from covey.core.heard import Heard
from covey.core.live import Glimpse, Limit, Machine, Sight, Size
from covey.core.runs import Run
from covey.core.spending import whole
from covey.core.waiting import Cause
from covey.errors import CoveyError
from covey.git.candidates import resolve
from covey.git.sizes import size_of
from covey.loops.desk import Desk
from covey.loops.fleet import Fleet
from covey.loops.watches import Watched
from covey.runners import machine
from covey.store.rows import Change

ACT_EVERY = 0.2
"""Seconds after which another action may be told."""
TELL_EVERY = 1.0
"""Seconds after which anything else may be told."""
MACHINE_EVERY = 2.0
FIRST_LOOK = 0.3
"""Seconds between two looks at the machine, and between the first two, from which it is known how busy it is."""
MEASURE_EVERY = 5.0
"""Seconds between two times that the changes of one worktree are counted."""
MEASURE_AGAIN_S = 60.0
"""Seconds after which a worktree is counted again that could not be."""
MATTERS = frozenset(("session", "run", "task", "merge", "gate", "overlap", "fleet"))
"""What the store's part of this moment is made from."""
Tell = Callable[[str, object], None]

log = logging.getLogger("covey.live")


@dataclass
class Measured:
    """How large the changes of a run are, when that was counted, and after what."""

    size: Size | None = None
    at: float = -1e9
    after: object = None


@dataclass
class Live:
    """Tells this moment to all who follow: whole to who is new, then only what has changed."""

    desk: Desk
    fleet: Fleet
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
    _machine: Machine = field(default_factory=Machine)
    _looked: float = -1e9
    _ticks: tuple[float, float] | None = None
    _measured: dict[str, Measured] = field(default_factory=dict)
    _measuring: asyncio.Task[None] | None = None
    _actions: dict[str, tuple[object, Action | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.desk.app.house.sight = self.sight

    def hear(self, changes: Iterable[Change]) -> None:
        """Read the store again soon, if these changes matter to who looks."""
        if not self._stale and any(noun(change.kind) in MATTERS for change in changes):
            self._stale = True

    def greet(self, tell: Tell) -> None:
        """Tell somebody who begins to follow this moment whole."""
        self._new.append(tell)
        self.news.set()

    async def run(self) -> None:
        """Look and tell for ever."""
        while True:
            if not self.followers():
                self._rest()
                await self.news.wait()
            self.news.clear()
            try:
                await self.tick()
            except CoveyError as error:
                log.warning("this moment could not be told: %s", error)
            except Exception:
                log.exception("telling this moment failed")
            busy = self._basis is not None and bool(self._basis.runs)
            try:
                async with asyncio.timeout(ACT_EVERY if busy or self._stale else TELL_EVERY):
                    await self.news.wait()
            except TimeoutError:
                pass

    def _rest(self) -> None:
        """Forget what was told: nobody is there who knows it."""
        self._told, self._rows, self._basis, self._stale = {}, {}, None, True

    async def stop(self) -> None:
        """Let go of what is being counted."""
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.gather(self._measuring, return_exceptions=True)

    # Telling

    async def tick(self) -> None:
        """Tell whoever is new all of this moment, and everybody else what has changed, if it is time."""
        at = self.desk.awake()
        waits = {name: (wait.cause, wait.until) for name, wait in self.fleet.waiting().items()}
        self._stale, self._waits = self._stale or waits != self._waits, waits
        if self._basis is None or (self._stale and (self._new or at - self._read >= TELL_EVERY)):
            self._basis, self._stale, self._read = None, False, at  # what happens while we read makes it stale again
            self._basis = await self.desk.read(basis)
        new, self._new = self._new, []
        found, sight = self._basis, self.sight()
        self._measure_soon(found)
        rows = {row.session: row for row in over(found, sight)}
        around = {
            "machine": to_builtins(sight.machine),
            "limits": to_builtins(sight.limits),
            "today": to_builtins(found.today),
            "paused": found.paused,
            "waits": to_builtins(found.waits),
        }
        self._tell_changes(at, rows, around, now=bool(new))  # who is new knows then what all the others know
        for tell in new:
            tell("live", {**around, "sessions": list(rows.values())})

    def _tell_changes(self, at: float, rows: dict[str, LiveRow], around: dict[str, Any], *, now: bool) -> None:
        changed = [row for name, row in rows.items() if self._rows.get(name) != row]
        gone = [name for name in self._rows if name not in rows]
        other = {name: value for name, value in around.items() if self._told.get(name) != value}
        acts = any((before := self._rows.get(row.session)) is None or before.action != row.action for row in changed)
        due = now or at - self._sent >= (ACT_EVERY if acts else TELL_EVERY)
        if self._told and not (due and (changed or gone or other)):
            return
        if self._told:
            self.tell("live", {**other, "sessions": changed} | ({"gone": gone} if gone else {}))
        self._sent, self._rows, self._told = at, rows, around

    # Looking

    def sight(self) -> Sight:
        """Return what only memory tells of this moment."""
        found = self.fleet.watches.all()
        glimpses = {run: self._glimpse(run, session, watched) for run, session, watched in found}
        for forgotten in [run for run in list(self._actions) if run not in glimpses]:
            self._actions.pop(forgotten, None)
        return Sight(self._look_at_machine(), tuple(self._limits()), glimpses)

    def _glimpse(self, run: str, session: str, watched: Watched) -> Glimpse:
        measured = self._measured.get(run)
        return Glimpse(
            self._action(run, session, watched.heard),
            watched.heard.context,
            whole(watched.used.values()) if watched.used else None,
            watched.memory,
            None if measured is None else measured.size,
        )

    def _action(self, run: str, session: str, heard: Heard) -> Action | None:
        """Return what a run does; worked out only when it has let us know something since."""
        mark = _mark(heard)
        known = self._actions.get(run)
        if known is not None and known[0] == mark:
            return known[1]
        action = action_of(heard, str(self.desk.worktrees.path(session)))
        if action is not None and action.since is not None:
            since = round(self.desk.wall() - self.desk.awake() + action.since, 1)
            action = replace(action, since=since)
        self._actions[run] = (mark, action)
        return action

    def _look_at_machine(self) -> Machine:
        at = self.desk.awake()
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
        at, wall = self.desk.awake(), self.desk.wall()
        for agent, pace in list(self.fleet.starts.paces.items()):
            if pace.closed is not None and at < pace.closed:
                yield Limit(agent, round(wall + pace.closed - at), pace.why)
            elif pace.limit is not None:
                yield Limit(agent, None, f"at most {max(int(pace.limit), 1)} at once: {pace.why}")
        known = {pace.why for pace in list(self.fleet.starts.paces.values())}
        yield from (Limit("", None, why) for why in self.fleet.waits() if why not in known)

    # Counting what worktrees change

    def _measure_soon(self, now: Basis) -> None:
        """Count the changes of the runs that did something since, one after the other, beside all else."""
        if self._measuring is not None and not self._measuring.done():
            return
        at = self.desk.awake()
        opened = {run.id: run for run in now.runs.values()}
        for forgotten in self._measured.keys() - opened.keys():
            del self._measured[forgotten]
        due = [
            (run, after)
            for name, _, watched in self.fleet.watches.all()
            if (run := opened.get(name)) is not None
            and run.base is not None
            and (after := _after(watched)) != (known := self._measured.setdefault(name, Measured())).after
            and at - known.at >= MEASURE_EVERY
        ]
        if due:
            self._measuring = asyncio.create_task(self._measure(due))

    async def _measure(self, due: list[tuple[Run, object]]) -> None:
        for run, after in due:
            if run.id not in self._measured or run.base is None:
                continue
            size, later = self._measured[run.id].size, 0.0
            try:
                size = await self.desk.aside(partial(self._size, run.session, run.base))
            except (CoveyError, OSError) as error:
                log.info("the changes of %s could not be counted: %s", run.session, error)
                later = MEASURE_AGAIN_S  # the others wait for this look
            self._measured[run.id] = Measured(size, self.desk.awake() + later, after)

    def _size(self, session: str, base: str) -> Size:
        """Return how much a session's branch changes; the main that it began on may have moved, and been taken in."""
        project, target = self.desk.project, self.desk.app.house.config.target
        main = resolve(project, f"refs/heads/{target}")
        return size_of(project, self.desk.worktrees.path(session), *(() if main is None else (main,)), base)


def _mark(heard: Heard) -> object:
    """Return what changes whenever the action of a run may be another."""
    ended = (heard.result is None, heard.failed is None)
    doing = (heard.waits, heard.compacts, heard.put_off, heard.called, heard.last_call)
    return heard.at, len(heard.asks), len(heard.calls), ended, doing


def _after(watched: Watched) -> object:
    """Return what changes whenever a run may have changed files."""
    heard = watched.heard
    return len(heard.used), len(heard.calls), None if heard.used else watched.printed, watched.started
