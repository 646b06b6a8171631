"""The verbs of the board: add, claim, hand in, release, block, drop and edit a task."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from covey.app.board.requests import (
    as_added,
    as_edited,
    as_globs,
    as_needs,
    block_if_need_dropped,
    check_circle,
    check_edit,
    check_needs,
    check_parent,
    inherit,
)
from covey.app.board.task_changes import change, count_child, count_unmet, settle
from covey.app.board.tries import block_if_tried_often, fail, hand_in
from covey.app.context import Call, Lands, find
from covey.app.fleet.heartbeats import of_session
from covey.app.leases.write_check import handing_in, may_hold_back
from covey.app.merging.merge_lookup import reverted_by
from covey.app.overlap import hot_files
from covey.app.people import session_limits
from covey.app.people.mail import tell
from covey.app.people.ownership import look_at_files
from covey.app.shapes.board import (
    AddTask,
    Block,
    Claim,
    Deps,
    Edge,
    EditTask,
    HandIn,
    Held,
    ListTasks,
    Release,
    TaskFull,
    TaskRow,
)
from covey.app.shapes.forms import Nothing, Perhaps
from covey.app.verbs import Page, verb
from covey.core import ids, quotes
from covey.core.board import scheduling, tasks
from covey.core.board.needs import Need, Policy
from covey.core.board.tasks import Status, Task
from covey.core.fleet import sessions, task_updates
from covey.core.fleet.task_updates import GONE
from covey.core.leases.expiry import claim_ttl
from covey.core.merging import merges
from covey.core.people.mail import fits
from covey.core.people.rights import OWN, OWN_ELSE_PROPOSED, SHARED, is_concerned_with
from covey.core.texts import line
from covey.errors import Invalid, Refused
from covey.git.identity import task_branch
from covey.store.engine.rows import decode_payload
from covey.store.tx import Tx
from covey.values import dataclass


@verb("task.list", "GET /api/board", ListTasks, list[TaskRow], may=SHARED)
def list_tasks(call: Call, asked: ListTasks) -> Page:
    """List the board: larger priority first, then as people have put it, then older."""
    names = {"status": asked.status, "session": asked.session, "assignee": asked.assignee}
    return Page([row(task) for task in page(call, asked)], call.tx.board_size(**names, is_open=asked.open))


def page(call: Call, asked: ListTasks) -> list[Task]:
    """Return the tasks of a page of the board, in its order."""
    names = {"status": asked.status, "session": asked.session, "assignee": asked.assignee}
    after = None if asked.after is None else find(call.tx, asked.after)
    return call.tx.board(**names, is_open=asked.open, limit=asked.limit, after=after)


def _look_at_scope(call: Call, asked: AddTask) -> Callable[[], dict[str, int]] | None:
    return look_at_files(call, scheduling.scope_paths(as_globs(asked.scope))) if asked.scope else None


@verb("task.add", "POST /api/board", AddTask, TaskFull, may=OWN_ELSE_PROPOSED, status=201, ahead=_look_at_scope)
def add(call: Call, asked: AddTask) -> TaskFull:
    """Add a task to the board."""
    session_limits.check_tasks(call)
    return full(call, add_task(call, asked, as_needs(asked.needs, asked.needs_any)))


@verb("task.deps", "GET /api/board/{id}/deps", Nothing, Deps, may=SHARED)
def deps(call: Call, asked: Nothing, id: str) -> Deps:
    """Show what a task waits for, and what waits for it."""
    task = find(call.tx, id)
    needed_by = {edge.task: edge.policy for edge in call.tx.edges("need", [id])}
    return Deps(
        id=id,
        needs=[_edge(call.tx, need.task, need.policy) for need in task.needs],
        needed_by=[_edge(call.tx, other, policy) for other, policy in needed_by.items()],
        parent=task.parent,
        children=[child.id for child in call.tx.children(id)],
    )


@verb("task.edit", "PATCH /api/board/{id}", EditTask, TaskFull, may=OWN_ELSE_PROPOSED)
def edit(call: Call, asked: EditTask, id: str) -> TaskFull:
    """Change a task: what is left out stays, null clears."""
    return full(call, edit_task(call, find(call.tx, id), asked))


def edit_task(call: Call, task: Task, asked: EditTask) -> Task:
    """Change a task, and tell whoever is at work on it."""
    wish = tasks.edit(task, as_edited(call, task, asked))
    if not tasks.is_nothing(wish):
        check_edit(call, task, wish)
        if wish.note is not None:
            session_limits.check_notes(call, task)
        task = change(call, task, wish, call.actor(None))
        if task.status is Status.DOING and task.session not in (None, call.actor(None)):
            _tell_holder(call, task, wish)
    return task


def _tell_holder(call: Call, task: Task, wish: tasks.Edited) -> None:
    """Let whoever is at work on a task know that it is another one now."""
    assert task.session is not None
    named = [name for name in EditTask.__struct_fields__ if getattr(wish, name, None) is not None]
    parts = [
        f"{task.id} was edited by {call.actor(None)} while you are at work on it: {', '.join([*named, *wish.cleared])}."
    ]
    if wish.title is not None:
        parts.append(f"Title: {quotes.title(wish.title, 600)}")
    if wish.note is not None:
        parts += ["Note:", *quotes.marked(wish.note)]
    for name, words in (("scope", "You may write only"), ("do_not_touch", "Do not touch")):
        if (paths := getattr(wish, name)) is not None:
            parts.append(f"{words}: {quotes.names(paths)}" if paths else GONE[name])
    if wish.done_when is not None:
        checks = [f"- {quotes.title(check, 600)}" for check in wish.done_when]
        parts += ["It is done when:", *checks] if checks else [GONE["done_when"]]
    if wish.body is not None:
        parts += ["What it says now:", *quotes.marked(call.tx.text(wish.body))]
    text = "\n".join(parts)
    tell(call, task.session, text, task.id, _facts(call, task, wish, whole=fits(text)))


def _facts(call: Call, task: Task, wish: tasks.Edited, *, whole: bool) -> task_updates.Facts:
    """Return the parts of a task that an edit has changed; without a digest if they are not told whole."""
    now = task_updates.of_words(task, call.tx.text(task.body))
    changed = {name for name in now if getattr(wish, name, None) is not None}
    changed |= {task_updates.note_name(len(task.notes))} if wish.note is not None else set()
    return tuple((name, said if whole else "") for name, said in now.items() if name in changed)


@verb("task.claim", "POST /api/board/{id}/claim", Claim, TaskFull, may=SHARED)
def claim(call: Call, asked: Claim, id: str) -> TaskFull:
    """Claim a task that waits; the answer carries the fence for all that follows."""
    name = _claimant(call, asked)
    task = find(call.tx, id)
    if task.status is Status.DOING and task.session == name:
        call.hear(name)
        return full(call, task)
    session = call.known(name)
    claimed = tasks.claim(task, name)
    if session.wip is not None:
        sessions.may_take(session, call.tx.holding(name))
    why_not = scheduling.why_not(task, session, () if asked.overlap or not task.scope else call.tx.at_work())
    if why_not is None and not asked.overlap:
        hot = hot_files.crowd(call).in_the_way(task)
        why_not = None if hot is None else scheduling.why_wait(task, *hot)
    if why_not:
        raise Refused(why_not, hint="Choose another, wait, or claim it with --overlap if only the files meet.")
    call.worker(name)
    return full(call, change(call, task, claimed, name))


@verb("task.next", "POST /api/claim", Claim, TaskFull, may=SHARED)
def next_task(call: Call, asked: Claim) -> TaskFull | None:
    """Claim the next task that suits a session; nothing (204) when none waits."""
    name = _claimant(call, asked)
    session = call.known(name)
    if session.wip is not None:
        sessions.may_take(session, call.tx.holding(name))
    task = first_that_suits(call, session, overlap=asked.overlap)
    if task is None:
        call.hear(name)
        return None
    call.worker(name)
    return full(call, change(call, task, tasks.claim(task, name), name))


@verb("task.renew", "POST /api/board/{id}/renew", Held, TaskFull, may=OWN)
def renew(call: Call, asked: Held, id: str) -> TaskFull:
    """Say that the holder is alive."""
    task, _ = _held(call, id, asked)
    call.tx.wrote = True
    return full(call, task)


@dataclass(frozen=True)
class _Look:
    """What git tells of work that is handed in: what would land, the commit and its time if main has it, its branch."""

    lands: Lands | None = None
    held: tuple[str, float] | None = None
    has_branch: bool = True
    """The branch is there that is to be handed in; where a commit is named, none has to be."""


def _look_at_work(call: Call, asked: HandIn, id: str) -> Callable[[], _Look] | None:
    """Return the look at work, which git takes its time for; of a person's commit nothing has to be known."""
    task, main = call.tx.task(id), call.context.config.target
    if task is None or task.session is None or task.kind is not tasks.Kind.CHANGE:
        return None
    holder, commit = task.session, asked.commit or f"refs/heads/{_branch(task, asked)}"
    is_person = call.known(holder).kind is sessions.SessionKind.PERSON
    if is_person and asked.commit is not None:
        return None
    from covey.git.candidates import candidates  # only work that is handed in is looked for

    commits = call.context.commits if not is_person and may_hold_back(call, holder, task) else None
    project = call.context.repository

    def look() -> _Look:
        if project is not None and asked.commit is None and candidates.resolve(project, commit) is None:
            return _Look(has_branch=False)
        return _Look(
            None if commits is None else commits(holder, commit, main),
            None if project is None or is_person else candidates.committed_on(project, commit, main),
        )

    return look


