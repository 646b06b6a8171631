"""How the queue as a whole stands: who stopped what, since when and why."""

from __future__ import annotations

from covey.core.merging.queue.queue_status import Began, Frozen, Halted, Paused, QueueStatus, Resumed, Thawed, apply


def test_a_pause_and_a_freeze_each_keep_who_said_so_and_why() -> None:
    both = apply(apply(QueueStatus(), Paused("the release"), 1.0, "owner"), Frozen("an audit"), 2.0, "ada")
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
    assert apply(resumed, Thawed(), 4.0, "ada") == QueueStatus()


def test_a_main_that_was_red_stays_so_for_a_new_daemon_until_somebody_says_or_moves_it() -> None:
    began = Began(strategy="group", slots=1, base="1" * 40)
    going = apply(apply(apply(QueueStatus(), Paused(), 1.0, "owner"), began, 2.0, "covey"), Resumed(), 3.0, "owner")
    halted = apply(going, Halted("main is red"), 4.0, "covey")
    assert apply(halted, began, 5.0, "covey").halted == "main is red"
    assert apply(halted, Began(strategy="group", slots=1, base="2" * 40), 5.0, "covey").halted is None
    assert apply(apply(halted, Resumed(), 5.0, "owner"), began, 6.0, "covey").halted is None
