"""The verbs of the board: add, claim, hand in, release, block, drop and edit a task."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from msgspec import UNSET

from covey.app import shapes
from covey.app.pulses import of_session
from covey.app.shapes import TaskFull, TaskRow
from covey.app.verbs import Call, Page, missing, verb
from covey.core import globs, ids, merges, scheduling, sessions, tasks
from covey.core.expiry import claim_ttl
from covey.core.needs import Need, Policy, find_cycle, is_met
from covey.core.sessions import COVEY, State
from covey.core.tasks import ENDED, WAITING, Status, Task
from covey.core.texts import TITLE, line
from covey.errors import Denied, Invalid, Refused
from covey.store import rows
from covey.store.tx import Tx

Steps = Iterator[tuple[Task, Task]]
"""Tasks that changed in the wake of another, each as it was and as it is."""

# What is asked


@verb("task.list", "GET /api/board", shapes.ListTasks, list[TaskRow])
def list_tasks(call: Call, asked: shapes.ListTasks) -> Page:
    """List the board: larger priority first, then older."""
    after = None if asked.after is None else find(call.tx, asked.after)
    found = call.tx.board(status=asked.status, session=asked.session, limit=asked.limit, after=after)
    return Page([row(task) for task in found], call.tx.board_size(status=asked.status, session=asked.session))


@verb("task.add", "POST /api/board", shapes.AddTask, TaskFull, status=201)
def add(call: Call, asked: shapes.AddTask) -> TaskFull:
    """Add a task to the board."""
    return full(call, add_task(call, asked, _needs(asked.needs, asked.needs_any)))


@verb("task.import", "POST /api/board/import", shapes.ImportTasks, shapes.ImportAnswer, long=True)
def import_tasks(call: Call, asked: shapes.ImportTasks) -> shapes.ImportAnswer:
    """Add or update tasks by key, as a part of an import."""
    answer = shapes.ImportAnswer({}, {}, {})
    for wish in asked.tasks:
        _import_one(call, wish, answer)
    return answer


@verb("task.show", "GET /api/board/{id}", shapes.Nothing, TaskFull)
def show(call: Call, asked: shapes.Nothing, id: str) -> TaskFull:
    """Show one task whole."""
    return full(call, find(call.tx, id))


@verb("task.deps", "GET /api/board/{id}/deps", shapes.Nothing, shapes.Deps)
def deps(call: Call, asked: shapes.Nothing, id: str) -> shapes.Deps:
    """Show what a task waits for, and what waits for it."""
    task = find(call.tx, id)
    needed_by = {edge.task: edge.policy for edge in call.tx.edges("need", [id])}
    return shapes.Deps(
        id=id,
        needs=[_edge(call.tx, need.task, need.policy) for need in task.needs],
        needed_by=[_edge(call.tx, other, policy) for other, policy in needed_by.items()],
        parent=task.parent,
        children=[child.id for child in call.tx.children(id)],
    )


@verb("task.edit", "PATCH /api/board/{id}", shapes.EditTask, TaskFull)
def edit(call: Call, asked: shapes.EditTask, id: str) -> TaskFull:
    """Change a task: what is left out stays, null clears."""
    task = find(call.tx, id)
    wish = tasks.edit(task, _edited(call, task, asked), owner=call.who.is_owner)
    if not tasks.is_nothing(wish):
        _check_edit(call, task, wish)
        task = change(call, task, wish, call.actor(None))
    return full(call, task)


@verb("task.claim", "POST /api/board/{id}/claim", shapes.Claim, TaskFull)
def claim(call: Call, asked: shapes.Claim, id: str) -> TaskFull:
    """Claim a task that waits; the answer carries the fence for all that follows."""
    name = call.actor(asked.session)
    task = find(call.tx, id)
    if task.status is Status.DOING and task.session == name:
        call.hear(name)
        return full(call, task)
    session = call.known(name)
    claimed = tasks.claim(task, name)
    sessions.may_take(session, call.tx.holding(name) if session.wip else 0)
    why_not = scheduling.why_not(task, session, () if asked.overlap or not task.scope else call.tx.at_work())
    if why_not:
        raise Refused(why_not, hint="Choose another, wait, or claim it with --overlap if only the files meet.")
    call.worker(name)
    return full(call, change(call, task, claimed, name))


@verb("task.next", "POST /api/claim", shapes.Claim, TaskFull)
def next_task(call: Call, asked: shapes.Claim) -> TaskFull | None:
    """Claim the next task that suits a session; nothing (204) when none waits."""
    name = call.actor(asked.session)
    session = call.known(name)
    sessions.may_take(session, call.tx.holding(name) if session.wip else 0)
    task = _first_that_suits(call.tx, session, asked.overlap)
    if task is None:
        call.hear(name)
        return None
    call.worker(name)
    return full(call, change(call, task, tasks.claim(task, name), name))


@verb("task.renew", "POST /api/board/{id}/renew", shapes.Held, TaskFull)
def renew(call: Call, asked: shapes.Held, id: str) -> TaskFull:
    """Say that the holder is alive."""
    task, _ = _held(call, id, asked)
    call.tx.wrote = True
    return full(call, task)


@verb("task.handin", "POST /api/board/{id}/handin", shapes.HandIn, TaskFull)
def handin(call: Call, asked: shapes.HandIn, id: str) -> TaskFull:
    """Hand in the work on a task: a change goes to review or the merge queue, a report is done."""
    task, holder = _held(call, id, asked)
    result = None if asked.result is None else call.prose(asked.result, "The result")
    review = call.house.config.merge.review
    event = tasks.hand_in(task, holder, review=review, result=result, commit=asked.commit)
    task = change(call, task, event, holder)
    if task.status is not Status.DONE:
        branch = asked.branch or f"covey/{task.id}"
        queue(call, merges.Queued(task=id, session=holder, branch=branch, commit=asked.commit, review=review))
    return full(call, task)


@verb("task.release", "POST /api/board/{id}/release", shapes.Release, TaskFull)
def release(call: Call, asked: shapes.Release, id: str) -> TaskFull:
    """Give a task back to the board."""
    task, holder = _held(call, id, asked, person=True)
    event = tasks.Released(holder, call.line(asked.reason, "The reason"))
    return full(call, change(call, task, event, call.actor(asked.session)))


@verb("task.block", "POST /api/board/{id}/block", shapes.Block, TaskFull)
def block(call: Call, asked: shapes.Block, id: str) -> TaskFull:
    """Take a task out of play until a person decides."""
    actor = call.actor(asked.session)
    task = find(call.tx, id)
    if task.status is Status.DOING or not call.who.is_owner:
        task, _ = _held(call, id, asked, person=True)
    event = tasks.block(task, line(asked.reason, "The reason", 2000))
    return full(call, change(call, task, event, actor))


@verb("task.drop", "POST /api/board/{id}/drop", shapes.Because, TaskFull, owner=True, long=True)
def drop(call: Call, asked: shapes.Because, id: str) -> TaskFull:
    """End a task without doing it; what needs it is blocked, or goes on where the need says so."""
    task = find(call.tx, id)
    event = tasks.drop(task, line(asked.reason, "The reason", 2000))
    return full(call, change(call, task, event, call.actor(None)))


# How it is done


def find(tx: Tx, task_id: str) -> Task:
    """Return a task, or say that there is none."""
    task = tx.task(task_id) if ids.is_task_id(task_id) else None
    if task is None:
        raise missing("task", task_id)
    return task


def add_task(call: Call, asked: shapes.AddTask, needs: tuple[Need, ...], key: str | None = None) -> Task:
    """Put a new task on the board, with its id, its needs and its place in the family."""
    actor = call.actor(None)
    event = _limit_to_own(call, _added(call, asked, needs, key))
    number = call.tx.next_id(prefix := ids.prefix(event.assignee, event.role))
    task_id = ids.task_id(prefix, number)
    _check_needs(call.tx, task_id, needs)
    _check_parent(call.tx, task_id, event.parent)
    if needs and event.parent:
        _check_circle(call.tx, task_id, needs, event.parent)
    task = tasks.add(task_id, call.tx.next_seq, event, call.tx.now, actor)
    task = replace(task, unmet=_unmet(call.tx, needs))
    call.tx.put_task(None, task)
    if needs:
        call.tx.put_needs(task_id, needs)
    call.tx.append(actor, task_id, event, task)
    if event.parent:
        _settle(call, _count_child(call, event.parent, +1, task_id))
    _block_if_need_dropped(call, task)
    return task


def change(call: Call, task: Task, event: tasks.Event, actor: str) -> Task:
    """Write a task as it is after an event, the event, and all that follows from it."""
    after = _write(call, task, task, event, actor)
    _settle(call, _follow(call, task, after))
    return after


def _write(call: Call, before: Task, counted: Task, event: tasks.Event, actor: str) -> Task:
    """Write a task whose counters may have changed as it is after an event, and the event."""
    tx = call.tx
    after = tasks.apply(counted, event, tx.now, actor)
    if (before.status is Status.DOING) is not (after.status is Status.DOING):
        _set_to_work(call, before, after)
    if after.needs != before.needs:
        after = replace(after, unmet=_unmet(tx, after.needs))
        tx.put_needs(after.id, after.needs)
    tx.put_task(before, after)
    tx.append(actor, after.id, event, after)
    return after


def _set_to_work(call: Call, before: Task, after: Task) -> None:
    """Show an outside session as working while it holds a task; a run's state is the watchdog's to tell."""
    if after.status is Status.DOING and after.session is not None:
        call.show_state(after.session, State.WORKING, f"claimed {after.id}")
    elif before.session is not None and call.tx.holding(before.session) == 1:
        call.show_state(before.session, State.IDLE, f"holds {before.id} no more")


def _settle(call: Call, steps: Steps) -> None:
    """Follow every change to what it changes, one after another: families and chains may be deeper than our stack."""
    pending = deque(steps)
    while pending:
        pending.extend(_follow(call, *pending.popleft()))


def _follow(call: Call, before: Task, after: Task) -> Steps:
    """Bring its parent, what needs it and its merge in step with a task that changed."""
    was_open, is_open = before.status not in ENDED, after.status not in ENDED
    if was_open is not is_open or before.parent != after.parent:
        if was_open and before.parent:
            yield from _count_child(call, before.parent, -1, after.id)
        if is_open and after.parent:
            yield from _count_child(call, after.parent, +1, after.id)
    if was_open is not is_open:
        yield from _tell_dependants(call, before, after)
    if before.status in (Status.REVIEW, Status.MERGING) and after.status in (Status.BLOCKED, Status.DROPPED):
        withdraw(call, after.id, f"{after.id} was {after.status}")


def queue(call: Call, event: merges.Queued) -> merges.Merge:
    """Enter work into the merge queue."""
    seq = call.tx.next_seq
    merge = merges.first(f"merge-{seq}", seq, event, call.tx.now)
    call.tx.insert(rows.MERGES, merge)
    call.tx.append(event.session, merge.id, event, merge)
    return merge


def step(call: Call, merge: merges.Merge, event: merges.Event, actor: str) -> merges.Merge:
    """Write a merge as it is after an event, and the event."""
    merges.step(merge, event)
    after = merges.apply(merge, event, call.tx.now)
    call.tx.update(rows.MERGES, merge, after)
    call.tx.append(actor, merge.id, event, after)
    return after


def withdraw(call: Call, task: str, reason: str) -> None:
    """Take a task's open merge out of the queue."""
    where = "WHERE task = ? AND state IN ('review', 'queued', 'testing')"
    for merge in call.tx.find(rows.MERGES, where, (task,)):
        step(call, merge, merges.Withdrawn(reason), COVEY)