@verb("task.handin", "POST /api/board/{id}/handin", HandIn, TaskFull, may=OWN, ahead=_look_at_work)
def handin(call: Call, asked: HandIn, id: str) -> TaskFull:
    """Hand in the work on a task: a change goes to review or the merge queue, a report is done."""
    task, holder = _held(call, id, asked)
    if asked.commit is None and task.kind is tasks.Kind.CHANGE and call.known(holder).kind is sessions.SessionKind.RUN:
        raise Invalid("The commit with the work is missing.", hint="covey task handin ID --commit HEAD names it.")
    look: _Look = call.seen or _Look()
    lands = look.lands
    if not look.has_branch:
        raise Refused(
            f"There is no branch {_branch(task, asked)}, so there is no work on {task.id} to hand in.",
            hint=f"Commit your work, and name the commit: covey task handin {task.id} --commit HEAD",
        )
    if look.held is not None:
        _check_is_new(call, task, *look.held)
    why = handing_in(call, holder, task, None if lands is None else lands.writes)
    if why is not None:  # it changes what another held when it was written, and holds still
        raise Refused(" ".join(why.reasons), hint=why.hint)
    # A short name may stand for another commit by the time it lands: what was looked at counts.
    commit = asked.commit if asked.commit is None or lands is None else lands.commit
    result = None if asked.result is None else call.prose(asked.result, "The result")
    work = merges.Queued(task=id, session=holder, branch=_branch(task, asked), commit=commit)
    hand_in(call, task, work, result=result)
    return full(call, find(call.tx, id))


