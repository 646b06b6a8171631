"""Which task suits which session: assignee, role, scope, needs, and who is first in line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from covey.core import globs
from covey.core.board import ranking
from covey.core.board.tasks import Task
from covey.core.fleet.sessions import Session

ANYONE = ""


def waiting_line(task: Task) -> str:
    """Return the line in which a task waits, `lane` in its row: one session's, one batch's, one role's, or anyone's."""
    if task.assignee or task.front:
        return f"s:{task.assignee or task.front}"
    if task.batch:
        return f"b:{task.batch}"
    return f"r:{task.role}" if task.role else ANYONE


def waiting_lines(session: Session) -> list[str]:
    """Return the waiting lines from which a session is served; one that works on a batch is served from no other."""
    if session.batch:
        return [f"s:{session.name}", f"b:{session.batch}"]
    own = [f"s:{session.name}", ANYONE]
    return [*own, f"r:{session.role}"] if session.role else own


def line(task: Task) -> int:
    """Return in which half of its waiting line a task stands; what waits for its author comes first."""
    return 0 if task.front else 1


def hand_out_key(task: Task) -> tuple[int, int, float, int]:
    """Return what orders the tasks of all waiting lines: first in line, then as on the board (`ranking.key`).

    `_READY_IN_LANE` of store/queries/board.py has this order in SQL.
    """
    return (line(task), *ranking.key(task))


def is_without_body(task: Task) -> bool:
    """Say whether there is nothing that an agent could run which is given the body of a task alone."""
    return isinstance(task.body, str) and not task.body.strip()


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
    other = in_the_way(task, active)
    if other is not None:
        return f"{task.id} may write the same files as {other.id}, at which {other.session} is at work."
    return None


def in_the_way(task: Task, active: Iterable[Task]) -> Task | None:
    """Return a task at work that may write the same files, None if there is none."""
    return next((other for other in active if other.id != task.id and scopes_overlap(task, other)), None)


def names(text: str, path: str) -> bool:
    """Say whether a text names a path, and not only one that begins or ends like it."""
    if path not in text:
        return False
    return re.search(rf"(?<![\w/-])(?<!\w\.)(?:\./)?{re.escape(path)}(?![\w/-]|\.\w)", text) is not None


def is_on(task: Task, body: str, path: str, known: Collection[str]) -> bool:
    """Say whether a task is going to write a path, as far as anybody can tell before it does.

    Its scope covers it, its title or body names it, or it is `known`: of what it wrote before, or holds.
    """
    if any(globs.matches(pattern, path) for pattern in task.do_not_touch):
        return False
    if task.id in known or any(globs.matches(pattern, path) for pattern in scope_paths(task.scope)):
        return True
    return names(task.title, path) or names(body, path)


def why_wait(task: Task, path: str, other: Task) -> str:
    """Return in one sentence why a task on a hot file does not start now: another is not through with that."""
    return f"{task.id} is on {path}, where tasks collide again and again, and {other.id} is not through with it."


def not_through(task: Task, others: Iterable[Task]) -> Task | None:
    """Return who of those on a hot file keeps a task from it, None if nobody does."""
    if task.overlap:
        return None
    return next((other for other in others if other.id != task.id and not other.overlap), None)
