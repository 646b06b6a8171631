"""The night at a glance: what a session did over a time, as spans that a strip of a page has room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from covey.core.fleet.sessions import SessionState
from covey.values import dataclass

MAX_SPANS = 500
"""Spans beyond which a strip shows nothing more, since each is then thinner than a line."""


class Doing(StrEnum):
    """What a session did, in the few words that a strip tells apart."""

    WORKING = "working"
    IDLE = "idle"
    NEEDS_YOU = "needs-you"
    LIMITED = "limited"
    PAUSED = "paused"
    STALLED = "stalled"
    DOWN = "down"
    UNKNOWN = "unknown"
    """Nobody watched: the daemon was away."""


_DOING = {
    SessionState.STARTING: Doing.WORKING,
    SessionState.WORKING: Doing.WORKING,
    SessionState.COMPACTING: Doing.WORKING,
    SessionState.IDLE: Doing.IDLE,
    SessionState.NEEDS_YOU: Doing.NEEDS_YOU,
    SessionState.LIMITED: Doing.LIMITED,
    SessionState.PAUSED: Doing.PAUSED,
    SessionState.STALLED: Doing.STALLED,
    SessionState.DEAD: Doing.DOWN,
}


@dataclass(frozen=True)
class Turn:
    """From then on a session was in this state, for this evidence; None: there was no such session."""

    at: float
    state: SessionState | None
    evidence: str | None = None


@dataclass(frozen=True)
class Span:
    """What a session did from one time until another."""

    at: float
    until: float
    state: Doing
    evidence: str | None = None


def strip(
    turns: Iterable[Turn], since: float, until: float, away: Iterable[tuple[float, float]] = (), most: int = MAX_SPANS
) -> list[Span]:
    """Return what a session did between two times, in order and at most so many spans.

    `turns` are in the order of the log, with the last one before `since` first; while the daemon was `away`, nobody
    knows. There is no span for the time in which there was no session.
    """
    spans = _spans(turns, since, until)
    for begin, end in away:
        spans = [part for span in spans for part in _unknown(span, begin, end)]
    joined = _joined(spans)
    return joined if len(joined) <= most else _sampled(joined, since, until, most)


def _spans(turns: Iterable[Turn], since: float, until: float) -> list[Span]:
    """Return the time of each turn within the window; a clock that was set back makes a turn short, not negative."""
    spans: list[Span] = []
    last, begin = Turn(since, None), since
    for turn in (*turns, Turn(until, None)):
        end = min(max(turn.at, begin), until)
        if last.state is not None and end > begin:
            spans.append(Span(begin, end, _DOING[last.state], last.evidence))
        last, begin = turn, end
    return spans


def _unknown(span: Span, begin: float, end: float) -> list[Span]:
    """Return a span in which nobody knows what was done between two times."""
    first, last = max(span.at, begin), min(span.until, end)
    if first >= last:
        return [span]
    parts = (
        replace(span, until=first),
        Span(first, last, Doing.UNKNOWN, "covey was not there to see it"),
        replace(span, at=last),
    )
    return [part for part in parts if part.until > part.at]


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Return spans in which no two that touch are of one state; the first of them says why."""
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and last.state is span.state and last.until == span.at:
            joined[-1] = replace(last, until=span.until)
        else:
            joined.append(span)
    return joined


def _sampled(spans: Sequence[Span], since: float, until: float, most: int) -> list[Span]:
    """Return at most so many spans: for each part of the window, one thing that a session did in it.

    What one part leaves out it owes to the next, so that what is short but often keeps its share of the strip.
    """
    sampled: list[Span] = []
    owed: dict[Doing, float] = {}
    place, begin = 0, since
    for number in range(1, most + 1):
        border = until if number == most else since + (until - since) * number / most
        longest: dict[Doing, tuple[float, str | None]] = {}
        first, last = border, begin
        while place < len(spans) and spans[place].at < border:
            span = spans[place]
            start, last = max(span.at, begin), min(span.until, border)
            first, length = min(first, start), last - start
            owed[span.state] = owed.get(span.state, 0.0) + length
            if span.state not in longest or length > longest[span.state][0]:
                longest[span.state] = length, span.evidence
            if span.until > border:
                break
            place += 1
        begin = border
        if longest:
            state = max(longest, key=owed.__getitem__)
            owed[state] -= last - first
            sampled.append(Span(first, last, state, longest[state][1]))
    return _joined(sampled)
