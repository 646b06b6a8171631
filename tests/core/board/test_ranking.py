"""The order of the board: a task stands where it was put, whatever was put there before."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.board import ranking
from covey.core.board.tasks import Moved, Task, apply
from covey.errors import Invalid


def make(ordinal: int, **values: float) -> Task:
    return Task(**{"id": f"T-{ordinal}", "ordinal": ordinal, "title": "t", "rank": float(ordinal), **values})  # type: ignore[arg-type]


class Board:
    """Some tasks of one priority, in their order, and the log's next number."""

    def __init__(self, size: int) -> None:
        self.tasks = [make(number) for number in range(1, size + 1)]
        self.following = size + 1

    def add(self) -> None:
        """Add a task as the board does."""
        self.tasks.append(make(self.following))
        self.following += 1

    def move(self, which: int, to: int) -> int:
        """Move a task to a place among the others, and return how many made room."""
        task = self.tasks.pop(which % len(self.tasks))
        to %= len(self.tasks) + 1
        before = [(each.id, each.rank) for each in reversed(self.tasks[:to])]
        after = self.tasks[to].rank if to < len(self.tasks) else None
        placed = ranking.place(before, after, self.following)
        self.tasks = [
            apply(each, Moved(placed.others[each.id]), 0.0, "owner") if each.id in placed.others else each
            for each in self.tasks
        ]
        self.tasks.insert(to, apply(task, Moved(placed.rank), 0.0, "owner"))
        self.following += 1 + len(placed.others)
        return len(placed.others)

    def check(self) -> None:
        """See that the ranks say the order in which the tasks were put, and that a new task comes last."""
        ranks = [task.rank for task in self.tasks]
        assert all(one < other for one, other in pairwise(ranks)), ranks
        assert not ranks or ranks[-1] < self.following


@given(
    size=st.integers(2, 12),
    steps=st.lists(st.none() | st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=60),
)
def test_every_task_stands_where_it_was_put_and_a_new_one_comes_last(
    size: int, steps: list[tuple[int, int] | None]
) -> None:
    board = Board(size)
    for step in steps:
        if step is None:
            board.add()
        else:
            board.move(*step)
        board.check()


@pytest.mark.parametrize("far", [0, 10**9])
def test_a_thousand_tasks_put_at_the_same_place_make_room_without_moving_many(far: int) -> None:
    board = Board(50)
    board.tasks = [replace(task, rank=task.rank + far, ordinal=task.ordinal + far) for task in board.tasks]
    board.following += far
    moved = 0
    for number in range(1000):
        moved += board.move(number % 2 * 48, 25)
        board.check()
    assert moved < 1000 * 10, "a move touches few others on average"


def test_a_place_with_room_moves_nobody_else() -> None:
    assert ranking.place([("T-1", 1.0)], 2.0, 9) == ranking.Placed(1.5, {})
    assert ranking.place([], 1.0, 9) == ranking.Placed(0.0, {})
    assert ranking.place([("T-8", 8.0)], None, 9) == ranking.Placed(9.0, {})
    assert ranking.place([], None, 9) == ranking.Placed(9.0, {})


def test_equal_ranks_are_told_apart_when_something_goes_between_them() -> None:
    placed = ranking.place([("T-2", 5.0), ("T-1", 4.0)], 5.0, 9)
    assert 4.0 < placed.others["T-2"] < placed.rank < 5.0


@given(own=st.integers(-3, 3), above=st.none() | st.integers(-3, 3), below=st.none() | st.integers(-3, 3))
def test_a_task_keeps_its_priority_where_it_can_and_else_gets_the_nearest(
    own: int, above: int | None, below: int | None
) -> None:
    if above is not None and below is not None and above < below:
        above, below = below, above
    task = make(9, priority=own)
    before = None if above is None else make(1, priority=above)
    after = None if below is None else make(2, priority=below)
    priority = ranking.fitting(task, before, after)
    fits = [each for each in range(-3, 4) if (above is None or each <= above) and (below is None or each >= below)]
    assert priority in fits and abs(priority - own) == min(abs(each - own) for each in fits)
    assert all(ranking.fitting(task, before, after, wanted) == wanted for wanted in fits)
    for wanted in set(range(-3, 4)) - set(fits):
        with pytest.raises(Invalid, match="cannot stand there"):
            ranking.fitting(task, before, after, wanted)


def test_nothing_stands_between_two_tasks_in_the_wrong_order() -> None:
    with pytest.raises(Invalid, match="T-2 comes after T-1"):
        ranking.fitting(make(3), make(2), make(1))
