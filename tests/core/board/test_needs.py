"""Needs: what holds a task back, and that no circle is ever closed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.board.needs import Policy, find_cycle, is_met
from covey.core.board.tasks import Status

Graph = dict[str, list[str]]


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("policy", Policy)
def test_a_need_is_met_when_it_is_done_or_dropped_where_any_end_will_do(status: Status, policy: Policy) -> None:
    met = {(Status.DONE, Policy.BLOCK), (Status.DONE, Policy.ANY), (Status.DROPPED, Policy.ANY)}
    assert is_met(status, policy) is ((status, policy) in met)


def reaches(graph: Graph, start: str, goal: str) -> bool:
    """Say by depth-first search whether a path of at least one edge leads from start to goal."""
    stack, seen = list(graph.get(start, [])), set()
    while stack:
        task = stack.pop()
        if task == goal:
            return True
        if task not in seen:
            seen.add(task)
            stack += graph.get(task, [])
    return False


tasks = st.integers(0, 7).map(lambda number: f"T-{number}")
graphs = st.dictionaries(tasks, st.lists(tasks, max_size=4), max_size=8)


@given(graphs, tasks, st.lists(tasks, max_size=3))
def test_a_cycle_is_found_exactly_when_there_is_one_and_the_path_proves_it(
    graph: Graph, start: str, needs: list[str]
) -> None:
    graph = {task: edges for task, edges in graph.items() if task != start}
    wanted = {**graph, start: needs}
    cycle = find_cycle(start, needs, lambda names: {name: graph[name] for name in names if name in graph})
    assert (cycle is not None) is reaches(wanted, start, start)
    if cycle is not None:
        assert cycle[0] == cycle[-1] == start
        assert len(set(cycle)) == len(cycle) - 1
        assert all(after in wanted[before] for before, after in pairwise(cycle))


def test_the_cycle_is_told_in_the_order_of_the_needs() -> None:
    graph = {"B": ["C"], "C": ["D", "A"], "D": []}
    assert find_cycle("A", ["D", "B"], lambda names: {name: graph.get(name, []) for name in names}) == list("ABCA")


def test_a_diamond_is_no_cycle_and_each_task_is_looked_up_once() -> None:
    graph = {"B": ["D"], "C": ["D"], "D": []}
    asked: list[str] = []

    def needs_of(names: list[str]) -> Graph:
        asked.extend(names)
        return {name: graph[name] for name in names}

    assert find_cycle("A", ["B", "C", "B"], needs_of) is None
    assert sorted(asked) == ["B", "C", "D"]


def test_a_chain_of_thousands_is_searched_without_recursion() -> None:
    graph = {f"T-{number}": [f"T-{number + 1}"] for number in range(20_000)}
    graph["T-20000"] = ["T-0"]
    cycle = find_cycle("T-0", ["T-1"], lambda names: {name: graph[name] for name in names})
    assert cycle is not None and len(cycle) == 20_002
