"""Landing: main moves to a tested commit together with the checkout that holds it, or nothing changes at all."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from dataclasses import replace

from covey import files
from covey.errors import Invalid, Refused, Unavailable
from covey.git import refs
from covey.git.candidates.candidates import is_ancestor, resolve
from covey.git.identity import LANDED, LANDED_SINCE, TASK_BRANCHES
from covey.git.landing import fast_forward
from covey.git.landing.fast_forward import Blocked, Hold, Intent, Move
from covey.git.project import Project
from covey.git.refs import Order
from covey.git.run import complaint
from covey.git.worktrees import checkouts, worktree_admin
from covey.git.worktrees.checkouts import Checkout
from covey.values import dataclass

LOCK_WAIT_S = 1.0
MAX_LOOKS = 10
STALE_LOCK_S = 600.0
"""A lock that is older than this belongs to nobody who is about to end."""
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class Landed:
    """Main holds this commit, and so does the checkout of main, if there is one."""

    commit: str


@dataclass(frozen=True)
class Waits:
    """Main is where it was: the user's files that are in the way, and one sentence for the user."""

    files: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class MainMoved:
    """Main is not where it was expected to be, or not there at all."""

    main: str | None


@dataclass(frozen=True)
class Line:
    """Main's commit, the commit on which the queue builds, and whether the user went another way than there."""

    main: str | None
    head: str | None
    diverged: bool


Outcome = Landed | Waits | MainMoved


def land(project: Project, main: str, expected: str, commit: str) -> Outcome:
    """Bring main from `expected` to `commit`, a descendant, or change nothing; landing twice is landing once."""
    if not is_ancestor(project, expected, commit):
        raise Invalid(f"{commit[:12]} does not descend from {expected[:12]}, so main cannot go there.")
    recover(project)
    make_durable(project)
    intent = Intent(main, expected, commit)
    for _ in range(MAX_LOOKS):
        outcome = _land(project, intent)
        if outcome is not None:
            return outcome
    return Waits((), f"The checkouts of {main} change all the time; {main} follows when they rest.")


def recover(project: Project) -> list[Outcome]:
    """Finish or undo the moves that a crash left half done, and give back their locks."""
    outcomes = []
    for checkout in checkouts.of_people(project):
        intent = fast_forward.left_behind(checkout.folder) if checkout.path.is_dir() else None
        if intent is not None:
            outcome = _join(project, checkout, intent) if intent.late else _land_in(project, checkout, intent)
            outcomes.append(outcome or Waits((), f"{checkout.path} changes at this moment."))
    return outcomes


def make_durable(project: Project) -> None:
    """Bring all objects to the disk: git syncs a ref, but not the loose objects that it names, nor those of agents."""
    folder = os.open(project.common / "objects", os.O_RDONLY)
    try:
        if not hasattr(_LIBC, "syncfs"):
            os.sync()
        elif _LIBC.syncfs(folder) != 0:
            raise Unavailable("What is to land could not be written to the disk.", hint="Look at the disk.")
    finally:
        os.close(folder)


def landed_line(project: Project, main: str) -> Line:
    """Return where main is and where the queue builds; a landed commit that main holds by now is forgotten."""
    at, landed = resolve(project, f"refs/heads/{main}"), resolve(project, LANDED)
    if landed is None or at is None:
        return Line(at, landed or at, diverged=False)
    if is_ancestor(project, landed, at):
        drop_landed(project, landed)
        return Line(at, at, diverged=False)
    since = resolve(project, LANDED_SINCE)
    moved_back = since is not None and not is_ancestor(project, since, at)
    return Line(at, landed, diverged=moved_back or not is_ancestor(project, at, landed))


def put_landed(project: Project, commit: str, expected: str | None, main: str | None = None) -> None:
    """Let the queue build on `commit`, with main where it is; refused when another than `expected` is there."""
    make_durable(project)
    since = [Order(LANDED_SINCE, main)] if main else []
    _swap(project, Order(LANDED, commit, expected or ""), *since)


