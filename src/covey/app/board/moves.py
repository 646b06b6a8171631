"""The verbs by which a person puts the board in order: move a task, bring it back, change many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from covey.app.board.requests import check_edit
from covey.app.board.task_changes import change
from covey.app.board.task_verbs import edit_task, full, row
from covey.app.context import Call, find
from covey.app.shapes.board import BulkTasks, MoveTask, TaskFull, TaskRow
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.core.board import ranking, tasks
from covey.core.board.tasks import Task
from covey.core.people.rights import PROPOSED
from covey.core.texts import line
from covey.errors import Invalid

LONG_BULK_TASKS = 20
"""Above this many tasks a bulk change runs off the event loop."""
_WHERE = "Say where: above a task, below one, first or last."


@verb("task.move", "POST /api/board/{id}/move", MoveTask, TaskFull, may=PROPOSED)
def move(call: Call, asked: MoveTask, id: str) -> TaskFull:
    """Put a task right above or below another, or first or last in its column; who claims next takes what is first."""
    task = find(call.tx, id)
    before, after = _neighbours(call, task, asked)
    priority = ranking.fitting(task, before, after, asked.priority)
    if priority == task.priority and ranking.is_between(task, before, after):
        return full(call, task)
    same = [] if before is None or before.priority != priority else _same(call, task, before)
    following = after.rank if after is not None and after.priority == priority else None
    placed = ranking.place(((each.id, each.rank) for each in same), following, call.tx.next_seq)
    return full(call, _put(call, task, priority, placed))


def _put(call: Call, task: Task, priority: int, placed: ranking.Placed) -> Task:
    for name, rank in placed.others.items():
        change(call, find(call.tx, name), tasks.Moved(rank), call.actor(None))
    event = tasks.Moved(placed.rank, None if priority == task.priority else priority)
    return change(call, task, event, call.actor(None))


def _neighbours(call: Call, task: Task, asked: MoveTask) -> tuple[Task | None, Task | None]:
    """Return the two tasks between which one is put, None at an end of the board."""
    if (asked.to is None) is (asked.above is None and asked.below is None):
        raise Invalid("It is not clear where the task should go.", hint=_WHERE)
    above, below = (None if name is None else find(call.tx, name) for name in (asked.above, asked.below))
    if asked.to is not None:
        end = call.tx.first_on_board(task.status, last=asked.to == "last")
        above, below = (end, None) if asked.to == "first" else (None, end)
        if end is not None and end.id == task.id:
            return next(call.tx.before_on_board(task), None), _next(call, task, task)
    if task in (above, below):
        raise Invalid(f"{task.id} cannot stand above or below itself.", hint=_WHERE)
    if above is not None:
        return below or next(_others(call, task, above), None), above
    assert below is not None
    return below, _next(call, task, below)


def _others(call: Call, task: Task, after: Task) -> Iterator[Task]:
    return (each for each in call.tx.before_on_board(after) if each.id != task.id)


def _next(call: Call, task: Task, before: Task) -> Task | None:
    found = call.tx.board(status=None, session=None, limit=2, after=before)
    return next((each for each in found if each.id != task.id), None)


def _same(call: Call, task: Task, before: Task) -> Iterator[Task]:
    """Yield a task and those of its priority that come before it, the nearest first."""
    yield before
    for each in _others(call, task, before):
        if each.priority != before.priority:
            return
        yield each


@verb("task.reopen", "POST /api/board/{id}/reopen", Nothing, TaskFull, may=PROPOSED)
def reopen(call: Call, asked: Nothing, id: str) -> TaskFull:
    """Let a task that is blocked or was dropped be tried anew: it waits on the board again."""
    return full(call, _reopen(call, find(call.tx, id)))


def _reopen(call: Call, task: Task) -> Task:
    wish = tasks.reopen(task)
    if wish is None:
        return task
    check_edit(call, task, wish)
    return change(call, task, wish, call.actor(None))


@verb("task.bulk", "POST /api/board/bulk", BulkTasks, list[TaskRow], may=PROPOSED, long=True)
def bulk(call: Call, asked: BulkTasks) -> list[TaskRow]:
    """Edit, drop or reopen some tasks, all of them or none; answers how they are then."""
    changes, reason = asked.changes, asked.drop
    if (changes is not None) + (reason is not None) + asked.reopen != 1:
        raise Invalid("It is not clear what should happen to the tasks.", hint="Say one: changes, drop or reopen.")
    names = list(dict.fromkeys(asked.ids))
    if len(names) > LONG_BULK_TASKS:
        call.tx.take_time()
    found = [find(call.tx, name) for name in names]
    if changes is not None:
        for task in _in_turn(found, _bases):
            edit_task(call, find(call.tx, task.id), changes)
    elif reason is not None:
        said = line(reason, "The reason", 2000)
        for each in reversed(_in_turn(found, _parents)):
            task = find(call.tx, each.id)
            change(call, task, tasks.drop(task, said), call.actor(None))
    else:
        for task in _in_turn(found, _bases):
            _reopen(call, find(call.tx, task.id))
    return [row(find(call.tx, name)) for name in names]


def _parents(task: Task) -> list[str]:
    return [] if task.parent is None else [task.parent]


def _bases(task: Task) -> list[str]:
    """Return the tasks that must not be dropped while this one waits."""
    return [*_parents(task), *(need.task for need in task.needs)]


def _in_turn(found: list[Task], bases: Callable[[Task], list[str]]) -> list[Task]:
    """Return tasks with the older first, but each behind those of them on which it is based."""
    known = {task.id: task for task in sorted(found, key=lambda task: task.ordinal)}
    begun: set[str] = set()
    placed: dict[str, Task] = {}
    for first in known:
        path = [first]  # and no recursion: a chain may be deeper than our stack
        while path:
            name = path[-1]
            ahead = [] if name in begun else [each for each in bases(known[name]) if each in known]
            begun.add(name)
            path += [each for each in ahead if each not in begun]
            if path[-1] == name:
                placed.setdefault(path.pop(), known[name])
    return list(placed.values())
