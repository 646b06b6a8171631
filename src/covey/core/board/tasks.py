"""The life of a task, from the board to main.

backlog > todo > doing > review > merging > done        blocked (needs a person)   dropped
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from covey.core.board.needs import Need
from covey.core.fleet.sessions import COVEY, OWNER
from covey.core.texts import Text
from covey.errors import Invalid, Refused
from covey.values import dataclass


class Status(StrEnum):
    """Where a task stands on the board."""

    BACKLOG = "backlog"
    TODO = "todo"
    DOING = "doing"
    REVIEW = "review"
    MERGING = "merging"
    DONE = "done"
    BLOCKED = "blocked"
    DROPPED = "dropped"


class Kind(StrEnum):
    """What a task ends in: a change on main, or a report."""

    CHANGE = "change"
    REPORT = "report"


ENDED = (Status.DONE, Status.DROPPED)
WAITING = (Status.BACKLOG, Status.TODO)


@dataclass(frozen=True)
class Try:
    """One attempt that did not end well, and what went wrong."""

    session: str
    at: float
    what: str
    by: str = ""
    """Who sent the work back, if it was handed in; else `what` may hold words of its session and of programs."""

    @property
    def has_failed(self) -> bool:
        """Say whether it failed: work that a person wants otherwise did not."""
        return self.by != OWNER


@dataclass(frozen=True)
class Note:
    """A remark on a task."""

    by: str
    at: float
    text: str


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What a task is added with."""

    title: str
    body: Text = ""
    kind: Kind = Kind.CHANGE
    status: Status = Status.TODO
    assignee: str | None = None
    role: str | None = None
    priority: int = 0
    needs: tuple[Need, ...] = ()
    parent: str | None = None
    scope: tuple[str, ...] = ()
    do_not_touch: tuple[str, ...] = ()
    overlap: bool = False
    done_when: tuple[str, ...] = ()
    budget: float | None = None
    batch: str | None = None
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Task(TaskSpec):
    """One piece of work on the board."""

    id: str
    ordinal: int
    rank: float = 0.0
    """Where it stands among those of its priority, the smallest first: its ordinal, until a person moves it."""
    author: str = OWNER
    """Who wrote the words of it: the last one who is not the owner, until the owner rewrites all of them."""
    added_by: str = OWNER
    """Who put it on the board."""
    session: str | None = None
    fence: int = 0
    front: str | None = None
    tries: tuple[Try, ...] = ()
    forgiven: int = 0
    """How many of the tries came before a person let the task be tried again."""
    notes: tuple[Note, ...] = ()
    result: Text | None = None
    reason: str | None = None
    commit: str | None = None
    created: float = 0.0
    updated: float = 0.0
    claimed: float | None = None
    ended: float | None = None
    unmet: int = 0
    open_children: int = 0

    @property
    def ready(self) -> bool:
        """Say whether nothing else has to end before this task can begin."""
        return self.unmet == 0 and self.open_children == 0


@dataclass(frozen=True, kw_only=True)
class Added(TaskSpec):
    """A task came onto the board."""

    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Edited:
    """Some fields of a task were changed: those that are not None, and those in `cleared`."""

    title: str | None = None
    body: Text | None = None
    kind: Kind | None = None
    status: Status | None = None
    assignee: str | None = None
    role: str | None = None
    priority: int | None = None
    needs: tuple[Need, ...] | None = None
    parent: str | None = None
    scope: tuple[str, ...] | None = None
    do_not_touch: tuple[str, ...] | None = None
    overlap: bool | None = None
    done_when: tuple[str, ...] | None = None
    budget: float | None = None
    batch: str | None = None
    note: str | None = None
    cleared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Moved:
    """The task was put at another place on the board, or made room there for another."""

    rank: float
    priority: int | None = None
    """The priority that it needs to stand there, if that is a new one."""


@dataclass(frozen=True)
class Claimed:
    """A session took the task."""

    session: str
    fence: int


@dataclass(frozen=True, kw_only=True)
class HandedIn:
    """The holder says that its work is complete."""

    session: str
    to: Status
    result: Text | None = None
    commit: str | None = None


@dataclass(frozen=True)
class Approved:
    """A person let a reviewed task go on to the merge queue."""


@dataclass(frozen=True)
class Held:
    """Work that was on its way to main waits for a person after all, for this reason."""

    why: str


@dataclass(frozen=True)
class Released:
    """The holder gave the task back, or lost it; `what` went wrong if anything did."""

    session: str
    what: str | None = None
    stays: bool = False
    """The holder is first in line to go on with it: its conversation and its worktree are there."""


@dataclass(frozen=True)
class Rejected:
    """The work did not land; its author is first in line to mend it."""

    session: str
    what: str
    wished: bool = False
    """A person wants it otherwise: this does not count as a try, and all tries are open again."""


@dataclass(frozen=True)
class Blocked:
    """The task needs a person before it can go on."""

    reason: str
    waited: Status | None = None
    """Where it waited until what it needs, or all that it consists of, was dropped; it goes back there with that."""


@dataclass(frozen=True)
class Dropped:
    """The task will not be done."""

    reason: str = ""


