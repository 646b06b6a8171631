"""The end of a try: its work is handed in, or it has failed, and too many of these need a person."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from covey.app.board.task_changes import change
from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.core.board import tasks
from covey.core.board.tasks import Status, Task
from covey.core.fleet import outcomes
from covey.core.fleet.sessions import COVEY, SessionKind, goes_on
from covey.core.merging import merges
from covey.core.people.alerts import AlertKind
from covey.core.texts import Text
from covey.errors import CoveyError

REASON = 2000
"""Characters of the reason for which a task is blocked."""


def fail(call: Call, task: Task, what: str, by: str = COVEY) -> Task:
    """Put a task back with what went wrong; who tried it is first in line for the next try, if it can go on."""
    assert task.session is not None
    author = call.tx.session(task.session)
    stays = author is not None and author.kind is SessionKind.RUN and goes_on(author)
    return change(call, task, tasks.Released(task.session, what, stays), by)


def block_if_tried_often(call: Call, task: Task, what: str) -> Task:
    """Block a task that was tried often enough, and tell a person."""
    most = call.context.config.board.tries
    tries = len(task.tries) - task.forgiven
    if tries < most or task.status is not Status.TODO:
        return task
    return need_person(call, task, f"Tried {often(tries)} without success; the last time: {outcomes.in_short(what)}")


def need_person(call: Call, task: Task, reason: str) -> Task:
    """Block a task that waits, and tell a person once; what went wrong is in its tries."""
    if task.status is not Status.TODO:
        return task
    reason = reason[:REASON]
    blocked = change(call, task, tasks.block(task, reason), COVEY)
    alert(call, AlertKind.TASK_BLOCKED, f"{task.id} needs a person. {reason}", None, task.id)
    return blocked


def often(count: int) -> str:
    """Return how often something was, in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def hand_in(
    call: Call, task: Task, work: merges.Queued, *, result: Text | None = None, by: str | None = None
) -> merges.Merge | None:
    """Pass work on to review or the merge queue, as its session unless `by` says who; None if its task is done by it.

    It waits for a review where that is required, and if it is of an agent of ours and no gate would test it.
    """
    with contextlib.suppress(CoveyError):  # settings that make no sense are reported elsewhere
        call.context.refresh()  # a person who asks for reviews means the next work that is handed in
    merge = call.context.config.merge
    is_untested = not merge.check and call.known(work.session).kind is SessionKind.RUN
    work = replace(work, review=merge.review or is_untested)
    event = tasks.hand_in(task, work.session, review=work.review, result=result, commit=work.commit)
    is_done = change(call, task, event, by or work.session).status is Status.DONE
    return None if is_done else call.tx.begin(merges.Merge, work, work.session)


def hand_in_change(call: Call, task: Task, work: merges.Queued, *, by: str | None = None) -> merges.Merge:
    """Hand in work that is meant to land, and return its merge."""
    merge = hand_in(call, task, work, by=by)
    assert merge is not None, "only a report is done by being handed in"
    return merge
