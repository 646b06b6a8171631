from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from covey.core.merging.gate_slots import (
    FULL,
    GATE_MEMORY_BYTES,
    MAX_AUTOMATIC_SLOTS,
    MAX_GATES_AVERAGED,
    load,
    slots,
)


def test_what_is_set_holds() -> None:
    assert slots(5, 2, [4.0], free_memory=0) == 5


def test_a_gate_that_nobody_has_seen_takes_one_core() -> None:
    assert slots(0, 2, []) == 2
    assert slots(0, 1, []) == 1


def test_gates_that_mostly_wait_run_beside_each_other_and_hungry_ones_alone() -> None:
    assert slots(0, 2, [0.5] * 3) == 4
    assert slots(0, 2, [0.01] * 3) == MAX_AUTOMATIC_SLOTS
    assert slots(0, 2, [1.9]) == 1
    assert slots(0, 16, [4.0]) == 4


def test_only_the_last_gates_count_and_one_odd_gate_does_not() -> None:
    assert slots(0, 2, [2.0] * 20 + [0.5] * MAX_GATES_AVERAGED) == 4
    assert slots(0, 2, [0.5, 0.5, 2.0]) == 4


def test_there_are_no_more_than_the_memory_allows() -> None:
    assert slots(0, 8, [0.5], free_memory=3 * GATE_MEMORY_BYTES + 1) == 3
    assert slots(0, 8, [0.5], free_memory=0) == 1


def test_on_a_full_machine_a_gate_counts_as_one_processor_at_least() -> None:
    assert load(1.0, 4.0, 0.5) == load(1.0, 4.0, None) == 0.25
    assert load(1.0, 4.0, FULL / 2) == 1.0
    assert load(6.0, 4.0, 0.0) == 1.5


@given(
    some.floats(0.1, 1000),
    some.lists(some.floats(0, 1000)),
    some.none() | some.integers(0, 2**40),
)
def test_there_is_always_one_and_never_too_many(cores: float, loads: list[float], memory: int | None) -> None:
    assert 1 <= slots(0, cores, loads, free_memory=memory) <= MAX_AUTOMATIC_SLOTS
