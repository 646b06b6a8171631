"""What git tells of a commit before it is handed in."""

from __future__ import annotations

import logging

from covey.app.clock import Clock
from covey.app.context import Lands
from covey.core.fleet.sessions import SessionKind
from covey.errors import CoveyError
from covey.git.candidates import candidates, incoming
from covey.git.guard import commit_paths
from covey.git.project import Project
from covey.git.worktrees.worktrees import Worktrees
from covey.store.engine.sqlite import SqliteStore

log = logging.getLogger("covey.fleet")


def lands(
    project: Project, worktrees: Worktrees, store: SqliteStore, clock: Clock, session: str, commit: str, main: str
) -> Lands | None:
    """Return what a session's commit would land on main, and when that was written; None if git cannot tell.

    That takes its time, and is done in a thread.
    """
    try:
        found = candidates.resolve(project, commit)
        if found is None:
            return None
        known = store.read(lambda tx: tx.session(session))
        ours = known is not None and known.kind is SessionKind.RUN
        mains = commit_paths.mains(project, main)
        if mains and not incoming.is_readable(incoming.look(project, mains[0], [found])[found]):
            return None  # the queue says why
        place = worktrees.path(session)
        worktree = place if place.is_dir() else None
        wall = clock.now().wall
        return Lands(found, commit_paths.lands(project, mains, found, wall, worktree, dated=not ours))
    except (CoveyError, OSError) as error:
        log.warning("what %s changes cannot be told: %s", commit, error)
        return None