def _branch(task: Task, asked: HandIn) -> str:
    return asked.branch or task_branch(task.id)


def _check_is_new(call: Call, task: Task, commit: str, at: float) -> None:
    """Refuse a commit that main had before the task was taken, or has from another task: no work on this one is in it.

    What came to main since is somebody's work on it that was merged by hand.
    """
    other = call.tx.merge_landed_in(commit)
    is_others = other is not None and other.task != task.id
    if is_others or at < int(task.claimed or 0):
        main = call.context.config.target
        whose = f", from {other.task}" if other is not None and is_others else ""
        raise Refused(
            f"{main} has {commit[:12]} already{whose}, so there is no work on {task.id} to land.",
            hint="Commit your work first, or name its branch: --commit BRANCH. If that commit is the work, the owner"
            f" hands it in: covey task release {task.id}, covey task claim {task.id}, and hand it in without --as.",
        )


@verb("task.release", "POST /api/board/{id}/release", Release, TaskFull, may=OWN)
def release(call: Call, asked: Release, id: str) -> TaskFull:
    """Give a task back to the board."""
    task, holder = _held(call, id, asked, person=True)
    what = call.line(asked.reason, "The reason")
    given_up = call.who.session is not None and call.known(holder).kind is sessions.SessionKind.RUN
    if given_up and what is None:
        what = "Its session gave it back."  # an agent that gives up has tried; it would get it again at once
    if given_up:
        return full(
            call, block_if_tried_often(call, fail(call, task, what or "", call.actor(asked.session)), what or "")
        )
    return full(call, change(call, task, tasks.Released(holder, what), call.actor(asked.session)))


