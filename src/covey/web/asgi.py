"""Requests as ASGI hands them to us, and answers as it takes them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from covey import __version__
from covey.app.app import Answer
from covey.app.shapes.forms import Problem
from covey.errors import CoveyError, Invalid, Misdirected, TooLarge, TooSlow, Unknown

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = dict[bytes, bytes]

MAX_BODY_BYTES = 1024 * 1024
"""How large the body of a request may be, unless it is said otherwise."""
BODY_TIMEOUT_S = 10.0
"""Seconds within which the body of a request must arrive."""
SEND_TIMEOUT_S = 30.0
"""Seconds within which a follower has to take what it was sent."""

encode = msgspec.json.Encoder().encode
BUG = CoveyError("This is a bug in covey.", hint="The daemon's log has it.")
_ONCE = (b"host", b"origin", b"authorization", b"idempotency-key", b"last-event-id", b"covey-key", b"covey-protocol")
ALWAYS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"covey-version", __version__.encode()),
]
"""Headers of every answer."""
_JSON = (b"content-type", b"application/json")


class WrongMethod(CoveyError):
    """Something is there, but it is asked for with another method."""

    status = 405
    exit_code = 2

    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(f"{method[:20]} cannot be used here.", hint=f"Use {' or '.join(allowed)}.")
        self.allowed = allowed


# Reading a request


def headers_of(scope: Scope) -> Headers:
    """Return the headers by name; refuse a security header that stands twice: a proxy may have checked the other."""
    headers: Headers = dict(scope["headers"])
    if len(headers) != len(scope["headers"]):
        names = [name for name, _ in scope["headers"]]
        for name in _ONCE:
            if names.count(name) > 1:
                raise Invalid(f"The header {name.decode().title()} is given twice.", hint="Send it once.")
    return headers


def query_of(scope: Scope) -> dict[str, str]:
    """Return the query; of a name that stands twice, the last value."""
    return dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))


async def body_of(headers: Headers, receive: Receive, limit: int = MAX_BODY_BYTES) -> bytes:
    """Return the body; refuse one that is too large or does not arrive in time."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            message = await receive()
            body += message.get("body", b"")
            while message.get("more_body", False):
                if len(body) > limit:
                    raise _too_large(limit)
                message = await receive()
                body += message.get("body", b"")
    except TimeoutError:
        raise TooSlow(f"The body was not here after {BODY_TIMEOUT_S:g} s.", hint="Try again.") from None
    if message["type"] == "http.disconnect":
        raise TooSlow("The connection ended before the body did.")
    if len(body) > limit:
        raise _too_large(limit)
    return bytes(body)


def _too_large(limit: int) -> TooLarge:
    size = f"{limit // 1024**2} MiB" if limit >= 1024**2 else f"{limit // 1024} KiB"
    return TooLarge(f"The body is larger than {size}.", hint="Send less, or in parts.")


async def gone(receive: Receive) -> None:
    """Return when nobody waits for the answer any more."""
    while (await receive())["type"] != "http.disconnect":
        pass


# Answering


async def send_answer(send: Send, answer: Answer, extra: list[tuple[bytes, bytes]] | None = None) -> None:
    """Send an answer whole."""
    if answer.status == 204:
        headers = ALWAYS
    else:
        headers = [_JSON, *ALWAYS, (b"content-length", b"%d" % len(answer.body)), *(extra or ())]
        if answer.total is not None:
            headers.append((b"x-total-count", b"%d" % answer.total))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def send_problem(send: Send, error: CoveyError) -> None:
    """Send why a request was refused."""
    extra: list[tuple[bytes, bytes]] = []
    if isinstance(error, Unknown):
        extra.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, TooLarge | TooSlow | Misdirected):
        extra.append((b"connection", b"close"))
    if isinstance(error, WrongMethod):
        extra.append((b"allow", ", ".join(error.allowed).encode()))
    await send_answer(send, Answer(error.status, encode(Problem(error.message, error.hint))), extra)


async def push(send: Send, data: bytes) -> None:
    """Send a part of an answer that goes on; give up on whoever does not take it."""
    async with asyncio.timeout(SEND_TIMEOUT_S):
        await send({"type": "http.response.body", "body": data, "more_body": True})


async def refuse_socket(send: Send, error: CoveyError) -> None:
    """Refuse a WebSocket with the same answer that any other request gets."""
    body = encode(Problem(error.message, error.hint))
    headers = [_JSON, *ALWAYS, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


async def close_socket(send: Send, code: int, reason: str = "") -> None:
    """Close a socket in good order, unless it is gone or takes nothing."""
    with contextlib.suppress(OSError, RuntimeError, TimeoutError):
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await send({"type": "websocket.close", "code": code, "reason": reason[:120]})
