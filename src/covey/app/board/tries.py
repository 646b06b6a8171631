"""Tries: how often a task may fail before it needs a person."""

from __future__ import annotations

from covey.app.changes import change
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core import judge, tasks
from covey.core.sessions import COVEY, Kind, goes_on
from covey.core.tasks import Status, Task

REASON = 2000
"""Characters of the reason for which a task is blocked."""


def fail(call: Call, task: Task, what: str, by: str = COVEY) -> Task:
    """Put a task back with what went wrong; who tried it is first in line for the next try, if it can go on."""
    assert task.session is not None
    author = call.tx.session(task.session)
    stays = author is not None and author.kind is Kind.RUN and goes_on(author)
    return change(call, task, tasks.Released(task.session, what, stays), by)


def put_back(call: Call, task: Task, what: str) -> Task:
    """Block a task that was tried often enough, and tell a person."""
    most = call.house.config.board.tries
    tries = len(task.tries) - task.forgiven
    if tries < most or task.status is not Status.TODO:
        return task
    return need_person(call, task, f"Tried {often(tries)} without success; the last time: {judge.in_short(what)}")


def need_person(call: Call, task: Task, reason: str) -> Task:
    """Block a task that waits, and tell a person once; what went wrong is in its tries."""
    if task.status is not Status.TODO:
        return task
    reason = reason[:REASON]
    blocked = change(call, task, tasks.block(task, reason), COVEY)
    alert(call, "task_blocked", f"{task.id} needs a person. {reason}", None, task.id)
    return blocked


def often(count: int) -> str:
    """Return how often something was, in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
