"""What changed, sent to all who follow over SSE: what was missed, then each change as it is committed.

It is encoded once for all, and never more than a client takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Container, Iterable
from dataclasses import field, replace
from functools import partial
from itertools import groupby
from typing import Any

from covey.app.board import task_verbs
from covey.app.clock import Clock
from covey.app.context import Principal
from covey.app.fleet import sessions
from covey.core import fold
from covey.core.board.tasks import Task
from covey.core.events import Event, noun
from covey.core.fleet.sessions import SessionState
from covey.core.nouns import BY_NAME, Row
from covey.core.people import alerts
from covey.errors import CoveyError, Invalid
from covey.store.bus import Bus
from covey.store.engine.rows import Change, decode_payload
from covey.store.tx import Tx
from covey.values import dataclass
from covey.web.asgi import ALWAYS, SEND_TIMEOUT_S, Headers, Receive, Scope, Send, encode, gone, push, query_of

QUEUE = 1024 * 1024
"""Bytes that may wait for one subscriber before it is cut; it then catches up from the log."""
CHUNK = 64 * 1024
"""Bytes that are copied for one subscriber at once; what waits in its queue is shared with the others."""
FAR_BEHIND = 20_000
"""Events beyond which a client that comes back gets a fresh first page instead of each change."""
HEARTBEAT = 15.0
"""Seconds between two heartbeats, which come also while other things are told."""
PAGE = 500
"""Events that are read at once."""
WHOLE = 1_000_000
_STREAM = [(b"content-type", b"text/event-stream"), *ALWAYS, (b"x-accel-buffering", b"no")]


log = logging.getLogger("covey.web")


@dataclass(frozen=True)
class Frame:
    """One server-sent event: the last number in the log that it covers, and its bytes."""

    seq: int
    data: bytes


def frame(event: str, data: object, seq: int | None = None) -> bytes:
    """Return one server-sent event as bytes."""
    head = f"event: {event}\n" if seq is None else f"id: {seq}\nevent: {event}\n"
    return head.encode() + b"data: " + encode(data) + b"\n\n"


def _volatile(event: str, data: object) -> Frame:
    """Return a frame that is not in the log, and so is newer than anything a client has seen."""
    return Frame(2**62, frame(event, data))


def frames(changes: Iterable[Change], viewer: str | None = None) -> list[Frame]:
    """Return the frames for some changes in order: each covers a run of the same topic and no change twice.

    A session (`viewer`) is told of its own alerts only, and of others no evidence.
    """
    made: list[Frame] = []
    for kind, run in groupby(changes, key=lambda change: noun(change.kind)):
        part = list(run)
        topic, last = BY_NAME[kind].topic, part[-1].seq
        if topic == "alerts":
            shown = [change for change in part if _is_told(change.row, viewer)]
            made += [Frame(change.seq, frame("alerts", _alert(change.row), change.seq)) for change in shown]
        elif topic in SENT:
            rows = [SENT[topic](change.row, viewer) for change in part if change.row is not None]
            made.append(Frame(last, frame(topic, rows, last)))
        else:
            made.append(Frame(last, frame("invalidate", {"type": topic}, last)))
    return made


SENT: dict[str, Callable[[Any, str | None], object]] = {
    "board": lambda task, viewer: task_verbs.row(task),
    "sessions": sessions.row,
    "alerts": lambda alert, viewer: _alert(alert),
}
"""The topics whose rows are sent as they are after each change; of the others, clients hear only that they changed."""


def _is_told(alert: Row | None, viewer: str | None) -> bool:
    return viewer is None or (isinstance(alert, alerts.Alert) and alert.session == viewer)


def _alert(alert: Row | None) -> dict[str, str | None]:
    assert isinstance(alert, alerts.Alert)
    return {"type": alert.type, "session": alert.session, "message": alert.message}


@dataclass(eq=False)
class Subscriber:
    """One client's queue; `cut` once it was too slow. It may be a session's, or the owner's, maybe from a browser."""

    session: str | None = None
    device: str | None = None
    looks: bool = True
    """A person looks; False for a program that waits for what is in the log."""
    queue: deque[Frame] = field(default_factory=deque)
    size: int = 0
    cut: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, frame: Frame) -> None:
        """Queue a frame, or cut a client that does not keep up."""
        if self.cut:
            return
        self.queue.append(frame)
        self.size += len(frame.data)
        if self.size > QUEUE:
            self.end()
        self.news.set()

    def end(self, last: Frame | None = None) -> None:
        """Let the client go, with a last word if there is one; it may come back and catch up."""
        self.cut = True
        self.queue.clear()
        self.size = 0
        if last is not None:
            self.queue.append(last)
            self.size = len(last.data)
        self.news.set()

    def take(self, after: int) -> bytes:
        """Return a part of what waits and is newer than `after`."""
        part: list[bytes] = []
        room = CHUNK
        while self.queue and room > 0:
            frame = self.queue.popleft()
            self.size -= len(frame.data)
            if frame.seq > after:
                part.append(frame.data)
                room -= len(frame.data)
        if not self.queue:
            self.news.clear()
        return b"".join(part)


