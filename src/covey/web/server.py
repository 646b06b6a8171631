"""REST and SSE: who asks, from where, for what; then one verb is asked and its answer sent."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from covey import PROTOCOL, __version__
from covey.app.app import Answer, App
from covey.app.shapes import Problem
from covey.app.verbs import VERBS, Principal, Verb, fingerprint, read_body, read_query
from covey.core.runs import Run
from covey.errors import (
    CoveyError,
    Denied,
    Invalid,
    Misdirected,
    NotFound,
    Outdated,
    TooLarge,
    TooSlow,
    Unknown,
)
from covey.store.rows import Change
from covey.store.sqlite import SqliteStore
from covey.store.tx import Tx
from covey.store.writer import Writer
from covey.web import openapi, stream
from covey.web.missed import Missed

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY = 1024 * 1024
HOOK_BODY = 32 * 1024 * 1024
"""Bytes of what an agent sends with a hook: all that a tool was given, and all that it answered."""
HOOKS = "/hooks/"
PATIENCE = 10.0
"""Seconds within which a request's body has to be here."""
SEND_PATIENCE = 30.0
"""Seconds within which a follower has to take what it was sent."""

log = logging.getLogger("covey.web")
_encode = msgspec.json.Encoder().encode
_ALWAYS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"covey-version", __version__.encode()),
]


_USUAL = {"http": 80, "https": 443}


