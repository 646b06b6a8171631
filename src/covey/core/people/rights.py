"""Who may do and see what: rights of the owner, of a session on its own and on what is another's, and of a role."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from covey.core.board.tasks import WAITING, Added, Edited, Status, Task
from covey.core.events import Event
from covey.core.fleet.sessions import COVEY, OWNER
from covey.core.nouns import AUDIENCES, Audience
from covey.values import dataclass


class May(StrEnum):
    """What comes of a request."""

    YES = "yes"
    PART = "in part"
    """It is answered, but only with what the asker may see."""
    PROPOSE = "propose"
    """It waits for a person, who accepts or declines it."""
    NO = "no"


class Asker(StrEnum):
    """Who asks, seen from the thing that is asked about."""

    OWNER = "owner"
    OWN = "own"
    """A session, about itself, about its own task, or about what it made."""
    OTHER = "other"
    """A session, about anything else."""
    REVIEWER = "reviewer"
    """A session with the role that may review, about the work of another."""


@dataclass(frozen=True)
class Rights:
    """One row of the table: the owner may do everything, and nobody anything without a token."""

    own: May
    other: May
    reviewer: May | None = None
    """None: as any other session."""

    def of(self, standing: Asker) -> May:
        """Return what comes of a request by somebody with this standing."""
        if standing is Asker.OWNER:
            return May.YES
        if standing is Asker.REVIEWER and self.reviewer is not None:
            return self.reviewer
        return self.own if standing is Asker.OWN else self.other

    @property
    def is_open(self) -> bool:
        """Say whether a session is answered, whatever it asks about."""
        return {self.own, self.other} <= {May.YES, May.PART}

    @property
    def is_closed(self) -> bool:
        """Say whether no session is answered, whatever it asks about."""
        return {self.own, self.other, self.reviewer} <= {May.NO, None}

    @property
    def can_be_proposed(self) -> bool:
        """Say whether a session that may not do this can ask a person to do it."""
        return May.PROPOSE in (self.own, self.other, self.reviewer)


OWNER_ONLY = Rights(May.NO, May.NO)
SHARED = Rights(May.YES, May.YES)
"""What sessions need to work beside each other."""
PARTLY = Rights(May.YES, May.PART)
OWN = Rights(May.YES, May.NO)
OWN_ELSE_PROPOSED = Rights(May.YES, May.PROPOSE)
PROPOSED = Rights(May.PROPOSE, May.PROPOSE)
REVIEW = Rights(May.NO, May.NO, reviewer=May.YES)
OWN_OR_REVIEW = Rights(May.YES, May.NO, reviewer=May.YES)


# A session's own


def is_at_work_on(task: Task, session: str) -> bool:
    """Say whether a session holds a task, or has handed it in."""
    return task.session == session and task.status is not Status.DROPPED


def is_its_own(task: Task, session: str) -> bool:
    """Say whether a session put a task on the board that nobody else has taken since, or was given."""
    nobody_else = (None, session)
    return (
        task.added_by == session
        and task.session in nobody_else
        and task.front in nobody_else
        and task.assignee in nobody_else
        and task.status in (*WAITING, Status.DOING, Status.BLOCKED)
    )


def is_concerned_with(task: Task, session: str) -> bool:
    """Say whether a task is one that a session works at, mends, waits to begin, or put on the board."""
    return session in (task.session, task.front, task.assignee, task.added_by)


SESSION_EDITABLE_FIELDS = frozenset(("title", "body", "kind", "status", "role", "needs", "needs_any"))
"""What a session may change of a task that it put on the board, besides its place in line and its family."""


def beyond_edit(
    task: Task, session: str, wish: Mapping[str, object], *, most_priority: int, has_parent: bool
) -> str | None:
    """Return in one sentence why a session may not edit a task like this itself, None if it may.

    `has_parent`: the parent that it wants for the task is its own.
    """
    own = is_its_own(task, session)
    if set(wish) <= {"note"}:
        mine = own or (is_at_work_on(task, session) and task.status is Status.DOING)
        return None if mine else f"{task.id} is not the task of {session}."
    if not own:
        return (
            f"{session} changes only tasks that it added and that nobody else has taken; {task.id} is not one of them."
        )
    if wish.get("assignee") not in (None, session):
        return f"It would give {task.id} to {wish['assignee']}."
    if isinstance(priority := wish.get("priority"), int) and priority > max(most_priority, task.priority):
        return f"Its priority would be higher than {most_priority}."
    if wish.get("parent") is not None and not has_parent:
        return f"It would put {task.id} under a task of others, which would have to wait for it."
    rest = sorted(set(wish) - SESSION_EDITABLE_FIELDS - {"note", "assignee", "priority", "parent"})
    return f"It would change {', '.join(rest)}." if rest else None


def most_priority(held: Iterable[Task]) -> int:
    """Return the highest priority that a session may give to what it adds: that of its own work."""
    return max((task.priority for task in held), default=0)


def is_vouched_for(story: Iterable[tuple[str, Added | Edited]]) -> bool:
    """Say whether a person stands behind what a task says, by who added and edited it.

    A person does by writing it, or by giving it to somebody; a session that rewrites it ends that. To put a task back
    in line is neither: a session that blocks its own task gets that from whoever answers it.
    """
    vouched = False
    for actor, event in story:
        person = actor in (OWNER, COVEY)
        if isinstance(event, Added):
            vouched = person
        elif person:
            given = (event.title, event.body, event.assignee, event.role)
            vouched = vouched or any(value is not None for value in given)
        elif event.title is not None or event.body is not None:
            vouched = False
    return vouched


def is_for_a_reader(story: Iterable[tuple[str, Added | Edited]], *, reverts: bool) -> bool:
    """Say whether the body of a task is covey's own words, by who added and edited it: a text, and never a script.

    `reverts`: it takes other work out of main. An older covey added such a task in the name of its owner.
    """
    wrote = [
        COVEY if reverts and isinstance(event, Added) else actor
        for actor, event in story
        if isinstance(event, Added) or event.body is not None
    ]
    return wrote[-1:] == [COVEY]


WITHHELD = "{}"
"""What stands for the data of an event that its reader may not see."""


def visible(event: Event, viewer: str | None, concerned: Collection[str | None]) -> Event:
    """Return an event as a viewer may see it; the owner (None) and whoever did it see all of it.

    That something happened is always seen; what it was, only by those whose business it is: `concerned`.
    """
    if viewer is None or event.actor == viewer or AUDIENCES[event.kind] is Audience.EVERYONE:
        return event
    if AUDIENCES[event.kind] is Audience.CONCERNED and viewer in concerned:
        return event
    return replace(event, data=WITHHELD, key=None)
