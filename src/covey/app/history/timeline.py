"""The verb that shows what each session did over a time."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from msgspec import Struct

from covey.app.context import Call
from covey.app.history.log import Moment
from covey.app.shapes.forms import Asked, Name
from covey.app.verbs import verb
from covey.core.fleet.runs import Outcome
from covey.core.fleet.sessions import SessionState
from covey.core.history.activity import first_line
from covey.core.history.timeline import Span, Turn, strip
from covey.core.people.rights import OWNER_ONLY
from covey.errors import Invalid
from covey.store.tx import Tx

NIGHT = 12 * 3600.0
"""Seconds that are shown if nothing else is asked."""
MAX_STRIP_S = 31 * 86400.0
RUNS = 500
TURNS = 1000
"""Turns of one session beyond which not every one is read."""
EVIDENCE = 120


class ListStrips(Asked, frozen=True, kw_only=True):
    """From when until when, at most 31 days; without a time the last twelve hours."""

    since: Moment | None = None
    until: Moment | None = None
    session: Name | None = None


class StripRun(Struct, frozen=True, kw_only=True):
    """A run that was under way in the time; one that has not ended has no `until`."""

    run: str
    task: str
    at: float
    until: float | None
    outcome: Outcome | None


class StripRow(Struct, frozen=True, kw_only=True):
    """One session over the time: at most 500 spans, with gaps where there was no such session, and its last runs."""

    session: str
    spans: list[Span]
    runs: list[StripRun]


class _Changed(Struct):
    """What a strip needs to know of a session's change."""

    state: SessionState = SessionState.IDLE
    evidence: str | None = None


_changed = msgspec.json.Decoder(_Changed)


@verb("strip.list", "GET /api/strips", ListStrips, list[StripRow], may=OWNER_ONLY)
def list_strips(call: Call, asked: ListStrips) -> list[StripRow]:
    """Show what each session did over a time, from the log: working, idle, waiting for you, limited, paused, down."""
    until = call.tx.now if asked.until is None else min(asked.until, call.tx.now)
    since = max(until - NIGHT, 0.0) if asked.since is None else asked.since
    if until - since > MAX_STRIP_S:
        raise Invalid("A strip shows at most 31 days.", hint="Ask for a shorter time.")
    if since >= until:
        return []
    first, last = call.tx.first_since(since), call.tx.first_since(until)
    away = _away(call.tx, first, since, until)
    found = call.tx.sessions_known_since(since, asked.session)
    made = [_row(call.tx, session.name, range(first, last), since, until, away) for session in found]
    return [row for row in made if row.spans or row.runs]


def _row(tx: Tx, session: str, part: range, since: float, until: float, away: list[tuple[float, float]]) -> StripRow:
    turns = [_turn(*row) for row in tx.turns(session, part, since, until, TURNS)]  # the first is from before
    runs = [
        StripRun(run=run.id, task=run.task, at=run.begun, until=run.ended, outcome=run.outcome)
        for run in tx.runs_between(session, since, until, RUNS)
    ]
    spans = [
        span if span.evidence is None else replace(span, evidence=first_line(span.evidence, EVIDENCE))
        for span in strip(turns, since, until, away)
    ]
    return StripRow(session=session, spans=spans, runs=runs)


def _turn(time: float, kind: str, data: str) -> Turn:
    if kind == "session.removed":
        return Turn(time, None)
    changed = _changed.decode(data) if kind == "session.changed" else _Changed()
    return Turn(time, changed.state, changed.evidence)


def _away(tx: Tx, first: int, since: float, until: float) -> list[tuple[float, float]]:
    """Return when no daemon ran, as far as the log says so: one that was killed left no word."""
    absences: list[tuple[float, float]] = []
    stopped: float | None = None
    for time, kind in tx.daemon_turns(first):
        if kind == "daemon.stopped":
            stopped = max(time, since)
        elif stopped is not None:
            absences.append((stopped, time))
            stopped = None
    return absences if stopped is None else [*absences, (stopped, until)]
