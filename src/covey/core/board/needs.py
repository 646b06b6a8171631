"""What a task waits for: a graph without cycles, with a policy per edge for a need that is dropped."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import StrEnum
from typing import TypeVar

from covey.values import dataclass

Node = TypeVar("Node", bound=Hashable)


class Policy(StrEnum):
    """What happens to a task when this need of it is dropped."""

    BLOCK = "block"
    ANY = "any"


@dataclass(frozen=True)
class Need:
    """One edge: the task waits until `task` is done."""

    task: str
    policy: Policy = Policy.BLOCK


def is_met(status: str, policy: Policy) -> bool:
    """Say whether a need in this status holds its task back no longer."""
    return status == "done" or (status == "dropped" and policy is Policy.ANY)


def find_cycle(
    start: Node, needs: Iterable[Node], needs_of: Callable[[list[Node]], dict[Node, list[Node]]]
) -> list[Node] | None:
    """Return the cycle that `needs` would close at `start`, from start to start, or None."""
    came_from: dict[Node, Node] = {}
    level = list(dict.fromkeys(needs))
    for need in level:
        came_from[need] = start
    while level:
        if start in level:
            return _path(start, came_from)
        following: list[Node] = []
        edges = needs_of(level)
        for task in level:
            for need in edges.get(task, ()):
                if need not in came_from:
                    came_from[need] = task
                    following.append(need)
        level = following
    return None


def _path(start: Node, came_from: dict[Node, Node]) -> list[Node]:
    path = [start]
    task = came_from[start]
    while task != start:
        path.append(task)
        task = came_from[task]
    return [start, *reversed(path[1:]), start]
