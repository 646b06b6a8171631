"""A batch: tasks that were given together, worked on by sessions that go when nothing more can come of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from covey.core.board.tasks import Status, Task
from covey.core.fleet.sessions import Session, SessionKind, goes_on

_OF_RUNS = re.compile(r"batch-[0-9a-f]{6}")
_AT_WORK = (Status.DOING, Status.MERGING)


def name_of_run(token: str) -> str:
    """Return the name of a run's batch, from six hexadecimal digits."""
    return f"batch-{token}"


def is_of_run(name: str) -> bool:
    """Say whether a batch is a run's, which ends with it; one that a person named stays until a person ends it."""
    return _OF_RUNS.fullmatch(name) is not None


def waits_for(task: Task) -> str | None:
    """Return the session that a task is for, None if it is for anybody."""
    return task.assignee or task.front


def will_be_taken(task: Task, session: Session | None) -> bool:
    """Say whether covey will take a task, `session` being the one that it is for.

    One that covey does not run may take its time.
    """
    if waits_for(task) is None:
        return True
    return session is not None and session.kind is SessionKind.RUN and goes_on(session)


def is_over(tasks: Sequence[Task], elsewhere: Mapping[str, Status], waiting: Collection[str]) -> bool:
    """Say whether nothing of a batch can move by itself any more.

    `tasks` are those that have not ended, `elsewhere` is the status of needs outside of the batch, `waiting` names
    tasks whose work has passed and waits for a person's checkout.
    """
    open_tasks = {task.id: task for task in tasks}
    moving = {task.id for task in tasks if _moves(task) and task.id not in waiting}
    moving |= {other for other, status in elsewhere.items() if status in _AT_WORK}
    grown = bool(moving)
    while grown:  # what waits for something that moves may move later
        later = {
            task.id
            for task in open_tasks.values()
            if task.id not in moving and task.status is Status.TODO and _waits_for(task, open_tasks) & moving
        }
        moving |= later
        grown = bool(later)
    return not moving & open_tasks.keys()


def _moves(task: Task) -> bool:
    return task.status in _AT_WORK or (task.status is Status.TODO and task.ready)


def _waits_for(task: Task, tasks: Mapping[str, Task]) -> set[str]:
    return {need.task for need in task.needs} | {child.id for child in tasks.values() if child.parent == task.id}
