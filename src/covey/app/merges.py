"""The verbs of the merge queue, as far as a person is the queue: approve, land, reject."""

from __future__ import annotations

from covey.app import shapes
from covey.app.changes import change, step
from covey.app.shapes import MergeRow
from covey.app.tasks import find
from covey.app.verbs import Call, missing, verb
from covey.core import merges, tasks
from covey.core.sessions import COVEY, Goal, Kind
from covey.core.tasks import Status
from covey.core.texts import line
from covey.store import rows


@verb("merge.list", "GET /api/merges", shapes.ListMerges, list[MergeRow])
def list_merges(call: Call, asked: shapes.ListMerges) -> list[MergeRow]:
    """List what wants to land, the oldest first; with `all`, also what has ended."""
    if asked.all:
        found = call.tx.find(rows.MERGES, "ORDER BY ordinal DESC LIMIT ?", (asked.limit,))[::-1]
    else:
        found = call.tx.open_merges(limit=asked.limit)
    return [MergeRow.of(merge) for merge in found]


@verb("merge.approve", "POST /api/merges/{id}/approve", shapes.Nothing, MergeRow, owner=True)
def approve(call: Call, asked: shapes.Nothing, id: str) -> MergeRow:
    """Let work land: into the queue after its review, and without a test where there is no gate."""
    merge = _find(call, id)
    task = find(call.tx, merge.task)
    after = step(call, merge, merges.Approved(), call.actor(None))
    if task.status is Status.REVIEW:
        change(call, task, tasks.approve(task), call.actor(None))
    return MergeRow.of(after)


@verb("merge.land", "POST /api/merges/{id}/land", shapes.Land, MergeRow, owner=True)
def land(call: Call, asked: shapes.Land, id: str) -> MergeRow:
    """Say that work is on main, in a commit that main has; its task is done."""
    merge = _find(call, id)
    task = find(call.tx, merge.task)
    after = step(call, merge, merges.Landed(asked.commit), call.actor(None))
    change(call, task, tasks.land(task, asked.commit), call.actor(None))
    return MergeRow.of(after)


@verb("merge.reject", "POST /api/merges/{id}/reject", shapes.Because, MergeRow, owner=True)
def reject(call: Call, asked: shapes.Because, id: str) -> MergeRow:
    """Send work back to its author, who is first in line to mend it."""
    merge = _find(call, id)
    task = find(call.tx, merge.task)
    reason = line(asked.reason, "The reason", 2000)
    after = step(call, merge, merges.Rejected(reason), call.actor(None))
    send_back(call, change(call, task, tasks.reject(task, merge.session, reason), call.actor(None)))
    return MergeRow.of(after)


def send_back(call: Call, task: tasks.Task) -> tasks.Task:
    """Let anyone mend rejected work whose author is gone, or shall work no more."""
    author = None if task.front is None else call.tx.session(task.front)
    stays = author is not None and not author.removed
    if stays and author is not None and author.kind is Kind.RUN:
        stays = author.goal in (Goal.WORKING, Goal.PAUSED)
    if task.front is None or stays:
        return task
    return change(call, task, tasks.Edited(cleared=("front",)), COVEY)


def _find(call: Call, merge_id: str) -> merges.Merge:
    merge = call.tx.get(rows.MERGES, merge_id)
    if merge is None:
        raise missing("merge", merge_id)
    return merge
