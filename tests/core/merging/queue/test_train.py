"""Whatever happens, and whichever strategy chooses, main is never red, and everybody gets what is right."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covey.core.merging.queue import steps, train
from covey.core.merging.queue.simulate import Coming, Conflict, World
from covey.core.merging.queue.train import RejectCause
from tests.core.merging.queue.referee import Foul, Match, Weather

STRATEGIES = ("serial", "prefix", "group")
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
often = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def worlds(draw: st.DrawFn, *, flake: float = 0.0, most: int = 10) -> World:
    """Return a small world with much in it that can go wrong."""
    number = draw(st.integers(1, most))
    ids = [f"c{each}" for each in range(number)]
    bad = draw(st.sampled_from([0.0, 0.1, 0.5]))
    chances = Random(draw(st.integers(0, 10_000)))
    later = draw(st.booleans())
    needs = draw(st.sampled_from([0.0, 0.0, 0.3]))
    urgent = draw(st.booleans())
    changes = []
    for each, id in enumerate(ids):
        others = ids if chances.random() < 0.2 else ids[:each]
        needed = [other for other in others if other < id and chances.random() < needs][:2]
        changes.append(
            Coming(
                id,
                at=float(chances.randint(0, 5)) if later else 0.0,
                bad=chances.random() < bad,
                priority=chances.randint(0, 2) if urgent else 0,
                needs=tuple(needed),
            )
        )
    pairs = [(one, other) for one in ids for other in ids if one < other]
    chosen = chances.sample(pairs, min(len(pairs), draw(st.integers(0, 5))))
    conflicts = tuple(Conflict(one, other, chances.random() < 0.5) for one, other in chosen)
    return World(changes=tuple(changes), conflicts=conflicts, slots=draw(st.integers(1, 5)), flake=flake)


storms = st.builds(
    Weather,
    leaves=st.sampled_from([0.0, 0.0, 0.05]),
    loses=st.sampled_from([0.0, 0.0, 0.1]),
    pauses=st.sampled_from([0.0, 0.0, 0.1]),
    reorders=st.sampled_from([0.0, 0.0, 0.2]),
    late=st.sampled_from([0.0, 0.0, 0.5]),
    heals=st.sampled_from([0.0, 0.0, 0.5]),
    crashes=st.sampled_from([0.0, 0.0, 0.05, 0.3]),
    proven=st.booleans(),
)


@each_strategy
@often
@given(world=worlds(), seed=st.integers(0, 10_000), weather=storms)
def test_everybody_gets_what_is_right_whatever_happens(
    strategy: str, world: World, seed: int, weather: Weather
) -> None:
    Match(world, strategy, Random(seed), weather).play()


@each_strategy
@often
@given(world=worlds(flake=0.2), seed=st.integers(0, 10_000), weather=storms)
def test_main_stays_green_and_all_comes_to_an_end_with_a_gate_that_flakes(
    strategy: str, world: World, seed: int, weather: Weather
) -> None:
    Match(world, strategy, Random(seed), weather).play()


@each_strategy
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=worlds(most=6), seed=st.integers(0, 10_000))
def test_a_crash_after_any_action_changes_nothing_that_is_right(strategy: str, world: World, seed: int) -> None:
    undisturbed = Match(world, strategy, Random(seed)).play()
    for action in range(1, undisturbed.actions + 1):
        Match(world, strategy, Random(seed), Weather(crash_at=action)).play()


@each_strategy
@settings(max_examples=40, deadline=None)
@given(world=worlds(), seed=st.integers(0, 10_000))
def test_a_red_main_halts_the_queue_and_rejects_nobody(strategy: str, world: World, seed: int) -> None:
    match = Match(world, strategy, Random(seed), Weather(proven=False, red=True)).play()
    assert match.halted and not match.landed
    assert RejectCause.FAILS not in match.rejected.values()


@each_strategy
@settings(max_examples=60, deadline=None)
@given(world=worlds(), seed=st.integers(0, 10_000))
def test_every_reason_is_the_right_one(strategy: str, world: World, seed: int) -> None:
    match = Match(world, strategy, Random(seed)).play()
    for change in world.changes:
        others = match.text.get(change.id, ())
        reason = match.rejected.get(change.id)
        if reason is None:
            assert not change.bad and not match.landed.intersection(others)
        elif not change.bad:
            gone = [need for need in change.needs if need in match.rejected]
            partners = match.landed.intersection(others, ()) if reason is RejectCause.TEXT else match.landed
            assert gone or match.landed.intersection(others) or partners.intersection(match.semantic[change.id])


# The referee is worth something only if it sees what is wrong


def _fouls(strategy: str, *, flake: float = 0.0, red: bool = False, conflicts: bool = True) -> set[str]:
    """Play some matches and return the fouls that were called."""
    found = set()
    for seed in range(60):
        random = Random(seed)
        ids = [f"c{each}" for each in range(12)]
        changes = tuple(
            Coming(id, bad=random.random() < 0.2, needs=(ids[each - 1],) if each % 5 == 4 else ())
            for each, id in enumerate(ids)
        )
        pairs = (Conflict("c0", "c2"), Conflict("c1", "c5", True), Conflict("c3", "c6", True)) if conflicts else ()
        world = World(changes=changes, conflicts=pairs, slots=3, flake=flake)
        try:
            Match(world, strategy, random, Weather(proven=not red, red=red)).play()
        except Foul as foul:
            found.add(str(foul))
    return found


@each_strategy
def test_the_referee_calls_nothing_where_nothing_is_wrong(strategy: str) -> None:
    assert not _fouls(strategy) | _fouls(strategy, flake=0.1) | _fouls(strategy, red=True)


@each_strategy
def test_the_referee_sees_a_rejection_after_one_failure(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "FAILURES", 1)
    assert any("without two failures" in foul for foul in _fouls(strategy))


def test_the_referee_sees_that_a_tree_lands_which_was_tested_on_another_main(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = steps._on_top
    monkeypatch.setattr(steps, "_on_top", lambda test, main, landed: replace(sound(test, main, landed), on=main + 1))
    assert any("did not pass as it is" in foul for foul in _fouls("prefix") | _fouls("group"))


def test_the_referee_sees_that_a_group_is_blamed_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        steps, "failed_alone", lambda state, id: tuple(r.test.id for r in state.results if id in r.test.changes)
    )
    assert _fouls("prefix")


def test_the_referee_sees_that_a_red_main_is_blamed_on_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train.TrainState, "proven", property(lambda state: True))
    assert _fouls("serial", red=True)


def test_the_referee_sees_a_change_in_a_tree_with_what_it_clashes_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps._Train, "_clash", lambda *_: None)
    assert any("git cannot merge" in foul or "goes first" in foul for foul in _fouls("prefix"))
