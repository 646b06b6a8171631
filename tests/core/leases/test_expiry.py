"""When silence ends something: only after a whole time to live that somebody watched."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.fleet.sessions import SessionKind
from covey.core.leases.expiry import CLOCK_JUMP_S, Instant, Watch, claim_ttl


@dataclass(frozen=True)
class Step:
    """What happens between two looks: time awake, time asleep, and a turn of the wall clock."""

    awake: float
    asleep: float = 0.0
    turned: float = 0.0

    @property
    def jumps(self) -> bool:
        return self.asleep > CLOCK_JUMP_S or abs(self.asleep + self.turned) > CLOCK_JUMP_S


def after(now: Instant, step: Step) -> Instant:
    return Instant(
        now.wall + step.awake + step.asleep + step.turned,
        now.awake + step.awake,
        now.boot + step.awake + step.asleep,
    )


BEGIN = Instant(1_700_000_000.0, 1000.0, 5000.0)
# Whole seconds, so that no sum is rounded.
steps = st.lists(
    st.builds(
        Step,
        awake=st.integers(0, 100).map(float),
        asleep=st.sampled_from([0.0, 0.0, 0.0, 3.0, 60.0, 7200.0]),
        turned=st.sampled_from([0.0, 0.0, 0.0, 3.0, -3.0, 3600.0, -3600.0]),
    ),
    max_size=12,
)


@given(steps, st.integers(-50, 500), st.integers(1, 200))
def test_nothing_expires_before_a_whole_ttl_was_watched_and_everything_does_after(
    walk: list[Step], heard: int, ttl: int
) -> None:
    now, watch = BEGIN, Watch.begin(BEGIN)
    watched_from = now.awake
    seen = BEGIN.awake + heard
    for step in walk:
        now = after(now, step)
        watch = watch.look(now)
        if step.jumps:
            watched_from = now.awake
        watched = now.awake - watched_from
        silent = now.awake - seen
        assert watch.expired(seen, ttl) is (watched >= ttl and silent >= ttl)
        assert watch.expired(None, ttl) is (watched >= ttl)


@pytest.mark.parametrize(
    "step",
    [Step(1.0, asleep=6.0), Step(1.0, turned=6.0), Step(1.0, turned=-6.0), Step(1.0, asleep=3600.0, turned=-3600.0)],
    ids=["suspend", "clock set forward", "clock set back", "suspend that the wall clock hides"],
)
def test_a_watch_begins_anew_after(step: Step) -> None:
    watch = Watch.begin(BEGIN).look(after(BEGIN, Step(100.0)))
    assert watch.expired(None, 60.0)
    now = after(watch.last, step)
    assert not watch.look(now).expired(None, 60.0)
    assert watch.look(now).since == now.awake
    assert not watch.look(now).look(after(now, Step(59.0))).expired(None, 60.0)
    assert watch.look(now).look(after(now, Step(60.0))).expired(None, 60.0)


def test_a_small_drift_between_the_clocks_is_no_jump() -> None:
    watch = Watch.begin(BEGIN)
    for _ in range(10):
        watch = watch.look(after(watch.last, Step(10.0, turned=4.0)))
    assert watch.since == BEGIN.awake


def test_time_asleep_does_not_count_as_watched() -> None:
    watch = Watch.begin(BEGIN).look(after(BEGIN, Step(10.0, asleep=4.0)))
    assert watch.expired(None, 10.0) and not watch.expired(None, 11.0)


@pytest.mark.parametrize(
    ("kind", "ttl"), [(SessionKind.RUN, 60.0), (SessionKind.OUTSIDE, 3600.0), (SessionKind.PERSON, None)]
)
def test_a_claim_survives_silence(kind: SessionKind, ttl: float | None) -> None:
    assert claim_ttl(kind, outside=3600.0, run=60.0) == ttl
