"""For how long a daemon stays that a command started for itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.loops.lifetime import PAGE_ABSENCE_S, reasons


@given(
    st.booleans(),
    st.none() | st.floats(0, 2 * PAGE_ABSENCE_S),
    st.lists(st.sampled_from(["ada", "bob", "cy", "dot", "eve"]), unique=True),
    st.integers(0, 3),
)
def test_it_stays_exactly_as_long_as_somebody_needs_it(
    kept: bool, page_away: float | None, sessions: list[str], branches: int
) -> None:
    page = page_away is not None and page_away <= PAGE_ABSENCE_S
    told = reasons(kept=kept, page_away=page_away, sessions=sessions, branches=branches)
    assert len(told) == sum((kept, page, bool(sessions), bool(branches)))


def test_the_reasons_are_words() -> None:
    assert reasons(kept=True, page_away=1.0, sessions=("ada", "bob", "cy", "dot"), branches=2) == [
        "covey up, covey open or the like",
        "an open page",
        "the sessions at work (ada, bob, cy and 1 more)",
        "the queue (2 of yours on the way to main)",
    ]
