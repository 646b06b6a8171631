"""The verbs of one merge: looking at it, letting it go on, sending it back, and taking it out of the queue."""

from __future__ import annotations

from covey.app.board.task_changes import change, step
from covey.app.board.task_verbs import add_task
from covey.app.board.tries import block_if_tried_often, hand_in_change
from covey.app.context import Call, find
from covey.app.merging.merge_lookup import approver, find_merge, reverted_by, was_run
from covey.app.merging.merge_reasons import because, line_of, look
from covey.app.merging.reverts import settle
from covey.app.merging.sendback import free_if_author_gone as free_if_author_gone
from covey.app.shapes.board import AddTask
from covey.app.shapes.costs import spent as spent_fields
from covey.app.shapes.forms import Because, Nothing, Perhaps
from covey.app.shapes.merging.gates import GateRow, LandingRow
from covey.app.shapes.merging.merges import Land, ListMerges, MergeFull, MergeLine, MergeRow, MergeWhy, QueueBranch
from covey.app.verbs import verb
from covey.core.board import tasks
from covey.core.board.tasks import ENDED, WAITING, Status
from covey.core.fleet.sessions import OWNER
from covey.core.merging import merges
from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.queue_view import is_retried, next_steps, stands
from covey.core.people.rights import OWNER_ONLY, REVIEW, SHARED
from covey.core.texts import line
from covey.errors import Denied, Refused
from covey.git.identity import TASK_BRANCHES

MAX_REASON_CHARS = 2000
"""Characters of a reason."""
MAX_GATES_SHOWN = 50
"""Gates that are shown with a merge."""


@verb("merge.list", "GET /api/merges", ListMerges, list[MergeLine], may=SHARED)
def list_merges(call: Call, asked: ListMerges) -> list[MergeLine]:
    """List what wants to land, the oldest first, with its place in the train; with `all`, also what has ended."""
    if asked.all:
        found = call.tx.last_merges(asked.limit)
    else:
        found = call.tx.open_merges(limit=asked.limit)
    view = look(call, found)
    return [line_of(view, merge) for merge in found]


@verb("merge.show", "GET /api/merges/{id}", Nothing, MergeFull, may=SHARED)
def show(call: Call, asked: Nothing, id: str) -> MergeFull:
    """Show one merge whole: its task and author, the gates that it was in, its landing, and what it cost."""
    merge = find_merge(call, id)
    task = find(call.tx, merge.task)
    landing = call.tx.landing(merge.landing)
    author, out = call.tx.session(merge.session), reverted_by(call, merge)
    shown = line_of(look(call, [merge]), merge)
    return MergeFull.of(
        shown,
        task_status=task.status,
        agent=None if author is None else author.agent,
        approved_by=approver(call, merge),
        gates=[GateRow.of(gate) for gate in call.tx.gates_of(merge.id, MAX_GATES_SHOWN) if was_run(gate)],
        landed_by=None if landing is None else LandingRow.of(landing),
        group=[] if landing is None else [name for name in landing.merges if name != merge.id],
        reverted_by=None if out is None else out.id,
        **spent_fields(call.tx.used(task=merge.task)),
    )


@verb("merge.why", "GET /api/merges/{id}/why", Nothing, MergeWhy, may=SHARED)
def why(call: Call, asked: Nothing, id: str) -> MergeWhy:
    """Say in sentences why a merge is where it is, with the gates and merges that are the evidence."""
    merge = find_merge(call, id)
    view, task = look(call, [merge]), call.tx.task(merge.task)
    said = because(call, view, merge)
    moved_on = _moved_on(call, merge) is not None
    return MergeWhy(
        merge=merge.id,
        task=merge.task,
        state=merge.state,
        because=said,
        next=next_steps(view, merge, task, moved_on=moved_on),
        retry=is_retried(view, merge, task, moved_on=moved_on),
    )


@verb("merge.queue", "POST /api/merges", QueueBranch, MergeRow, may=OWNER_ONLY, status=201)
def queue_branch(call: Call, asked: QueueBranch) -> MergeRow:
    """Queue a branch from outside covey: it becomes a task whose work is handed in, the same one if it comes again."""
    _check_branch(call, asked)
    before = call.tx.last_merge_of_branch(asked.branch, OWNER)
    if before is not None and before.reverts is None and _moved_on(call, before) is None:
        return MergeRow.of(_again(call, before, asked.commit))
    came = f"It came from outside, on branch {asked.branch} at {asked.commit}; git merge {asked.commit[:12]} brings"
    body = "\n\n".join(part for part in (asked.body.strip(), f"{came} that work into yours.") if part)
    wish = AddTask(title=asked.title, body=body, priority=asked.priority)
    call.worker(OWNER)
    new = add_task(call.by_covey(), wish, ())  # its body is covey's, and no script
    task = change(call, new, tasks.claim(new, OWNER), OWNER)
    work = merges.Queued(task=task.id, session=OWNER, branch=asked.branch, commit=asked.commit)
    return MergeRow.of(hand_in_change(call, task, work))


