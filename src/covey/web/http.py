"""HTTP as uvicorn speaks it, except that what is no HTTP is refused in our words."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from covey import __version__
from covey.app.shapes.forms import Problem

HEAD = 256 * 1024
"""Bytes that the head of a request may have: the longest query that a verb takes, each of its characters escaped."""


class Together:
    """A transport whose writes of one moment go out as one: the head and the body of an answer in one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes, with all that is written before the loop goes round."""
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


class Http(HttpToolsProtocol):
    """One connection."""

    _head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; its answers go out in one piece each."""
        super().connection_made(cast("asyncio.Transport", Together(transport, self.loop)))

    def data_received(self, data: bytes) -> None:
        """Take bytes in; a head that does not end is refused before it fills the memory."""
        super().data_received(data)
        scope = cast("dict[str, Any] | None", self.scope)  # None before the first request
        if scope is None or "path" not in scope:
            self._head += len(data)
            if self._head > HEAD and not self.transport.is_closing():
                self._refuse(b"431 Request Header Fields Too Large", "The head of the request is larger than 256 KiB.")
        else:
            self._head = 0

    def on_response_complete(self) -> None:
        """Send an answer that is whole at once: a round later its client may have hung up, and we could not tell."""
        cast("Together", self.transport).flush()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Say that this is no HTTP, and hang up."""
        self._refuse(b"400 Bad Request", "This is not a request that HTTP knows.")

    def _refuse(self, status: bytes, error: str) -> None:
        body = msgspec.json.encode(Problem(error, "GET /api/openapi.json describes every request."))
        lines = (
            b"HTTP/1.1 " + status,
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"covey-version: " + __version__.encode(),
            b"connection: close",
        )
        head = b"\r\n".join(lines) + b"\r\n\r\n"
        self.transport.write(head + body)
        self.transport.close()
