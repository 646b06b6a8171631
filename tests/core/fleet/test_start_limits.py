"""How many runs start, and when: never none for ever, never more than providers and memory bear."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core.fleet import start_limits
from covey.core.fleet.signals import Trouble
from covey.core.fleet.start_limits import BURST_S, CALM_S, MAX_LIMIT_S, RETRY_AFTER_S, Pace, Wait

MIB = 1024**2


def wait(now: Pace, at: float, running: int, **load: float) -> Wait | None:
    """Say why no run starts."""
    return start_limits.why_wait(now, at=at, running=running, **load)  # type: ignore[arg-type]


# Providers


def test_nothing_holds_up_what_was_never_refused() -> None:
    assert wait(Pace(), 0.0, 1_000) is None


@pytest.mark.parametrize(("running", "limit"), [(16, 8), (9, 4.5), (2, 1), (1, 1), (0, 1)])
def test_a_refusal_halves_what_runs_and_leaves_one(running: int, limit: float) -> None:
    now = start_limits.refused(Pace(), 0.0, running, Trouble.LIMIT, "429")
    assert now.limit == limit
    most = int(limit)
    assert wait(now, 1.0, most - 1) is None
    assert wait(now, 1.0, most) == Wait(f"{most} runs are as many as its provider bears at the moment: 429")


def test_refusals_in_a_burst_count_once() -> None:
    now = Pace()
    for number in range(30):
        now = start_limits.refused(now, number * BURST_S / 31, 30 - number, Trouble.OVERLOAD, "529")
    assert now.limit == 15
    assert start_limits.refused(now, BURST_S, 15, Trouble.OVERLOAD, "529").limit == 7.5


def test_every_calm_minute_lets_one_more_run() -> None:
    now = start_limits.refused(Pace(), 0.0, 8, Trouble.LIMIT, "429")
    limits = []
    for minute in range(1, 4):
        now = start_limits.calm(now, minute * CALM_S - 0.1, 100)
        now = start_limits.calm(now, minute * CALM_S, 100)
        limits.append(now.limit)
    assert limits == [5, 6, 7]


def test_a_limit_that_nothing_comes_near_any_more_is_forgotten() -> None:
    now = start_limits.refused(Pace(), 0.0, 8, Trouble.LIMIT, "429")
    assert start_limits.calm(now, CALM_S, 2) == Pace()


@pytest.mark.parametrize("trouble", [Trouble.CONNECTION, Trouble.CORRUPT, Trouble.CONTEXT, Trouble.OTHER])
def test_what_is_no_refusal_of_a_provider_slows_nobody_down(trouble: Trouble) -> None:
    assert start_limits.refused(Pace(), 0.0, 8, trouble, "no") == Pace()


def test_nothing_starts_before_the_reset_that_was_named() -> None:
    now = start_limits.refused(Pace(), 0.0, 8, Trouble.LIMIT, "resets at nine", until=3_600.0)
    assert wait(now, 3_599.9, 0) == Wait("resets at nine", 3_600.0, news=True)
    now = start_limits.calm(now, 3_600.0, 0)
    assert (now.closed, wait(now, 3_600.0, 0)) == (None, None)


@pytest.mark.parametrize(
    ("until", "counts"),
    [
        (None, False),
        (1.75e9 - 1, False),
        (1.75e9, False),
        (1.75e9 + 1, True),
        (1.75e9 + 7 * 86_400, True),
        (1.75e9 + MAX_LIMIT_S, False),
        (1.75e12 + 3_600_000, False),
        (float("inf"), False),
    ],
)
def test_a_reset_is_believed_if_it_lies_within_the_next_days(until: float | None, counts: bool) -> None:
    assert start_limits.believed(until, 1.75e9) == (until if counts else None)


def test_the_latest_reset_counts() -> None:
    now = start_limits.refused(Pace(), 0.0, 8, Trouble.LIMIT, "at two", until=7_200.0)
    now = start_limits.refused(now, 1.0, 8, Trouble.LIMIT, "at one", until=3_600.0)
    assert now.closed == 7_200.0


@pytest.mark.parametrize("trouble", sorted(RETRY_AFTER_S))
def test_without_a_key_or_credit_one_try_every_five_minutes_is_enough(trouble: Trouble) -> None:
    now = start_limits.refused(Pace(), 100.0, 8, trouble, "401")
    found = wait(now, 101.0, 0)
    assert found is not None and found.until == 400.0
    assert wait(now, 400.0, 0) is None


class Providers(RuleBasedStateMachine):
    """Whatever a provider answers, in whatever order and however long apart."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.at = Pace(), 0.0
        self.cuts: list[float] = []

    @rule(seconds=st.floats(0.0, 200.0))
    def time_passes(self, seconds: float) -> None:
        self.at += seconds

    @rule(
        running=st.integers(0, 40),
        trouble=st.sampled_from(Trouble),
        until=st.none() | st.floats(-100.0, 2_000.0),
    )
    def refused(self, running: int, trouble: Trouble, until: float | None) -> None:
        before = self.now.limit
        self.now = start_limits.refused(
            self.now, self.at, running, trouble, "no", None if until is None else self.at + until
        )
        if self.now.limit != before:
            self.cuts.append(self.at)
            assert before is None or (self.now.limit or 0) < before

    @rule(running=st.integers(0, 40))
    def calm(self, running: int) -> None:
        before = self.now.limit
        self.now = start_limits.calm(self.now, self.at, running)
        assert self.now.limit in (before, None) or self.now.limit == (before or 0) + 1

    @invariant()
    def one_may_always_run(self) -> None:
        assert self.now.limit is None or self.now.limit >= 1
        closed = self.now.closed if self.now.closed is not None and self.now.closed > self.at else self.at
        assert wait(self.now, closed, 0) is None

    @invariant()
    def no_two_cuts_are_of_one_burst(self) -> None:
        assert all(later - earlier >= BURST_S for earlier, later in zip(self.cuts, self.cuts[1:], strict=False))


