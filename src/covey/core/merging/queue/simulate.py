"""The simulator: the train of the daemon, in a world where a gate takes no time but on the simulated clock."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from covey.core.merging.queue.steps import step
from covey.core.merging.queue.train import (
    Action,
    Arrived,
    Cancel,
    Change,
    Clashed,
    Ended,
    Event,
    Halt,
    Land,
    Left,
    Reject,
    RejectCause,
    Start,
    Test,
    Together,
    TrainState,
)
from covey.core.merging.queue.world import Coming, World, chance
from covey.values import dataclass

LENGTH, FLAKE = 0, 1
SAME_MOMENT = 1e-9


@dataclass(frozen=True)
class Landed:
    """A change that landed; those of one landing have the same group."""

    id: str
    at: float
    group: str


@dataclass(frozen=True)
class Rejected:
    """A change that was sent back: bad, text, semantic or needs."""

    id: str
    at: float
    reason: str


@dataclass(frozen=True)
class Report:
    """How a strategy did in a world."""

    makespan: float
    tests: int
    landed: tuple[Landed, ...]
    rejected: tuple[Rejected, ...]


def simulate(world: World, strategy: str) -> Report:
    """Return what a strategy makes of a world; always the same for the same world."""
    run = _Run(world, strategy)
    run.go()
    return Report(run.last, run.state.tests, tuple(run.landed), tuple(run.rejected))


class _Run:
    """One simulation under way."""

    def __init__(self, world: World, strategy: str) -> None:
        self.world = world
        self.strategy = strategy
        self.state = TrainState(strategy=strategy, slots=world.slots)
        self.now = self.last = 0.0
        self.landed: list[Landed] = []
        self.rejected: list[Rejected] = []
        self.known = {change.id: change for change in world.changes}
        self.coming = sorted(enumerate(world.changes), key=lambda each: (each[1].at, each[0]), reverse=True)
        self.text = world.partners(semantic=False)
        self.semantic = world.partners(semantic=True)
        self.open: set[str] = set()
        self.on_main: set[str] = set()
        self.gone: set[str] = set()
        self.ends: list[tuple[float, int, bool]] = []
        self.groups = 0
        self.most_tests = 1000 + 100 * len(world.changes)

    def go(self) -> None:
        while self.coming or self.ends or self.open:
            happened = self._next()
            while happened:
                self.state, actions = step(self.state, happened[0] if len(happened) == 1 else Together(tuple(happened)))
                happened = self._do(actions)

    def _next(self) -> list[Event]:
        """Go on to the next moment at which something happens, and return all of it."""
        times = [each.at for _, each in self.coming[-1:]] + [end for end, _, _ in self.ends[:1]]
        if not times or self.state.tests > self.most_tests:
            raise RuntimeError(f"the strategy {self.strategy} comes to no end: {len(self.open)} changes wait")
        self.now = min(times)
        until = self.now + SAME_MOMENT * max(self.now, 1.0)
        happened: list[Event] = []
        while self.ends and self.ends[0][0] <= until:
            _, number, passed = heappop(self.ends)
            happened.append(Ended(number, passed))
        while self.coming and self.coming[-1][1].at <= until:
            happened += self._arrived(len(self.known) - len(self.coming), self.coming.pop()[1])
        return happened

    def _arrived(self, order: int, change: Coming) -> Iterable[Event]:
        """Enter a change as the daemon would: what it needs is on main already or still to come."""
        needs = tuple(need for need in change.needs if need not in self.on_main)
        if self.gone.intersection(needs):
            self._gone(change.id, "needs")
            yield Left(change.id)
            return
        self.open.add(change.id)
        partners = self.text.get(change.id, ())
        clashes = tuple(other for other in partners if other in self.open)
        yield Arrived(Change(change.id, order, change.priority, needs, change.paths), clashes)
        if any(other in self.on_main for other in partners):
            yield Clashed(change.id)

    def _do(self, actions: Iterable[Action]) -> list[Event]:
        """Do what the train wants, and return what happens by that at once."""
        happened: list[Event] = []
        ended: set[int] = set()
        for action in actions:
            match action:
                case Start(test):
                    heappush(self.ends, (self.now + self._length(test), test.id, self._passes(test)))
                case Cancel(number):
                    ended.add(number)
                case Land(_, changes):
                    self._land(changes)
                    clashing = (other for id in changes for other in self.text.get(id, ()) if other in self.open)
                    happened += [Clashed(id) for id in dict.fromkeys(clashing)]
                case Reject(id, reason):
                    self.open.discard(id)
                    self._gone(id, self._why(id, reason))
                case Halt():
                    raise RuntimeError("main fails its gate, though every value of it passed")
        if ended:
            self.ends = [each for each in self.ends if each[1] not in ended]
            heapify(self.ends)
        return happened

    def _length(self, test: Test) -> float:
        jitter = self.world.jitter
        return self.world.seconds * (1 + jitter * (2 * chance(self.world.seed, test.id, LENGTH) - 1))

    def _passes(self, test: Test) -> bool:
        inside = set(test.changes)
        for id in test.changes:
            partners = self.semantic.get(id, ())
            if self.known[id].bad or any(other in inside or other in self.on_main for other in partners):
                return False
        return chance(self.world.seed, test.id, FLAKE) >= self.world.flake

    def _land(self, changes: tuple[str, ...]) -> None:
        self.groups += 1
        self.open.difference_update(changes)
        self.on_main.update(changes)
        self.landed += [Landed(id, self.now, f"g{self.groups}") for id in changes]
        self.last = self.now

    def _gone(self, id: str, why: str) -> None:
        self.gone.add(id)
        self.rejected.append(Rejected(id, self.now, why))
        self.last = self.now

    def _why(self, id: str, reason: RejectCause) -> str:
        if reason is not RejectCause.FAILS:
            return reason.value
        partners = self.semantic.get(id, ())
        return "semantic" if not self.known[id].bad and any(each in self.on_main for each in partners) else "bad"
