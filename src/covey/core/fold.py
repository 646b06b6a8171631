"""The story told again: every row, made from the log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace

from covey.core import ids
from covey.core.board import needs, tasks
from covey.core.events import noun
from covey.core.leases import leases
from covey.core.nouns import (
    BY_NAME,
    TABLES,
    CountRow,
    IdRow,
    NeedRow,
    Payload,
    ResourceRow,
    Row,
    Tables,
    resource_rows,
)
from covey.values import dataclass


@dataclass
class State:
    """Everything that the log says, as it grows."""

    tables: Tables = field(default_factory=lambda: {table.name: {} for table in TABLES})

    def fold(self, *, seq: int, at: float, actor: str, kind: str, subject: str, payload: Payload) -> None:
        """Take one event in."""
        BY_NAME[noun(kind)].take_in(self.tables, subject, seq, payload, at, actor)

    def rows(self) -> Iterator[tuple[str, Iterable[Row]]]:
        """Yield every folded table with its rows, counters and indexes made from the rest."""
        for table in TABLES:
            make = _DERIVED.get(table.name)
            yield table.name, self.tables[table.name].values() if make is None else make(self.tables)


def _tasks(tables: Tables) -> Iterator[tasks.Task]:
    """Yield the tasks with their counters."""
    known: dict[str, tasks.Task] = tables["tasks"]
    children = Counter(task.parent for task in known.values() if task.parent and task.status not in tasks.ENDED)
    for task in known.values():
        unmet = sum(not needs.is_met(known[need.task].status, need.policy) for need in task.needs)
        yield replace(task, unmet=unmet, open_children=children[task.id])


def _needs(tables: Tables) -> Iterator[NeedRow]:
    for task in tables["tasks"].values():
        for need in task.needs:
            yield NeedRow(task.id, need.task, need.policy)


def _counts(tables: Tables) -> Iterator[CountRow]:
    counts = Counter(task.status for task in tables["tasks"].values())
    return (CountRow(status, counts[status]) for status in tasks.Status)


def _ids(tables: Tables) -> Iterator[IdRow]:
    last: dict[str, int] = {}
    for task in tables["tasks"]:
        prefix, number = ids.split(task)
        last[prefix] = max(number, last.get(prefix, 0))
    return (IdRow(prefix, number) for prefix, number in last.items())


def _resources(tables: Tables) -> Iterator[ResourceRow]:
    for lease in tables["leases"].values():
        if _is_open(lease):
            yield from resource_rows(lease)


def _crossings(tables: Tables) -> Iterator[leases.Crossing]:
    known = tables["leases"]
    return (row for row in tables["crossings"].values() if row.lease in known and _is_open(known[row.lease]))


def _is_open(lease: leases.Lease) -> bool:
    return lease.state in (leases.LeaseState.LIVE, leases.LeaseState.WAITING)


_DERIVED: dict[str, Callable[[Tables], Iterable[Row]]] = {
    "tasks": _tasks,
    "needs": _needs,
    "counts": _counts,
    "ids": _ids,
    "lease_resources": _resources,
    "crossings": _crossings,
}
"""The tables that are not simply what the events made of each subject."""
