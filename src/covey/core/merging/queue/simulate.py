"""The simulator: the train of the daemon, in a world where a gate takes no time but on the simulated clock.

A world is what happens to the queue: changes with their faults, when they come, and how long the gate takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from covey.core.merging.queue import train
from covey.core.merging.queue.steps import step
from covey.core.merging.queue.train import Event, RejectCause, Test
from covey.errors import Invalid
from covey.values import dataclass

MIXED = 0x9E3779B97F4A7C15
WORD = 2**64 - 1
LENGTH, FLAKE = 0, 1
SAME_MOMENT = 1e-9


@dataclass(frozen=True)
class Coming:
    """One change as it really is; a strategy is told all of it but whether it is bad."""

    id: str
    at: float = 0.0
    bad: bool = False
    priority: int = 0
    needs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conflict:
    """Two changes that cannot both land: git cannot merge them, or the gate fails when both are in the tree."""

    one: str
    other: str
    semantic: bool = False


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything that happens to the queue, the same for every strategy that is tried in it."""

    changes: tuple[Coming, ...]
    conflicts: tuple[Conflict, ...] = ()
    slots: int = 1
    seconds: float = 60.0
    jitter: float = 0.0
    """By which part of its length the gate may take less or more."""
    flake: float = 0.0
    """The chance that a good tree fails."""
    seed: int = 0

    def partners(self, *, semantic: bool) -> dict[str, tuple[str, ...]]:
        """Return with which others each change is in conflict, of one of the two kinds."""
        found: dict[str, list[str]] = {}
        for conflict in self.conflicts:
            if conflict.semantic == semantic:
                found.setdefault(conflict.one, []).append(conflict.other)
                found.setdefault(conflict.other, []).append(conflict.one)
        return {id: tuple(dict.fromkeys(others)) for id, others in found.items()}


def chance(seed: int, number: int, stream: int) -> float:
    """Return a number from 0 to below 1 that is as good as random and follows from its arguments (splitmix64)."""
    word = (seed * 3 + stream + 1) * MIXED + number * 0xD1342543DE82EF95 & WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return (word ^ word >> 31) / 2**64


# What comes of it


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
        self.state = train.TrainState(strategy=strategy, slots=world.slots)
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
                self.state, actions = step(self.state, train.Together(tuple(happened)))
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
            happened.append(train.Ended(number, passed))
        while self.coming and self.coming[-1][1].at <= until:
            happened += self._arrived(len(self.known) - len(self.coming), self.coming.pop()[1])
        return happened

    def _arrived(self, order: int, change: Coming) -> Iterable[Event]:
        """Enter a change as the daemon would: what it needs is on main already or still to come."""
        needs = tuple(need for need in change.needs if need not in self.on_main)
        if self.gone.intersection(needs):
            self._gone(change.id, "needs")
            yield train.Left(change.id)
            return
        self.open.add(change.id)
        partners = self.text.get(change.id, ())
        clashes = tuple(other for other in partners if other in self.open)
        yield train.Arrived(train.Change(change.id, order, change.priority, needs, change.paths), clashes)
        if any(other in self.on_main for other in partners):
            yield train.Clashed(change.id)

    def _do(self, actions: Iterable[train.Action]) -> list[Event]:
        """Do what the train wants, and return what happens by that at once."""
        happened: list[Event] = []
        ended: set[int] = set()
        for action in actions:
            match action:
                case train.Start(test):
                    heappush(self.ends, (self.now + self._length(test), test.id, self._passes(test)))
                case train.Cancel(number):
                    ended.add(number)
                case train.Land(_, changes):
                    self._land(changes)
                    clashing = (other for id in changes for other in self.text.get(id, ()) if other in self.open)
                    happened += [train.Clashed(id) for id in dict.fromkeys(clashing)]
                case train.Reject(id, reason):
                    self.open.discard(id)
                    self._gone(id, self._why(id, reason))
                case train.Halt():
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


# A world as somebody wrote it down

_FIELDS = {
    "the world": ("slots", "gate", "flake", "seed", "changes", "conflicts"),
    "gate": ("seconds", "jitter"),
    "change": ("id", "at", "bad", "priority", "needs", "paths"),
}
_EXAMPLE = '{"slots": 4, "gate": {"seconds": 60}, "changes": [{"id": "c1", "bad": false}], "conflicts": []}'
MAX_NUMBER = 1e12


