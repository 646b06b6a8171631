"""The fleet: it works, or stands still by somebody's word."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from covey.core.fleet import fleet_state
from covey.core.fleet.fleet_state import Fleet, Paused, Resumed


def test_a_fleet_that_stands_still_says_since_when_and_by_whose_word() -> None:
    paused = fleet_state.apply(Fleet(), Paused(), 7.0, "owner")
    assert paused == Fleet(paused=True, by="owner", since=7.0)
    assert fleet_state.apply(paused, Resumed(), 9.0, "owner") == Fleet()


@given(st.lists(st.sampled_from([Paused(), Resumed()]), min_size=1))
def test_the_last_word_counts(words: list[fleet_state.Event]) -> None:
    after = reduce(lambda now, word: fleet_state.apply(now, word, 1.0, "owner"), words, Fleet())
    assert after.paused is isinstance(words[-1], Paused)
