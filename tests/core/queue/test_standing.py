"""How the queue as a whole stands: who stopped what, since when and why."""

from __future__ import annotations

from covey.core.queue.standing import Frozen, Paused, Resumed, Standing, Thawed, apply


def test_a_pause_and_a_freeze_each_keep_who_said_so_and_why() -> None:
    both = apply(apply(Standing(), Paused("the release"), 1.0, "owner"), Frozen("an audit"), 2.0, "ada")
    assert (both.paused_why, both.paused_by, both.paused_since) == ("the release", "owner", 1.0)
    assert (both.frozen_why, both.frozen_by, both.frozen_since) == ("an audit", "ada", 2.0)
    resumed = apply(both, Resumed(), 3.0, "owner")
    assert (resumed.paused, resumed.paused_why, resumed.paused_by, resumed.paused_since) == (False, None, None, None)
    assert (resumed.frozen, resumed.frozen_why, resumed.frozen_by, resumed.frozen_since) == (
        True,
        "an audit",
        "ada",
        2.0,
    )
    assert apply(resumed, Thawed(), 4.0, "ada") == Standing()
