"""REST and SSE: who asks, from where, for what; then one verb is asked and its answer sent."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from covey import PROTOCOL, __version__, proof
from covey.app.app import Answer, App
from covey.app.shapes.forms import Asked, Problem
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
    Unavailable,
    Unknown,
)
from covey.store.rows import Change
from covey.store.sqlite import SqliteStore
from covey.store.tx import Tx
from covey.store.writer import Writer
from covey.web import openapi, stream
from covey.web.devices import Devices
from covey.web.doors import Doors, host_of
from covey.web.http import KNOWN
from covey.web.missed import Missed
from covey.web.pages import Pages

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY = 1024 * 1024
JOIN_BODY = 4096
HOOK_BODY = 32 * 1024 * 1024
"""Bytes of what an agent sends with a hook: all that a tool was given, and all that it answered."""
HOOKS = "/hooks/"
JOIN = "/api/devices/join"
REVOKED = 4401
"""How a socket is closed whose browser was sent away."""
GOING = 1001
"""How a socket is closed when the daemon ends."""
LOOKERS = 3
"""How many looks at once git takes for who only reads: a large diff takes its time, and no hand-in waits behind it."""
PATIENCE = 10.0
"""Seconds within which a request's body has to be here."""
SEND_PATIENCE = 30.0
"""Seconds within which a follower has to take what it was sent."""

log = logging.getLogger("covey.web")
_encode = msgspec.json.Encoder().encode
_ONCE = (b"host", b"origin", b"authorization", b"idempotency-key", b"last-event-id", b"covey-key", b"covey-protocol")
_NAME, _NONCE = re.compile(proof.NAME_FORM), re.compile(proof.NONCE_FORM)
_DOOR = re.compile(r"127\.0\.0\.1:[0-9]{1,5}")
_ALWAYS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"covey-version", __version__.encode()),
]