@dataclass(frozen=True)
class Ready:
    """The last thing that the task waited for has ended."""

    after: str


@dataclass(frozen=True)
class Waiting:
    """The task has to wait again: for a new child, or a need that was brought back."""

    on: str


@dataclass(frozen=True)
class Done:
    """The task is complete, with its evidence: the commit on main, a report, or its children."""

    how: str
    commit: str | None = None


Event = (
    Added
    | Edited
    | Moved
    | Claimed
    | HandedIn
    | Approved
    | Held
    | Released
    | Rejected
    | Blocked
    | Dropped
    | Ready
    | Waiting
    | Done
)


_PLAIN = tuple(f.name for f in fields(Edited) if f.name not in ("note", "cleared"))
CLEARABLE = tuple(f.name for f in fields(TaskSpec) if f.default is None and f.name in _PLAIN)
"""What an edit can take away: each field that a task need not have."""


def claim(task: Task, session: str) -> Claimed:
    """Give a task that waits, and waits for nothing, to `session`."""
    if task.status not in WAITING:
        raise _refusal("claimed", task)
    if task.unmet or task.open_children:
        what = "needs that are not done" if task.unmet else "children that are not done"
        raise Refused(f"{task.id} has {what}.", hint=f"covey task deps {task.id} shows what it waits for.")
    if task.assignee not in (None, session):
        raise Refused(
            f"{task.id} is for {task.assignee}, not for {session}.",
            hint=f"covey task edit {task.id} --assignee {session} gives it to {session}.",
        )
    return Claimed(session, fence=task.fence + 1)


def hold(task: Task, session: str | None, fence: int | None) -> str:
    """Return the holder of a task at work, if `session` and `fence` are the holder's; else refuse."""
    if task.status is not Status.DOING or task.session is None:
        raise Refused(
            f"{task.id} is {task.status}, so nobody holds it.",
            hint=f"covey task show {task.id} tells what happened.",
        )
    if session is not None and task.session != session:
        raise Refused(f"{task.id} is held by {task.session}, not by {session}.")
    if fence is not None and fence != task.fence:
        raise Refused(
            f"The claim on {task.id} with fence {fence} has ended; the fence is {task.fence} now.",
            hint="What you did is not lost: claim the task again, or leave it to its new holder.",
        )
    return task.session


def hand_in(
    task: Task, session: str, *, review: bool, result: Text | None = None, commit: str | None = None
) -> HandedIn:
    """Pass work on to review or the merge queue; a report is done by its text."""
    if task.open_children:
        raise Refused(
            f"{task.id} has children that are not done.", hint=f"Release it: {task.id} is done when its children are."
        )
    if task.kind is Kind.REPORT:
        if not result:
            raise Invalid(f"{task.id} is a report, and its result is empty.", hint="Pass the text with --result.")
        return HandedIn(session=session, to=Status.DONE, result=result, commit=commit)
    return HandedIn(session=session, to=Status.REVIEW if review else Status.MERGING, result=result, commit=commit)


def approve(task: Task) -> Approved:
    """Let a reviewed task go on to the merge queue."""
    if task.status is not Status.REVIEW:
        raise _refusal("approved", task)
    return Approved()


def land(task: Task, commit: str) -> Done:
    """Say that the work is on main, in `commit`."""
    if task.status is not Status.MERGING:
        raise _refusal("landed", task)
    return Done("landed", commit)


def reject(task: Task, author: str, what: str, *, wished: bool = False) -> Rejected:
    """Send work that did not land back to its author; if a person wished it, that is nobody's failure."""
    if task.status not in (Status.MERGING, Status.REVIEW):
        raise _refusal("rejected", task)
    return Rejected(author, what, wished)


def block(task: Task, reason: str) -> Blocked:
    """Take a task out of play until a person decides."""
    if task.status in (*ENDED, Status.BLOCKED, Status.MERGING):
        raise _refusal("blocked", task)
    return Blocked(reason)


def drop(task: Task, reason: str) -> Dropped:
    """End a task without doing it."""
    if task.status in ENDED:
        raise _refusal("dropped", task)
    if task.open_children:
        raise Refused(
            f"{task.id} has children that are not done.", hint=f"Drop them first; covey task deps {task.id} lists them."
        )
    return Dropped(reason)


def edit(task: Task, changes: Edited) -> Edited:
    """Return the change with what is the same already left out, or refuse it."""
    if changes.status is not None and changes.status is not task.status:
        _may_move(task, changes.status)
    if changes.needs is not None and changes.needs != task.needs and task.status not in (*WAITING, Status.BLOCKED):
        raise Refused(f"{task.id} is {task.status}, so its needs can no longer change.")
    same = {
        f.name: None
        for f in fields(Edited)
        if f.name not in ("note", "cleared") and getattr(changes, f.name) == getattr(task, f.name)
    }
    cleared = tuple(name for name in changes.cleared if getattr(task, name) is not None)
    return replace(changes, **same, cleared=cleared)


