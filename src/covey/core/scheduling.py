"""Which task suits which session: assignee, role, scope, needs, and who is first in line."""

from __future__ import annotations

from collections.abc import Iterable

from covey.core import globs
from covey.core.sessions import Session
from covey.core.tasks import Task

ANYONE = ""


def lane(task: Task) -> str:
    """Return the lane in which a task waits: one session's, one batch's, one role's, or anyone's."""
    if task.assignee or task.front:
        return f"s:{task.assignee or task.front}"
    if task.batch:
        return f"b:{task.batch}"
    return f"r:{task.role}" if task.role else ANYONE


def lanes(session: Session) -> list[str]:
    """Return the lanes from which a session is served; one that works on a batch is served from no other."""
    if session.batch:
        return [f"s:{session.name}", f"b:{session.batch}"]
    own = [f"s:{session.name}", ANYONE]
    return [*own, f"r:{session.role}"] if session.role else own


def rank(task: Task) -> tuple[int, int, int]:
    """Return what orders the tasks of all lanes: first in line, larger priority, older."""
    return (0 if task.front else 1, -task.priority, task.ordinal)


def scope_paths(scope: Iterable[str]) -> list[str]:
    """Return the globs of a scope without the mark for new files."""
    return [glob.removeprefix("new:") for glob in scope]


def scopes_overlap(one: Task, other: Task) -> bool:
    """Say whether two tasks may write the same path; a task without a scope promises nothing and waits for nobody."""
    if not one.scope or not other.scope or one.overlap or other.overlap:
        return False
    return globs.overlap(scope_paths(one.scope), one.do_not_touch, scope_paths(other.scope), other.do_not_touch)


def why_not(task: Task, session: Session, active: Iterable[Task]) -> str | None:
    """Return in one sentence why a task does not suit a session now, or None if it does."""
    if task.batch is not None and task.batch != session.batch and session.name not in (task.assignee, task.front):
        return f"{task.id} is for the sessions of {task.batch}."
    of_batch = task.batch is not None and task.batch == session.batch
    suits = of_batch or task.role in (None, session.role) or session.name in (task.assignee, task.front)
    if not suits:
        return f"{task.id} is for the role {task.role}, and {session.name} has {session.role or 'none'}."
    for other in active:
        if other.id != task.id and scopes_overlap(task, other):
            return f"{task.id} may write the same files as {other.id}, at which {other.session} is at work."
    return None
