"""What is answered about the project at a glance."""

from __future__ import annotations

from msgspec import Struct

from covey.app.shapes.costs import SpentToday
from covey.app.shapes.sessions import SessionFull
from covey.app.shapes.waits import LaneWait, SessionWait


class ProjectStatus(Struct, frozen=True, kw_only=True):
    """The project at a glance."""

    version: str
    project: str
    log: str
    seq: int
    counts: dict[str, int]
    sessions: list[SessionFull]
    leases: int
    unread: int
    merges: int
    questions: int
    paused: bool
    memory: int
    """Bytes that all runs took when they were last weighed."""
    today: SpentToday
    stays_for: list[str]
    """For whom the daemon stays: who typed covey up, an open page, sessions; if for nobody, it goes with the command
    that started it."""
    waits: list[LaneWait]
    """Why the tasks that are ready wait, for the owner, what only a person can change first."""
    idle: list[SessionWait]
    """Why sessions are not at work, for the owner."""
