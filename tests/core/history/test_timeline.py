"""A strip tells the night truly, and never at greater length than there is room for."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from covey.core.fleet.sessions import SessionState
from covey.core.history.timeline import Doing, Span, Turn, strip

SINCE, UNTIL = 1_000.0, 2_000.0
moments = st.sampled_from([SINCE, 1_250.0, 1_500.0, UNTIL]) | st.floats(SINCE - 500, UNTIL + 500)
turns = st.lists(st.builds(Turn, moments, st.none() | st.sampled_from(SessionState), st.just("seen")), max_size=40)
in_order = turns.map(lambda found: sorted(found, key=lambda turn: turn.at))
absences = st.lists(st.tuples(moments, moments).map(lambda pair: (min(pair), max(pair))), max_size=3)
limits = st.integers(1, 30)


def shares(spans: list[Span]) -> dict[Doing, float]:
    """Return for how long each thing was done."""
    times: dict[Doing, float] = defaultdict(float)
    for span in spans:
        times[span.state] += span.until - span.at
    return times


def state_at(found: list[Turn], moment: float) -> SessionState | None:
    """Return the state at a moment that is no border, read straight from the turns."""
    return next((turn.state for turn in reversed(found) if turn.at <= moment), None)


@given(turns, absences, limits)
def test_spans_stand_in_order_within_the_window_and_there_are_never_too_many(
    found: list[Turn], away: list[tuple[float, float]], most: int
) -> None:
    spans = strip(found, SINCE, UNTIL, away, most)
    assert len(spans) <= most
    assert all(SINCE <= span.at < span.until <= UNTIL for span in spans)
    for first, second in pairwise(spans):
        assert first.until <= second.at
        assert first.until < second.at or first.state is not second.state


@given(in_order, st.floats(SINCE, UNTIL, exclude_max=True))
def test_every_moment_shows_what_the_log_says_of_it(found: list[Turn], moment: float) -> None:
    state = state_at(found, moment)
    shown = [span for span in strip(found, SINCE, UNTIL) if span.at <= moment < span.until]
    assert len(shown) == (state is not None)
    for span in shown:
        assert span.state == strip([Turn(0.0, state)], SINCE, UNTIL)[0].state


@given(in_order, absences)
def test_while_nobody_watched_nothing_is_claimed(found: list[Turn], away: list[tuple[float, float]]) -> None:
    for span in strip(found, SINCE, UNTIL, away):
        middle = (span.at + span.until) / 2
        unseen = any(begin <= middle < end for begin, end in away)
        assert (span.state is Doing.UNKNOWN) == unseen


@given(in_order, limits)
def test_what_lasts_twice_its_share_of_the_window_is_never_left_out(found: list[Turn], most: int) -> None:
    whole, fewer = strip(found, SINCE, UNTIL), strip(found, SINCE, UNTIL, most=most)
    for span in whole:
        if span.until - span.at > 2 * (UNTIL - SINCE) / most:
            middle = (span.at + span.until) / 2
            assert [shown.state for shown in fewer if shown.at <= middle < shown.until] == [span.state]


def test_a_session_that_never_rests_is_not_shown_as_if_it_had() -> None:
    restless = [Turn(SINCE + n, SessionState.WORKING if n % 4 else SessionState.NEEDS_YOU) for n in range(1_000)]
    times = shares(strip(restless, SINCE, UNTIL, most=300))
    assert len(strip(restless, SINCE, UNTIL, most=300)) <= 300
    assert times[Doing.NEEDS_YOU] > 150 and times[Doing.WORKING] > 600


def test_a_clock_that_was_set_back_makes_no_span_negative() -> None:
    spans = strip([Turn(1_500.0, SessionState.WORKING), Turn(1_400.0, SessionState.IDLE)], SINCE, UNTIL)
    assert spans == [Span(1_500.0, UNTIL, Doing.IDLE)]


def test_what_was_before_the_window_goes_on_in_it() -> None:
    spans = strip(
        [Turn(10.0, SessionState.LIMITED, "429"), Turn(1_200.0, SessionState.WORKING, "a call")], SINCE, UNTIL
    )
    assert spans == [
        Span(SINCE, 1_200.0, Doing.LIMITED, "429"),
        Span(1_200.0, UNTIL, Doing.WORKING, "a call"),
    ]