def row(task: Task) -> TaskRow:
    """Return a task as the board shows it."""
    return TaskRow(**_shared(task))


def full(call: Call, task: Task) -> TaskFull:
    """Return a task with all that is known of it."""
    return TaskFull(
        **_shared(task),
        body=call.tx.text(task.body),
        done_when=task.done_when,
        budget=task.budget,
        key=task.key,
        tries=task.tries,
        notes=task.notes,
        result=None if task.result is None else call.tx.text(task.result),
        front=task.front,
        unmet=task.unmet,
        open_children=task.open_children,
        until=_until(call, task),
    )


def _shared(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "title": task.title,
        "status": task.status,
        "session": task.session,
        "kind": task.kind,
        "assignee": task.assignee,
        "role": task.role,
        "priority": task.priority,
        "needs": [need.task for need in task.needs],
        "needs_any": [need.task for need in task.needs if need.policy is Policy.ANY],
        "parent": task.parent,
        "scope": task.scope,
        "do_not_touch": task.do_not_touch,
        "overlap": task.overlap,
        "fence": task.fence,
        "ready": task.ready,
        "reason": task.reason,
        "commit": task.commit,
        "failed_tries": len(task.tries),
        "created": task.created,
        "updated": task.updated,
        "claimed": task.claimed,
        "ended": task.ended,
    }


