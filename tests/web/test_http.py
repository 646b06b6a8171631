"""One connection: what was begun is answered, whatever comes after it."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from covey.web.http import MAX_HEAD_BYTES, Http

PATIENCE = 20.0
SLOW = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\n/slow"


class Counting(Http):
    """One connection that counts what came in."""

    came = 0

    def data_received(self, data: bytes) -> None:
        """Take bytes in."""
        super().data_received(data)
        self.came += len(data)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Counting, StreamReader, StreamWriter, asyncio.Event]]:
    """Yield our end of a connection, both ways of the other, and what lets the request go on that has begun."""
    begun, go = asyncio.Event(), asyncio.Event()
    made: list[Counting] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await receive()
            begun.set()
            await go.wait()
        body = scope["path"].encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    def connect() -> Counting:
        made.append(Counting(config, ServerState(), {}))
        return made[0]

    config = uvicorn.Config(app, http=Http, ws="none", lifespan="off", log_config=None)
    config.load()
    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    async with server, asyncio.timeout(PATIENCE):
        read, write = await asyncio.open_connection(*server.sockets[0].getsockname())
        ask = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        write.write(ask % b"/quick" + ask % b"/slow")
        assert (await read.readuntil(b"/quick")).startswith(b"HTTP/1.1 200 ")
        await begun.wait()
        yield made[0], read, write, go
        write.close()


async def refused(http: Http) -> None:
    """Wait until what came in was found to be wrong."""
    while http.cycle.keep_alive and not http.transport.is_closing():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)


def test_a_request_that_waited_for_another_is_answered_though_garbage_follows() -> None:
    async def run() -> bytes:
        async with connected() as (http, read, write, go):
            write.write(b"nonsense\r\n\r\n")
            await refused(http)
            go.set()
            return await read.read()

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"/slow"), answer


def test_a_head_without_end_is_not_kept_while_the_request_before_it_is_answered() -> None:
    async def run() -> tuple[int, bytes]:
        async with connected() as (http, read, write, go):
            write.write(b"GET /" + b"x" * MAX_HEAD_BYTES)
            await refused(http)
            write.write(b"x" * 4 * MAX_HEAD_BYTES)
            while http.came < 5 * MAX_HEAD_BYTES:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0)
            go.set()
            answer = await read.readexactly(len(SLOW))
            return len(http.url), answer

    kept, answer = asyncio.run(run())
    assert kept <= 2 * MAX_HEAD_BYTES
    assert answer == SLOW
