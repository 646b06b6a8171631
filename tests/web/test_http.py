"""One connection: what was begun is answered, whatever comes after it."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from covey.web.http import Http

PATIENCE = 20.0


def test_a_request_that_waited_for_another_is_answered_though_garbage_follows() -> None:
    asyncio.run(_ask_twice_and_then_nonsense())


async def _ask_twice_and_then_nonsense() -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    made: list[Http] = []

    def connect() -> Http:
        made.append(Http(config, ServerState(), {}))
        return made[0]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await receive()
            begun.set()
            await go.wait()
        body = scope["path"].encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    config = uvicorn.Config(app, http=Http, ws="none", lifespan="off", log_config=None)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connect, "127.0.0.1", 0)
    async with server, asyncio.timeout(PATIENCE):
        read, write = await asyncio.open_connection(*server.sockets[0].getsockname())
        ask = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        write.write(ask % b"/quick" + ask % b"/slow")
        first = await read.readuntil(b"/quick")
        await begun.wait()
        write.write(b"nonsense\r\n\r\n")
        while made[0].cycle.keep_alive and not made[0].transport.is_closing():  # noqa: ASYNC110 - until that is seen
            await asyncio.sleep(0)
        go.set()
        second = await read.read()
        write.close()
    assert first.startswith(b"HTTP/1.1 200 ")
    assert second.startswith(b"HTTP/1.1 200 ") and second.endswith(b"/slow"), second
