"""HTTP as uvicorn speaks it, except that what is not HTTP is refused in our words.

uvicorn has no public way to do that: `Http` uses private methods of its protocol, so pyproject.toml allows one series
of uvicorn only. For the next one, compare `_get_upgrade`, `_should_upgrade`, `_start_asgi_task` and
`_unset_keepalive_if_required` with what is relied on here, and run tests/web.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Any, cast

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from covey import __version__
from covey.app.shapes.forms import Problem
from covey.web.asgi import Receive, Scope, gone

MAX_HEAD_BYTES = 256 * 1024
"""How large the head of a request may be: the longest query that a verb takes, each of its characters escaped."""
KEEP_ALIVE_S = 75
"""Seconds for which a connection may be open on which nothing is asked."""
HEAD_TIMEOUT_S = 10.0
"""Seconds within which the head of a request must arrive once it has begun."""


KNOWN = "covey.known"
"""Under this name a request carries what is called when its client has shown who it is."""
HUNG_UP = "covey.hung_up"
"""Under this name a request carries what says whether its client has hung up."""


class Together:
    """A transport that joins the writes of one loop turn: head and body of an answer go out in one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self.is_closing = transport.is_closing  # asked several times for each request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes, together with everything written in the same turn of the loop."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def flush(self) -> None:
        """Send what was written."""
        if self._parts:
            data, self._parts = b"".join(self._parts), []
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Send what was written, then hang up."""
        self.flush()
        self._transport.close()


class Crowd:
    """The connections of clients that have not shown yet who they are, or of one session: they leave room for others.

    Without a bound anybody who can reach the port opens so many that no file can be opened any more, and nobody is let
    in. The address with the most of them loses its oldest, also in the middle of a request: who has something to show
    does so at once. The owner stays. A session has a crowd of its own, so that one cannot keep out the rest.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._waiting: dict[str, dict[Http, None]] = {}

    def join(self, client: Http) -> None:
        """Take in a client, and send away another if there are too many."""
        self._waiting.setdefault(client.address, {})[client] = None
        if sum(map(len, self._waiting.values())) > self.most:
            crowded = max(self._waiting.values(), key=len)
            oldest = next(iter(crowded))
            self.leave(oldest)
            oldest.hang_up()

    def leave(self, client: Http) -> None:
        """Forget a client that has gone or has since identified itself."""
        beside = self._waiting.get(client.address, {})
        beside.pop(client, None)
        if not beside:
            self._waiting.pop(client.address, None)


CROWD = Crowd(256)
"""All of this process; the daemon sets how many there may be by how many files it may open."""
SESSIONS_SHARE = 4
"""How many times more connections strangers may have than one session."""
_SESSIONS: dict[str, Crowd] = {}


class WebSocket(asyncio.Protocol):
    """uvicorn's protocol of a WebSocket, imported with the first: earlier, it would add a tenth to a daemon's start."""

    def __new__(cls, *given: Any, **named: Any) -> Any:
        """Return one of uvicorn's."""
        from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

        return WebSocketsSansIOProtocol(*given, **named)