def _until(call: Call, task: Task) -> float | None:
    if task.status is not Status.DOING or task.session is None or task.session == sessions.OWNER:
        return None
    session = call.known(task.session)
    config = call.house.config
    ttl = claim_ttl(session.kind, outside=config.board.claim_ttl, run=config.sessions.dead_after)
    pulse = call.house.pulses.seen(of_session(task.session))
    return None if ttl is None or pulse is None else pulse.seen + ttl


def _held(call: Call, task_id: str, asked: shapes.Held, *, person: bool = False) -> tuple[Task, str]:
    """Return a task and its holder, if who asks may speak for the holder under this fence."""
    task = find(call.tx, task_id)
    actor = call.actor(asked.session)
    if not call.who.is_owner and asked.fence is None:
        raise Invalid("The fence of the claim is missing.", hint="Send the fence that the claim answered.")
    anyone = call.who.is_owner and asked.session is None and person
    holder = tasks.hold(task, None if anyone else actor, asked.fence)
    if not anyone:
        call.hear(actor)
    return task, holder


def _first_that_suits(tx: Tx, session: sessions.Session, overlap: bool) -> Task | None:
    lanes = scheduling.lanes(session)
    heads = [task for lane in lanes for task in tx.waiting(lane, 1)]
    first = min(heads, key=scheduling.rank, default=None)
    if first is None or not first.scope or first.overlap or overlap:
        return first
    active: list[Task] | None = None
    seen: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    for task in heapq.merge(*(_lane(tx, lane) for lane in lanes), key=scheduling.rank):
        if not task.scope or task.overlap or overlap:
            return task
        if (task.scope, task.do_not_touch) in seen:
            continue
        active = tx.at_work() if active is None else active
        if scheduling.why_not(task, session, active) is None:
            return task
        seen.add((task.scope, task.do_not_touch))
    return None