def _check_branch(call: Call, asked: QueueBranch) -> None:
    """Refuse a branch that is covey's own, or that is in the queue already."""
    task = call.tx.task(asked.branch.removeprefix(TASK_BRANCHES)) if asked.branch.startswith(TASK_BRANCHES) else None
    if task is not None and task.status not in ENDED:
        raise Refused(
            f"{asked.branch} is the branch of {task.id}, which is {task.status}.",
            hint=f"Whoever holds {task.id} hands it in: covey task handin {task.id}.",
        )
    landed = call.tx.merge_landed_from(asked.commit)
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
    """Return a merge if the caller may decide on it: a session not on its own work, nor where a person has to."""
    merge = find_merge(call, merge_id)
    if call.who.session is None:
        return merge
    if merge.session == call.who.session:
        raise Denied(f"{merge.id} is your own work.", hint="Somebody else has to review it.")
    if merge.state is MergeState.REVIEW and merge.reason is not None:
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
    reason = line(asked.reason, "The reason", MAX_REASON_CHARS)
    after = step(call, merge, merges.Rejected(reason), call.actor(None))
    event = tasks.reject(task, merge.session, reason, wished=call.who.is_owner)
    block_if_tried_often(call, free_if_author_gone(call, change(call, task, event, call.actor(None))), reason)
    return MergeRow.of(after)


@verb("merge.hold", "POST /api/merges/{id}/hold", Perhaps, MergeRow, may=OWNER_ONLY)
def hold(call: Call, asked: Perhaps, id: str) -> MergeRow:
    """Let a merge wait for a person's approval after all."""
    merge = find_merge(call, id)
    if merge.state is MergeState.REVIEW:
        raise Refused(f"{merge.id} waits for a review already.", hint=f"covey merge approve {merge.id} lets it go on.")
    if merge.state is MergeState.PASSED:
        raise Refused(
            f"{merge.id} has passed, and others may be built on it.",
            hint=f"covey merge freeze keeps main where it is; covey merge drop {merge.id} takes it out.",
        )
    reason = line(asked.reason or "Held by a person.", "The reason", MAX_REASON_CHARS)
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
    reason = line(asked.reason or "A person took it out of the queue.", "The reason", MAX_REASON_CHARS)
    after = step(call, merge, merges.Withdrawn(reason), call.actor(None))
    if task.status in (Status.REVIEW, Status.MERGING):
        # There is nothing else to do for a revert.
        event = tasks.Blocked(reason) if merge.reverts is None else tasks.Dropped(reason)
        change(call, task, event, call.actor(None))
    return MergeRow.of(after)


@verb("merge.retry", "POST /api/merges/{id}/retry", Nothing, MergeRow, may=OWNER_ONLY)
def retry(call: Call, asked: Nothing, id: str) -> MergeRow:
    """Bring work into the queue again as it is: what was rejected or dropped as a new merge, what waits at once."""
    merge = find_merge(call, id)
    if merge.state is MergeState.QUEUED and merge.reason is not None:
        call.context.gate.is_broken = False
        return MergeRow.of(step(call, merge, merges.Requeued("a person asked for it"), call.actor(None)))
    why_not = _moved_on(call, merge)
    if why_not is not None:
        raise Refused(why_not, hint=f"covey merge why {merge.id} tells what became of it.")
    # A commit that takes work out of main is built again.
    return MergeRow.of(_again(call, merge, merge.commit if merge.reverts is None else None))


def _again(call: Call, merge: Merge, commit: str | None) -> Merge:
    """Hand the task of a merge that did not land in again, with a commit."""
    task = find(call.tx, merge.task)
    if task.status is Status.BLOCKED:
        task = change(call, task, tasks.edit(task, tasks.Edited(status=Status.TODO)), call.actor(None))
    work = merges.Queued(task=task.id, session=merge.session, branch=merge.branch, commit=commit, reverts=merge.reverts)
    return hand_in_change(call, task, work, by=call.actor(None))


def _moved_on(call: Call, merge: Merge) -> str | None:
    """Return in a sentence why a merge cannot be tried again as it is, None if it can."""
    if merge.state not in (MergeState.REJECTED, MergeState.WITHDRAWN):
        return f"{merge.id} {stands(merge.state)}, so there is nothing to try again."
    task = find(call.tx, merge.task)
    last = call.tx.last_merge(task.id)
    if last is not None and last.id != merge.id:
        return f"{task.id} has moved on: it was handed in again as {last.id}, which {stands(last.state)}."
    if task.status not in (*WAITING, Status.BLOCKED):
        who = f" by {task.session}" if task.status is Status.DOING else ""
        return f"{task.id} has moved on: it is {task.status}{who}."
    return f"{task.id} has children that are not done." if task.open_children else None