def drop_landed(project: Project, expected: str) -> None:
    """Forget the landed commit; refused when another than `expected` is there."""
    _swap(project, Order(LANDED, None, expected), Order(LANDED_SINCE, None))


def follow(project: Project, main: str, head: str | None = None) -> Outcome | None:
    """Bring main to what has landed while it could not move; nothing is returned when there is no such commit.

    Main goes to `head` and nowhere else, if that is said: the ref could be another's work by now.
    """
    line = landed_line(project, main)
    if head is not None and line.head not in (head, line.main):
        return MainMoved(line.main)
    if line.main is None or line.head is None or line.head == line.main:
        return None if line.main is not None or line.head is None else MainMoved(None)
    if line.diverged:
        return MainMoved(line.main)
    outcome = land(project, main, line.main, line.head)
    if isinstance(outcome, Landed):
        drop_landed(project, line.head)
    return outcome


def _swap(project: Project, *orders: Order) -> None:
    done = refs.change(project, *orders)
    if done.returncode != 0:
        raise Refused(f"What has landed was changed by another: {complaint(done)}.")


def _land(project: Project, intent: Intent) -> Outcome | None:
    """Look where main is checked out and move it accordingly; nothing is returned when that has just changed."""
    found = checkouts.holding(project, intent.main)
    if not found:
        return _land_aside(project, intent)
    if len(found) > 1:
        places = " and ".join(str(checkout.path) for checkout in found)
        return _unless_done(
            project, intent, f"{intent.main} is checked out in {places}, and can move only with one checkout."
        )
    if found[0].obstacle:
        return _unless_done(
            project, intent, f"{intent.main} is checked out in {found[0].path}, and {found[0].obstacle}."
        )
    return _land_in(project, found[0], intent)


def _land_in(project: Project, checkout: Checkout, intent: Intent) -> Outcome | None:
    """Move main together with the one checkout that holds it, both under lock."""
    locks = (checkout.folder / "HEAD.lock", project.common / f"refs/heads/{intent.main}.lock")
    hold = fast_forward.take(checkout, replace(intent, locks=tuple(map(str, locks))), LOCK_WAIT_S)
    if hold is None:
        return _unless_done(
            project, intent, f"Another git command is at work in {checkout.path}, or left its index.lock."
        )
    with hold:
        outcome = _move(project, hold)
        if hold.interrupted and not isinstance(outcome, Landed):
            fast_forward.undo(hold)
    return outcome


def _move(project: Project, hold: Hold) -> Outcome | None:
    intent, checkout = hold.intent, hold.checkout
    begun = checkouts.unfinished(checkout.folder)
    if begun:
        return Waits((), f"In {checkout.path} {begun} is under way; {intent.main} follows when it has ended.")
    with Move(hold) as move:
        if not move.prepared:
            return _unless_done(project, intent, f"{intent.main} cannot be moved: {move.said()}.")
        if not checkouts.is_on(checkout.folder, intent.main):
            return None
        blocked = fast_forward.carry(hold)
        if blocked is not None:
            return _waits(checkout, intent, blocked)
        # From here on the checkout is there already: if this fails, the next landing only has to move the branch.
        hold.broken = True
        move.commit()
        hold.broken = False
        fast_forward.linger(move.took, [checkout.path])
    return Landed(intent.commit)


def _waits(checkout: Checkout, intent: Intent, blocked: Blocked) -> Waits:
    if not blocked.files:
        return Waits((), f"git could not update {checkout.path}: {blocked.said}.")
    few = ", ".join(blocked.files[:3]) + (f" and {len(blocked.files) - 3} more" if len(blocked.files) > 3 else "")
    return Waits(blocked.files, f"Changes of yours in {checkout.path} are in the way of {intent.main}: {few}.")


def _unless_done(project: Project, intent: Intent, sentence: str) -> Outcome:
    """Say why main waits, unless it has landed already or has moved elsewhere."""
    at = resolve(project, f"refs/heads/{intent.main}")
    if at is not None and at != intent.expected and is_ancestor(project, intent.commit, at):
        return Landed(intent.commit)
    return MainMoved(at) if at != intent.expected else Waits((), sentence)