class Doors:
    """The names under which we may be asked, and the pages that may ask."""

    def __init__(self, names: set[str], ports: dict[int, str]) -> None:
        self._origins = {f"{scheme}://{name}:{port}" for port, scheme in ports.items() for name in names}
        usual = [scheme for port, scheme in ports.items() if port == _USUAL[scheme]]
        self._origins |= {f"{scheme}://{name}" for scheme in usual for name in names}
        self._hosts = {origin.partition("://")[2] for origin in self._origins}

    def check(self, headers: dict[bytes, bytes], server: tuple[str, int] | None, scheme: str) -> None:
        """Refuse a foreign Host or Origin; an address that the connection itself came in by is no foreigner."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        own = _own_addresses(server, scheme)
        if host not in self._hosts and host not in own:
            raise Misdirected("This is not the host that you named.", hint="covey status shows the address.")
        origin = headers.get(b"origin")
        if origin is not None:
            name = origin.decode("latin-1").lower()
            if name not in self._origins and name.removeprefix(f"{scheme}://") not in own:
                raise Denied("A page of another origin may not ask here.")


def _own_addresses(server: tuple[str, int] | None, scheme: str) -> tuple[str, ...]:
    """Return how the address is written that a connection came in by, with its port where that is not the usual one."""
    if server is None:
        return ()
    host, port = server
    name = f"[{host}]" if ":" in host else host
    return (f"{name}:{port}", name) if port == _USUAL[scheme] else (f"{name}:{port}",)


class Web:
    """The ASGI application over an App and its writer."""

    def __init__(self, app: App, owner_token: str, doors: Doors) -> None:
        self._app = app
        self._owner = owner_token.encode()
        self._doors = doors
        self._sessions: dict[str, Principal] = {}
        self._readers = ThreadPoolExecutor(4, "covey-reader")
        self._routes = _routes()
        self._openapi = Answer(200, _encode(openapi.document()))
        self.hub = stream.Hub()
        self.listeners: list[Callable[[list[Change]], None]] = []
        self.hooks: Callable[[str, Principal, bytes, asyncio.Future[None]], Awaitable[bytes]] | None = None
        """Answers what agents ask at each step of their work; the last it is told is when the agent hangs up."""
        self.writer: Writer | None = None

    # The store

    def begin(self, store: SqliteStore) -> None:
        """Begin to write, in the running loop."""
        self.writer = Writer(store, self._committed)

    def _committed(self, changes: list[Change]) -> None:
        replaced = {change.subject for change in changes if change.kind in ("session.token_minted", "session.removed")}
        replaced |= {
            run.session for change in changes if isinstance(run := change.row, Run) and run.outcome is not None
        }
        if replaced:
            self._sessions = {}
            self.hub.end_of(replaced)
        self.hub.publish(changes)
        for listen in self.listeners:
            listen(changes)

    async def write(self, job: Callable[[Tx], T], *, long: bool = False) -> T:
        """Run a job in the writer and return its value after the commit."""
        assert self.writer is not None
        value: T = await self.writer.submit(job, long=long)
        return value

    async def read(self, job: Callable[[Tx], T]) -> T:
        """Run a job that only reads, beside the writer."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._app.store.read, job)

    # One request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        try:
            self._doors.check(headers, scope.get("server"), scope["scheme"])
            who = await self._who(headers)
            if scope["path"] == "/api/events" and scope["method"] == "GET":
                await self._follow(who, headers, receive, send)
                return
            answer = await self._answer(scope, headers, who, receive)
        except CoveyError as error:
            await _send_problem(send, error)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            await _send(send, Answer(500, _encode(Problem("This is a bug in covey.", "The daemon's log has it."))))
        else:
            await _send(send, answer)

    async def _who(self, headers: dict[bytes, bytes]) -> Principal:
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not token:
            raise Unknown("A token is missing.", hint="Send Authorization: Bearer TOKEN; covey up --json prints it.")
        if hmac.compare_digest(token, self._owner):
            who = Principal()
        else:
            text = token.decode("latin-1")
            known = self._sessions  # replaced when a token dies, so that what we find now is not kept then
            found = known.get(text)
            if found is None:
                found = known[text] = await self.read(lambda tx: self._app.who(tx, text))
            who = found
        protocol = headers.get(b"covey-protocol")
        if protocol is not None and protocol != PROTOCOL.encode():
            raise Outdated(
                f"The daemon is covey {__version__}, and your covey is of another version.",
                hint="Run covey down and covey up with the version that you want.",
            )
        return who

    async def _answer(self, scope: Scope, headers: dict[bytes, bytes], who: Principal, receive: Receive) -> Answer:
        path, method = scope["path"], scope["method"]
        if path == "/api/openapi.json" and method == "GET":
            return self._openapi
        if path.startswith(HOOKS) and self.hooks is not None:
            if method != "POST":
                raise _WrongMethod(f"{method[:20]} cannot be used here.", hint="Use POST.")
            body = await _body(headers, receive, HOOK_BODY)
            gone = asyncio.ensure_future(_gone(receive))
            try:
                return Answer(200, await self.hooks(path.removeprefix(HOOKS), who, body, gone))
            finally:
                gone.cancel()
        verb, params = self._route(path, method)
        query = scope["query_string"].decode("latin-1")
        if not verb.changes:
            asked = read_query(verb, parse_qsl(query, keep_blank_values=True))
            job = self._app.job(verb, who, asked, params, key=None, request=b"")
            return await self.read(job)
        if query:
            raise Invalid("A request that changes something takes no query.", hint="Put it into the JSON body.")
        body = await _body(headers, receive)
        asked = read_body(verb, body)
        key = headers.get(b"idempotency-key")
        text = None if key is None else key.decode("latin-1")
        request = b"" if key is None else fingerprint(method, path, body)
        seen = None
        if verb.ahead is not None:
            look = await self.read(self._app.ahead(verb, who, asked, params))
            seen = None if look is None else await asyncio.to_thread(look)
        job = self._app.job(verb, who, asked, params, key=text, request=request, seen=seen)
        return await self.write(job, long=verb.long)

    def _route(self, path: str, method: str) -> tuple[Verb, dict[str, str]]:
        verbs = self._routes.get(path)
        name = ""
        if verbs is None:
            parts = path.split("/")
            if len(parts) > 3:
                name, parts[3] = parts[3], "*"
                verbs = self._routes.get("/".join(parts)) if name else None
        if verbs is None:
            raise NotFound(f"There is nothing at {path[:200]!r}.", hint="GET /api/openapi.json lists what there is.")
        verb = verbs.get(method)
        if verb is None:
            allowed = sorted(verbs) or ["GET"]
            raise _WrongMethod(f"{method[:20]} cannot be used here.", hint=f"Use {' or '.join(allowed)}.")
        return verb, dict.fromkeys(verb.params, name)

    # Following

    async def _follow(self, who: Principal, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        asked = headers.get(b"last-event-id", b"").decode("latin-1")
        if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 19):
            raise Invalid("Last-Event-ID is a number of the log.")
        subscriber = self.hub.join(who.session)
        listening = asyncio.create_task(_end_when_gone(subscriber, receive))
        try:
            start = [(b"content-type", b"text/event-stream"), *_ALWAYS[1:], (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": start})
            last = await self._catch_up(int(asked) if asked else None, send)
            async for data in stream.live(subscriber, last):
                await _push(send, data)
            await send({"type": "http.response.body", "body": b""})
        except (TimeoutError, OSError):
            log.info("a follower was let go: it took nothing for %g s", SEND_PATIENCE)
        except CoveyError as error:
            log.warning("a follower was let go: %s", error)  # the head is sent already; it comes back and catches up
        finally:
            listening.cancel()
            self.hub.leave(subscriber)

    async def _catch_up(self, after: int | None, send: Send) -> int:
        if after is None or await self.read(partial(stream.is_far_behind, after=after)):
            page, head = await self.read(stream.first_page)
            if after is not None:
                await _push(send, stream.frame("invalidate", {"type": "board"}))
            await _push(send, page)
            return head
        missed = Missed(after)
        while not missed.done:
            if data := await self.read(missed.page):
                await _push(send, data)
        return missed.reached

    async def tell_counts(self) -> None:
        """Send the counters to everyone who follows, if they have changed."""
        if self.hub.counts_changed and len(self.hub):
            self.hub.counts_changed = False
            self.hub.tell("counts", await self.read(lambda tx: tx.counts()))

    def close(self) -> None:
        """Let the readers go."""
        self._readers.shutdown()


class _WrongMethod(CoveyError):
    status = 405
    exit_code = 2


def _routes() -> dict[str, dict[str, Verb]]:
    routes: dict[str, dict[str, Verb]] = {"/api/openapi.json": {}, "/api/events": {}}
    for verb in VERBS.values():
        parts = ["*" if part.startswith("{") else part for part in verb.path.split("/")]
        routes.setdefault("/".join(parts), {})[verb.method] = verb
    return routes


async def _body(headers: dict[bytes, bytes], receive: Receive, most: int = BODY) -> bytes:
    large = TooLarge(f"The body is larger than {most // 1024**2} MiB.", hint="Send less, or in parts.")
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > most:
        raise large
    body = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            message = await receive()
            body += message.get("body", b"")
            while message.get("more_body", False):
                if len(body) > most:
                    raise large
                message = await receive()
                body += message.get("body", b"")
    except TimeoutError:
        raise TooSlow(f"The body was not here after {PATIENCE:g} s.") from None
    if message["type"] == "http.disconnect":
        raise TooSlow("The connection ended before the body did.")
    if len(body) > most:
        raise large
    return bytes(body)


async def _end_when_gone(subscriber: stream.Subscriber, receive: Receive) -> None:
    await _gone(receive)
    subscriber.end()


async def _gone(receive: Receive) -> None:
    """Return when nobody waits for the answer any more."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _push(send: Send, data: bytes) -> None:
    async with asyncio.timeout(SEND_PATIENCE):
        await send({"type": "http.response.body", "body": data, "more_body": True})


async def _send(send: Send, answer: Answer, extra: list[tuple[bytes, bytes]] | None = None) -> None:
    headers = [*_ALWAYS, (b"content-length", b"%d" % len(answer.body)), *(extra or ())]
    if answer.total is not None:
        headers.append((b"x-total-count", b"%d" % answer.total))
    if answer.status == 204:
        headers = headers[1:4]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _send_problem(send: Send, error: CoveyError) -> None:
    extra: list[tuple[bytes, bytes]] = []
    if isinstance(error, Unknown):
        extra.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, TooLarge | TooSlow | Misdirected):
        extra.append((b"connection", b"close"))
    if isinstance(error, _WrongMethod):
        extra.append((b"allow", error.hint.removeprefix("Use ").removesuffix(".").replace(" or ", ", ").encode()))
    await _send(send, Answer(error.status, _encode(Problem(error.message, error.hint))), extra)
