"""What a client missed while it was away, told from the log: each row as it was after each event."""

from __future__ import annotations

from dataclasses import replace

from covey.core import fold, sessions
from covey.core.events import Event, noun
from covey.store.rows import Change, decode_payload
from covey.store.tx import Tx
from covey.web.stream import TOPICS, frames

PAGE = 500
"""Events that are read at once."""
WHOLE = 1_000_000


class Missed:
    """One client's way through the log, page by page; what was folded for one page is there for the next."""

    def __init__(self, after: int, viewer: str | None = None) -> None:
        self._viewer = viewer
        self.reached = after
        self.done = False
        self._state = fold.State()
        self._begun: set[str] = set()

    def page(self, tx: Tx) -> bytes:
        """Return the next part of what was missed; `reached` and `done` say how far that is."""
        events = tx.events(after=self.reached, limit=PAGE)
        changes = [Change(event.seq, event.kind, event.subject, self._row(tx, event)) for event in events]
        made = frames(changes, self._viewer)
        self.reached = events[-1].seq if events else self.reached
        self.done = len(events) < PAGE
        return b"".join(frame.data for frame in made)

    def _row(self, tx: Tx, event: Event) -> fold.Row | None:
        """Return the row of an event's subject as it was after it, except for its counters, which are in no event."""
        kind, subject = noun(event.kind), event.subject
        if kind not in TOPICS:
            return None
        if subject not in self._begun:
            self._begun.add(subject)
            if kind != "session" or not self._begin_session(tx, subject, event.seq):
                for earlier in tx.events(subject=subject, before=event.seq, limit=WHOLE):
                    self._fold(earlier)
        self._fold(event)
        if kind == "task":
            task, now = self._state.tasks[subject], tx.task(subject)
            return replace(task, unmet=now.unmet, open_children=now.open_children) if now else task
        return self._state.sessions.get(subject) if kind == "session" else self._state.alerts.get(subject)

    def _begin_session(self, tx: Tx, name: str, seq: int) -> bool:
        """Take a session as it was before an event without reading its long story; say whether that was possible."""
        now = tx.session(name)
        if now is None or tx.task(name) or tx.events(subject=name, after=seq - 1, kind="session.registered", limit=1):
            return False
        then = replace(now, state=sessions.State.IDLE, evidence=None, updated=now.created, removed=False)
        changed = tx.events(subject=name, before=seq, kind="session.changed", limit=1, newest=True)
        self._state.sessions[name] = then
        for event in changed:
            self._fold(event)
        return True

    def _fold(self, event: Event) -> None:
        self._state.fold(
            seq=event.seq,
            at=event.time,
            actor=event.actor,
            kind=event.kind,
            subject=event.subject,
            payload=decode_payload(event.kind, event.data),
        )
