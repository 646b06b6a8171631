"""Which tasks have to wait for each other, because files that they are on collide again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from covey.app.context import Call
from covey.core import overlaps
from covey.core.board import scheduling
from covey.core.board.tasks import Status, Task
from covey.core.leases import write_policy
from covey.core.leases.leases import LeaseState
from covey.store.tx import Tx
from covey.values import dataclass

LOOKED_AT = 500
"""How many tasks at work have their texts read; there are more only where sessions take any number and end none."""
MOST_HOT = 50
"""Hot files for which tasks wait; where more collide, those that do so most often."""
_NOT_THROUGH = (Status.DOING, Status.MERGING)


@dataclass
class Crowd:
    """The hot files, and who is at work on each; work that waits to land is not through with a file either."""

    tx: Tx
    known: dict[str, frozenset[str]] = field(default_factory=dict)
    """For each hot file the tasks that wrote it on a branch that is open, or hold it by a lease."""
    _busy: dict[str, list[Task]] | None = None

    def in_the_way(self, task: Task) -> tuple[str, Task] | None:
        """Return the hot file that a task is on and who is not through with it, None if it may start."""
        if not self.known or task.overlap:
            return None
        body = self.tx.text(task.body)
        for path, known in self.known.items():
            if scheduling.is_on(task, body, path, known):
                other = scheduling.not_through(task, self._at_work()[path])
                if other is not None:
                    return path, other
        return None

    def _at_work(self) -> dict[str, list[Task]]:
        if self._busy is None:
            at_work = _at_work(self.tx, self.known)
            bodies = {task.id: self.tx.text(task.body) for task in at_work}
            self._busy = {
                path: [task for task in at_work if scheduling.is_on(task, bodies[task.id], path, known)]
                for path, known in self.known.items()
            }
        return self._busy


def crowd(call: Call) -> Crowd:
    """Return who is at work on hot files; where none is hot that costs one look at a table that is all but empty.

    One that was quiet for long enough has cooled, also while no daemon is there to say so.
    """
    tx, cool = call.tx, call.context.config.overlap.cool_minutes * 60
    files = sorted(tx.hot_files(), key=lambda file: -file.collisions)
    paths = sorted([file.path for file in files if overlaps.is_hot(file, tx.now, cool)][:MOST_HOT])
    return Crowd(tx, _known(tx, paths) if paths else {})


def _known(tx: Tx, paths: Sequence[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {path: set() for path in paths}
    for overlap in tx.open_overlaps():
        for path in found.keys() & set(overlap.files):
            found[path] |= {overlap.one, overlap.other}
    for lease in tx.leases_over(paths):
        if lease.task is not None and lease.state is LeaseState.LIVE:
            for path in paths:
                if write_policy.covers(lease, path) is not None:
                    found[path].add(lease.task)
    return {path: frozenset(tasks) for path, tasks in found.items()}


def _at_work(tx: Tx, known: dict[str, frozenset[str]]) -> list[Task]:
    """Return the tasks that are not through with their work, as far as they can matter to hot files."""
    found = {task.id: task for task in tx.at_work()}
    for status in _NOT_THROUGH:
        found |= {task.id: task for task in tx.at_work_on(known, status, LOOKED_AT)}
    for name in frozenset().union(*known.values()) - found.keys():
        task = tx.task(name)
        if task is not None and task.status in _NOT_THROUGH:
            found[name] = task
    return list(found.values())