TestProviders = Providers.TestCase
TestProviders.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


# Memory and stagger


def test_what_has_no_room_waits_and_a_person_is_told() -> None:
    room = {"free": 900 * MIB, "needs": 400 * MIB}
    assert wait(Pace(), 0.0, 3, **room, reserve=500 * MIB) is None
    found = wait(Pace(), 0.0, 3, **room, reserve=501 * MIB)
    assert found == Wait("944 MB of memory are free, and one more run takes about 419 MB", news=True)
    less = wait(Pace(), 0.0, 3, **room | {"free": 800 * MIB}, reserve=501 * MIB)
    assert less is not None and (less.cause, less.lasts, less == found) == (found.cause, True, False), (
        "it is the same shortage"
    )


def test_the_first_run_starts_however_little_memory_there_is_and_where_nobody_knows() -> None:
    assert wait(Pace(), 0.0, 0, free=1 * MIB, needs=400 * MIB, reserve=512 * MIB) is None
    assert start_limits.why_wait(Pace(), at=0.0, running=9, free=None, needs=400 * MIB, reserve=512 * MIB) is None


def test_starts_are_apart() -> None:
    now = Pace(started=100.0)
    assert wait(now, 101.9, 1, gap=2.0) == Wait("starts are staggered", 102.0)
    assert wait(now, 102.0, 1, gap=2.0) is None
    assert wait(now, 100.0, 1) is None


# Backoff


def test_waits_double_from_five_seconds_to_five_minutes() -> None:
    found = [start_limits.backoff(failures, 5.0, 300.0, 0.5) for failures in range(1, 9)]
    assert found == [5, 10, 20, 40, 80, 160, 300, 300]


@given(st.integers(-1, 10_000), st.floats(0.0, 1.0))
def test_a_wait_is_never_longer_than_the_most_nor_much_shorter_than_the_first(failures: int, chance: float) -> None:
    found = start_limits.backoff(failures, 5.0, 300.0, chance)
    assert 4.5 <= found <= 300.0


@given(st.integers(1, 60), st.floats(0.1, 60.0), st.floats(1.0, 900.0))
def test_without_chance_who_fails_more_often_never_waits_less(failures: int, first: float, most: float) -> None:
    assert (
        start_limits.backoff(failures, first, most, 0.5) <= start_limits.backoff(failures + 1, first, most, 0.5) <= most
    )


@given(st.integers(1, 60), st.floats(0.0, 1.0))
def test_chance_spreads_a_wait_by_a_tenth_to_each_side(failures: int, chance: float) -> None:
    middle = start_limits.backoff(failures, 5.0, 300.0, 0.5)
    assert 0.9 * middle - 1e-9 <= start_limits.backoff(failures, 5.0, 300.0, chance) <= 1.1 * middle + 1e-9
