"""Putting the work of sessions in safety, and writing down that it was."""

from __future__ import annotations

import logging
import shutil

from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core import sessions
from covey.core.sessions import COVEY
from covey.errors import CoveyError, Unavailable
from covey.git import candidates
from covey.git.rescue import Rescued, note_aside, rescue
from covey.git.rescue_look import Place
from covey.git.rescue_parts import Counts
from covey.git.worktrees import Aside
from covey.loops.desk import Desk

HANDED_IN = 5
"""The last commits that a session handed in and that its worktree may still know of."""

ALERT_CHARS = 1000
"""Characters of why a worktree is kept aside: the names of files may be long."""
MIN_FREE_BYTES = 16 * 1024**2
"""Bytes below which the disk counts as full."""

log = logging.getLogger("covey.fleet")


def put_in_safety(desk: Desk, session: str, task: str | None, why: str, *, for_good: bool = False) -> Rescued | None:
    """Put in safety what lies in a session's worktree and git would not keep; what it handed in is safe already.

    Whatever lies there, this succeeds: a worktree that cannot be rescued whole is kept aside as it is, and one that is
    not the folder which covey made is left alone. The session's next worktree is then a new one.
    """
    reason = desk.worktrees.why_not_ours(session)
    if reason is not None:
        return set_aside(desk, session, task, f"{why}; {reason}", for_good=for_good)
    path = desk.worktrees.path(session)
    if not desk.worktrees.is_known(session) or not path.exists():
        return None
    try:
        handed_in = desk.app.store.read(lambda tx: tx.handed_in_by(session, HANDED_IN))
        safe = [commit for commit in handed_in if candidates.resolve(desk.project, commit)]
        own, wall = desk.worktrees.git_dir(session), desk.wall()
        rescued = rescue(desk.project, path, session=session, why=why, task=task, at=wall, safe=safe, own=own)
    except (CoveyError, OSError, ValueError, RecursionError) as error:
        if is_full(desk):
            raise Unavailable("The disk is full: what lies in a worktree cannot be rescued now.") from error
        said = error.message if isinstance(error, CoveyError) else str(error)
        return set_aside(desk, session, task, f"{why}; it could not be rescued whole: {said}", for_good=for_good)
    if rescued is not None and not rescued.whole:
        unread = f"{why}; some of it could not be read"
        return set_aside(desk, session, task, unread, for_good=for_good) or rescued
    return rescued


def is_full(desk: Desk) -> bool:
    """Say whether git has no room to work: then nothing that fails is the fault of a worktree."""
    return shutil.disk_usage(desk.project.common).free < MIN_FREE_BYTES


def set_aside(desk: Desk, session: str, task: str | None, why: str, *, for_good: bool = False) -> Rescued | None:
    """Keep a session's worktree aside as it is, and list it among the rescues; None if there is none."""
    why = why.encode("utf-8", "replace").decode()[:ALERT_CHARS]  # names of files may be anything
    aside = desk.worktrees.set_aside(session, for_good=for_good)
    if aside is None:
        return None
    log.warning("the worktree of %s is kept aside in %s: %s", session, aside.path, why)
    at = desk.wall()
    try:
        return note_aside(desk.project, Place(aside.path, aside.entry), session=session, why=why, task=task, at=at)
    except (CoveyError, OSError, ValueError) as error:  # it is there all the same, and a person is told
        log.warning("%s could not be listed among the rescues: %s", aside.path, error)
        return _unlisted(aside, session, task, why, at)


def _unlisted(aside: Aside, session: str, task: str | None, why: str, at: float) -> Rescued:
    return Rescued(
        name="", ref="", commit="", session=session, time=at, why=why, task=task, counts=Counts(), aside=str(aside.path)
    )


def note_rescue(call: Call, name: str, rescued: Rescued | None, task: str | None) -> None:
    """Write down that work was put in safety, if any was that had not been before."""
    session = call.tx.session(name)
    if session is None or rescued is None or rescued.again:
        return
    if rescued.ref:
        counts = rescued.counts
        files = counts.changed + counts.deleted + counts.added + counts.untracked + counts.ignored
        event = sessions.Rescued(rescued.ref, rescued.commit, rescued.why, files, task)
        call.put_session(session, name, event, by=COVEY)
    if rescued.aside is not None:
        message = f"The worktree of {name} is out of use and kept as it is in {rescued.aside}: {rescued.why}"
        alert(call, "worktree_aside", message, name, task)
