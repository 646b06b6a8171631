"""The project at a glance."""

from __future__ import annotations

from covey import __version__
from covey.app.costs import nothing_spent, today
from covey.app.mail import letters
from covey.app.sessions import list_sessions
from covey.app.shapes.forms import Nothing
from covey.app.shapes.status import ProjectStatus
from covey.app.verbs import Call, verb
from covey.app.waiting import Look
from covey.core.rights import PARTLY
from covey.core.sessions import OWNER


@verb("status", "GET /api/status", Nothing, ProjectStatus, may=PARTLY)
def status(call: Call, asked: Nothing) -> ProjectStatus:
    """Show the project at a glance: counts, sessions, leases, mail, today's cost and the end of the log."""
    tx = call.tx
    everyone = list_sessions(call, asked)
    look = Look(call)
    return ProjectStatus(
        version=__version__,
        project=call.house.project,
        log=tx.head.log,
        seq=tx.head.seq,
        counts=tx.counts(),
        sessions=everyone,
        leases=int(tx.db.rows("SELECT count(*) FROM leases WHERE state = 'live'")[0][0]),
        unread=len(letters(call, call.who.session or OWNER, unread=True, limit=1000)),
        merges=tx.count_open_merges(),
        questions=tx.count_open_questions(),
        paused=tx.fleet().paused,
        memory=sum(session.memory for session in everyone),
        today=today(call) if call.who.is_owner else nothing_spent(call),
        stays_for=call.house.stays_for(call) if call.who.is_owner else [],
        waits=look.lane_waits() if call.who.is_owner else [],
        idle=look.session_waits() if call.who.is_owner else [],
    )
