"""Putting the work of sessions in safety, and writing down that it was."""

from __future__ import annotations

from covey.app.verbs import Call
from covey.core import sessions
from covey.core.sessions import COVEY
from covey.git import candidates
from covey.git.rescue import Rescued, rescue
from covey.loops.desk import Desk

HANDED_IN = 5
"""The last commits that a session handed in and that its worktree may still know of."""


def put_in_safety(desk: Desk, session: str, task: str | None, why: str) -> Rescued | None:
    """Put in safety what lies in a session's worktree and git would not keep; what it handed in is safe already."""
    path = desk.worktrees.path(session)
    if not path.exists():
        return None
    handed_in = desk.app.store.read(lambda tx: tx.handed_in_by(session, HANDED_IN))
    safe = [commit for commit in handed_in if candidates.resolve(desk.project, commit)]
    return rescue(desk.project, path, session=session, why=why, task=task, at=desk.wall(), safe=safe)


def note_rescue(call: Call, name: str, rescued: Rescued | None, task: str | None) -> None:
    """Write down that work was put in safety, if any was that had not been before."""
    session = call.tx.session(name)
    if session is not None and rescued is not None and not rescued.again:
        counts = rescued.counts
        files = counts.changed + counts.deleted + counts.added + counts.untracked + counts.ignored
        event = sessions.Rescued(rescued.ref, rescued.commit, rescued.why, files, task)
        call.put_session(session, name, event, by=COVEY)
