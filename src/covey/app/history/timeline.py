"""The verb that shows what each session did over a time."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from covey.app.shapes.forms import Asked, Name
from covey.app.trail import first_since
from covey.app.verbs import Call, verb
from covey.core.rights import OWNER_ONLY
from covey.core.runs import Outcome
from covey.core.sessions import State
from covey.core.strips import Doing, Span, Turn, strip
from covey.core.trail import first_line
from covey.errors import Invalid
from covey.store import rows
from covey.store.tx import Tx

NIGHT = 12 * 3600.0
"""Seconds that are shown if nothing else is asked."""
LONGEST = 31 * 86400.0
RUNS = 500
TURNS = 1000
"""Turns of one session beyond which not every one is read."""
EVIDENCE = 120
_KINDS = "kind IN ('session.registered', 'session.changed', 'session.removed')"
_FEWER = (
    "SELECT time, kind, data FROM events WHERE seq IN (SELECT max(seq) FROM events"
    f" WHERE subject = ? AND {_KINDS} AND seq >= ? AND seq < ? GROUP BY floor((time - ?) / ?)) ORDER BY seq"
)
"""Of each part of a time only the last turn: of a session that never rests, more would take seconds to read."""

Moment = Annotated[float, Meta(ge=0, le=1e11)]


class ListStrips(Asked, frozen=True, kw_only=True):
    """From when until when, at most 31 days; without a time the last twelve hours."""

    since: Moment | None = None
    until: Moment | None = None
    session: Name | None = None


class SpanRow(Struct, frozen=True, kw_only=True):
    """What a session did from one time until another."""

    at: float
    until: float
    state: Doing
    evidence: str | None


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
    spans: list[SpanRow]
    runs: list[StripRun]


class _Changed(Struct):
    """What a strip needs to know of a session's change."""

    state: State = State.IDLE
    evidence: str | None = None


_changed = msgspec.json.Decoder(_Changed)


@verb("strip.list", "GET /api/strips", ListStrips, list[StripRow], may=OWNER_ONLY)
def list_strips(call: Call, asked: ListStrips) -> list[StripRow]:
    """Show what each session did over a time, from the log: working, idle, waiting for you, limited, paused, down."""
    until = call.tx.now if asked.until is None else min(asked.until, call.tx.now)
    since = max(until - NIGHT, 0.0) if asked.since is None else asked.since
    if until - since > LONGEST:
        raise Invalid("A strip shows at most 31 days.", hint="Ask for a shorter time.")
    if since >= until:
        return []
    first, last = first_since(call.tx, since), first_since(call.tx, until)
    away = _away(call.tx, first, since, until)
    where = "WHERE (removed = 0 OR updated >= ?)" + ("" if asked.session is None else " AND name = ?")
    values = (since,) if asked.session is None else (since, asked.session)
    found = call.tx.find(rows.SESSIONS, f"{where} ORDER BY name", values)
    made = [_row(call.tx, session.name, range(first, last), since, until, away) for session in found]
    return [row for row in made if row.spans or row.runs]


def _row(tx: Tx, session: str, part: range, since: float, until: float, away: list[tuple[float, float]]) -> StripRow:
    return StripRow(
        session=session,
        spans=[_span(span) for span in strip(_turns(tx, session, part, since, until), since, until, away)],
        runs=_runs(tx, session, since, until),
    )


def _span(span: Span) -> SpanRow:
    evidence = None if span.evidence is None else first_line(span.evidence, EVIDENCE)
    return SpanRow(at=span.at, until=span.until, state=span.state, evidence=evidence)


def _turns(tx: Tx, session: str, part: range, since: float, until: float) -> list[Turn]:
    """Return the states of a session in a part of the log, beginning with the one that it was in before."""
    asked = f"SELECT time, kind, data FROM events WHERE subject = ? AND {_KINDS}"
    before = tx.db.rows(f"{asked} AND seq < ? ORDER BY seq DESC LIMIT 1", (session, part.start))
    within = (session, part.start, part.stop)
    found = tx.db.rows(f"{asked} AND seq >= ? AND seq < ? ORDER BY seq LIMIT ?", (*within, TURNS + 1))
    if len(found) > TURNS:
        found = tx.db.rows(_FEWER, (*within, since, (until - since) / TURNS))
    return [_turn(*row) for row in (*before, *found)]


def _turn(time: float, kind: str, data: str) -> Turn:
    if kind == "session.removed":
        return Turn(time, None)
    changed = _changed.decode(data) if kind == "session.changed" else _Changed()
    return Turn(time, changed.state, changed.evidence)


def _away(tx: Tx, first: int, since: float, until: float) -> list[tuple[float, float]]:
    """Return when no daemon ran, as far as the log says so: one that was killed left no word."""
    asked = "SELECT time, kind FROM events WHERE subject = 'daemon' AND kind LIKE 'daemon.%'"
    before = tx.db.rows(f"{asked} AND seq < ? ORDER BY seq DESC LIMIT 1", (first,))
    absences: list[tuple[float, float]] = []
    stopped: float | None = None
    for time, kind in (*before, *tx.db.rows(f"{asked} AND seq >= ? ORDER BY seq", (first,))):
        if kind == "daemon.stopped":
            stopped = max(time, since)
        elif stopped is not None:
            absences.append((stopped, time))
            stopped = None
    return absences if stopped is None else [*absences, (stopped, until)]


def _runs(tx: Tx, session: str, since: float, until: float) -> list[StripRun]:
    """Return the runs of a session in a time, the oldest first."""
    where = "WHERE session = ? AND begun < ? AND (ended IS NULL OR ended > ?) ORDER BY ordinal DESC LIMIT ?"
    found = tx.find(rows.RUNS, where, (session, until, since, RUNS))
    return [
        StripRun(run=run.id, task=run.task, at=run.begun, until=run.ended, outcome=run.outcome) for run in found[::-1]
    ]