def _lane(tx: Tx, lane: str) -> Iterator[Task]:
    offset, size = 0, 8
    while page := tx.waiting(lane, size, offset):
        yield from page
        if len(page) < size:
            return
        offset, size = offset + size, min(size * 8, 512)


def _needs(needs: Iterable[str], needs_any: Iterable[str]) -> tuple[Need, ...]:
    edges = dict.fromkeys(needs, Policy.BLOCK) | dict.fromkeys(needs_any, Policy.ANY)
    return tuple(Need(task, policy) for task, policy in edges.items())


def _unmet(tx: Tx, needs: Iterable[Need]) -> int:
    return sum(not is_met(find(tx, need.task).status, need.policy) for need in needs)


def _globs(scope: list[str]) -> tuple[str, ...]:
    """Return globs in their one spelling, each once, or refuse them."""
    spelled = [
        ("new:" if glob.startswith("new:") else "") + globs.compile(glob.removeprefix("new:")).pattern for glob in scope
    ]
    return tuple(dict.fromkeys(spelled))


def _added(call: Call, asked: shapes.AddTask, needs: tuple[Need, ...], key: str | None) -> tasks.Added:
    return tasks.Added(
        title=line(asked.title, "The title", TITLE),
        body=call.prose(asked.body, "The body"),
        kind=asked.kind,
        status=Status(asked.status),
        assignee=asked.assignee,
        role=asked.role,
        priority=asked.priority,
        needs=needs,
        parent=asked.parent,
        scope=_globs(asked.scope),
        do_not_touch=_globs(asked.do_not_touch),
        overlap=asked.overlap,
        done_when=tuple(asked.done_when),
        budget=asked.budget,
        key=key,
        note=call.line(asked.note, "The note"),
    )


