"""The verbs of one merge: looking at it, letting it go on, sending it back, and taking it out of the queue."""

from __future__ import annotations

from covey.app import reasons
from covey.app.board import add_task, needs_review
from covey.app.changes import change, queue, step
from covey.app.costs import spent
from covey.app.queued import approver, find_merge, reverted_by, was_run
from covey.app.reasons import line_of, look
from covey.app.reverts import settle
from covey.app.sendback import send_back as send_back
from covey.app.shapes.costs import spent as spent_fields
from covey.app.shapes.forms import Because, Nothing
from covey.app.shapes.gates import GateRow
from covey.app.shapes.landings import LandingRow
from covey.app.shapes.merges import Land, ListMerges, MergeFull, MergeLine, MergeRow, MergeWhy, QueueBranch
from covey.app.shapes.queue import Perhaps
from covey.app.shapes.tasks import AddTask
from covey.app.tasks import find
from covey.app.tries import put_back
from covey.app.verbs import Call, verb
from covey.core import merges, tasks
from covey.core.merges import Merge, State
from covey.core.rights import OWNER_ONLY, REVIEW, SHARED
from covey.core.sessions import OWNER
from covey.core.tasks import ENDED, WAITING, Status
from covey.core.texts import line
from covey.errors import Denied, Refused
from covey.store import rows

REASON = 2000
"""Characters of a reason."""
BRANCH = "covey/"
"""How the branches begin that covey makes for tasks."""
GATES = 50
"""Gates that are shown with a merge."""


@verb("merge.list", "GET /api/merges", ListMerges, list[MergeLine], may=SHARED)
def list_merges(call: Call, asked: ListMerges) -> list[MergeLine]:
    """List what wants to land, the oldest first, with its place in the train; with `all`, also what has ended."""
    if asked.all:
        found = call.tx.find(rows.MERGES, "ORDER BY ordinal DESC LIMIT ?", (asked.limit,))[::-1]
    else:
        found = call.tx.open_merges(limit=asked.limit)
    sight = look(call, found)
    return [line_of(sight, merge) for merge in found]


@verb("merge.show", "GET /api/merges/{id}", Nothing, MergeFull, may=SHARED)
def show(call: Call, asked: Nothing, id: str) -> MergeFull:
    """Show one merge whole: its task and author, the gates that it was in, its landing, and what it cost."""
    merge = find_merge(call, id)
    task = find(call.tx, merge.task)
    landing = None if merge.landing is None else call.tx.landing(merge.landing)
    author, out = call.tx.session(merge.session), reverted_by(call, merge)
    shown = line_of(look(call, [merge]), merge)
    return MergeFull(
        **{name: getattr(shown, name) for name in MergeLine.__struct_fields__},
        task_status=task.status,
        agent=None if author is None else author.agent,
        approved_by=approver(call, merge),
        gates=[GateRow.of(gate) for gate in call.tx.gates_of(merge.id, GATES) if was_run(gate)],
        landed_by=None if landing is None else LandingRow.of(landing),
        group=[] if landing is None else [name for name in landing.merges if name != merge.id],
        reverted_by=None if out is None else out.id,
        **spent_fields(spent(call, task=merge.task)),
    )


@verb("merge.why", "GET /api/merges/{id}/why", Nothing, MergeWhy, may=SHARED)
def why(call: Call, asked: Nothing, id: str) -> MergeWhy:
    """Say in sentences why a merge is where it is, with the gates and merges that are the evidence."""
    merge = find_merge(call, id)
    sight, task = look(call, [merge]), call.tx.task(merge.task)
    said = reasons.because(call, sight, merge)
    steps = reasons.next_steps(sight, merge, task, moved_on=_moved_on(call, merge) is not None)
    return MergeWhy(merge=merge.id, task=merge.task, state=merge.state, because=said, next=steps)