class Hub:
    """All subscribers; lives in the event loop's thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._page_at: float | None = None
        self._subscribers: set[Subscriber] = set()
        self.greet: Callable[[Callable[[str, object], None]], None] | None = None
        """Told of each person who begins to follow, and how to tell only that one something."""
        self.counts_changed = False
        self.closed = False

    def __len__(self) -> int:
        return len(self._subscribers)

    def publish(self, changes: list[Change]) -> None:
        """Send committed changes to everyone who follows."""
        if not self._subscribers or not changes:
            return
        self.counts_changed = self.counts_changed or any(noun(change.kind) == "task" for change in changes)
        made: dict[str | None, list[Frame]] = {}
        for subscriber in self._subscribers:
            viewer = subscriber.session
            if viewer not in made:
                made[viewer] = frames(changes, viewer)
            for one in made[viewer]:
                subscriber.offer(one)

    def tell(self, event: str, data: object) -> None:
        """Send something that is not in the log to everyone who follows."""
        message = _volatile(event, data)
        for subscriber in self._subscribers:
            subscriber.offer(message)

    @property
    def people(self) -> int:
        """Return how many look for the person in charge: no sessions, and no programs."""
        return sum(subscriber.session is None and subscriber.looks for subscriber in self._subscribers)

    def see_page(self) -> None:
        """Note that a page asks something now."""
        self._page_at = self._clock.now().awake

    def page_at(self) -> float | None:
        """Return when a page, or another follower for the owner, was last connected, on the monotonic clock."""
        if self.people:
            self.see_page()
        return self._page_at

    def tell_people(self, event: str, data: object) -> None:
        """Send something that is not in the log to everyone who follows for the person in charge."""
        message = _volatile(event, data)
        for subscriber in self._subscribers:
            if subscriber.session is None:
                subscriber.offer(message)

    def join(self, session: str | None = None, device: str | None = None, *, looks: bool = True) -> Subscriber:
        """Begin to follow."""
        subscriber = Subscriber(session, device, looks)
        self._subscribers.add(subscriber)
        if self.closed:
            subscriber.end()
        elif self.greet is not None and session is None and looks:
            self.greet(lambda event, data: subscriber.offer(_volatile(event, data)))
        return subscriber

    def end_of(self, sessions: Container[str | None] = (), devices: Container[str | None] = ()) -> None:
        """Let the followers of some sessions go, or of some browsers: what they show is worthless."""
        for subscriber in self._subscribers:
            if subscriber.session in sessions or subscriber.device in devices:
                subscriber.end()

    def leave(self, subscriber: Subscriber) -> None:
        """Stop following."""
        self._subscribers.discard(subscriber)

    def close(self, goodbye: object) -> None:
        """Let everyone go, each with a word about it, and nobody in."""
        self.closed = True
        last = _volatile("goodbye", goodbye)
        for subscriber in self._subscribers:
            if not subscriber.cut:
                subscriber.end(last)


async def live(subscriber: Subscriber, after: int) -> AsyncIterator[bytes]:
    """Yield what is published from now on, and a heartbeat every so often, however much there is to tell."""
    clock = asyncio.get_running_loop().time
    beat = clock() + HEARTBEAT
    while not subscriber.cut:
        try:
            async with asyncio.timeout_at(beat):
                await subscriber.news.wait()
        except TimeoutError:
            pass
        if clock() >= beat:
            beat = clock() + HEARTBEAT
            yield frame("heartbeat", {})
        if waiting := subscriber.take(after):
            yield waiting
    if last := subscriber.take(after):
        yield last


def first_page(tx: Tx, viewer: str | None = None) -> tuple[bytes, int]:
    """Return what a new client gets: counters, sessions and the first page of the board."""
    found = tx.board(status=None, session=None, limit=200, after=None)
    known = tx.known_sessions()
    parts = (
        b"retry: 1000\n\n",
        frame("counts", tx.counts()),
        frame("sessions", [sessions.row(session, viewer) for session in known]),
        frame("board", [task_verbs.row(task) for task in found], tx.head.seq),
    )
    return b"".join(parts), tx.head.seq


def is_far_behind(tx: Tx, after: int) -> bool:
    """Say whether a client is too far behind, or ahead, to be told each change."""
    return after > tx.head.seq or tx.head.seq - after > FAR_BEHIND


class Followers:
    """Answers those who follow the stream."""

    def __init__(self, bus: Bus, hub: Hub) -> None:
        self._bus = bus
        self._hub = hub

    async def follow(self, who: Principal, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Tell whoever asks all that happens, until one of us has enough."""
        after = _after(scope, headers)
        subscriber = self._hub.join(who.session, who.device, looks=query_of(scope).get("live") != "false")
        listening = asyncio.create_task(_end_when_gone(subscriber, receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
            last = await self._catch_up(after, send, who.session)
            async for data in live(subscriber, last):
                await push(send, data)
            await send({"type": "http.response.body", "body": b""})
        except (TimeoutError, OSError):
            log.info("a follower was let go: it took nothing for %g s", SEND_TIMEOUT_S)
        except CoveyError as error:
            log.warning("a follower was let go: %s", error)  # the head is sent already; it comes back and catches up
        finally:
            listening.cancel()
            self._hub.leave(subscriber)

    async def _catch_up(self, after: int | None, send: Send, viewer: str | None) -> int:
        read = self._bus.read
        if after is None or await read(partial(is_far_behind, after=after)):
            page, head = await read(partial(first_page, viewer=viewer))
            if after is not None:
                await push(send, frame("invalidate", {"type": "board"}))
            await push(send, page)
            return head
        missed = Missed(after, viewer)
        while not missed.done:
            if data := await read(missed.page):
                await push(send, data)
        if missed.reached > after:  # the counters may have changed while nobody was there to be told
            await push(send, frame("counts", await read(lambda tx: tx.counts())))
        return missed.reached

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
        made = frames(changes, self._viewer)
        self.reached = events[-1].seq if events else self.reached
        self.done = len(events) < PAGE
        return b"".join(frame.data for frame in made)

    def _row(self, tx: Tx, event: Event) -> Row | None:
        """Return the row of an event's subject as it was after it, except for its counters, which are in no event."""
        kind, subject = noun(event.kind), event.subject
        kept = BY_NAME[kind].rows
        if kept is None or BY_NAME[kind].topic not in SENT:
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
        then = replace(now, state=SessionState.IDLE, evidence=None, updated=now.created, removed=False)
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


async def _end_when_gone(subscriber: Subscriber, receive: Receive) -> None:
    await gone(receive)
    subscriber.end()
