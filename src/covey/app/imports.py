"""Tasks that come by import: known by their key, added once and then kept up to date."""

from __future__ import annotations

from dataclasses import replace

from msgspec import UNSET

from covey.app import shapes
from covey.app.board import add_task
from covey.app.changes import change
from covey.app.verbs import Call, verb
from covey.app.wishes import as_edited, as_needs, check_edit
from covey.core import ids, tasks
from covey.core.tasks import ENDED, WAITING
from covey.errors import Invalid
from covey.store.tx import Tx


@verb("task.import", "POST /api/board/import", shapes.ImportTasks, shapes.ImportAnswer, long=True)
def import_tasks(call: Call, asked: shapes.ImportTasks) -> shapes.ImportAnswer:
    """Add or update tasks by key, as a part of an import."""
    answer = shapes.ImportAnswer({}, {}, {})
    for wish in asked.tasks:
        _import_one(call, wish, answer)
    return answer


def _import_one(call: Call, wish: shapes.ImportedTask, answer: shapes.ImportAnswer) -> None:
    needs = as_needs(
        [_by_key(call.tx, name) for name in wish.needs], [_by_key(call.tx, name) for name in wish.needs_any]
    )
    parent = None if wish.parent is None else _by_key(call.tx, wish.parent)
    plain = {name: getattr(wish, name) for name in shapes.AddTask.__struct_fields__}
    plain |= {"needs": [], "needs_any": [], "parent": parent}
    task = call.tx.task_of_key(wish.key)
    if task is None:
        answer.added[wish.key] = add_task(call, shapes.AddTask(**plain), needs, wish.key).id
        return
    if task.status in ENDED:
        answer.unchanged[wish.key] = task.id
        return
    plain.pop("note")
    status = plain.pop("status")
    asked = shapes.EditTask(**plain, status=status if task.status in WAITING else UNSET)
    edited = replace(as_edited(call, task, asked), needs=needs if task.status in WAITING else None)
    event = tasks.edit(task, edited, owner=call.who.is_owner)
    if tasks.is_nothing(event):
        answer.unchanged[wish.key] = task.id
        return
    check_edit(call, task, event)
    answer.updated[wish.key] = change(call, task, event, call.actor(None)).id


def _by_key(tx: Tx, name: str) -> str:
    task = tx.task_of_key(name)
    if task is None and ids.is_task_id(name):
        task = tx.task(name)
    if task is None:
        raise Invalid(f"There is no task with the key {name!r}.", hint="A key must stand on an earlier line.")
    return task.id
