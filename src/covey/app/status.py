"""The project at a glance."""

from __future__ import annotations

from msgspec import Struct

from covey import __version__
from covey.app.board.waiting import Look
from covey.app.context import Call
from covey.app.costs.costs import nothing_spent, today
from covey.app.fleet.sessions import list_sessions
from covey.app.people.mail import letters
from covey.app.shapes.board import LaneWait, SessionWait
from covey.app.shapes.costs import SpentToday
from covey.app.shapes.fleet import SessionFull
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.core.fleet.sessions import OWNER
from covey.core.people.rights import PARTLY


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


@verb("status", "GET /api/status", Nothing, ProjectStatus, may=PARTLY)
def status(call: Call, asked: Nothing) -> ProjectStatus:
    """Show the project at a glance: counts, sessions, leases, mail, today's cost and the end of the log."""
    tx = call.tx
    everyone = list_sessions(call, asked)
    look = Look(call)
    return ProjectStatus(
        version=__version__,
        project=call.context.project,
        log=tx.head.log,
        seq=tx.head.seq,
        counts=tx.counts(),
        sessions=everyone,
        leases=tx.count_live_leases(),
        unread=len(letters(call, call.who.session or OWNER, unread=True, limit=1000)),
        merges=tx.count_open_merges(),
        questions=tx.count_open_questions(),
        paused=tx.fleet().paused,
        memory=sum(session.memory for session in everyone),
        today=today(call) if call.who.is_owner else nothing_spent(call),
        stays_for=call.context.stays_for(call) if call.who.is_owner else [],
        waits=look.lane_waits() if call.who.is_owner else [],
        idle=look.session_waits() if call.who.is_owner else [],
    )