def _limit_to_own(call: Call, event: tasks.Added) -> tasks.Added:
    """Refuse a session a task with more rights than its own; what it leaves open it inherits."""
    if call.who.session is None:
        return event
    if event.done_when:
        raise Denied("A session may not add done-when checks; only the owner may.")
    held = call.tx.held_by(call.who.session)
    own = next((task for task in held if task.scope or task.budget is not None), None)
    if own is None:
        return event
    scope = event.scope or own.scope
    if own.scope and not globs.contains(scheduling.scope_paths(own.scope), scheduling.scope_paths(scope)):
        raise Denied(f"The scope of the new task is larger than that of {own.id}, which {call.who.session} holds.")
    budget = own.budget if event.budget is None else event.budget
    if own.budget is not None and budget is not None and budget > own.budget:
        raise Denied(f"The budget of the new task is larger than that of {own.id}, which is {own.budget}.")
    do_not_touch = tuple(dict.fromkeys((*event.do_not_touch, *own.do_not_touch)))
    return replace(event, scope=scope, budget=budget, do_not_touch=do_not_touch)


def _edited(call: Call, task: Task, asked: shapes.EditTask) -> tasks.Edited:
    given = {name: value for name in asked.__struct_fields__ if (value := getattr(asked, name)) is not UNSET}
    cleared = tuple(name for name in tasks.CLEARABLE if name in given and given[name] is None)
    if "title" in given:
        given["title"] = line(given["title"], "The title", TITLE)
    if "body" in given:
        given["body"] = call.prose(given["body"], "The body")
    for name in ("scope", "do_not_touch"):
        if name in given:
            given[name] = _globs(given[name])
    if "needs" in given or "needs_any" in given:
        strict = [need.task for need in task.needs if need.policy is Policy.BLOCK]
        loose = [need.task for need in task.needs if need.policy is Policy.ANY]
        given["needs"] = _needs(given.get("needs", strict), given.pop("needs_any", loose))
    if "done_when" in given:
        given["done_when"] = tuple(given["done_when"])
    if "status" in given:
        given["status"] = Status(given["status"])
    if "note" in given:
        given["note"] = line(given["note"], "The note", 2000)
    return tasks.Edited(**given, cleared=cleared)


def _check_edit(call: Call, task: Task, wish: tasks.Edited) -> None:
    if call.who.session is not None:
        rights = (wish.scope, wish.do_not_touch, wish.overlap, wish.budget, wish.done_when)
        if wish.cleared or any(right is not None for right in rights):
            raise Denied("Only the owner may change scope, do-not-touch, overlap, budget or done-when checks.")
        if task.assignee not in (None, call.who.session):
            raise Denied(f"{task.id} is for {task.assignee}; only the owner may edit it.")
    needs = task.needs if wish.needs is None else wish.needs
    parent = None if "parent" in wish.cleared else wish.parent or task.parent
    if wish.needs is not None:
        _check_needs(call.tx, task.id, needs)
    if wish.parent is not None or (task.status is Status.DROPPED and wish.status is not None):
        _check_parent(call.tx, task.id, parent)
    if wish.needs or wish.parent is not None:
        _check_circle(call.tx, task.id, needs, parent)
    if wish.status is not None or (wish.needs is not None and task.status in WAITING):
        dropped = _dropped_need(call.tx, needs)
        if dropped:
            raise Refused(
                f"{task.id} needs {dropped}, which was dropped.",
                hint=f"Edit the needs of {task.id}, or bring {dropped} back: covey task edit {dropped} --status todo.",
            )


def _check_needs(tx: Tx, task_id: str, needs: Iterable[Need]) -> None:
    names = [need.task for need in needs]
    if task_id in names:
        raise Invalid(f"{task_id} cannot need itself.")
    for name in names:
        if tx.task(name) is None:
            raise Invalid(f"There is no task {name!r} to need.", hint="A need must be on the board first.")


