"""REST and SSE: who asks, from where, for what; then one verb is asked and its answer sent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from covey import proof
from covey.app.app import Answer, App, Request
from covey.app.context import Principal
from covey.app.verbs import VERBS, Verb, decode, fingerprint, read_query
from covey.errors import CoveyError, Invalid, NotFound, Unknown
from covey.store.bus import Bus
from covey.store.engine.rows import Change
from covey.web import openapi
from covey.web.addresses import Doors, host_of
from covey.web.asgi import (
    ALWAYS,
    BUG,
    Headers,
    Message,
    Receive,
    Scope,
    Send,
    WrongMethod,
    body_of,
    close_socket,
    encode,
    headers_of,
    refuse_socket,
    send_answer,
    send_problem,
)
from covey.web.http import KNOWN, Caller
from covey.web.identity import Identity, page_key
from covey.web.static import Pages
from covey.web.stream import Followers, Hub

JOIN = "/api/devices/join"
EVENTS = "/api/events"
OPENAPI = "/api/openapi.json"
_OTHERS = {proof.PATH: "GET", OPENAPI: "GET", EVENTS: "GET", JOIN: "POST"}
"""Addresses that no verb answers, each with its method."""
HookAnswers = Callable[[str, Principal, bytes, Caller], Awaitable[bytes]]
"""Answers what agents ask at each step of their work, as long as the caller is there."""
Handler = Callable[[Scope, Headers, Receive, Send], Awaitable[None]]
SocketServer = Callable[[Scope, Receive, Send, Principal], Awaitable[None]]
"""Serves one WebSocket of the owner, from accepting it on; cancelled when its browser is revoked."""

MAX_JOIN_BODY_BYTES = 4096
MAX_HOOK_BODY_BYTES = 32 * 1024 * 1024
"""Largest body of a hook: a tool's whole input and output."""
HOOKS = "/hooks/"
REVOKED = 4401
"""The code with which a socket is closed when its browser was revoked."""
GOING = 1001
"""How a socket is closed when the daemon ends."""
MAX_LOOKS = 3
"""How many looks at once git takes for who only reads: a large diff takes its time, and no hand-in waits behind it."""

log = logging.getLogger("covey.web")


class Routes:
    """The table of verbs by their addresses."""

    def __init__(self) -> None:
        self._verbs: dict[str, dict[str, Verb]] = {path: {} for path in _OTHERS}
        for verb in VERBS.values():
            parts = ["*" if part.startswith("{") else part for part in verb.path.split("/")]
            self._verbs.setdefault("/".join(parts), {})[verb.method] = verb

    def find(self, path: str, method: str) -> tuple[Verb, dict[str, str]]:
        """Return the verb at an address, and the names in it."""
        verbs = self._verbs.get(path)
        name = ""
        if verbs is None:
            parts = path.split("/")
            if len(parts) > 3:
                name, parts[3] = parts[3], "*"
                verbs = self._verbs.get("/".join(parts)) if name else None
        if verbs is None:
            raise nothing_at(path)
        verb = verbs.get(method)
        if verb is None:
            raise WrongMethod(method, sorted(verbs) or [_OTHERS[path]])
        return verb, dict.fromkeys(verb.params, name)


def nothing_at(path: str) -> NotFound:
    """Return the error for an address at which nothing is."""
    return NotFound(f"There is nothing at {path[:200]!r}.", hint="GET /api/openapi.json lists what there is.")


