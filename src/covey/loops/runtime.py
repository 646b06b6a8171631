"""What the loops have in hand: the store through the daemon's one writer, the runner, the worktrees, and threads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from covey import proof
from covey.agents.agent import Agent
from covey.app.app import App
from covey.app.context import Call, Principal
from covey.app.costs.costs import Day, day_at
from covey.app.fleet.sessions import alert
from covey.core.fleet.sessions import COVEY
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError
from covey.git.project import Project
from covey.git.worktrees.worktrees import Worktrees
from covey.loops.fleet.terminals import Typist
from covey.runners.machine import free_memory
from covey.runners.process import ProcessRunner
from covey.store.bus import Access

T = TypeVar("T")
GIT_THREADS = RUN_THREADS = 12
"""Threads in which git is waited for, and as many for runs."""
BACKGROUND_THREADS = 3
"""Threads for work that nobody waits for."""


@contextlib.contextmanager
def going_on(log: logging.Logger, what: str) -> Iterator[None]:
    """Log what fails in here, with `what` could not be done, and go on: a loop looks again after its pause."""
    try:
        yield
    except CoveyError as error:
        log.warning("%s: %s", what, error)
    except Exception:
        log.exception("%s", what)


async def wait_at_most(seconds: float, news: asyncio.Event) -> None:
    """Return when there is news, or after that time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()


async def cancel(tasks: Iterable[asyncio.Future[Any] | None]) -> None:
    """Cancel tasks, as far as there are any, and wait for their end."""
    found = [task for task in tasks if task is not None]
    for task in found:
        task.cancel()
    await asyncio.gather(*found, return_exceptions=True)


@dataclass
class Runtime:
    """What all loops of one project share."""

    app: App
    project: Project
    runner: ProcessRunner
    worktrees: Worktrees
    url: str
    """Where runs ask covey; `proof.DOOR` lets each have an address of its own."""
    bus: Access
    """Reads and writes the store."""
    free_memory: Callable[[], int | None] = free_memory
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
    _git: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(GIT_THREADS, "covey-git"))
    _runs: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(RUN_THREADS, "covey-runs"))
    _background: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(BACKGROUND_THREADS, "covey-looks")
    )

    def credential(self, run: str) -> str:
        """Return what covey proves itself with to a run, "" if there is nothing to make it from."""
        owner_token = self.app.context.secret.decode()
        return proof.credential(owner_token, f"run:{run}") if owner_token else ""

    def agent(self, name: str) -> Agent | None:
        """Return an agent, None if it was taken out of the settings while it ran."""
        return self.app.context.known_agent(name)

    def awake(self) -> float:
        """Return the time of the clock that stands still while the machine sleeps."""
        return self.app.context.pulses.clock.now().awake

    def wall(self) -> float:
        """Return the time of day, in seconds since 1970."""
        return self.app.context.pulses.clock.now().wall

    def today(self) -> Day:
        """Return the day, where the person in charge is."""
        return day_at(self.wall())

    async def read(self, job: Callable[[Call], T]) -> T:
        """Look at the store."""
        return await self.bus.read(lambda tx: job(Call(tx, Principal(COVEY), self.app.context)))

    async def write(self, job: Callable[[Call], T]) -> T:
        """Change the store, and return after the commit."""
        return await self.bus.write(lambda tx: job(Call(tx, Principal(COVEY), self.app.context)))

    async def tell(self, log: logging.Logger, kind: AlertKind, message: str) -> None:
        """Alert the person; what cannot be written is only logged."""
        with going_on(log, "nobody could be told"):
            await self.write(lambda call: alert(call, kind, message, None, None))

    async def in_git_thread(self, work: Callable[[], T]) -> T:
        """Run git, or what waits for git, off the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._git, work)

    async def in_run_thread(self, work: Callable[[], T]) -> T:
        """Look at runs, hold and stop them, off the event loop and never behind a slow fetch or checkout."""
        return await asyncio.get_running_loop().run_in_executor(self._runs, work)

    async def in_background(self, work: Callable[[], T]) -> T:
        """Do what may take long and may come late, such as counting a whole worktree, in nobody's way."""
        return await asyncio.get_running_loop().run_in_executor(self._background, work)

    def close(self) -> None:
        """Let the threads go."""
        self._background.shutdown(cancel_futures=True)
        self._git.shutdown()
        self._runs.shutdown()
