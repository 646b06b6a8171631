"""Worlds to try strategies in, made from a seed, and how much faster than one at a time strategies are in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from covey.core.merging.queue.simulate import Coming, Conflict, Report, World, simulate

AREAS = 20
NEAR = 30
"""How far from each other, in the order of arrival, two changes in conflict may be."""
TEXT = 0.7
"""How many of all conflicts git sees."""


def make(
    seed: int,
    *,
    changes: int = 50,
    bad: float | Sequence[float] = 0.05,
    conflicts: float = 0.05,
    slots: int = 4,
    flake: float = 0.0,
    jitter: float = 0.0,
    every: float = 0.0,
    burst: int = 1,
    cluster: int = 0,
    needs: float = 0.0,
    urgent: float = 0.0,
    seconds: float = 60.0,
) -> World:
    """Return a world: `bad` may change along the way, `burst` changes come at once, `every` so many seconds."""
    random = Random(seed)
    rates = [bad] if isinstance(bad, int | float) else list(bad)
    areas = [_areas(random) for _ in range(changes)]
    at = 0.0
    coming = []
    for number in range(changes):
        if number and every and number % burst == 0:
            at += random.expovariate(1 / (every * burst))
        needed = [f"c{number - random.randint(1, min(number, 10))}"] if number and random.random() < needs else []
        coming.append(
            Coming(
                f"c{number}",
                at=at,
                bad=random.random() < rates[number * len(rates) // changes],
                priority=random.randint(1, 3) if random.random() < urgent else 0,
                needs=tuple(needed),
                paths=tuple(f"src/area{area}/file{number % 7}.py" for area in sorted(areas[number])),
            )
        )
    found = _clusters(random, changes, conflicts, cluster) if cluster else _pairs(random, areas, conflicts)
    return World(
        changes=tuple(coming),
        conflicts=tuple(Conflict(f"c{one}", f"c{other}", semantic) for one, other, semantic in found),
        slots=slots,
        seconds=seconds,
        jitter=jitter,
        flake=flake,
        seed=seed,
    )


def _areas(random: Random) -> set[int]:
    weights = [1 / (area + 1) ** 0.7 for area in range(AREAS)]
    return set(random.choices(range(AREAS), weights, k=1 if random.random() < 0.8 else 2))


def _pairs(random: Random, areas: list[set[int]], rate: float) -> list[tuple[int, int, bool]]:
    """Let some changes be in conflict with one nearby that works on the same area, or, seldom, elsewhere."""
    found = {}
    for one in range(len(areas)):
        if random.random() >= rate:
            continue
        semantic = random.random() >= TEXT
        near = [
            other
            for other in range(max(0, one - NEAR), min(len(areas), one + NEAR))
            if other != one and (areas[one] & areas[other] or (semantic and random.random() < 0.2))
        ]
        if near:
            other = random.choice(near)
            found[min(one, other), max(one, other)] = semantic
    return [(one, other, semantic) for (one, other), semantic in found.items()]


def _clusters(random: Random, changes: int, rate: float, size: int) -> list[tuple[int, int, bool]]:
    """Let groups of changes near each other all be in conflict with one another, as when many touch one file."""
    found = []
    for _ in range(max(1, round(changes * rate / size))):
        first = random.randrange(max(1, changes - NEAR))
        members = random.sample(range(first, min(first + NEAR, changes)), min(size, changes - first))
        semantic = random.random() >= TEXT
        found += [(one, other, semantic) for one in members for other in members if one < other]
    return list({(one, other): (one, other, semantic) for one, other, semantic in found}.values())


Kind = Callable[[int], World]

KINDS: dict[str, Kind] = {
    "50 changes": make,
    "50 changes, one slot": lambda seed: make(seed, slots=1),
    "50 changes, two slots": lambda seed: make(seed, slots=2),
    "50 changes, eight slots": lambda seed: make(seed, slots=8),
    "all good": lambda seed: make(seed, bad=0, conflicts=0),
    "all good, one slot": lambda seed: make(seed, bad=0, conflicts=0, slots=1),
    "many bad": lambda seed: make(seed, bad=0.2),
    "many bad, one slot": lambda seed: make(seed, bad=0.2, slots=1),
    "most bad": lambda seed: make(seed, bad=0.5),
    "many conflicts": lambda seed: make(seed, conflicts=0.2),
    "over time": lambda seed: make(seed, changes=100, every=10),
    "over time, few": lambda seed: make(seed, changes=100, every=50),
    "in bursts": lambda seed: make(seed, changes=100, every=10, burst=20),
    "getting worse": lambda seed: make(seed, changes=100, bad=(0.0, 0.05, 0.3)),
    "getting better": lambda seed: make(seed, changes=100, bad=(0.3, 0.05, 0.0)),
    "clustered conflicts": lambda seed: make(seed, conflicts=0.3, cluster=5),
    "flakes": lambda seed: make(seed, flake=0.03),
    "many flakes": lambda seed: make(seed, flake=0.1),
    "jitter": lambda seed: make(seed, jitter=0.3),
    "jitter and flakes over time": lambda seed: make(seed, changes=100, jitter=0.3, flake=0.02, every=10),
    "needs": lambda seed: make(seed, needs=0.3),
    "priorities": lambda seed: make(seed, urgent=0.3, every=5),
    "200 changes": lambda seed: make(seed, changes=200),
    "200 changes, one slot": lambda seed: make(seed, changes=200, slots=1),
    "many bad over time": lambda seed: make(seed, changes=100, bad=0.2, every=15),
    "bad in a row": lambda seed: make(seed, changes=100, bad=(0.0, 0.9, 0.0, 0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 0.0)),
    "few": lambda seed: make(seed, changes=8),
}


@dataclass(frozen=True)
class Speed:
    """How a strategy compares with one at a time: by the whole time, by how long a change waits, and by tests."""

    makespan: float
    wait: float
    tests: float
    overall: float
    """By the time that all worlds take one after the other, in which lucky ones count for less."""


def compare(worlds: Iterable[World], strategies: Sequence[str] = ("prefix", "group")) -> dict[str, Speed]:
    """Return how many times faster than one at a time some strategies are: means over worlds, larger is better."""
    tried = list(worlds)
    serial = [simulate(world, "serial") for world in tried]
    return {strategy: _speed(tried, serial, [simulate(world, strategy) for world in tried]) for strategy in strategies}


def _speed(tried: list[World], serial: list[Report], found: list[Report]) -> Speed:
    both = list(zip(tried, serial, found, strict=True))
    return Speed(
        makespan=fmean(_ratio(slow.makespan, fast.makespan) for _, slow, fast in both),
        wait=fmean(_ratio(waited(world, slow), waited(world, fast)) for world, slow, fast in both),
        tests=fmean(_ratio(slow.tests, fast.tests) for _, slow, fast in both),
        overall=_ratio(sum(each.makespan for each in serial), sum(each.makespan for each in found)),
    )


def _ratio(one: float, other: float) -> float:
    return one / other if other else 1.0


def waited(world: World, report: Report) -> float:
    """Return how long a change waited in the mean until it landed or was sent back."""
    at = {change.id: change.at for change in world.changes}
    ended = [(each.id, each.at) for each in report.landed] + [(each.id, each.at) for each in report.rejected]
    return fmean([end - at[id] for id, end in ended] or [0.0])


def table(strategies: Sequence[str] = ("prefix", "group"), seeds: int = 20) -> str:
    """Return, for people, how strategies compare in every kind of world."""
    lines = [f"{'makespan, overall, wait, tests':34}" + "".join(f"{strategy:>28}" for strategy in strategies)]
    for name, kind in KINDS.items():
        speeds = compare((kind(seed) for seed in range(seeds)), strategies)
        cells = (f"{s.makespan:8.2f} {s.overall:6.2f} {s.wait:5.2f} {s.tests:5.2f}" for s in speeds.values())
        lines.append(f"{name:34}" + "".join(f"{cell:>28}" for cell in cells))
    return "\n".join(lines)