def read(value: object) -> World:
    """Return the world that parsed JSON describes; what makes no sense in it is named."""
    world = _fields("the world", value, "The world")
    if "changes" not in world:
        raise Invalid("The world has no changes.", hint=f"For example: {_EXAMPLE}")
    gate = _fields("gate", world.get("gate", {}), "gate")
    changes = tuple(_change(each, f"changes[{at}]") for at, each in enumerate(_list(world["changes"], "changes")))
    ids = {change.id for change in changes}
    if len(ids) < len(changes):
        counts = Counter(change.id for change in changes)
        raise Invalid(f"There are several changes {_shown(counts.most_common(1)[0][0])}.")
    _check_needs(changes, ids)
    conflicts = _list(world.get("conflicts", []), "conflicts")
    return World(
        changes=changes,
        conflicts=tuple(_conflict(each, f"conflicts[{at}]", ids) for at, each in enumerate(conflicts)),
        slots=_whole(world.get("slots", 1), "slots", 1, 1000),
        seconds=_number(gate.get("seconds", 60.0), "gate.seconds", 0.0, MAX_NUMBER),
        jitter=_number(gate.get("jitter", 0.0), "gate.jitter", 0.0, 1.0),
        flake=_number(world.get("flake", 0.0), "flake", 0.0, 1.0),
        seed=_whole(world.get("seed", 0), "seed", -(2**63), 2**64),
    )


def _change(value: object, where: str) -> Coming:
    change = _fields("change", value, where)
    id = change.get("id")
    if not isinstance(id, str) or not id:
        raise Invalid(f"{where} needs an id, which is a text.")
    bad = change.get("bad", False)
    if not isinstance(bad, bool):
        raise Invalid(f"{where}.bad must be true or false, not {_shown(bad)}.")
    return Coming(
        id,
        at=_number(change.get("at", 0.0), f"{where}.at", 0.0, MAX_NUMBER),
        bad=bad,
        priority=_whole(change.get("priority", 0), f"{where}.priority", -(2**53), 2**53),
        needs=_texts(change.get("needs", []), f"{where}.needs"),
        paths=_texts(change.get("paths", []), f"{where}.paths"),
    )


def _conflict(value: object, where: str, ids: set[str]) -> Conflict:
    match value:
        case [str(one), str(other), "text" | "semantic" as kind]:
            for id in (one, other):
                if id not in ids:
                    raise Invalid(f"{where} names {_shown(id)}, and there is no such change.")
            if one == other:
                raise Invalid(f"{where}: {_shown(one)} cannot be in conflict with itself.")
            return Conflict(one, other, semantic=kind == "semantic")
        case _:
            raise Invalid(
                f'{where} must be two ids and "text" or "semantic", not {_shown(value)}.',
                hint='["c1", "c7", "text"], for example.',
            )


def _check_needs(changes: tuple[Coming, ...], ids: set[str]) -> None:
    for at, change in enumerate(changes):
        for need in change.needs:
            if need not in ids:
                raise Invalid(f"changes[{at}].needs names {_shown(need)}, and there is no such change.")
    needs = {change.id: set(change.needs) for change in changes}
    asked: dict[str, list[str]] = {}
    for change in changes:
        for need in needs[change.id]:
            asked.setdefault(need, []).append(change.id)
    ready = [id for id, its in needs.items() if not its]
    for id in ready:  # grows while it is read
        for other in asked.get(id, ()):
            needs[other].discard(id)
            if not needs[other]:
                ready.append(other)
    if len(ready) < len(changes):
        way = [next(id for id, its in needs.items() if its)]
        while way[-1] not in way[:-1]:
            way.append(min(needs[way[-1]]))
        raise Invalid(
            f"{_shown(way[-1])} needs itself, directly or through others.", hint="Break that circle of needs."
        )


def _fields(kind: str, value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Invalid(f"{where} must be an object, not {_shown(value)}.", hint=f"For example: {_EXAMPLE}")
    known = _FIELDS[kind]
    strange = next((name for name in value if name not in known), None)
    if strange is not None:
        raise Invalid(f"{where} has an unknown field {_shown(strange)}.", hint=f"Known are {', '.join(known)}.")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise Invalid(f"{where} must be a list, not {_shown(value)}.")
    return value


def _texts(value: object, where: str) -> tuple[str, ...]:
    found = _list(value, where)
    texts = tuple(each for each in found if isinstance(each, str))
    if len(texts) < len(found):
        raise Invalid(f"{where} must be a list of texts, not {_shown(value)}.")
    return tuple(dict.fromkeys(texts))


def _number(value: object, where: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Invalid(f"{where} must be a number from {low:g} to {high:g}, not {_shown(value)}.")
    return float(value)


def _whole(value: object, where: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Invalid(f"{where} must be a whole number from {low} to {high}, not {_shown(value)}.")
    return value


def _shown(value: object) -> str:
    return repr(value)[:60]
