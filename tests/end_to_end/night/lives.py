"""One life of the daemon in virtual time: the real App and loops on the real store, until somebody kills it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, TypeVar

import msgspec

from covey import __version__, config
from covey.app.app import App, Request
from covey.app.context import Context, Principal
from covey.app.fleet.heartbeats import Pulses
from covey.app.verbs import VERBS, decode
from covey.core.events import Started
from covey.core.fleet.sessions import COVEY
from covey.errors import CoveyError
from covey.git.project import Project
from covey.git.worktrees.worktrees import Worktrees, default_folder
from covey.loops.cleanup import Cleanup
from covey.loops.expiry import Expiry
from covey.loops.fleet.commit_reader import lands
from covey.loops.fleet.fleet_loop import Fleet
from covey.loops.fleet.fleet_memory import FleetMemory
from covey.loops.merge_queue.queue_loop import HEARS, Queue
from covey.loops.runtime import Runtime
from covey.store.engine.rows import Change
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx
from tests.end_to_end.night.programs import Runs
from tests.end_to_end.night.virtual import VirtualClock, VirtualLoop

T = TypeVar("T")
CARE_EVERY = 20.0
"""Virtual seconds between two looks for what silence ends."""


@dataclass
class Place:
    """What outlives every daemon."""

    loop: VirtualLoop
    clock: VirtualClock
    project: Project
    runs: Runs
    chance: Random
    free_memory: Callable[[], int]
    listen: Callable[[list[Change]], None]


@dataclass
class Life:
    """The daemon from its start to its end."""

    place: Place
    reads: int = 0
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        place = self.place
        self.store = SqliteStore(place.project.database, clock=lambda: place.clock.wall, project="night")
        self.store._db.raw.execute("PRAGMA synchronous = OFF")  # no power fails in a test
        settings = config.load(place.project.root)
        worktrees = Worktrees(place.project, default_folder(place.project, settings.sessions.worktrees))
        memory = FleetMemory(place.clock, place.free_memory, place.chance.random)
        context = Context(
            settings,
            Pulses(place.clock, self.store.place),
            "night",
            has_daemon=True,
            secret=b"night",
            runner=place.runs,
            runs=place.project.runs,
            fleet=memory,
            commits=partial(lands, place.project, worktrees, self.store, place.clock),
        )
        self.app = App(self.store, context)
        self.runtime = Runtime(
            self.app,
            place.project,
            place.runs,
            worktrees,
            "http://127.0.0.1:1",
            self,
            free_memory=place.free_memory,
        )
        self.fleet = Fleet(self.runtime, memory)
        self.queue = Queue(self.runtime)

    async def read(self, job: Callable[[Tx], T]) -> T:
        """Look at the store."""
        self.reads += 1
        return self.store.read(job)

    async def write(self, job: Callable[[Tx], T], *, long: bool = False) -> T:
        """Change the store; whoever is killed meanwhile does not know whether that was committed."""
        takes = self.place.chance.uniform(0.001, 0.01)
        self.place.loop.steps += 1
        first = self.place.chance.random() < 0.5
        if first:
            await asyncio.sleep(takes)
        outcome = self.store.run([job])[0]
        if outcome.changes:
            self.place.listen(list(outcome.changes))
            self.fleet.hear(outcome.changes)
            self.queue.hear([change for change in outcome.changes if change.kind.startswith(HEARS)])
        if not first:
            await asyncio.sleep(takes)
        value: T = outcome.result()
        return value

    async def ask(self, verb: str, who: Principal | None = None, **asked: Any) -> Any:
        """Ask as a surface does."""
        found = VERBS[verb]
        params = {name: asked.pop(name) for name in found.params}
        body = decode(found.decoder, msgspec.json.encode(asked))
        job = self.app.job(Request(found, who or Principal(), body, params))
        answer = await (self.write(job) if found.changes else self.read(job))
        return answer.value()

    async def begin(self) -> None:
        """Start the loops."""
        await self.write(lambda tx: tx.append(COVEY, "daemon", Started(__version__)))
        loops = (self.fleet.run(), self.queue.run(), self._care())
        self._tasks = [self.place.loop.create_task(each) for each in loops]

    async def _care(self) -> None:
        expiry, cleanup = Expiry(self.app, self.read, self.write), Cleanup(self.app, self.write, self.write)
        while True:
            await asyncio.sleep(CARE_EVERY)
            await expiry.tick()
            await cleanup.tick()

    async def kill(self) -> None:
        """End it wherever it stands: nothing that it has not done yet is done any more."""
        self.place.loop.life += 1
        gates = [each.task for each in self.queue.gate_runs.running.values() if each.task is not None]
        tasks = [*self._tasks, *self.fleet._busy.values(), *gates]
        for task in tasks:
            task.cancel()
        failed = [each for each in await asyncio.gather(*tasks, return_exceptions=True) if isinstance(each, Exception)]
        self.runtime.close()
        self.store.close()
        if failed and not isinstance(failed[0], CoveyError):
            raise failed[0]