@verb("merge.queue", "POST /api/merges", QueueBranch, MergeRow, may=OWNER_ONLY, status=201)
def queue_branch(call: Call, asked: QueueBranch) -> MergeRow:
    """Queue a branch from outside covey: it becomes a task whose work is handed in, the same one if it comes again."""
    _check_branch(call, asked)
    where = "WHERE branch = ? AND session = ? ORDER BY ordinal DESC LIMIT 1"
    before = next(iter(call.tx.find(rows.MERGES, where, (asked.branch, OWNER))), None)
    if before is not None and before.reverts is None and _moved_on(call, before) is None:
        return MergeRow.of(_again(call, before, asked.commit))
    came = f"It came from outside, on branch {asked.branch} at {asked.commit}; git merge {asked.commit[:12]} brings"
    body = "\n\n".join(part for part in (asked.body.strip(), f"{came} that work into yours.") if part)
    wish = AddTask(title=asked.title, body=body, priority=asked.priority)
    call.worker(OWNER)
    new = add_task(call, wish, ())
    task = change(call, new, tasks.claim(new, OWNER), OWNER)
    review = needs_review(call, OWNER)
    change(call, task, tasks.hand_in(task, OWNER, review=review, commit=asked.commit), OWNER)
    event = merges.Queued(task=task.id, session=OWNER, branch=asked.branch, commit=asked.commit, review=review)
    return MergeRow.of(queue(call, event))


def _check_branch(call: Call, asked: QueueBranch) -> None:
    """Refuse a branch that is covey's own, or that is in the queue already."""
    task = call.tx.task(asked.branch.removeprefix(BRANCH)) if asked.branch.startswith(BRANCH) else None
    if task is not None and task.status not in ENDED:
        raise Refused(
            f"{asked.branch} is the branch of {task.id}, which is {task.status}.",
            hint=f"Whoever holds {task.id} hands it in: covey task handin {task.id}.",
        )
    landed = next(iter(call.tx.find(rows.MERGES, "WHERE \"commit\" = ? AND state = 'landed'", (asked.commit,))), None)
    if landed is not None:
        raise Refused(
            f"{asked.branch} has landed already, as {landed.id} ({landed.task}) in {(landed.landed or '')[:12]}.",
            hint=f"covey merge revert {landed.id} takes it out again.",
        )
    for merge in call.tx.open_merges():
        if merge.commit == asked.commit or (merge.branch == asked.branch and merge.session == OWNER):
            raise _queued_already(asked, merge)


def _queued_already(asked: QueueBranch, merge: Merge) -> Refused:
    where = f"in the queue already, as {merge.id} ({merge.task})"
    if merge.commit == asked.commit:
        return Refused(f"{asked.branch} is {where}.", hint=f"covey merge why {merge.id} tells how far it is.")
    older = "" if merge.commit is None else f" at its older commit {merge.commit[:12]}"
    return Refused(
        f"{asked.branch} is {where}{older}; its new commits are not in that.",
        hint=f"Queue it again once that has landed, or take it out first: covey merge drop {merge.id}.",
    )


@verb("merge.approve", "POST /api/merges/{id}/approve", Nothing, MergeRow, may=REVIEW)
def approve(call: Call, asked: Nothing, id: str) -> MergeRow:
    """Let work into the queue after its review; a person's word also lets it land untested where there is no gate."""
    merge = _reviewed(call, id)
    task = find(call.tx, merge.task)
    after = step(call, merge, merges.Approved(person=call.who.is_owner), call.actor(None))
    if task.status is Status.REVIEW:
        change(call, task, tasks.approve(task), call.actor(None))
    return MergeRow.of(after)


def _reviewed(call: Call, merge_id: str) -> Merge:
    """Return a merge to who may decide on it: a session not on its own work, nor where a person is asked for."""
    if call.who.session is None:
        return find_merge(call, merge_id)
    merge = find_merge(call, merge_id)
    if merge.session == call.who.session:
        raise Denied(f"{merge.id} is your own work.", hint="Somebody else has to review it.")
    if merge.state is State.REVIEW and merge.reason is not None:
        raise Denied(f"{merge.id} waits for a person: {merge.reason}", hint="Ask: covey mail send owner ...")
    return merge


@verb("merge.land", "POST /api/merges/{id}/land", Land, MergeRow, may=OWNER_ONLY)
def land(call: Call, asked: Land, id: str) -> MergeRow:
    """Say that work is on main, in a commit that main has; its task is done."""
    merge = find_merge(call, id)
    task = find(call.tx, merge.task)
    after = step(call, merge, merges.Landed(asked.commit), call.actor(None))
    change(call, task, tasks.land(task, asked.commit), call.actor(None))
    settle(call, after)
    return MergeRow.of(after)


@verb("merge.reject", "POST /api/merges/{id}/reject", Because, MergeRow, may=REVIEW)
def reject(call: Call, asked: Because, id: str) -> MergeRow:
    """Send work back to its author, who is first in line to mend it; a reviewing role cannot do so without end."""
    merge = _reviewed(call, id)
    task = find(call.tx, merge.task)
    reason = line(asked.reason, "The reason", REASON)
    after = step(call, merge, merges.Rejected(reason), call.actor(None))
    event = tasks.reject(task, merge.session, reason, wished=call.who.is_owner)
    put_back(call, send_back(call, change(call, task, event, call.actor(None))), reason)
    return MergeRow.of(after)


