"""Where a task stands on the board: larger priority first, then by rank, then older.

A rank is a number between those of its neighbours; a new task has its ordinal as rank, so that it comes last.
"""

from __future__ import annotations

from collections.abc import Iterable

from covey.core.board.tasks import Task
from covey.errors import Invalid
from covey.values import dataclass

MIN_RANK_GAP = 2.0**-10
"""The distance that is left between two ranks where tasks have to make room; a double tells far smaller ones apart."""


@dataclass(frozen=True)
class Placed:
    """The rank that a task gets, and the new ranks of those that make room for it, by their ids."""

    rank: float
    others: dict[str, float]


def key(task: Task) -> tuple[int, float, int]:
    """Return what orders the board: larger priority, smaller rank, older.

    The same order stands in `_READY_IN_LANE` and `_on_board` of store/queries/board.py, with the indexes of tasks, and
    in `byOrder` of web/page/js/rules/columns.js; `hand_out_key` of scheduling.py begins with who is first in line.
    """
    return (-task.priority, task.rank, task.ordinal)


def is_between(task: Task, before: Task | None, after: Task | None) -> bool:
    """Say whether a task stands between two others already."""
    return (before is None or key(before) < key(task)) and (after is None or key(task) < key(after))


def fitting(task: Task, before: Task | None, after: Task | None, wanted: int | None = None) -> int:
    """Return the priority with which a task can stand between two others: its own, or the nearest that fits.

    With `wanted` that one, or a refusal if it fits in no way.
    """
    if before is not None and after is not None and key(before) > key(after):
        raise Invalid(f"{before.id} comes after {after.id} on the board, so nothing can stand between them.")
    most = None if before is None else before.priority
    least = None if after is None else after.priority
    priority = task.priority if wanted is None else wanted
    nearest = priority if least is None else max(priority, least)
    nearest = nearest if most is None else min(nearest, most)
    if wanted is not None and nearest != wanted:
        raise Invalid(
            f"With priority {wanted}, {task.id} cannot stand there.",
            hint=f"Leave the priority out: {task.id} then gets one that fits.",
        )
    return nearest


def place(before: Iterable[tuple[str, float]], after: float | None, following: int) -> Placed:
    """Return a rank right behind the first of `before`, and before `after`, among the tasks of one priority.

    `before`: id and rank of each task that comes before the place, the nearest first; only as many are looked at as
    have to make room, and they move towards the front, where there is always room. `after`: the rank of the task that
    comes next, None at the end. `following`: the ordinal of the next event; every rank is below that of a task to come.
    """
    high = float(following) if after is None else after
    squeezed: list[str] = []
    for name, rank in before:
        count = len(squeezed) + 1
        middle = rank + (high - rank) / 2
        if not squeezed and (after is None or rank < middle < high):
            return Placed(high if after is None else middle, {})
        if high - rank >= (count + 1) * MIN_RANK_GAP:
            return _spread(rank, high, squeezed)
        squeezed.append(name)
    if not squeezed:
        return Placed(high if after is None else high - 1.0, {})
    return _spread(high - len(squeezed) - 2.0, high, squeezed)


def _spread(low: float, high: float, squeezed: list[str]) -> Placed:
    """Spread the tasks that make room, the nearest of them first, and a new place behind them, between two ranks."""
    step = (high - low) / (len(squeezed) + 2)
    ranks = {name: high - step * (number + 2) for number, name in enumerate(squeezed)}
    return Placed(high - step, ranks)