class Http(HttpToolsProtocol):
    """One connection."""

    _head = 0
    _late: asyncio.TimerHandle | None = None
    _answered: RequestResponseCycle | None = None
    """The request that is being answered, or was answered last."""
    _fresh: RequestResponseCycle | None = None
    """The one whose answering was asked for in this moment, and so has not begun."""
    _is_refused = False
    """Nothing more is read here; what was asked before is still answered."""
    _crowd: Crowd | None = None
    """Those with whom it shares room; None for the owner."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; its answers go out in one piece each, and one that never asks is closed in its time."""
        super().connection_made(cast("asyncio.Transport", Together(transport, self.loop)))
        self._move(CROWD)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._move(None)
        self._head_is_here()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    @property
    def address(self) -> str:
        """Return the address of the client, "" if it has none."""
        return self.client[0] if self.client else ""

    def _show(self, session: str | None) -> None:
        """Note who this connection belongs to: a session or the owner."""
        if session is not None and session not in _SESSIONS:
            _SESSIONS[session] = Crowd(max(CROWD.most // SESSIONS_SHARE, 1))
        crowd = None if session is None else _SESSIONS[session]
        if crowd is not self._crowd:  # only the first request of a connection brings it elsewhere
            self._move(crowd)

    def _move(self, crowd: Crowd | None) -> None:
        if self._crowd is not None:
            self._crowd.leave(self)
        self._crowd = crowd
        if crowd is not None:
            crowd.join(self)

    def has_hung_up(self) -> bool:
        """Say whether the client is gone, asking the kernel: the loop may not have gone round since it hung up."""
        socket = None if self.transport.is_closing() else self.transport.get_extra_info("socket")
        if socket is None or socket.fileno() < 0:
            return True
        look = select.poll()
        look.register(socket.fileno(), getattr(select, "POLLRDHUP", select.POLLHUP))  # the first is Linux's own
        return bool(look.poll(0))

    def hang_up(self) -> None:
        """End a connection at once; nobody waits for its client to take the rest of an answer."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes in; a head without an end is refused before it fills the memory or waits forever."""
        if self._is_refused:
            return
        self._unset_keepalive_if_required()
        self._head += len(data)
        rest: bytes | None = data
        while rest is not None:
            rest = self._take(rest)
        self._fresh = None
        if self not in self.connections or self.transport.is_closing():
            return
        scope = cast("dict[str, Any] | None", self.scope)  # None before the first request
        if scope is not None and "path" in scope:
            self._head_is_here()
        elif self._head > MAX_HEAD_BYTES:
            error = f"The head of the request is larger than {MAX_HEAD_BYTES // 1024} KiB."
            self._refuse(b"431 Request Header Fields Too Large", error)
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_TIMEOUT_S, self._head_is_late)

    def _take(self, data: bytes) -> bytes | None:
        """Feed bytes to the parser; return those that a fresh parser has to start with, if any."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("")
        except httptools.HttpParserUpgrade as upgrade:
            if self._is_declined():
                return self._without_upgrade() + data[upgrade.args[0] :]
            if self._should_upgrade():
                self._head_is_here()
                self._move(None)
                self.handle_websocket_upgrade()
            else:  # CONNECT, which is answered, and then nothing more can be said here
                self.cycle.keep_alive = False
        return None

    def _without_upgrade(self) -> bytes:
        """Return the head of a request that offers another protocol, as some clients always do, without its offer."""
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def on_headers_complete(self) -> None:
        """Begin to answer, unless the request comes again without an offer that we cannot take."""
        if not self._is_declined():
            super().on_headers_complete()
            cast("dict[str, Any]", self.scope).update({KNOWN: self._show, HUNG_UP: self.has_hung_up})

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        if not self._is_declined():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Send an answer that is whole at once: a round later its client may have hung up, and we could not tell."""
        cast("Together", self.transport).flush()
        super().on_response_complete()
        self._fresh = None  # what has waited for this answer begins before more can come in

    def send_400_response(self, msg: str) -> None:
        """Say that this is not HTTP, and hang up."""
        self._refuse(b"400 Bad Request", "This is not a valid HTTP request.")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Callable[..., Any]) -> None:
        self._answered = self._fresh = cycle
        super()._start_asgi_task(cycle, app)

    def _is_declined(self) -> bool:
        return bool(self.parser.should_upgrade()) and self._get_upgrade() is not None and not self._should_upgrade()

    def _head_is_here(self) -> None:
        self._head = 0
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _head_is_late(self) -> None:
        self._late = None
        self._refuse(b"408 Request Timeout", f"The head of the request was not here after {HEAD_TIMEOUT_S:g} s.")

    def _refuse(self, status: bytes, error: str) -> None:
        """Refuse what came in, and hang up when what was asked before it is answered.

        What came at the same moment is not done: what seems to be another request is often a body without its length,
        and whoever reads that it was refused must be able to rely on it.
        """
        self._is_refused = True
        self._head_is_here()
        self.pipeline.clear()
        before = self._answered
        if before is not None and not before.response_complete:
            if before.response_started or not (before is self._fresh or before.more_body):
                before.keep_alive = False
                return
            before.disconnected = True
            before.message_event.set()
        if self.transport.is_closing():
            return
        body = msgspec.json.encode(Problem(error, "GET /api/openapi.json describes every request."))
        lines = (
            b"HTTP/1.1 " + status,
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"covey-version: " + __version__.encode(),
            b"connection: close",
        )
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()


class Caller:
    """Who waits for the answer to one request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._has_hung_up: Callable[[], bool] | None = scope.get(HUNG_UP)
        self._receive = receive

    def is_there(self) -> bool:
        """Say whether it has not hung up, as far as its connection tells."""
        return self._has_hung_up is None or not self._has_hung_up()

    async def left(self) -> None:
        """Return when it hangs up."""
        await gone(self._receive)
