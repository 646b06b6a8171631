"""Following the log over SSE: what was missed, then each change as it is committed."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial

from covey.app.context import Principal
from covey.core import fold
from covey.core.board.tasks import Task
from covey.core.events import Event, noun
from covey.core.fleet import sessions
from covey.core.nouns import BY_NAME, Row
from covey.errors import CoveyError, Invalid
from covey.store.bus import Bus
from covey.store.engine.rows import Change, decode_payload
from covey.store.tx import Tx
from covey.web import stream
from covey.web.asgi import ALWAYS, SEND_TIMEOUT_S, Headers, Receive, Scope, Send, gone, push, query_of

log = logging.getLogger("covey.web")
PAGE = 500
"""Events that are read at once."""
WHOLE = 1_000_000
_START = [(b"content-type", b"text/event-stream"), *ALWAYS, (b"x-accel-buffering", b"no")]


class Followers:
    """All followers of the stream, and on whose behalf each follows."""

    def __init__(self, bus: Bus, hub: stream.Hub) -> None:
        self._bus = bus
        self._hub = hub
        self._who: dict[stream.Subscriber, Principal] = {}

    async def follow(self, who: Principal, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Tell whoever asks all that happens, until one of us has enough."""
        after = _after(scope, headers)
        subscriber = self._hub.join(who.session, looks=query_of(scope).get("live") != "false")
        self._who[subscriber] = who
        listening = asyncio.create_task(_end_when_gone(subscriber, receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _START})
            last = await self._catch_up(after, send, who.session)
            async for data in stream.live(subscriber, last):
                await push(send, data)
            await send({"type": "http.response.body", "body": b""})
        except (TimeoutError, OSError):
            log.info("a follower was let go: it took nothing for %g s", SEND_TIMEOUT_S)
        except CoveyError as error:
            log.warning("a follower was let go: %s", error)  # the head is sent already; it comes back and catches up
        finally:
            listening.cancel()
            self._hub.leave(subscriber)
            del self._who[subscriber]

    async def _catch_up(self, after: int | None, send: Send, viewer: str | None) -> int:
        read = self._bus.read
        if after is None or await read(partial(stream.is_far_behind, after=after)):
            page, head = await read(partial(stream.first_page, viewer=viewer))
            if after is not None:
                await push(send, stream.frame("invalidate", {"type": "board"}))
            await push(send, page)
            return head
        missed = Missed(after, viewer)
        while not missed.done:
            if data := await read(missed.page):
                await push(send, data)
        if missed.reached > after:  # the counters may have changed while nobody was there to be told
            await push(send, stream.frame("counts", await read(lambda tx: tx.counts())))
        return missed.reached

    def end_devices(self, devices: set[str]) -> None:
        """Let those go who follow from some browsers."""
        for subscriber, who in self._who.items():
            if who.device in devices:
                subscriber.end()

    async def tell_counts(self) -> None:
        """Send the counters to everyone who follows, if they have changed."""
        if self._hub.counts_changed and len(self._hub):
            self._hub.counts_changed = False
            self._hub.tell("counts", await self._bus.read(lambda tx: tx.counts()))


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
        made = stream.frames(changes, self._viewer)
        self.reached = events[-1].seq if events else self.reached
        self.done = len(events) < PAGE
        return b"".join(frame.data for frame in made)

    def _row(self, tx: Tx, event: Event) -> Row | None:
        """Return the row of an event's subject as it was after it, except for its counters, which are in no event."""
        kind, subject = noun(event.kind), event.subject
        kept = BY_NAME[kind].rows
        if kept is None or BY_NAME[kind].topic not in stream.SENT:
            return None
        if subject not in self._begun:
            self._begun.add(subject)
            if kind != "session" or not self._begin_session(tx, subject, event.seq):
                for earlier in tx.events(subject=subject, before=event.seq, limit=WHOLE):
                    self._fold(earlier)
        self._fold(event)
        row: Row | None = self._state.tables[kept.name].get(subject)
        now = tx.task(subject) if isinstance(row, Task) else None
        return replace(row, unmet=now.unmet, open_children=now.open_children) if now and isinstance(row, Task) else row

    def _begin_session(self, tx: Tx, name: str, seq: int) -> bool:
        """Take a session as it was before an event without reading its long story; say whether that was possible."""
        now = tx.session(name)
        if now is None or tx.task(name) or tx.events(subject=name, after=seq - 1, kind="session.registered", limit=1):
            return False
        then = replace(now, state=sessions.SessionState.IDLE, evidence=None, updated=now.created, removed=False)
        changed = tx.events(subject=name, before=seq, kind="session.changed", limit=1, newest=True)
        self._state.tables["sessions"][name] = then
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


def _after(scope: Scope, headers: Headers) -> int | None:
    """Return after which event a follower goes on: what its browser says last counts, since it knows better."""
    query = query_of(scope)
    if unknown := set(query) - {"after", "key", "live"}:
        raise Invalid(f"There is no parameter {min(unknown)[:40]!r}.", hint="after, key and live are taken.")
    if query.get("live", "true") not in ("true", "false"):
        raise Invalid("live is true or false.", hint="Leave it out to be told this moment too.")
    asked = headers.get(b"last-event-id", b"").decode("latin-1") or query.get("after", "")
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 19):
        raise Invalid("Last-Event-ID, or after, is a number of the log.", hint="Leave it out to begin afresh.")
    return int(asked) if asked else None


async def _end_when_gone(subscriber: stream.Subscriber, receive: Receive) -> None:
    await gone(receive)
    subscriber.end()