@verb("merge.hold", "POST /api/merges/{id}/hold", Perhaps, MergeRow, may=OWNER_ONLY)
def hold(call: Call, asked: Perhaps, id: str) -> MergeRow:
    """Let a merge wait for a person's approval after all."""
    merge = find_merge(call, id)
    if merge.state is State.REVIEW:
        raise Refused(f"{merge.id} waits for a review already.", hint=f"covey merge approve {merge.id} lets it go on.")
    if merge.state is State.PASSED:
        raise Refused(
            f"{merge.id} has passed, and others may be built on it.",
            hint=f"covey merge freeze keeps main where it is; covey merge drop {merge.id} takes it out.",
        )
    reason = line(asked.reason or "Held by a person.", "The reason", REASON)
    after = step(call, merge, merges.Held(reason), call.actor(None))
    task = find(call.tx, merge.task)
    if task.status is Status.MERGING:
        change(call, task, tasks.Held(reason), call.actor(None))
    return MergeRow.of(after)


@verb("merge.drop", "POST /api/merges/{id}/drop", Perhaps, MergeRow, may=OWNER_ONLY)
def drop(call: Call, asked: Perhaps, id: str) -> MergeRow:
    """Take a merge out of the queue: its work stays on its branch, and its task is blocked until a person decides."""
    merge = find_merge(call, id)
    task = find(call.tx, merge.task)
    reason = line(asked.reason or "A person took it out of the queue.", "The reason", REASON)
    after = step(call, merge, merges.Withdrawn(reason), call.actor(None))
    if task.status in (Status.REVIEW, Status.MERGING):
        if merge.reverts is not None:
            change(call, task, tasks.Dropped(reason), call.actor(None))  # there is nothing else to do for it
        else:
            change(call, task, tasks.Blocked(reason), call.actor(None))
    return MergeRow.of(after)


@verb("merge.retry", "POST /api/merges/{id}/retry", Nothing, MergeRow, may=OWNER_ONLY)
def retry(call: Call, asked: Nothing, id: str) -> MergeRow:
    """Bring work into the queue again as it is: what was rejected or dropped as a new merge, what waits at once."""
    merge = find_merge(call, id)
    if merge.state is State.QUEUED and merge.reason is not None:
        call.house.broken_gate = False
        return MergeRow.of(step(call, merge, merges.Requeued("a person asked for it"), call.actor(None)))
    why_not = _moved_on(call, merge)
    if why_not is not None:
        raise Refused(why_not, hint=f"covey merge why {merge.id} tells what became of it.")
    # What takes work out of main is made anew.
    return MergeRow.of(_again(call, merge, merge.commit if merge.reverts is None else None))


def _again(call: Call, merge: Merge, commit: str | None) -> Merge:
    """Hand the task of a merge that did not land in again, with a commit."""
    task = find(call.tx, merge.task)
    if task.status is Status.BLOCKED:
        task = change(call, task, tasks.edit(task, tasks.Edited(status=Status.TODO)), call.actor(None))
    review = needs_review(call, merge.session)
    event = tasks.hand_in(task, merge.session, review=review, commit=commit)
    change(call, task, event, call.actor(None))
    wish = merges.Queued(
        task=task.id,
        session=merge.session,
        branch=merge.branch,
        commit=commit,
        review=review,
        reverts=merge.reverts,
    )
    return queue(call, wish)


def _moved_on(call: Call, merge: Merge) -> str | None:
    """Return in a sentence why a merge cannot be tried again as it is, None if it can."""
    if merge.state not in (State.REJECTED, State.WITHDRAWN):
        return f"{merge.id} is {merge.state}, so there is nothing to try again."
    task = find(call.tx, merge.task)
    last = call.tx.last_merge(task.id)
    if last is not None and last.id != merge.id:
        return f"{task.id} has moved on: it was handed in again as {last.id}, which is {last.state}."
    if task.status not in (*WAITING, Status.BLOCKED):
        who = f" by {task.session}" if task.status is Status.DOING else ""
        return f"{task.id} has moved on: it is {task.status}{who}."
    return f"{task.id} has children that are not done." if task.open_children else None
