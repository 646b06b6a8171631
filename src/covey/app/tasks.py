"""Tasks as verbs name them."""

from __future__ import annotations

from covey.app.verbs import missing
from covey.core import ids
from covey.core.tasks import Task
from covey.store.tx import Tx


def find(tx: Tx, task_id: str) -> Task:
    """Return a task, or say that there is none."""
    task = tx.task(task_id) if ids.is_task_id(task_id) else None
    if task is None:
        raise missing("task", task_id)
    return task