def _check_circle(tx: Tx, task_id: str, needs: Iterable[Need], parent: str | None) -> None:
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


def _check_parent(tx: Tx, task_id: str, parent: str | None) -> None:
    seen = [task_id]
    while parent is not None:
        if parent in seen:
            raise Invalid(f"A task cannot be its own ancestor: {' > '.join([*seen, parent])}.")
        task = tx.task(parent)
        if task is None:
            raise Invalid(f"There is no task {parent!r} to be the parent.")
        if len(seen) == 1 and task.status in ENDED:
            raise Refused(f"{parent} is {task.status} and can have no more children.")
        seen.append(parent)
        parent = task.parent


def _dropped_need(tx: Tx, needs: Iterable[Need]) -> str | None:
    for need in needs:
        if need.policy is Policy.BLOCK and find(tx, need.task).status is Status.DROPPED:
            return need.task
    return None


def _block_if_need_dropped(call: Call, task: Task) -> None:
    dropped = _dropped_need(call.tx, task.needs)
    if dropped:
        raise Invalid(f"{dropped} was dropped, so a task that needs it could never begin.")


def _tell_dependants(call: Call, before: Task, after: Task) -> Steps:
    """Keep the counts of unmet needs, make ready what waited, and block what needed a dropped task."""
    for edge in call.tx.edges("need", [after.id]):
        was, now = is_met(before.status, edge.policy), is_met(after.status, edge.policy)
        waiting = find(call.tx, edge.task)
        if was is not now:
            yield from _count(call, waiting, replace(waiting, unmet=waiting.unmet + (-1 if now else 1)), after.id)
        elif after.status is Status.DROPPED and waiting.status in WAITING:
            event = tasks.Blocked(f"It needs {after.id}, which was dropped: {after.reason}")
            yield waiting, _write(call, waiting, waiting, event, COVEY)


def _count_child(call: Call, parent_id: str, by: int, child: str) -> Steps:
    parent = find(call.tx, parent_id)
    yield from _count(call, parent, replace(parent, open_children=parent.open_children + by), child)


def _count(call: Call, before: Task, after: Task, cause: str) -> Steps:
    """Write a task whose counters changed, and what becomes of it when it waits for nothing more."""
    event = _freed(call, after, cause) if after.ready and not before.ready else None
    if event is None:
        call.tx.put_task(before, after)
    else:
        yield after, _write(call, before, after, event, COVEY)


def _freed(call: Call, task: Task, cause: str) -> tasks.Event | None:
    """Return what becomes of a task that waits for nothing more: a parent ends with its children."""
    if task.status not in (*WAITING, Status.BLOCKED):
        return None
    children = call.tx.children(task.id)
    if any(child.status is Status.DONE for child in children):
        return tasks.Done("children")
    if task.status is Status.BLOCKED:
        return None
    return tasks.Blocked("Every child of it was dropped.") if children else tasks.Ready(cause)


def _edge(tx: Tx, task_id: str, policy: Policy) -> shapes.Edge:
    task = find(tx, task_id)
    return shapes.Edge(task.id, task.title, task.status, policy)


# Import


def _import_one(call: Call, wish: shapes.ImportedTask, answer: shapes.ImportAnswer) -> None:
    needs = _needs([_by_key(call.tx, name) for name in wish.needs], [_by_key(call.tx, name) for name in wish.needs_any])
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
    edited = replace(_edited(call, task, asked), needs=needs if task.status in WAITING else None)
    event = tasks.edit(task, edited, owner=call.who.is_owner)
    if tasks.is_nothing(event):
        answer.unchanged[wish.key] = task.id
        return
    _check_edit(call, task, event)
    answer.updated[wish.key] = change(call, task, event, call.actor(None)).id


def _by_key(tx: Tx, name: str) -> str:
    task = tx.task_of_key(name)
    if task is None and ids.is_task_id(name):
        task = tx.task(name)
    if task is None:
        raise Invalid(f"There is no task with the key {name!r}.", hint="A key must stand on an earlier line.")
    return task.id