@verb("task.block", "POST /api/board/{id}/block", Block, TaskFull, may=OWN)
def block(call: Call, asked: Block, id: str) -> TaskFull:
    """Take a task out of play until a person decides."""
    actor = call.actor(asked.session)
    task = find(call.tx, id)
    if task.status is Status.DOING or not call.who.is_owner:
        task, _ = _held(call, id, asked, person=True)
    return full(call, change(call, task, tasks.block(task, line(asked.reason, "The reason", 2000)), actor))


@verb("task.drop", "POST /api/board/{id}/drop", Perhaps, TaskFull, may=OWN_ELSE_PROPOSED, long=True)
def drop(call: Call, asked: Perhaps, id: str) -> TaskFull:
    """End a task without doing it; what needs it is blocked, or goes on where the need says so."""
    task = find(call.tx, id)
    event = tasks.drop(task, line(asked.reason, "The reason", 2000) if asked.reason else "")
    return full(call, change(call, task, event, call.actor(None)))


def add_task(call: Call, asked: AddTask, needs: tuple[Need, ...], key: str | None = None) -> Task:
    """Put a new task on the board, with its id, its needs and its place in the family."""
    actor = call.actor(None)
    event = inherit(call, as_added(call, asked, needs, key))
    number = call.tx.next_id(prefix := ids.prefix(event.assignee, event.role))
    task_id = ids.task_id(prefix, number)
    check_needs(call.tx, task_id, needs)
    check_parent(call.tx, task_id, event.parent)
    if needs and event.parent:
        check_circle(call.tx, task_id, needs, event.parent)
    task = tasks.add(task_id, call.tx.next_seq, event, call.tx.now, actor)
    task = replace(task, unmet=count_unmet(call.tx, needs))
    call.tx.put_task(None, task)
    if needs:
        call.tx.put_needs(task_id, needs)
    call.tx.append(actor, task_id, event, task)
    if event.parent:
        settle(call, count_child(call, event.parent, +1, task_id))
    block_if_need_dropped(call, task)
    return task


def row(task: Task) -> TaskRow:
    """Return a task as the board shows it."""
    return TaskRow.of(task, **_computed(task))


def full(call: Call, task: Task) -> TaskFull:
    """Return a task with all that is known of it; what others spend is not told to a session."""
    session = call.who.session
    told = session is None or is_concerned_with(task, session)
    cost, tokens, unpriced = call.tx.spent("task", task.id) if told else (0.0, 0, 0)
    return TaskFull.of(
        task,
        **_computed(task),
        body=call.tx.text(task.body),
        budget=task.budget if told else None,
        result=None if task.result is None else call.tx.text(task.result),
        result_by=None if task.result is None else _result_by(call, task),
        until=_until(call, task.session) if task.status is Status.DOING and task.session else None,
        reverted=_reverted(call, task) if task.status is Status.DONE else None,
        cost=cost,
        tokens=tokens,
        unpriced=unpriced,
    )


