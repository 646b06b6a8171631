"""How the queue as a whole stands: who stopped what, since when and why."""

from __future__ import annotations

from dataclasses import replace

from covey.core.merging.gates import Gate, GateState
from covey.core.merging.queue.queue_status import (
    Began,
    Frozen,
    Halted,
    Paused,
    QueueStatus,
    Resumed,
    Thawed,
    apply,
    ends_halt,
)


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


def test_a_gate_that_red_main_passes_ends_the_halt_and_no_pause() -> None:
    began = Began(strategy="group", slots=1, base="1" * 40)
    red = apply(apply(QueueStatus(), began, 1.0, "covey"), Halted("main is red", ("gate-1",)), 2.0, "covey")
    tried = apply(apply(red, Paused("the release"), 3.0, "owner"), Resumed("gate-2"), 4.0, "owner")
    assert (tried.halted, tried.gates, tried.paused, tried.paused_why) == (None, (), True, "the release")
    assert apply(tried, began, 5.0, "covey").halted is None
    gate = Gate(
        id="gate-2", ordinal=9, test=0, base="1" * 40, commit="1" * 40, checks="c", state=GateState.PASSED, code=0
    )
    assert ends_halt(red, gate, "c")
    assert not ends_halt(red, gate, "other") and not ends_halt(replace(red, halted=None), gate, "c")
    assert not ends_halt(red, replace(gate, commit="2" * 40), "c")
    assert not ends_halt(red, replace(gate, state=GateState.FAILED, code=1), "c")
