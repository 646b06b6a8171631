"""When a run may start: paced by what providers bear, by memory, and by how often it failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from covey.agents.agent import Agent
from covey.config import Config
from covey.core.board.waiting import Cause
from covey.core.fleet import start_limits
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Trouble
from covey.core.fleet.start_limits import Pace, Wait
from covey.core.leases.expiry import CLOCK_JUMP_S

MIB = 1024 * 1024
YOUNG = 15.0
"""Seconds in which a run that started has not taken all of its memory."""
LOOK_EVERY = 1.0
TOO_MANY = 4
"""Tasks that an agent gives up one after another until the fault must be its own."""


@dataclass
class Starts:
    """What is remembered of starts and of their failures; lost with us, and learnt again."""

    free_memory: Callable[[], int | None]
    chance: Callable[[], float]
    paces: dict[str, Pace] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """The most memory that a run of each agent was seen with."""
    failures: dict[str, int] = field(default_factory=dict)
    """How often each session failed in a row."""
    given_up: dict[str, set[str]] = field(default_factory=dict)
    """The tasks that each agent gave up since it last went well."""
    told: set[tuple[str, str]] = field(default_factory=set)
    """Of which troubles of which agents a person knows already."""
    _ahead: float | None = None
    """By how much the clock on the wall is ahead of ours, which stands still while the machine sleeps."""
    _free: tuple[float, int | None] = (-1e9, None)
    _young: list[tuple[str, float]] = field(default_factory=list)

    def why_wait(
        self, agent: Agent, config: Config, running: list[Run], at: float, wall: float, beginning: int = 0
    ) -> Wait | None:
        """Say why no run of an agent starts now, None if one may; `beginning`: how many are about to."""
        self._sleep(at, wall)
        count = sum(run.agent == agent.name and not run.person for run in running) + beginning
        now = start_limits.calm(self.paces.get(agent.name, Pace()), at, count)
        self.paces[agent.name] = now
        self._young = [(name, since) for name, since in self._young if at - since < YOUNG]
        needs, reserve = self.sizes.get(agent.name, agent.traits.memory), int(config.sessions.free_memory * MIB)
        growing = sum(self.sizes.get(name, needs) for name, _ in self._young)  # what has just started will take that
        free = self._memory(at)
        free = None if free is None else free - beginning * needs - growing
        if free is None or free - needs >= 2 * reserve:
            self.told.discard(("", Cause.MEMORY))  # there is enough again: if not later, that is news
        gap = gap_of(agent, config)
        return start_limits.why_wait(now, at=at, running=count, gap=gap, free=free, needs=needs, reserve=reserve)

    def _sleep(self, at: float, wall: float) -> None:
        """Let a named reset come at its time of day, however long the machine has slept meanwhile."""
        ahead, self._ahead = wall - at - (wall - at if self._ahead is None else self._ahead), wall - at
        if abs(ahead) > CLOCK_JUMP_S:
            for name, each in self.paces.items():
                if each.closed is not None:
                    self.paces[name] = replace(each, closed=each.closed - ahead)

    def forgive(self, agent: str, session: str) -> None:
        """Forget what kept an agent and a session from starting: a person has said to start."""
        if agent in self.paces:
            self.paces[agent] = Pace(started=self.paces[agent].started)
        self.failures.pop(session, None)

    def began(self, agent: Agent, at: float) -> None:
        """Note that a run has started."""
        self.paces[agent.name] = replace(self.paces.get(agent.name, Pace()), started=at)
        self._young.append((agent.name, at))

    def weighed(self, agent: str, memory: int) -> None:
        """Note how much memory a run was seen with."""
        if memory > 0:
            self.sizes[agent] = max(memory, self.sizes.get(agent, 0))

    def refused(self, agent: str, running: int, trouble: Trouble, what: str, at: float, until: float | None) -> None:
        """Note that a provider refused a run; `until` is a time of the watcher's clock."""
        self.paces[agent] = start_limits.refused(self.paces.get(agent, Pace()), at, running, trouble, what, until)

    def failed(self, session: str, config: Config) -> float:
        """Note that a session failed once more in a row, and return the seconds that it waits."""
        count = self.failures[session] = self.failures.get(session, 0) + 1
        return start_limits.backoff(count, config.watch.backoff, config.watch.backoff_most, self.chance())

    def gave_up(self, agent: str, task: str, what: str, at: float) -> bool:
        """Note that an agent gave a task up; true if it does so with one task after another, and so is stopped."""
        tasks = self.given_up.setdefault(agent, set())
        tasks.add(task)
        if len(tasks) < TOO_MANY:
            return False
        self.paces[agent] = start_limits.refused(self.paces.get(agent, Pace()), at, 1, Trouble.KEY, what)
        tasks.clear()
        return True

    def went_well(self, session: str, agent: str) -> None:
        """Reset its failures, and allow a new alert about its agent."""
        self.failures.pop(session, None)
        self.given_up.pop(agent, None)
        self.told = {each for each in self.told if each[0] != agent}

    def is_news(self, agent: str, trouble: str) -> bool:
        """Say, once, whether a person has not been told of a trouble of an agent since it last went well."""
        if (agent, trouble) in self.told:
            return False
        self.told.add((agent, trouble))
        return True

    def knows(self, agent: str) -> bool:
        """Say whether a person knows of a trouble of an agent."""
        return any(each[0] == agent for each in self.told)

    def _memory(self, at: float) -> int | None:
        if at - self._free[0] >= LOOK_EVERY:
            self._free = (at, self.free_memory())
        return self._free[1]


def gap_of(agent: Agent, config: Config) -> float:
    """Return the seconds between two starts of an agent: as set, else what it needs."""
    return config.sessions.stagger if config.sessions.stagger >= 0 else agent.traits.gap