def reopen(task: Task) -> Edited | None:
    """Let a task that was dropped, or needs a person, be tried again; None if it waits to be claimed already."""
    if task.status is Status.TODO:
        return None
    if task.status not in (Status.BLOCKED, Status.DROPPED):
        raise _refusal("reopened", task)
    return Edited(status=Status.TODO)


def is_nothing(changes: Edited) -> bool:
    """Say whether an edit changes nothing."""
    return changes == Edited()


def _may_move(task: Task, status: Status) -> None:
    allowed = {
        Status.BACKLOG: (Status.TODO,),
        Status.TODO: (Status.BACKLOG,),
        Status.BLOCKED: (Status.TODO, Status.BACKLOG),
        Status.DROPPED: (Status.TODO, Status.BACKLOG),
    }.get(task.status, ())
    if status not in allowed:
        verbs = "claim, handin, release, block and drop"
        raise Refused(f"{task.id} cannot go from {task.status} to {status} by an edit.", hint=f"Its verbs are {verbs}.")


def _refusal(verb: str, task: Task) -> Refused:
    holder = f", claimed by {task.session}" if task.status is Status.DOING else ""
    return Refused(
        f"{task.id} cannot be {verb}: it is {task.status}{holder}.",
        hint=f"covey task show {task.id} tells what happened.",
    )


def add(task_id: str, ordinal: int, event: Added, at: float, by: str) -> Task:
    """Return the task that an Added event begins."""
    wanted = {name: value for name, value in event.__dict__.items() if name != "note"}
    return Task(
        id=task_id,
        ordinal=ordinal,
        rank=float(ordinal),
        author=by,
        added_by=by,
        notes=(Note(by, at, event.note),) if event.note else (),
        created=at,
        updated=at,
        **wanted,
    )


if TYPE_CHECKING:
    _with = replace
else:

    def _with(task: Task, **changes: Any) -> Task:
        """Do what dataclasses.replace does, without its initialiser: a million events are folded with it."""
        after = object.__new__(Task)
        after.__dict__.update(task.__dict__)
        after.__dict__.update(changes)
        return after


_UNHELD = {"session": None, "claimed": None}


def apply(task: Task, event: Event, at: float, by: str) -> Task:
    """Return the task as it is after `event`. Never refuses."""
    changes: dict[str, Any] = {}  # where nothing is said, what it waits for is counted elsewhere
    match event:
        case Added():
            return add(task.id, task.ordinal, event, at, by)
        case Moved(rank, priority):
            return _with(task, rank=rank, priority=task.priority if priority is None else priority)
        case Edited():
            changes = _edited(task, event, at, by)
        case Claimed(session, fence):
            changes = {"session": session, "fence": fence, "claimed": at, "front": None, "reason": None}
            changes["status"] = Status.DOING
        case HandedIn():
            changes = _handed_in(task, event, at)
        case Approved():
            changes = {"status": Status.MERGING, "reason": None}
        case Held(why):
            changes = {"status": Status.REVIEW, "reason": why}
        case Released():
            changes = _released(task, event, at)
        case Rejected():
            changes = _rejected(task, event, at, by)
        case Blocked(reason):
            changes = {"status": Status.BLOCKED, **_UNHELD, "reason": reason}
        case Dropped(reason):
            changes = {"status": Status.DROPPED, **_UNHELD, "front": None, "reason": reason or None, "ended": at}
        case Done(_, commit):
            changes = {"status": Status.DONE, "front": None, "commit": commit or task.commit, "ended": at}
    return _with(task, **changes, updated=at)


def _handed_in(task: Task, event: HandedIn, at: float) -> dict[str, object]:
    result = task.result if event.result is None else event.result
    ended = at if event.to is Status.DONE else None
    return {"status": event.to, "result": result, "commit": event.commit, "ended": ended}


def _released(task: Task, event: Released, at: float) -> dict[str, object]:
    tries = task.tries if event.what is None else (*task.tries, Try(event.session, at, event.what))
    front = event.session if event.stays else task.front
    return {"status": Status.TODO, **_UNHELD, "front": front, "tries": tries}


def _rejected(task: Task, event: Rejected, at: float, by: str) -> dict[str, object]:
    tries = (*task.tries, Try(event.session, at, event.what, by))
    forgiven = len(tries) if event.wished else task.forgiven
    front = None if event.session == OWNER else event.session  # a person never expires: others would wait for ever
    return {"status": Status.TODO, **_UNHELD, "front": front, "tries": tries, "forgiven": forgiven}


def author_after(author: str, event: Edited, by: str) -> str:
    """Return who counts as the author of a task's words after an edit."""
    written = [event.title, event.body, event.done_when]
    if by == COVEY or all(each is None for each in written):
        return author
    return by if by != OWNER or None not in written[:2] else author


def _edited(task: Task, event: Edited, at: float, by: str) -> dict[str, object]:
    changes: dict[str, object] = {name: value for name in _PLAIN if (value := getattr(event, name)) is not None}
    changes |= dict.fromkeys(event.cleared)
    if event.note:
        changes["notes"] = (*task.notes, Note(by, at, event.note))
    if event.status is not None:
        changes |= {"reason": None, "ended": None, "forgiven": len(task.tries)}
    return changes | {"author": author_after(task.author, event, by)}
