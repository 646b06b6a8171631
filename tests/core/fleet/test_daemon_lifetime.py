"""For how long a daemon stays that a command started for itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.core.fleet.daemon_lifetime import PAGE_ABSENCE_S, Reliance, reasons

RELIANCES = st.builds(
    Reliance,
    kept=st.booleans(),
    page_away=st.none() | st.floats(0, 2 * PAGE_ABSENCE_S),
    sessions=st.lists(st.sampled_from(["ada", "bob", "cy", "dot", "eve"]), unique=True).map(tuple),
    branches=st.integers(0, 3),
)


@given(RELIANCES)
def test_it_stays_exactly_as_long_as_somebody_needs_it(seen: Reliance) -> None:
    page = seen.page_away is not None and seen.page_away <= PAGE_ABSENCE_S
    assert len(reasons(seen)) == sum((seen.kept, page, bool(seen.sessions), bool(seen.branches)))


def test_the_reasons_are_words() -> None:
    seen = Reliance(kept=True, page_away=1.0, sessions=("ada", "bob", "cy", "dot"), branches=2)
    assert reasons(seen) == [
        "covey up, covey open or the like",
        "an open page",
        "the sessions at work (ada, bob, cy and 1 more)",
        "the queue (2 of yours on the way to main)",
    ]