class Web:
    """The ASGI application over an App and its writer."""

    def __init__(self, app: App, owner_token: str, doors: Doors) -> None:
        self._app = app
        self._owner = owner_token.encode()
        self._doors = doors
        self._sessions: dict[str, Principal] = {}
        self._readers = ThreadPoolExecutor(4, "covey-reader")
        self._lookers = ThreadPoolExecutor(LOOKERS, "covey-looker")
        self._routes = _routes()
        self._pages = Pages()
        self._owner_token = owner_token.strip()
        self._devices = Devices(app, self._owner_token, self.read)
        self._openapi = Answer(200, _encode(openapi.document()))
        self.hub = stream.Hub()
        self.listeners: list[Callable[[list[Change]], None]] = []
        self.hooks: Callable[[str, Principal, bytes, asyncio.Future[None]], Awaitable[bytes]] | None = None
        """Answers what agents ask at each step of their work; the last it is told is when the agent hangs up."""
        self.sockets: Callable[[Scope, Receive, Send, Principal], Awaitable[None]] | None = None
        """Serves one WebSocket of the owner, from accepting it on; cancelled when its browser is revoked."""
        self._open: dict[asyncio.Future[None], Principal] = {}
        self._followers: dict[stream.Subscriber, Principal] = {}
        self.writer: Writer | None = None
        self._page_at: float | None = None

    def page_at(self) -> float | None:
        """Return when a page, or whoever else follows for the owner, was last there, on the clock that is awake."""
        if self.hub.people:
            self._page_at = self._awake()
        return self._page_at

    def _awake(self) -> float:
        return self._app.house.pulses.clock.now().awake

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
        if revoked := self._devices.committed(changes):
            self._end_devices(revoked)
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
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, self._app.store.read, job)
        except Unavailable:
            await self.write(lambda tx: None)  # the writer alone can keep a board whose file is gone, and say where
            raise

    # One request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        if scope["type"] != "http":
            return
        try:
            headers = _headers(scope)
            self._doors.check(headers, scope.get("server"), scope["scheme"])
            if scope["path"] in self._pages and scope["method"] in ("GET", "HEAD"):
                await self._send_page(scope, headers, send)
                return
            if scope["path"] == proof.PATH and scope["method"] == "GET":
                await _send(send, self._prove(scope, headers))
                return
            if scope["path"] == JOIN and scope["method"] == "POST":
                await self._join(scope, headers, receive, send)
                return
            who = await self._who(scope, headers)
            if KNOWN in scope:
                scope[KNOWN](who.session)
            if b"%2F" in scope.get("raw_path", b"").upper():  # in a name, where no name has one: it parts nothing
                raise _nothing_at(scope["path"])
            if scope["path"] == "/api/events" and scope["method"] == "GET":
                await self._follow(who, scope, headers, receive, send)
                return
            answer = await self._answer(scope, headers, who, receive)
        except CoveyError as error:
            await _send_problem(send, error)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            await _send(send, Answer(500, _encode(Problem("This is a bug in covey.", "The daemon's log has it."))))
        else:
            await _send(send, answer)

    async def _who(self, scope: Scope, headers: dict[bytes, bytes]) -> Principal:
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        key = None if token else _page_key(scope, headers)
        if key is not None:
            self._doors.check_page(headers, scope.get("server"), scope["scheme"], scope.get("method"))
            who = await self._devices.who(key, host_of(headers))
            self._page_at = self._awake()
            return who
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

    def _prove(self, scope: Scope, headers: dict[bytes, bytes]) -> Answer:
        """Prove to whoever asks that we know the secret from which its key was made, and were asked ourselves."""
        self._doors.check(headers, scope.get("server"), scope["scheme"], passed_on=False)
        query = _query(scope)
        name, nonce = query.get("for", ""), query.get("nonce", "")
        if not _NAME.fullmatch(name) or not _NONCE.fullmatch(nonce):
            raise Invalid("A proof is asked for with a name and a nonce.", hint="?for=owner&nonce=32 random digits")
        key, life = proof.key_of(self._owner_token, name), self._devices.life
        if door := query.get("door", ""):
            if not _DOOR.fullmatch(door) or not hmac.compare_digest(
                query.get("sign", "").encode(), proof.signed_door(key, nonce, door).encode()
            ):
                raise Unknown("This is no door of a run.", hint="Only the wrapper of a run has one.")
            self._doors.know(door)
        return Answer(200, _encode({"proof": proof.proof(key, nonce, host_of(headers), life), "life": life}))

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
            seen = await self._look(verb, who, asked, params)
            return await self.read(self._app.job(verb, who, asked, params, key=None, request=b"", seen=seen))
        if query:
            raise Invalid("A request that changes something takes no query.", hint="Put it into the JSON body.")
        body = await _body(headers, receive)
        asked = read_body(verb, body)
        key = headers.get(b"idempotency-key")
        text = None if key is None else key.decode("latin-1")
        request = b"" if key is None else fingerprint(method, path, body)
        seen = await self._look(verb, who, asked, params)
        job = self._app.job(verb, who, asked, params, key=text, request=request, seen=seen)
        return await self.write(job, long=verb.long)

    async def _look(self, verb: Verb, who: Principal, asked: Asked, params: dict[str, str]) -> Any:
        """Return what has to be looked at outside of the store, if anything: in no transaction, and in a thread."""
        if verb.ahead is None:
            return None
        look = await self.read(self._app.ahead(verb, who, asked, params))
        threads = None if verb.changes else self._lookers
        return None if look is None else await asyncio.get_running_loop().run_in_executor(threads, look)

    def _route(self, path: str, method: str) -> tuple[Verb, dict[str, str]]:
        verbs = self._routes.get(path)
        name = ""
        if verbs is None:
            parts = path.split("/")
            if len(parts) > 3:
                name, parts[3] = parts[3], "*"
                verbs = self._routes.get("/".join(parts)) if name else None
        if verbs is None:
            raise _nothing_at(path)
        verb = verbs.get(method)
        if verb is None:
            allowed = sorted(verbs) or ["POST" if path == JOIN else "GET"]
            raise _WrongMethod(f"{method[:20]} cannot be used here.", hint=f"Use {' or '.join(allowed)}.")
        return verb, dict.fromkeys(verb.params, name)

    # The page

    async def page_owner(self, scope: Scope) -> Principal:
        """Return the owner, asking through our own page or with their token; refuse anyone else, from anywhere else."""
        headers = _headers(scope)
        self._doors.check(headers, scope.get("server"), scope["scheme"])
        who = await self._who(scope, headers)
        if not who.is_owner:
            raise Denied("Only the owner may ask for this.", hint="Ask the owner: covey mail send owner ...")
        return who

    async def _send_page(self, scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        """Send a file; who asks for the page at an address that it shares with others is sent to where it lives."""
        path = scope["path"]
        is_door = path in ("/", "/index.html") and self._doors.page is not None
        if is_door and self._doors.page_at(headers, scope.get("server"), scope["scheme"]) is None:
            away = [(b"location", f"{self._doors.page}/".encode()), (b"content-length", b"0"), *_ALWAYS[1:]]
            await send({"type": "http.response.start", "status": 307, "headers": away})
            await send({"type": "http.response.body", "body": b""})
            return
        sent = await self._pages.answer(path, headers)
        await send({"type": "http.response.start", "status": sent.status, "headers": sent.headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else sent.body})

    async def _join(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        """Give the browser that shows a code its secret."""
        self._doors.check_page(headers, scope.get("server"), scope["scheme"], scope["method"])
        body = await _body(headers, receive, JOIN_BODY)
        known: Principal | None = None
        if key := _page_key(scope, headers):
            with contextlib.suppress(Unknown):
                known = await self._devices.who(key, host_of(headers))
        client = (scope.get("client") or ("",))[0]
        entry = await self._devices.join(client, body, known, self.write)
        await _send(send, Answer(200 if entry.secret is None else 201, _encode(entry)))

    # Sockets

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket of the owner; anybody else is refused before it is one."""
        accepted = False

        async def pass_on(message: Message) -> None:
            nonlocal accepted
            accepted = accepted or message["type"] == "websocket.accept"
            await send(message)

        try:
            who = await self.page_owner(scope)
            if self.sockets is None:
                raise NotFound("There are no sockets here.")
            code = await self._serve(self.sockets(scope, receive, pass_on, who), who)
            if code is not None:
                await _close(send, code) if accepted else await _refuse(send, Unknown("This browser was sent away."))
        except CoveyError as error:
            await _close(send, 1008, error.message) if accepted else await _refuse(send, error)
        except Exception:
            log.exception("the socket %s failed", scope["path"])
            bug = CoveyError("This is a bug in covey.", hint="The daemon's log has it.")
            await _close(send, 1011) if accepted else await _refuse(send, bug)

    async def _serve(self, served: Awaitable[None], who: Principal) -> int | None:
        """Serve a socket to its end, or until we end it; then return the code to close it with."""
        handler = asyncio.ensure_future(served)
        self._open[handler] = who
        try:
            await asyncio.wait({handler})
        finally:
            del self._open[handler]
            handler.cancel()
        if handler.cancelled():
            return GOING if self.hub.closed else REVOKED
        handler.result()
        return None

    def _end_devices(self, devices: set[str]) -> None:
        """End whatever some browsers have open."""
        for subscriber, who in self._followers.items():
            if who.device in devices:
                subscriber.end()
        for handler, who in self._open.items():
            if who.device in devices:
                handler.cancel()

    def end_all(self, goodbye: object = None) -> None:
        """Let everyone go who follows or has a socket open, with a word about it, and nobody in."""
        self.hub.close(goodbye or {})
        for handler in self._open:
            handler.cancel()

    # Following

    async def _follow(
        self, who: Principal, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        after = _after(scope, headers)
        subscriber = self.hub.join(who.session)
        self._followers[subscriber] = who
        listening = asyncio.create_task(_end_when_gone(subscriber, receive))
        try:
            start = [(b"content-type", b"text/event-stream"), *_ALWAYS[1:], (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": start})
            last = await self._catch_up(after, send, who.session)
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
            del self._followers[subscriber]

    async def _catch_up(self, after: int | None, send: Send, viewer: str | None) -> int:
        if after is None or await self.read(partial(stream.is_far_behind, after=after)):
            page, head = await self.read(partial(stream.first_page, viewer=viewer))
            if after is not None:
                await _push(send, stream.frame("invalidate", {"type": "board"}))
            await _push(send, page)
            return head
        missed = Missed(after, viewer)
        while not missed.done:
            if data := await self.read(missed.page):
                await _push(send, data)
        if missed.reached > after:  # the counters may have changed while nobody was there to be told
            await _push(send, stream.frame("counts", await self.read(lambda tx: tx.counts())))
        return missed.reached

    async def tell_counts(self) -> None:
        """Send the counters to everyone who follows, if they have changed."""
        if self.hub.counts_changed and len(self.hub):
            self.hub.counts_changed = False
            self.hub.tell("counts", await self.read(lambda tx: tx.counts()))

    def close(self) -> None:
        """Let the readers go."""
        self._lookers.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown()


class _WrongMethod(CoveyError):
    status = 405
    exit_code = 2


def _nothing_at(path: str) -> NotFound:
    return NotFound(f"There is nothing at {path[:200]!r}.", hint="GET /api/openapi.json lists what there is.")


def _routes() -> dict[str, dict[str, Verb]]:
    routes: dict[str, dict[str, Verb]] = {"/api/openapi.json": {}, "/api/events": {}, proof.PATH: {}, JOIN: {}}
    for verb in VERBS.values():
        parts = ["*" if part.startswith("{") else part for part in verb.path.split("/")]
        routes.setdefault("/".join(parts), {})[verb.method] = verb
    return routes


def _after(scope: Scope, headers: dict[bytes, bytes]) -> int | None:
    """Return after which event a follower goes on: what its browser says last counts, since it knows better."""
    query = _query(scope)
    if unknown := set(query) - {"after", "key"}:
        raise Invalid(f"There is no parameter {min(unknown)[:40]!r}.", hint="after and key are taken.")
    asked = headers.get(b"last-event-id", b"").decode("latin-1") or query.get("after", "")
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 19):
        raise Invalid("Last-Event-ID, or after, is a number of the log.", hint="Leave it out to begin afresh.")
    return int(asked) if asked else None


def _page_key(scope: Scope, headers: dict[bytes, bytes]) -> str | None:
    """Return the key of the page; what cannot send a header of its own, a stream or a socket, has it in its query."""
    key = headers.get(b"covey-key")
    if key is not None:
        return key.decode("latin-1")
    return _query(scope).get("key")


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by name; of what we go by there is one, or we might go by another than who let it through."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if len(headers) != len(scope["headers"]):
        names = [name for name, _ in scope["headers"]]
        for name in _ONCE:
            if names.count(name) > 1:
                raise Invalid(f"The header {name.decode().title()} stands twice.", hint="Send it once.")
    return headers


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))


async def _body(headers: dict[bytes, bytes], receive: Receive, most: int = BODY) -> bytes:
    size = f"{most // 1024**2} MiB" if most >= 1024**2 else f"{most // 1024} KiB"
    large = TooLarge(f"The body is larger than {size}.", hint="Send less, or in parts.")
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
        raise TooSlow(f"The body was not here after {PATIENCE:g} s.", hint="Try again.") from None
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


async def _refuse(send: Send, error: CoveyError) -> None:
    """Answer a WebSocket that is not let in as any other request."""
    body = _encode(Problem(error.message, error.hint))
    headers = [*_ALWAYS, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


async def _close(send: Send, code: int, reason: str = "") -> None:
    """Close a socket in good order, unless it is gone or takes nothing."""
    with contextlib.suppress(OSError, RuntimeError, TimeoutError):
        async with asyncio.timeout(SEND_PATIENCE):
            await send({"type": "websocket.close", "code": code, "reason": reason[:120]})
