"""Main put back: a session has no business with the branch on which work lands, and what it made of that is undone.

What a person does to main counts, whatever it is. A session is known by what only it does: a plain branch that became
a name of something else, or moves that main's reflog notes as a session's. Then main goes back to where it was before
by compare-and-swap, and what it was at instead is kept in a ref. Where it cannot be told whose move it was, nothing is
undone: main is tested as it is.
"""

from __future__ import annotations

import time
from itertools import takewhile

from covey.errors import Refused
from covey.git import refs
from covey.git.candidates.candidates import resolve
from covey.git.identity import SESSION_DOMAIN, kept_ref
from covey.git.project import Project
from covey.git.refs import Order, RefMove
from covey.git.run import try_git
from covey.git.worktrees import worktree_admin
from covey.values import dataclass

NOTED_WITHIN_S = 1.0
"""Seconds between a line in a reflog and the move that it tells of, at most."""
_MESSAGE = "covey: put back"


@dataclass(frozen=True)
class PutBack:
    """A branch that is again where it was: what had become of it, by whom if that is known, and what keeps that."""

    branch: str
    commit: str
    what: str
    by: str = ""
    kept: str = ""

    def told(self) -> str:
        """Return what a person has to know of it."""
        whose = f"{self.by} had moved it" if self.by else f"it was {self.what}"
        wanted = f" If that was wanted: git merge {self.kept}" if self.kept else ""
        return f"{self.branch} was put back to {self.commit[:12]}: {whose}, which no session may.{wanted}"


def look_after(project: Project, branch: str, known: str | None, landed: str | None = None) -> PutBack | None:
    """Put a branch back if a session has changed it.

    `known` is where covey last saw it as a plain branch, `landed` what it took last from the queue. Without either,
    and without a session in its reflog, it may have been another name of something all along.
    """
    name = f"refs/heads/{branch}"
    what = refs.twist(project, name)
    moves = refs.reflog(project, name)
    foreign = sessions_last(moves)
    before = foreign[0].old if foreign and foreign[0].old.strip("0") else known
    if what:
        if not foreign and (known or landed):  # what the person did last may be newer than what was seen last
            before = refs.value_before(project, name) or known or landed
        return _straighten(project, branch, what, before)
    if not foreign:
        return None
    if before is None or before == moves[-1].new:
        return None
    kept = kept_ref(branch, moves[-1].new)
    orders = (Order(kept, moves[-1].new), Order(name, before, moves[-1].new))
    if refs.change(project, *orders, message=_MESSAGE).returncode != 0:
        return None  # it is not there any more, or what was there before is gone
    by = foreign[-1].email.removesuffix(SESSION_DOMAIN)
    return PutBack(branch, before, "moved", by, kept)


def moved_unnoted(project: Project, branch: str, known: str | None = None) -> str | None:
    """Return where a branch is if its reflog does not say so: then no git moved it, but somebody wrote the file.

    What is `known` is not returned again.
    """
    name, before = f"refs/heads/{branch}", None
    while True:
        moves = refs.reflog(project, name)
        at = None if not moves or refs.twist(project, name) else refs.value(project, name)
        if at is None or at in (moves[-1].new, known):
            return None
        if before is not None:
            break
        before = at
        time.sleep(NOTED_WITHIN_S)  # git notes a move before it makes it
    if at != before:
        return None
    words = ("config", "--type=bool", "--default=true", "core.logAllRefUpdates")
    # With reflogs off, other programs than git leave an old one as it is.
    return at if try_git(*words, at=project.common).stdout != b"false\n" else None


def is_touched(project: Project, branch: str) -> bool:
    """Say whether a branch is as a session left it, and not put back yet."""
    name = f"refs/heads/{branch}"
    return bool(refs.twist(project, name) or sessions_last(refs.reflog(project, name)))


def bring_back(project: Project, branch: str, known: str) -> PutBack | None:
    """Make a branch again that has vanished from under the checkout that stands on it; one renamed by a person stays.

    A rename by git takes the checkout along, so that nobody stands on the old name then.
    """
    if worktree_admin.branch(project.common) != branch or resolve(project, known) is None:
        return None
    name = f"refs/heads/{branch}"
    below = refs.values(project, f"{name}/")  # git lets nobody make these while the branch is there
    aside = [order for each, at in below.items() for order in (Order(kept_ref(branch, at), at), Order(each, None, at))]
    if aside and refs.change(project, *aside).returncode != 0:
        return None
    if refs.change(project, Order(name, known, ""), message=_MESSAGE).returncode != 0:
        return None
    return PutBack(branch, known, "deleted")


def sessions_last(moves: list[RefMove]) -> list[RefMove]:
    """Return the moves at the end of a reflog that sessions made, the oldest first."""
    return list(takewhile(refs.is_of_a_session, reversed(moves)))[::-1]


def _straighten(project: Project, branch: str, what: str, before: str | None) -> PutBack | None:
    if before is None:
        raise Refused(
            f"{branch} is {what}, and covey lands on plain branches only.",
            hint="Name in covey.toml the branch for which it stands, or make it a plain one.",
        )
    at = refs.resolved(project, f"refs/heads/{branch}")
    kept = kept_ref(branch, at) if at not in (None, before) else ""
    if at is not None and kept and refs.change(project, Order(kept, at)).returncode != 0:
        return None
    made = refs.untwist(project, f"refs/heads/{branch}", before)
    return None if made is None or made.value is None else PutBack(branch, before, what, kept=kept)
