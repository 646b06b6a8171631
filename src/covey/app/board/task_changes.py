"""What follows from a change of a task: its row and event, its leases, its dependants, its family, its merge."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from covey.app.context import Call, find
from covey.app.leases.lease_queue import follow
from covey.core.board import tasks
from covey.core.board.needs import Need, Policy, is_met
from covey.core.board.tasks import ENDED, WAITING, Status, Task
from covey.core.fleet.sessions import COVEY, SessionState
from covey.core.merging import merges
from covey.store.engine import rows
from covey.store.tx import Tx

MANY_DEPENDANTS = 100
"""Above this many dependants they are told off the event loop."""
CHILDLESS = "Every child of it was dropped."
Steps = Iterator[tuple[Task, Task]]
"""Tasks that changed in the wake of another, each as it was and as it is."""


def change(call: Call, task: Task, event: tasks.Event, actor: str) -> Task:
    """Write a task as it is after an event, the event, and all that follows from it."""
    after = _write(call, task, task, event, actor)
    settle(call, _follow(call, task, after))
    return after


def _write(call: Call, before: Task, counted: Task, event: tasks.Event, actor: str) -> Task:
    """Write a task whose counters may have changed as it is after an event, and the event."""
    tx = call.tx
    after = tasks.apply(counted, event, tx.now, actor)
    if (before.status is Status.DOING) is not (after.status is Status.DOING):
        # An outside session is shown as working while it holds a task; a run's state is the watchdog's to tell.
        if after.status is Status.DOING and after.session is not None:
            call.show_state(after.session, SessionState.WORKING, f"claimed {after.id}")
        elif before.session is not None and tx.holding(before.session) == 1:
            call.show_state(before.session, SessionState.IDLE, f"holds {before.id} no more")
    if after.needs != before.needs:
        after = replace(after, unmet=count_unmet(tx, after.needs))
        tx.put_needs(after.id, after.needs)
    tx.put_task(before, after)
    tx.append(actor, after.id, event, after)
    follow(call, before, after)
    return after


def settle(call: Call, steps: Steps) -> None:
    """Follow every change to what it changes, one after another: families and chains may be deeper than our stack."""
    pending = deque(steps)
    while pending:
        pending.extend(_follow(call, *pending.popleft()))


def _follow(call: Call, before: Task, after: Task) -> Steps:
    """Bring its parent, what needs it and its merge in step with a task that changed."""
    was_open, is_open = before.status not in ENDED, after.status not in ENDED
    if was_open is not is_open or before.parent != after.parent:
        if was_open and before.parent:
            yield from count_child(call, before.parent, -1, after.id)
        if is_open and after.parent:
            yield from count_child(call, after.parent, +1, after.id)
    if was_open is not is_open:
        yield from _tell_dependants(call, before, after)
    if after.status in WAITING and before.status not in WAITING and after.ready:
        ending = _ending(call, after)  # its children may have ended while it was at work, or blocked
        if isinstance(ending, tasks.Done):
            yield after, _write(call, after, after, ending, COVEY)
    if before.status in (Status.REVIEW, Status.MERGING) and after.status in (Status.BLOCKED, Status.DROPPED):
        withdraw(call, after.id, f"{after.id} was {after.status}")


def _tell_dependants(call: Call, before: Task, after: Task) -> Steps:
    """Keep the counts of unmet needs, make ready what waited, and block what needed a dropped task."""
    edges = call.tx.edges("need", [after.id])
    if len(edges) > MANY_DEPENDANTS:
        call.tx.take_time()
    for edge in edges:
        was, now = is_met(before.status, edge.policy), is_met(after.status, edge.policy)
        waiting = find(call.tx, edge.task)
        if was is not now:
            yield from _count(call, waiting, replace(waiting, unmet=waiting.unmet + (-1 if now else 1)), after.id)
        elif after.status is Status.DROPPED and waiting.status in WAITING:
            event = tasks.Blocked(_without(after), waiting.status)
            yield waiting, _write(call, waiting, waiting, event, COVEY)
        elif before.status is Status.DROPPED:
            yield from _bring_back(call, waiting)


def _without(need: Task) -> str:
    return f"It needs {need.id}, which was dropped{f': {need.reason}' if need.reason else '.'}"


def count_child(call: Call, parent_id: str, by: int, child: str) -> Steps:
    """Count the open children of a parent."""
    parent = find(call.tx, parent_id)
    yield from _count(call, parent, replace(parent, open_children=parent.open_children + by), child)
    if by > 0:
        yield from _bring_back(call, find(call.tx, parent_id))


def _bring_back(call: Call, task: Task) -> Steps:
    """Let a task wait again that was blocked because something was dropped, unless something else of it still is."""
    told = call.tx.last_event(task.id, "task.blocked") if task.status is Status.BLOCKED else None
    event = None if told is None else rows.decode_payload(told.kind, told.data)
    if not isinstance(event, tasks.Blocked) or event.waited is None:
        return
    reason = _hopeless(call, task)
    if reason is None:
        yield task, _write(call, task, task, tasks.Edited(status=event.waited), COVEY)
    elif reason != task.reason:
        yield task, _write(call, task, task, replace(event, reason=reason), COVEY)


def _hopeless(call: Call, task: Task) -> str | None:
    """Return why a task could never begin, or end, None if it could."""
    needs = [find(call.tx, need.task) for need in task.needs if need.policy is Policy.BLOCK]
    dropped = next((need for need in needs if need.status is Status.DROPPED), None)
    if dropped is not None:
        return _without(dropped)
    children = call.tx.children(task.id)
    return CHILDLESS if children and all(child.status is Status.DROPPED for child in children) else None


def _count(call: Call, before: Task, after: Task, cause: str) -> Steps:
    """Write a task whose counters changed, and what becomes of it when it is ready, or no longer is."""
    if after.ready is before.ready:
        call.tx.put_task(before, after)
    elif after.ready:
        event = _ending(call, after) or tasks.Ready(cause)
        yield after, _write(call, before, after, event, COVEY)
    else:
        yield after, _write(call, before, after, tasks.Waiting(cause), COVEY)


def _ending(call: Call, task: Task) -> tasks.Event | None:
    """Return how a parent that waits ends with its children, if it does."""
    if task.status not in WAITING:
        return None
    children = call.tx.children(task.id)
    if any(child.status is Status.DONE for child in children):
        return tasks.Done("children")
    return tasks.Blocked(CHILDLESS, task.status) if children else None


def count_unmet(tx: Tx, needs: Iterable[Need]) -> int:
    return sum(not is_met(find(tx, need.task).status, need.policy) for need in needs)


def step(call: Call, merge: merges.Merge, event: merges.Event, actor: str) -> merges.Merge:
    """Write a merge as it is after an event, and the event."""
    merges.step(merge, event)
    return call.tx.advance(merge, event, actor)


def withdraw(call: Call, task: str, reason: str) -> None:
    """Take a task's open merge out of the queue."""
    for merge in call.tx.open_merges(task):
        step(call, merge, merges.Withdrawn(reason), COVEY)