def _result_by(call: Call, task: Task) -> str | None:
    """Return the session that handed in the result of a task, whoever holds that now."""
    told = call.tx.events(subject=task.id, kind="task.handed_in", newest=True)
    payloads = (decode_payload(each.kind, each.data) for each in reversed(told))
    said = (each.session for each in payloads if isinstance(each, tasks.HandedIn) and each.result == task.result)
    return next(said, task.session)


def _reverted(call: Call, task: Task) -> str | None:
    """Return the merge that took the work of a task out of main again, None if it is there."""
    last = call.tx.last_merge(task.id)
    by = None if last is None or last.state is not merges.MergeState.REVERTED else reverted_by(call, last)
    return None if by is None else by.id


def _computed(task: Task) -> dict[str, Any]:
    """Return what the board shows of a task beside its own fields."""
    failed = sum(tried.has_failed for tried in task.tries)
    return {
        "needs": [need.task for need in task.needs],
        "needs_any": [need.task for need in task.needs if need.policy is Policy.ANY],
        "failed_tries": failed,
        "sent_back": len(task.tries) - failed,
        "lane": scheduling.waiting_line(task),
    }


def _until(call: Call, holder: str) -> float | None:
    config = call.context.config
    ttl = claim_ttl(call.known(holder).kind, outside=config.board.claim_ttl, run=config.sessions.dead_after)
    pulse = call.context.pulses.seen(of_session(holder))
    return None if ttl is None or pulse is None else pulse.seen + ttl


def _claimant(call: Call, asked: Claim) -> str:
    if asked.overlap:
        call.only_owner("let tasks overlap")
    return call.actor(asked.session)


def _held(call: Call, task_id: str, asked: Held, *, person: bool = False) -> tuple[Task, str]:
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


def first_that_suits(
    call: Call, session: sessions.Session, *, overlap: bool = False, fits: Callable[[Task], bool] | None = None
) -> Task | None:
    """Return the first task in line that suits a session; one that would collide with a task at work is passed over.

    `fits` says which may be taken at all; without it any may be.
    """
    tx, lanes = call.tx, scheduling.waiting_lines(session)
    heads = [task for lane in lanes if (task := next(filter(fits, _lane(tx, lane)), None)) is not None]
    first = min(heads, key=scheduling.hand_out_key, default=None)
    if first is None or first.overlap or overlap:
        return first
    crowd = hot_files.crowd(call)
    if not first.scope and crowd.in_the_way(first) is None:
        return first
    tx.take_time()
    line = filter(fits, heapq.merge(*(_lane(tx, lane) for lane in lanes), key=scheduling.hand_out_key))
    return _first_apart(tx, session, (task for task in line if crowd.in_the_way(task) is None))


def _first_apart(tx: Tx, session: sessions.Session, line: Iterable[Task]) -> Task | None:
    """Return the first task whose scope meets no task at work; many have the same scope, and each is judged once."""
    active: list[Task] | None = None
    seen: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    for task in line:
        if not task.scope or task.overlap:
            return task
        if (task.scope, task.do_not_touch) in seen:
            continue
        active = tx.at_work() if active is None else active
        if scheduling.why_not(task, session, active) is None:
            return task
        seen.add((task.scope, task.do_not_touch))
    return None


def _lane(tx: Tx, lane: str) -> Iterator[Task]:
    offset, size = 0, 1  # most often the first is taken
    while page := tx.waiting(lane, size, offset):
        yield from page
        if len(page) < size:
            return
        offset, size = offset + size, min(size * 8, 512)


def _edge(tx: Tx, task_id: str, policy: Policy) -> Edge:
    task = find(tx, task_id)
    return Edge(task.id, task.title, task.status, policy)