def _land_aside(project: Project, intent: Intent) -> Outcome | None:
    """Move main where no checkout holds it, while no checkout of the user's can set out for it."""
    with contextlib.ExitStack() as stack:
        held, unheld = [], []
        for checkout in checkouts.of_people(project):
            if not checkout.path.is_dir() or not (checkout.folder / "index").exists():
                continue
            hold = None if _is_of_a_session(checkout) else fast_forward.take(checkout, None, LOCK_WAIT_S)
            if hold is not None:
                held.append(stack.enter_context(hold))
            elif _may_be_switching(checkout):
                return _unless_done(
                    project, intent, f"A git command in {checkout.path} may be on its way to {intent.main}."
                )
            else:
                unheld.append(checkout)
            if checkouts.is_on(checkout.folder, intent.main):
                return None
        began = time.monotonic()
        if not _set_main(project, intent, intent.commit, intent.expected):
            return _unless_done(project, intent, f"{intent.main} is locked by another git command.")
        fast_forward.linger(time.monotonic() - began, [hold.checkout.path for hold in held])
        # One that had set out before we had its lock has old files on the new main, until it is taken along.
        waits = [outcome for hold in held if isinstance(outcome := _join_held(project, hold, intent), Waits)]
    _await_switches(unheld)
    came = [checkout for checkout in unheld if checkouts.is_on(checkout.folder, intent.main)]
    waits += [outcome for checkout in came if isinstance(outcome := _join(project, checkout, intent), Waits)]
    if waits and _set_main(project, intent, intent.expected, intent.commit):
        return waits[0]
    return _unless_done(project, intent, waits[0].sentence) if waits else Landed(intent.commit)


def _is_of_a_session(checkout: Checkout) -> bool:
    """Say whether a checkout is at work on a task: agents must not meet our lock, and have no business on main."""
    return (worktree_admin.branch(checkout.folder) or "").startswith(TASK_BRANCHES)


def _may_be_switching(checkout: Checkout) -> bool:
    """Say whether the lock that somebody has held for so long can be that of a switch.

    That one stays empty until its end, while `git commit -a` fills it before the editor opens; an old one is a wreck.
    """
    lock = files.status(checkout.folder / "index.lock", follow=True)
    is_wreck = lock is not None and (lock.st_size > 0 or time.time() - lock.st_mtime >= STALE_LOCK_S)
    return not is_wreck and not _is_of_a_session(checkout)


def _join(project: Project, checkout: Checkout, intent: Intent) -> Outcome | None:
    """Bring a checkout to main that was made from main's old commit while main moved."""
    hold = fast_forward.take(checkout, replace(intent, late=True), LOCK_WAIT_S)
    if hold is None:
        return Waits((), f"Another git command is at work in {checkout.path}.")
    with hold:
        return _join_held(project, hold, intent)


def _join_held(project: Project, hold: Hold, intent: Intent) -> Outcome | None:
    at = resolve(project, f"refs/heads/{intent.main}")
    if at == intent.commit and checkouts.is_on(hold.checkout.folder, intent.main):
        if not hold.interrupted:
            hold.mean(replace(intent, late=True))
        blocked = fast_forward.carry(hold)
        return Landed(intent.commit) if blocked is None else _waits(hold.checkout, intent, blocked)
    if hold.interrupted:
        fast_forward.undo(hold)
    return None


def _set_main(project: Project, intent: Intent, commit: str, expected: str) -> bool:
    order = Order(f"refs/heads/{intent.main}", commit, expected)
    return refs.change(project, order, message=f"covey: land {commit[:12]}").returncode == 0


def _await_switches(unheld: list[Checkout]) -> None:
    """Wait until the commands that change a checkout at this moment have ended: one may be on its way to main."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while time.monotonic() < deadline:
        found = [files.status(checkout.folder / "index.lock", follow=True) for checkout in unheld]
        if not any(lock is not None and time.time() - lock.st_mtime < STALE_LOCK_S for lock in found):
            return
        time.sleep(0.005)
