"""Group testing is as fast as promised, in every kind of world; ratios of simulated time, no stopwatch."""

from __future__ import annotations

import pytest

from covey.core.merging.queue.simulate import simulate
from tests.core.merging.queue.worlds import KINDS, compare, make

SEEDS = range(20)
FEW = range(6)
BEHIND = 0.85


@pytest.mark.parametrize(
    ("least", "options"),
    [
        (5.5, {}),
        (2.5, {"slots": 1}),
        (20.0, {"bad": 0.0, "conflicts": 0.0}),
        (3.4, {"bad": 0.2}),
    ],
    ids=["50 changes", "one slot", "all good", "many bad"],
)
def test_groups_land_so_many_times_faster_than_one_at_a_time(least: float, options: dict[str, float]) -> None:
    assert _speed(SEEDS, **options) >= least


def test_groups_land_500_changes_seven_times_faster() -> None:
    assert _speed(range(5), changes=500) >= 7.0


@pytest.mark.soak
def test_groups_land_500_changes_seven_times_faster_in_many_worlds() -> None:
    assert _speed(SEEDS, changes=500) >= 7.0


def _speed(seeds: range, **options: float) -> float:
    speed = compare((make(seed, **options) for seed in seeds), ("group",))["group"]  # type: ignore[arg-type]
    return min(speed.makespan, speed.overall)


def test_changes_land_as_fast_as_a_thousand_in_an_hour() -> None:
    report = simulate(make(1, changes=400, conflicts=0.0, slots=2, seconds=10.0), "group")
    assert len(report.landed) / report.makespan * 3600 >= 1000


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_never_slower_than_one_at_a_time_nor_far_behind_prefixes(kind: str) -> None:
    _is_never_far_behind(kind, FEW)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_never_slower_nor_far_behind_in_many_worlds(kind: str) -> None:
    _is_never_far_behind(kind, SEEDS)


def _is_never_far_behind(kind: str, seeds: range) -> None:
    speeds = compare(KINDS[kind](seed) for seed in seeds)
    assert speeds["group"].makespan >= max(1.0, BEHIND * speeds["prefix"].makespan)
    assert speeds["group"].overall >= max(1.0, BEHIND * speeds["prefix"].overall)
