"""What the loops have in hand: the store through the daemon's one writer, the runner, the worktrees, and threads."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from covey import proof
from covey.app.app import App
from covey.app.budget import Day, day_at
from covey.app.verbs import Call, Principal
from covey.core.sessions import COVEY
from covey.git.project import Project
from covey.git.worktrees import Worktrees
from covey.loops.terminals import Typist
from covey.runners.machine import free_memory
from covey.runners.runner import Runner
from covey.store.tx import Tx

T = TypeVar("T")
THREADS = 12
"""Threads in which git is waited for, and as many for runs."""
LOOKERS = 3
"""Threads for looks that nobody has to wait for."""


@dataclass
class Desk:
    """One project's loops share one desk."""

    app: App
    project: Project
    runner: Runner
    worktrees: Worktrees
    url: str
    """Where runs ask covey; `proof.DOOR` lets each have an address of its own."""
    reading: Any
    writing: Any
    free_memory: Callable[[], int | None] = free_memory
    chance: Callable[[], float] = random.random
    typist: Typist | None = None
    """Types to runs that have a terminal."""
    running: dict[str, int] = field(default_factory=dict)
    """How many runs of each agent there are, as the fleet last saw it."""
    seen: dict[str, str] = field(default_factory=dict)
    """Where each branch on which work lands was when it was last seen as a plain branch."""
    unnoted: dict[str, str] = field(default_factory=dict)
    """Where such a branch was when a person was told that its reflog does not say so."""
    programs: dict[str, str] | None = None
    """The settings of the repository that name programs, as they were last seen."""
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "covey-git"))
    _near: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "covey-runs"))
    _looks: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(LOOKERS, "covey-looks"))

    def credential(self, run: str) -> str:
        """Return what covey proves itself with to a run, "" if there is nothing to make it from."""
        owner_token = self.app.house.secret.decode()
        return proof.credential(owner_token, f"run:{run}") if owner_token else ""

    def awake(self) -> float:
        """Return the time of the clock that stands still while the machine sleeps."""
        return self.app.house.pulses.clock.now().awake

    def wall(self) -> float:
        """Return the time of day, in seconds since 1970."""
        return self.app.house.pulses.clock.now().wall

    def today(self) -> Day:
        """Return the day, where the person in charge is."""
        return day_at(self.wall())

    async def read(self, job: Callable[[Call], T]) -> T:
        """Look at the store."""
        value: T = await self.reading(lambda tx: job(self._call(tx)))
        return value

    async def write(self, job: Callable[[Call], T]) -> T:
        """Change the store, and return after the commit."""
        value: T = await self.writing(lambda tx: job(self._call(tx)))
        return value

    def _call(self, tx: Tx) -> Call:
        return Call(tx, Principal(COVEY), self.app.house)

    async def beside(self, work: Callable[[], T]) -> T:
        """Do what takes its time beside the loop: git, and what waits for git."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def near(self, work: Callable[[], T]) -> T:
        """Look at runs, hold and stop them, beside the loop and never behind a slow fetch or checkout."""
        return await asyncio.get_running_loop().run_in_executor(self._near, work)

    async def aside(self, work: Callable[[], T]) -> T:
        """Look at what may take long and may come late, such as a whole worktree, in nobody's way."""
        return await asyncio.get_running_loop().run_in_executor(self._looks, work)

    def close(self) -> None:
        """Let the threads go."""
        self._looks.shutdown(cancel_futures=True)
        self._pool.shutdown()
        self._near.shutdown()
