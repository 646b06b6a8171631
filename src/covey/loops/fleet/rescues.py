"""Putting the work of sessions in safety, and writing down that it was."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from covey.app.context import Call
from covey.app.fleet.sessions import alert, note_rescued
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError, DidNotRun, Unavailable
from covey.git.candidates import candidates
from covey.git.rescue.parts import Counts
from covey.git.rescue.rescue import Rescued, note_aside, rescue
from covey.git.rescue.scan import Place
from covey.loops.runtime import Runtime

HANDED_IN = 5
"""The last commits that a session handed in and that its worktree may still know of."""

ALERT_CHARS = 1000
"""Characters of why a worktree is kept aside: the names of files may be long."""
RESCUE_TRIES = 2
"""Times that a rescue is tried: a git that was killed says nothing of the worktree."""
MIN_FREE_BYTES = 16 * 1024**2
"""Bytes below which the disk counts as full."""

log = logging.getLogger("covey.fleet")


def put_in_safety(
    runtime: Runtime, session: str, task: str | None, why: str, *, for_good: bool = False
) -> Rescued | None:
    """Put in safety what lies in a session's worktree and git would not keep; what it handed in is safe already.

    Whatever lies there, this succeeds: a worktree that cannot be rescued whole is kept aside as it is, and one that is
    not the folder which covey made is left alone. The session's next worktree is then a new one.
    """
    reason = runtime.worktrees.why_not_ours(session)
    if reason is not None:
        return set_aside(runtime, session, task, f"{why}; {reason}", for_good=for_good)
    path = runtime.worktrees.path(session)
    if not runtime.worktrees.is_known(session) or not path.exists():
        return None
    parts, failed = None, ""
    for _ in range(RESCUE_TRIES):
        try:
            rescued = _rescue(runtime, path, session, task, why)
        except (CoveyError, OSError, ValueError, RecursionError) as error:
            if is_full(runtime):
                raise Unavailable("The disk is full: what lies in a worktree cannot be rescued now.") from error
            said = error.message if isinstance(error, CoveyError) else str(error)
            failed = f"it could not be rescued whole: {said}"
            if isinstance(error, DidNotRun):
                break  # it had all its time
            continue
        if rescued is None or rescued.whole:
            return rescued
        parts, failed = parts or rescued, "some of it could not be read"
    return set_aside(runtime, session, task, f"{why}; {failed}", for_good=for_good) or parts


def _rescue(runtime: Runtime, path: Path, session: str, task: str | None, why: str) -> Rescued | None:
    handed_in = runtime.app.store.read(lambda tx: tx.handed_in_by(session, HANDED_IN))
    safe = [commit for commit in handed_in if candidates.resolve(runtime.project, commit)]
    own, wall = runtime.worktrees.git_dir(session), runtime.wall()
    return rescue(runtime.project, path, session=session, why=why, task=task, at=wall, safe=safe, own=own)


def is_full(runtime: Runtime) -> bool:
    """Say whether git has no room to work: then nothing that fails is the fault of a worktree."""
    return shutil.disk_usage(runtime.project.common).free < MIN_FREE_BYTES


def set_aside(runtime: Runtime, session: str, task: str | None, why: str, *, for_good: bool = False) -> Rescued | None:
    """Keep a session's worktree aside as it is, and list it among the rescues; None if there is none."""
    why = why.encode("utf-8", "replace").decode()[:ALERT_CHARS]  # names of files may be anything
    aside = runtime.worktrees.set_aside(session, for_good=for_good)
    if aside is None:
        return None
    log.warning("the worktree of %s is kept aside in %s: %s", session, aside.path, why)
    at = runtime.wall()
    try:
        return note_aside(runtime.project, Place(aside.path, aside.entry), session=session, why=why, task=task, at=at)
    except (CoveyError, OSError, ValueError) as error:  # it is there all the same, and a person is told
        log.warning("%s could not be listed among the rescues: %s", aside.path, error)
        there = str(aside.path)
        return Rescued(
            name="", ref="", commit="", session=session, time=at, why=why, task=task, counts=Counts(), aside=there
        )


def note_rescue(call: Call, name: str, rescued: Rescued | None, task: str | None) -> None:
    """Write down that work was put in safety, if any was that had not been before."""
    if call.tx.session(name) is None or rescued is None or rescued.again:
        return
    note_rescued(call, name, rescued, task)
    if rescued.aside is not None:
        message = f"The worktree of {name} is out of use and kept as it is in {rescued.aside}: {rescued.why}"
        alert(call, AlertKind.WORKTREE_ASIDE, message, name, task)