class Web:
    """The ASGI application over an App and its store."""

    def __init__(
        self,
        app: App,
        bus: Bus,
        hub: Hub,
        owner_token: str,
        doors: Doors,
        *,
        hooks: HookAnswers | None = None,
        sockets: SocketServer | None = None,
    ) -> None:
        self._app = app
        self._bus = bus
        self.hub = hub
        self._doors = doors
        self._hooks = hooks
        self._sockets = sockets
        self._identity = Identity(app, bus, hub, owner_token, doors)
        self._routes = Routes()
        self._pages = Pages()
        self._lookers = ThreadPoolExecutor(MAX_LOOKS, "covey-looker")
        self._open_sockets: dict[asyncio.Future[None], Principal] = {}
        self._for_anybody: dict[tuple[str, str], Handler] = {
            (method, path): self._send_page for path in self._pages.paths for method in ("GET", "HEAD")
        }
        self._for_anybody |= {("GET", proof.PATH): self._prove, ("POST", JOIN): self._join}
        """What is answered to those who do not show who they are."""
        self.followers = Followers(bus, hub)
        bus.listen(self._identity.forget_sessions, "session.token_minted", "session.removed", "run.")
        bus.listen(self._send_away, "device.revoked")
        bus.listen(hub.publish)

    def _send_away(self, changes: list[Change]) -> None:
        """Let go of browsers that were revoked; they are unknown from now on."""
        revoked = {change.subject for change in changes}
        self._identity.devices.forget(revoked)
        self.hub.end_of(devices=revoked)
        for handler, who in self._open_sockets.items():
            if who.device in revoked:
                handler.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        if scope["type"] != "http":
            return
        try:
            headers = headers_of(scope)
            self._doors.check(headers, scope.get("server"), scope["scheme"])
            if (for_anybody := self._for_anybody.get((scope["method"], scope["path"]))) is not None:
                await for_anybody(scope, headers, receive, send)
                return
            who = await self._identity.who(scope, headers)
            if KNOWN in scope:
                scope[KNOWN](who.session)
            if b"%2F" in scope.get("raw_path", b"").upper():  # in a name, where no name has one: it parts nothing
                raise nothing_at(scope["path"])
            if scope["path"] == EVENTS and scope["method"] == "GET":
                await self.followers.follow(who, scope, headers, receive, send)
                return
            answer = await self._answer(scope, headers, who, receive)
        except CoveyError as error:
            await send_problem(send, error)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            await send_problem(send, BUG)
        else:
            await send_answer(send, answer)

    # What anybody may ask

    async def _prove(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        await send_answer(send, self._identity.prove(scope, headers))

    async def _send_page(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Send a file; a request for the page at a shared address is redirected to the page's own."""
        path = scope["path"]
        is_door = path in ("/", "/index.html") and self._doors.page is not None
        if is_door and self._doors.page_at(headers, scope.get("server"), scope["scheme"]) is None:
            away = [(b"location", f"{self._doors.page}/".encode()), (b"content-length", b"0"), *ALWAYS]
            await send({"type": "http.response.start", "status": 307, "headers": away})
            await send({"type": "http.response.body", "body": b""})
            return
        sent = await self._pages.answer(path, headers)
        await send({"type": "http.response.start", "status": sent.status, "headers": sent.headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else sent.body})

    async def _join(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Give the browser that shows a code its secret."""
        self._doors.check_page(headers, scope.get("server"), scope["scheme"], scope["method"])
        body = await body_of(headers, receive, MAX_JOIN_BODY_BYTES)
        known: Principal | None = None
        if key := page_key(scope, headers):
            with contextlib.suppress(Unknown):
                known = await self._identity.devices.who(key, host_of(headers))
        client = (scope.get("client") or ("",))[0]
        entry = await self._identity.devices.join(client, body, known)
        await send_answer(send, Answer(200 if entry.secret is None else 201, encode(entry)))

    # Verbs and hooks

    async def _answer(self, scope: Scope, headers: Headers, who: Principal, receive: Receive) -> Answer:
        path, method = scope["path"], scope["method"]
        if path == OPENAPI and method == "GET":
            return await asyncio.get_running_loop().run_in_executor(self._lookers, _openapi)
        if path.startswith(HOOKS) and self._hooks is not None:
            if method != "POST":
                raise WrongMethod(method, ["POST"])
            body = await body_of(headers, receive, MAX_HOOK_BODY_BYTES)
            return Answer(200, await self._hooks(path.removeprefix(HOOKS), who, body, Caller(scope, receive)))
        verb, params = self._routes.find(path, method)
        query = scope["query_string"].decode("latin-1")
        key, sent = None, b""
        if not verb.changes:
            asked = read_query(verb, parse_qsl(query, keep_blank_values=True))
        elif query:
            raise Invalid("A request that changes something takes no query.", hint="Put it into the JSON body.")
        else:
            body = await body_of(headers, receive)
            asked = decode(verb.decoder, body or b"{}")
            if (given := headers.get(b"idempotency-key")) is not None:
                key, sent = given.decode("latin-1"), fingerprint(method, path, body)
        request = Request(verb, who, asked, params, key, sent)
        job = self._app.job(request, seen=None if verb.ahead is None else await self._look(request))
        return await (self._bus.write(job, long=verb.long) if verb.changes else self._bus.read(job))

    async def _look(self, request: Request) -> Any:
        """Return what a verb needs from outside the store; read in a thread, in no transaction."""
        look = await self._bus.read(self._app.ahead(request))
        threads = None if request.verb.changes else self._lookers
        return None if look is None else await asyncio.get_running_loop().run_in_executor(threads, look)

    # Sockets

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket of the owner; anybody else is refused before it is one."""
        accepted = False

        async def pass_on(message: Message) -> None:
            nonlocal accepted
            accepted = accepted or message["type"] == "websocket.accept"
            await send(message)

        try:
            who = await self._identity.page_owner(scope)
            if self._sockets is None:
                raise NotFound("There are no sockets here.")
            code = await self._serve(self._sockets(scope, receive, pass_on, who), who)
            if code is not None and accepted:
                await close_socket(send, code)
            elif code is not None:
                await refuse_socket(send, Unknown("This browser was sent away."))
        except CoveyError as error:
            await close_socket(send, 1008, error.message) if accepted else await refuse_socket(send, error)
        except Exception:
            log.exception("the socket %s failed", scope["path"])
            await close_socket(send, 1011) if accepted else await refuse_socket(send, BUG)

    async def _serve(self, served: Awaitable[None], who: Principal) -> int | None:
        """Serve a socket to its end, or until we end it; then return the code to close it with."""
        handler = asyncio.ensure_future(served)
        self._open_sockets[handler] = who
        try:
            await asyncio.wait({handler})
        finally:
            del self._open_sockets[handler]
            handler.cancel()
        if handler.cancelled():
            return GOING if self.hub.closed else REVOKED
        handler.result()
        return None

    def end_all(self, goodbye: object = None) -> None:
        """Close all streams and sockets, telling each why, and let nobody in any more."""
        self.hub.close(goodbye or {})
        for handler in self._open_sockets:
            handler.cancel()

    def close(self) -> None:
        """Let the threads go."""
        self._lookers.shutdown(wait=False, cancel_futures=True)


@cache
def _openapi() -> Answer:
    """Return the description of all verbs; few ask for it, and making it takes longer than all else that we begin."""
    return Answer(200, encode(openapi.document()))
