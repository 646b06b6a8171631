"""Merges as verbs name them."""

from __future__ import annotations

from covey.app.verbs import Call, missing
from covey.core import merges
from covey.core.merges import Merge, State
from covey.store import rows


def find_merge(call: Call, merge_id: str) -> Merge:
    """Return a merge, or say that there is none."""
    merge = call.tx.get(rows.MERGES, merge_id)
    if merge is None:
        raise missing("merge", merge_id)
    return merge


def approver(call: Call, merge: Merge) -> str | None:
    """Return who let a merge into the queue, None if nobody had to."""
    event = call.tx.last_event(merge.id, "merge.approved")
    return None if event is None else event.actor


def reverted_by(call: Call, merge: Merge) -> Merge | None:
    """Return the merge that took one out of main, or may do so: also one that an author had to make by hand."""
    for revert in call.tx.reverts_of(merge.id):
        last = call.tx.last_merge(revert.task)
        found = next((each for each in (revert, last) if each is not None and is_live(each)), None)
        if found is not None:
            return found
    return None


def is_live(merge: Merge) -> bool:
    """Say whether a merge has landed or may still do so."""
    return merge.state in (*merges.OPEN, State.LANDED)
