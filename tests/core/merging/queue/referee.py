"""A referee: plays the daemon and git to a train, knows how every change really is, and calls every foul."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from covey.core.merging.queue import steps
from covey.core.merging.queue.simulate import World
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
    Lost,
    Paused,
    Reject,
    RejectCause,
    Start,
    Test,
    Together,
    TrainState,
)

Tree = tuple[str, ...]


class Foul(AssertionError):
    """The train did what it must never do."""


@dataclass(frozen=True)
class Weather:
    """What goes wrong besides the changes themselves, as chances at each moment."""

    leaves: float = 0.0
    loses: float = 0.0
    pauses: float = 0.0
    reorders: float = 0.0
    late: float = 0.0
    """How often a clash is seen only when git is to merge both."""
    heals: float = 0.0
    """How often git merges a change after all with what it clashed with, once that has landed."""
    crashes: float = 0.0
    crash_at: int = -1
    """The number of the one action after which the daemon dies, if it does so once."""
    proven: bool = True
    red: bool = False
    """Main fails its own gate."""


@dataclass
class Match:
    """One train in one world, to its end."""

    world: World
    strategy: str
    random: Random
    weather: Weather = Weather()
    main: Tree = ()
    landed: set[str] = field(default_factory=set)
    rejected: dict[str, RejectCause] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    open: dict[str, Change] = field(default_factory=dict)
    halted: bool = False
    tests: int = 0
    lost: int = 0
    crashes: int = 0
    actions: int = 0

    def __post_init__(self) -> None:
        self.truth = {change.id: change for change in self.world.changes}
        self.coming = sorted(self.world.changes, key=lambda change: change.at)
        self.order = {change.id: number for number, change in enumerate(self.coming)}
        self.text = self.world.partners(semantic=False)
        self.semantic = self.world.partners(semantic=True)
        self.proven = self.weather.proven
        self.green: list[frozenset[str]] = [frozenset()] if self.is_good(()) else []
        self.trees: dict[int, Tree] = {}
        self.running: dict[int, Test] = {}
        self.ended: dict[int, bool] = {}
        self.begin()

    # How it really is

    def is_good(self, tree: Tree) -> bool:
        """Say whether a tree passes if the gate does not flake."""
        inside = set(tree)
        return not self.weather.red and not any(
            self.truth[id].bad or inside.intersection(self.semantic.get(id, ())) for id in tree
        )

    # A train begins with what survives

    def begin(self) -> None:
        self.state = TrainState(strategy=self.strategy, slots=self.world.slots, green=0 if self.proven else 1)
        self.running, self.trees, self.ended = {}, {}, {}
        self.paused = False
        self.seen: set[frozenset[str]] = set()
        self.unseen: set[frozenset[str]] = set()

    def crash(self) -> None:
        self.crashes += 1
        self.begin()
        again, self.open = self.open, {}
        self.tell([event for change in again.values() for event in self.enter(change)])

    def enter(self, change: Change) -> list[Event]:
        """Return what the daemon says of a change that enters; it looks first at what it needs, and at main."""
        needs = tuple(need for need in self.truth[change.id].needs if need not in self.landed)
        if any(need in self.rejected or need in self.left for need in needs):
            self.rejected[change.id] = RejectCause.NEEDS
            return [Left(change.id)]
        change = replace(change, needs=needs)
        self.open[change.id] = change
        events: list[Event] = [Arrived(change, self.seen_clashes(change.id))]
        if self.landed.intersection(self.text.get(change.id, ())):
            events.append(Clashed(change.id))
        return events

    def seen_clashes(self, id: str) -> Tree:
        """Return with which open changes one is seen to clash, when it enters."""
        seen = []
        for other in self.text.get(id, ()):
            if other in self.open and other != id:
                pair = frozenset((id, other))
                late = pair not in self.seen and self.random.random() < self.weather.late
                self.unseen |= {pair} if late else set()
                seen += [] if late else [other]
        return tuple(seen)

    # Time goes by

    def play(self) -> Match:
        """Let things happen until nothing can any more; every foul on the way is called."""
        while (self.coming or self.open or self.running) and not self.halted:
            happened = self.happen()
            if happened:
                self.tell(happened)
        if not self.halted:
            self.judge_the_end()
        return self

    def happen(self) -> list[Event]:
        """Return what happens next."""
        random, weather = self.random, self.weather
        if weather.crashes and self.crashes < 10 and random.random() < weather.crashes:
            self.crash()
            return []
        resumes = 0.3 if self.coming or self.running else 1.0
        if random.random() < (resumes if self.paused else weather.pauses):
            self.paused = not self.paused
            return [Paused(self.paused)]
        if self.open and random.random() < weather.leaves:
            id = random.choice(sorted(self.open))
            del self.open[id]
            self.left.add(id)
            return [Left(id)]
        if self.open and random.random() < weather.reorders:
            id = random.choice(sorted(self.open))
            self.open[id] = replace(self.open[id], priority=random.randint(0, 5))
            return [
                Arrived(self.open[id], tuple(o for o in self.text.get(id, ()) if frozenset((id, o)) not in self.unseen))
            ]
        if self.coming and (not self.running or self.coming[0].at == 0 or random.random() < 0.3):
            first = self.coming[0].at
            now = [change for change in self.coming if change.at == first]
            self.coming = self.coming[len(now) :]
            return [
                event
                for change in now
                for event in self.enter(
                    Change(change.id, self.order[change.id], change.priority, change.needs, change.paths)
                )
            ]
        if not self.running:
            raise Foul(f"nothing runs, though {sorted(self.open)} wait")
        return self.some_tests_end()

    def some_tests_end(self) -> list[Event]:
        numbers = sorted(self.running)
        if self.random.random() < 0.5:
            numbers = self.random.sample(numbers, self.random.randint(1, len(numbers)))
        events: list[Event] = []
        for number in numbers:
            del self.running[number]
            if self.random.random() < self.weather.loses:
                self.lost += 1
                events.append(Lost(number))
                continue
            passed = self.is_good(self.trees[number]) and self.random.random() >= self.world.flake
            self.ended[number] = passed
            events.append(Ended(number, passed))
        return events

    def tell(self, events: Sequence[Event]) -> None:
        """Tell the train, and do what it wants; what happens by that, it is told too."""
        while events:
            for event in events:
                match event:
                    case Clashed(id, others) | Arrived(Change(id=id), others):
                        self.seen |= {frozenset((id, other)) for other in others}
                        self.unseen -= self.seen
            event = events[0] if len(events) == 1 else Together(tuple(events))
            self.state, actions = steps.step(self.state, event)
            told: list[Event] = []
            for action in actions:
                told += self.do(action)
                self.actions += 1
                if self.actions == self.weather.crash_at:
                    self.crash()
                    return
            if len(self.running) > self.world.slots:
                raise Foul(f"{len(self.running)} tests run in {self.world.slots} slots")
            told = [event for event in told if not isinstance(event, Arrived) or event.change.id in self.open]
            events = sorted(told, key=lambda event: not isinstance(event, Lost))

    # What the train wants, and whether it may

    def do(self, action: Action) -> list[Event]:
        """Do what the train wants, if it may, and return what happens by that."""
        match action:
            case Start(test):
                return self.start(test)
            case Cancel(number):
                if self.running.pop(number, None) is None:
                    raise Foul(f"test {number} is cancelled, and does not run")
            case Land(number, changes):
                return self.land(number, changes)
            case Reject(id, reason, tests, _):
                self.reject(id, reason, tests)
            case Halt(tests):
                self.halt(tests)
        return []

    def start(self, test: Test) -> list[Event]:
        if self.paused or self.halted:
            raise Foul("a test is started while the queue stands still")
        if any(id not in self.open for id in test.changes) or len(set(test.changes)) != len(test.changes):
            raise Foul(f"{test.changes} are tested, of which some are not open")
        if len(self.running) >= self.world.slots:
            raise Foul("a test is started without a free slot")
        tree = (*self.main, *test.changes)
        late = self.see_late(test)
        if late:
            return late
        self.look_at_needs_and_texts(tree)
        self.look_at_the_order(test)
        if len(test.changes) > 1 and any(
            passed is False and set(self.trees[number]) == set(tree) for number, passed in self.ended.items()
        ):
            raise Foul(f"{test.changes} are tested again, though just that tree failed before")
        self.tests += 1
        if self.tests > self.most_tests():
            raise Foul(f"{self.tests} tests of {len(self.truth)} changes: this comes to no end")
        self.trees[test.id] = tree
        self.running[test.id] = test
        return []

    def see_late(self, test: Test) -> list[Event]:
        """Find that git cannot merge what is to be tested, which nobody has seen before."""
        for at, id in enumerate(test.changes):
            for other in self.text.get(id, ()):
                if frozenset((id, other)) in self.unseen and other in (*self.main, *test.changes[:at]):
                    return [Lost(test.id), Clashed(id) if other in self.landed else Clashed(id, (other,))]
        return []

    def most_tests(self) -> int:
        return (len(self.truth) * 8 + 20) * (2 + self.crashes) + 10 * self.lost + 400 * bool(self.world.flake)

    def look_at_needs_and_texts(self, tree: Tree) -> None:
        before: set[str] = set()
        for id in tree:
            if not before.issuperset(self.truth[id].needs):
                raise Foul(f"{id} is in a tree without what it needs")
            if before.intersection(self.text.get(id, ())):
                raise Foul(f"{id} is in a tree with what git cannot merge it with")
            before.add(id)

    def look_at_the_order(self, test: Test) -> None:
        if any(change.needs for change in self.truth.values()):
            return  # whoever is needed goes first, with the priority of those who need it
        for id in test.changes:
            for other in self.text.get(id, ()):
                seen = other in self.open and frozenset((id, other)) not in self.unseen
                if seen and self.place(other) < self.place(id):
                    raise Foul(f"{id} is tested before {other}, which goes first and clashes with it")

    def place(self, id: str) -> tuple[int, int]:
        return -self.open[id].priority, self.open[id].order

    def land(self, number: int, changes: Tree) -> list[Event]:
        tree = (*self.main, *changes)
        if self.paused or self.halted:
            raise Foul("something lands while the queue stands still")
        if not self.ended.get(number) or self.trees[number] != tree or not changes:
            raise Foul(f"main becomes a tree that test {number} did not pass as it is")
        if not self.is_good(tree):
            raise Foul(f"main is red: {tree}")
        if any(id not in self.open for id in changes):
            raise Foul(f"{changes} land, of which some are not open")
        self.look_at_needs_and_texts(tree)
        self.main, self.proven = tree, True
        self.green.append(frozenset(tree))
        self.landed.update(changes)
        for id in changes:
            del self.open[id]
        return [event for id in sorted(self.open) for event in self.look_at_doubtful(id, set(changes))]

    def look_at_doubtful(self, id: str, landed: set[str]) -> list[Event]:
        """Return whether git merges with main what was seen to clash with something that has landed."""
        against = [each for each in self.text.get(id, ()) if each in landed and {id, each} not in self.unseen]
        if not against:
            return []
        if self.random.random() >= self.weather.heals:
            return [Clashed(id)]
        for other in against:
            self.text[id] = tuple(each for each in self.text[id] if each != other)
            self.text[other] = tuple(each for each in self.text[other] if each != id)
        return [Arrived(self.open[id], self.seen_clashes(id))]

    def reject(self, id: str, reason: RejectCause, tests: Sequence[int]) -> None:
        if id not in self.open:
            raise Foul(f"{id} is rejected, and is not open")
        match reason:
            case RejectCause.TEXT:
                if not self.landed.intersection(self.text.get(id, ())):
                    raise Foul(f"{id} is rejected for a clash with something that has not landed")
            case RejectCause.NEEDS:
                if not any(need in self.rejected or need in self.left for need in self.truth[id].needs):
                    raise Foul(f"{id} is rejected for a need that is not gone")
            case RejectCause.FAILS:
                self.look_at_the_proof(id, tests)
        del self.open[id]
        self.rejected[id] = reason

    def look_at_the_proof(self, id: str, tests: Sequence[int]) -> None:
        if len(set(tests)) < 2 or any(self.ended.get(number) is not False for number in tests):
            raise Foul(f"{id} is rejected without two failures: {tests}")
        if any(id not in self.trees[n] or frozenset(self.trees[n]) - {id} not in self.green for n in tests):
            raise Foul(f"{id} is rejected for a tree that has more to it than {id} and a green main")
        if not self.world.flake and not self.truth[id].bad and not self.landed.intersection(self.semantic.get(id, ())):
            raise Foul(f"{id} is good, and rejected")

    def halt(self, tests: Sequence[int]) -> None:
        if any(self.ended.get(number) is not False or self.trees[number] != self.main for number in tests):
            raise Foul("the queue halts without main having failed")
        if not self.world.flake and not self.weather.red:
            raise Foul("the queue halts, and main is green")
        if len(set(tests)) < 2:
            raise Foul("the queue halts after one failure")
        self.halted = True

    def judge_the_end(self) -> None:
        """Say what is wrong with how it ended, if anything is."""
        if self.weather.red and self.truth.keys() - self.left:
            raise Foul("main is red, and the queue did not halt")
        if len(self.main) != len(set(self.main)) or set(self.main) != self.landed:
            raise Foul("something landed twice")
        ended = self.landed | self.rejected.keys() | self.left
        if ended != self.truth.keys():
            raise Foul(f"{sorted(self.truth.keys() - ended)} came to no end")
        state = self.state
        if state.changes or state.clashes or state.landed or state.gone or any(r.test.changes for r in state.results):
            raise Foul("the train remembers what has ended")
