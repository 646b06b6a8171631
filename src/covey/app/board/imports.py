"""Tasks that come by import: known by their key, added once and then kept up to date."""

from __future__ import annotations

from typing import Any

from covey.app.board.requests import as_edited, as_needs, check_edit
from covey.app.board.task_changes import change
from covey.app.board.task_verbs import add_task
from covey.app.context import Call
from covey.app.shapes.board import AddTask, EditTask, ImportAnswer, ImportedTask, ImportTasks
from covey.app.verbs import verb
from covey.core import ids
from covey.core.board import tasks
from covey.core.board.tasks import ENDED, WAITING
from covey.core.people.rights import PROPOSED
from covey.errors import Invalid
from covey.store.tx import Tx


@verb("task.import", "POST /api/board/import", ImportTasks, ImportAnswer, may=PROPOSED, long=True)
def import_tasks(call: Call, asked: ImportTasks) -> ImportAnswer:
    """Add or update tasks by key, as a part of an import."""
    answer = ImportAnswer({}, {}, {})
    keys: set[str] = set()
    for wish in asked.tasks:
        if wish.key in keys:  # the second would overwrite the first
            raise Invalid(f"The key {wish.key!r} stands twice.", hint="Give each task a key of its own.")
        keys.add(wish.key)
        _import_one(call, wish, answer)
    return answer


def _import_one(call: Call, wish: ImportedTask, answer: ImportAnswer) -> None:
    given = wish.named()
    key = given.pop("key")
    for name in ("needs", "needs_any"):
        if name in given:
            given[name] = [_by_key(call.tx, need) for need in given[name]]
    if given.get("parent") is not None:
        given["parent"] = _by_key(call.tx, given["parent"])
    task = call.tx.task_of_key(key)
    if task is None:
        needs = as_needs(given.pop("needs", ()), given.pop("needs_any", ()))
        answer.added[key] = add_task(call, AddTask(**given), needs, key).id
    elif task.status in ENDED:
        answer.unchanged[key] = task.id
    else:
        _update(call, task, given, answer, key)


def _update(call: Call, task: tasks.Task, given: dict[str, Any], answer: ImportAnswer, key: str) -> None:
    """Change of a task what its line says; what a person set beside that stays."""
    given.pop("note", None)
    if task.status not in WAITING:
        for name in ("status", "needs", "needs_any"):
            given.pop(name, None)
    event = tasks.edit(task, as_edited(call, task, EditTask(**given)))
    if tasks.is_nothing(event):
        answer.unchanged[key] = task.id
        return
    check_edit(call, task, event)
    answer.updated[key] = change(call, task, event, call.actor(None)).id


def _by_key(tx: Tx, name: str) -> str:
    task = tx.task_of_key(name)
    if task is None and ids.is_task_id(name):
        task = tx.task(name)
    if task is None:
        raise Invalid(f"There is no task with the key {name!r}.", hint="A key must stand on an earlier line.")
    return task.id
