"""What a request wishes for a task, made into an event, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from covey.app.context import Call, find
from covey.app.shapes.board import AddTask, EditTask
from covey.core import globs
from covey.core.board import scheduling, tasks
from covey.core.board.needs import Need, Policy, find_cycle
from covey.core.board.tasks import ENDED, WAITING, Status, Task
from covey.core.fleet.sessions import COVEY, EVERYONE
from covey.core.texts import MAX_TITLE_CHARS, line
from covey.errors import Invalid, Refused
from covey.store.tx import Tx


def as_needs(needs: Iterable[str], needs_any: Iterable[str]) -> tuple[Need, ...]:
    edges = dict.fromkeys(needs, Policy.BLOCK) | dict.fromkeys(needs_any, Policy.ANY)
    return tuple(Need(task, policy) for task, policy in edges.items())


def as_globs(scope: list[str]) -> tuple[str, ...]:
    """Return globs in their one spelling, each once, or refuse them."""
    spelled = [
        ("new:" if glob.startswith("new:") else "") + globs.compile(glob.removeprefix("new:")).pattern for glob in scope
    ]
    return tuple(dict.fromkeys(spelled))


def _assignee(name: str | None) -> str | None:
    """Return whom a task is for, or refuse a name in which nobody can claim it."""
    if name in (COVEY, EVERYONE):
        raise Invalid(f"Nobody can claim a task as {name}.", hint="A task without an assignee is for everyone.")
    return name


def as_added(call: Call, asked: AddTask, needs: tuple[Need, ...], key: str | None) -> tasks.Added:
    """Return the event by which a task comes onto the board as it is asked for, or refuse it."""
    given = {name: getattr(asked, name) for name in asked.__struct_fields__ if name not in _NOT_KEPT}
    return tasks.Added(**_kept(call, given), needs=needs, key=key)


_NOT_KEPT = ("needs", "needs_any", "for_session")
"""What of a new task is kept under another name: as `needs` with their policies, and as `assignee`."""


def _kept(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request as they are kept; what has no rule of its own is kept as it is given."""
    rules: dict[str, Callable[[Any], Any]] = {
        "title": lambda text: line(text, "The title", MAX_TITLE_CHARS),
        "body": lambda text: call.prose(text, "The body"),
        "status": Status,
        "assignee": _assignee,
        "scope": as_globs,
        "do_not_touch": as_globs,
        "done_when": lambda checks: tuple(line(check, "A done-when check", 2000) for check in checks),
        "note": lambda text: call.line(text, "The note"),
    }
    return {name: rules[name](value) if name in rules else value for name, value in given.items()}


def inherit(call: Call, event: tasks.Added) -> tasks.Added:
    """Return what a session adds with what it leaves open as in the task at which it works."""
    if call.who.session is None:
        return event
    held = call.tx.held_by(call.who.session)
    return next((limited for own in held if (limited := _within(own, event)) is not None), event)


def _within(own: Task, event: tasks.Added) -> tasks.Added | None:
    """Return a new task with what it leaves open as in the task from which it came, or None if it asks for more."""
    if not is_within(own, event.scope, event.budget):
        return None
    budget = own.budget if event.budget is None else event.budget
    do_not_touch = tuple(dict.fromkeys((*event.do_not_touch, *own.do_not_touch)))
    return replace(event, scope=event.scope or own.scope, budget=budget, do_not_touch=do_not_touch, batch=own.batch)


def is_within(own: Task, scope: tuple[str, ...], budget: float | None) -> bool:
    """Say whether a scope and a budget are not larger than those of a task; what is left open is as in the task."""
    wanted = scheduling.scope_paths(scope or own.scope)
    inside = not own.scope or globs.contains(scheduling.scope_paths(own.scope), wanted)
    return inside and not (own.budget is not None and budget is not None and budget > own.budget)


def as_edited(call: Call, task: Task, asked: EditTask) -> tasks.Edited:
    """Return the event by which a task is changed as it is asked for, or refuse it."""
    given = asked.named()
    cleared = tuple(name for name in tasks.CLEARABLE if name in given and given[name] is None)
    if "needs" in given or "needs_any" in given:
        strict = [need.task for need in task.needs if need.policy is Policy.BLOCK]
        loose = [need.task for need in task.needs if need.policy is Policy.ANY]
        given["needs"] = as_needs(given.get("needs", strict), given.pop("needs_any", loose))
    return tasks.Edited(**_kept(call, given), cleared=cleared)


def check_edit(call: Call, task: Task, wish: tasks.Edited) -> None:
    needs = task.needs if wish.needs is None else wish.needs
    parent = None if "parent" in wish.cleared else wish.parent or task.parent
    if wish.needs is not None:
        check_needs(call.tx, task.id, needs)
    if wish.parent is not None or (task.status is Status.DROPPED and wish.status is not None):
        check_parent(call.tx, task.id, parent)
    if wish.needs or wish.parent is not None:
        check_circle(call.tx, task.id, needs, parent)
    if wish.status is not None or (wish.needs is not None and task.status in WAITING):
        dropped = _dropped_need(call.tx, needs)
        if dropped:
            raise Refused(
                f"{task.id} needs {dropped}, which was dropped.",
                hint=f"Edit the needs of {task.id}, or bring {dropped} back: covey task edit {dropped} --status todo.",
            )


def check_needs(tx: Tx, task_id: str, needs: Iterable[Need]) -> None:
    names = [need.task for need in needs]
    for name in names:
        if tx.task(name) is None:  # also the id that a new task is about to get
            raise Invalid(f"There is no task {name!r} to need.", hint="A need must be on the board first.")
    if task_id in names:
        raise Invalid(f"{task_id} cannot need itself.")


def check_circle(tx: Tx, task_id: str, needs: Iterable[Need], parent: str | None) -> None:
    """Refuse needs or a parent with which a task would wait for itself; a parent waits for its children."""

    def waits_of(names: list[str]) -> dict[str, list[str]]:
        found = tx.needs_of(names)
        for child, its_parent in tx.children_of(names):
            if child != task_id:
                found.setdefault(its_parent, []).append(child)
        if parent in names:
            found.setdefault(parent, []).append(task_id)
        return found

    own = [child for child, _ in tx.children_of([task_id])]
    cycle = find_cycle(task_id, [*(need.task for need in needs), *own], waits_of)
    if cycle:
        raise Invalid(
            f"These tasks would wait for each other in a circle: {' > '.join(cycle)}.",
            hint="A task waits for its needs, and a parent for its children.",
        )


def check_parent(tx: Tx, task_id: str, parent: str | None) -> None:
    seen = [task_id]
    while parent is not None:
        if parent in seen:
            raise Invalid(f"A task cannot be its own ancestor: {' > '.join([*seen, parent])}.")
        task = tx.task(parent)
        if task is None:
            raise Invalid(f"There is no task {parent!r} to be the parent.")
        if len(seen) == 1 and task.status in (*ENDED, Status.REVIEW, Status.MERGING):
            raise Refused(f"{parent} is {task.status} and can have no more children.")
        seen.append(parent)
        parent = task.parent


def _dropped_need(tx: Tx, needs: Iterable[Need]) -> str | None:
    for need in needs:
        if need.policy is Policy.BLOCK and find(tx, need.task).status is Status.DROPPED:
            return need.task
    return None


def block_if_need_dropped(call: Call, task: Task) -> None:
    dropped = _dropped_need(call.tx, task.needs)
    if dropped:
        raise Invalid(f"{dropped} was dropped, so a task that needs it could never begin.")
