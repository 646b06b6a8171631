"""The verbs of the merge queue, as far as a person is the queue: approve, land, reject."""

from __future__ import annotations

from covey.app import shapes
from covey.app.changes import change, find, step
from covey.app.shapes import MergeRow
from covey.app.verbs import Call, missing, verb
from covey.core import merges, tasks
from covey.core.texts import line
from covey.store import rows


@verb("merge.list", "GET /api/merges", shapes.ListMerges, list[MergeRow])
def list_merges(call: Call, asked: shapes.ListMerges) -> list[MergeRow]:
    """List what wants to land, the oldest first; with `all`, also what has ended."""
    if asked.all:
        found = call.tx.find(rows.MERGES, "ORDER BY ordinal DESC LIMIT ?", (asked.limit,))[::-1]
    else:
        where = "WHERE state IN ('review', 'queued', 'testing') ORDER BY ordinal LIMIT ?"
        found = call.tx.find(rows.MERGES, where, (asked.limit,))
    return [MergeRow.of(merge) for merge in found]


@verb("merge.approve", "POST /api/merges/{id}/approve", shapes.Nothing, MergeRow, owner=True)
def approve(call: Call, asked: shapes.Nothing, id: str) -> MergeRow:
    """Let reviewed work into the queue."""
    merge = _find(call, id)
    task = find(call.tx, merge.task)
    after = step(call, merge, merges.Approved(), call.actor(None))
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
    change(call, task, tasks.reject(task, merge.session, reason), call.actor(None))
    return MergeRow.of(after)


def _find(call: Call, merge_id: str) -> merges.Merge:
    merge = call.tx.get(rows.MERGES, merge_id)
    if merge is None:
        raise missing("merge", merge_id)
    return merge
