"""When a batch is over, held against every way in which it could go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.core.board.needs import Need, Policy, is_met
from covey.core.board.tasks import ENDED, WAITING, Status, Task
from covey.core.fleet import batches
from covey.core.fleet.sessions import Goal, Session, SessionKind

USUAL = (Status.TODO, Status.TODO, Status.TODO, Status.DOING, Status.BLOCKED)
FROM_WORK = (Status.TODO, Status.REVIEW, Status.MERGING, Status.BLOCKED, Status.DONE)
"""Where work can end that nobody looks after: released, handed in, blocked."""


@dataclass(frozen=True)
class Board:
    """A few tasks, the first of them in the batch, each with what it needs among those after it."""

    statuses: tuple[Status, ...]
    needs: tuple[tuple[tuple[int, Policy], ...], ...]
    parents: tuple[int | None, ...]
    ours: int
    waiting: frozenset[int]

    def is_ready(self, number: int) -> bool:
        """Say whether a task waits for nothing."""
        met = all(is_met(self.statuses[need], policy) for need, policy in self.needs[number])
        return met and not any(self.parents[child] == number for child in self.open())

    def open(self) -> list[int]:
        """Return the tasks of the batch that have not ended."""
        return [number for number in range(self.ours) if self.statuses[number] not in ENDED]

    def tasks(self) -> list[Task]:
        """Return the open tasks of the batch as the board has them."""
        return [
            Task(
                id=f"T-{number}",
                ordinal=number,
                title="t",
                status=self.statuses[number],
                needs=tuple(Need(f"T-{need}", policy) for need, policy in self.needs[number]),
                parent=None if (parent := self.parents[number]) is None else f"T-{parent}",
                unmet=0 if self.is_ready(number) else 1,
            )
            for number in self.open()
        ]

    def elsewhere(self) -> dict[str, Status]:
        """Return where the tasks outside of the batch stand."""
        return {f"T-{number}": self.statuses[number] for number in range(self.ours, len(self.statuses))}

    def is_over(self) -> bool:
        """Ask the rule."""
        return batches.is_over(self.tasks(), self.elsewhere(), {f"T-{number}" for number in self.waiting})

    def moves(self) -> Iterator[Board]:
        """Yield what the board can be after one thing more that needs no person."""
        for number, status in enumerate(self.statuses):
            if status is Status.TODO and number < self.ours and self.is_ready(number):
                yield self.with_status(number, Status.DOING)
            elif status is Status.DOING:
                yield from (self.with_status(number, end) for end in FROM_WORK)
            elif status is Status.MERGING and number not in self.waiting:
                yield from (self.with_status(number, end) for end in (Status.TODO, Status.DONE))

    def with_status(self, number: int, status: Status) -> Board:
        """Return the board with one task elsewhere, and parents that end with their children."""
        after = replace(self, statuses=(*self.statuses[:number], status, *self.statuses[number + 1 :]))
        parent = self.parents[number]
        if status is not Status.DONE or parent is None or after.statuses[parent] not in WAITING:
            return after
        return after.with_status(parent, Status.DONE) if after.is_ready(parent) else after


def reachable(board: Board) -> set[Board]:
    """Return every board to which this one can come by itself, itself among them."""
    seen, pending = {board}, [board]
    while pending:
        for after in pending.pop().moves():
            if after not in seen:
                seen.add(after)
                pending.append(after)
    return seen


@st.composite
def boards(draw: st.DrawFn) -> Board:
    """Return any small board; a task needs only later ones, and is a child only of an earlier one."""
    ours, others = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    count = ours + others
    statuses = [draw(st.sampled_from([*Status, *USUAL])) for _ in range(count)]
    needs = [
        tuple((need, draw(st.sampled_from(Policy))) for need in range(number + 1, count) if draw(st.booleans()))
        if number < ours
        else ()
        for number in range(count)
    ]
    parents = [draw(st.none() | st.integers(0, number - 1)) if 0 < number < ours else None for number in range(count)]
    merging = [number for number in range(ours) if statuses[number] is Status.MERGING]
    waiting = frozenset(number for number in merging if draw(st.booleans()))
    return Board(tuple(statuses), tuple(needs), tuple(parents), ours, waiting)


@settings(max_examples=500)
@given(boards())
def test_a_batch_of_which_something_can_still_come_is_not_over(board: Board) -> None:
    if any(after.statuses[: board.ours] != board.statuses[: board.ours] for after in reachable(board)):
        assert not board.is_over()


@settings(max_examples=500)
@given(boards())
def test_a_batch_ends_however_it_goes_on(board: Board) -> None:
    for after in reachable(board):
        if not any(after.moves()):
            assert after.is_over()


def test_nothing_is_over_at_once() -> None:
    assert batches.is_over([], {}, ())


@pytest.mark.parametrize(
    ("task", "session", "taken"),
    [
        ({}, None, True),
        ({"assignee": "ada"}, None, False),
        ({"assignee": "ada"}, Session(name="ada", kind=SessionKind.OUTSIDE), False),
        ({"assignee": "ada"}, Session(name="ada", kind=SessionKind.RUN, goal=Goal.WORKING), True),
        ({"front": "ada"}, Session(name="ada", kind=SessionKind.RUN, goal=Goal.WORKING), True),
        ({"front": "ada"}, Session(name="ada", kind=SessionKind.RUN, goal=Goal.STOPPED), False),
    ],
)
def test_covey_takes_what_is_for_anybody_or_for_a_session_that_it_runs(
    task: dict[str, Any], session: Session | None, taken: bool
) -> None:
    assert batches.will_be_taken(Task(id="T-1", ordinal=1, title="t", **task), session) is taken
