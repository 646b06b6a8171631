"""What is answered about why nothing happens."""

from __future__ import annotations

from msgspec import Struct

from covey.app.shapes.board.tasks import TaskFull
from covey.core.board.waiting import Cause


class Wait(Struct, frozen=True, kw_only=True):
    """Why a task waits, or a session idles: its cause, a sentence, until when if that is known, and what to do.

    `person`: only a person can change it; `command`: how, empty if there is nothing to do but wait.
    """

    cause: Cause
    text: str
    until: float | None
    person: bool
    command: str


class TaskWait(Wait, frozen=True, kw_only=True):
    """Why one task waits."""

    task: str


class SessionWait(Wait, frozen=True, kw_only=True):
    """Why one session is not at work."""

    session: str


class LaneWait(Wait, frozen=True, kw_only=True):
    """Why the tasks of some lanes wait: how many, since when, the first of them, and the sessions that it is about."""

    lanes: list[str]
    count: int
    since: float
    tasks: list[str]
    sessions: list[str]


class Waits(Struct, frozen=True, kw_only=True):
    """Why nothing happens: the tasks of a page of the board that wait, all that are ready by lane, idle sessions."""

    tasks: list[TaskWait]
    lanes: list[LaneWait]
    sessions: list[SessionWait]


class Told(Struct, frozen=True):
    """A sentence that says why something waits, and until when if that is known."""

    text: str
    until: float | None


class WaitsNow(Struct, frozen=True):
    """Why tasks that are ready wait: in the largest lanes, and in other words for some tasks near their heads."""

    lanes: dict[str, Told]
    tasks: dict[str, Told]


class TaskShown(TaskFull, frozen=True, kw_only=True):
    """A task whole, with why it waits, null if it does not; a session is not told that of the others."""

    waits: Wait | None
