"""The load: many HTTP clients in one cheap process of its own; what to do comes in on stdin as JSON.

Requests are bytes made beforehand, and an answer is kept whole and looked at after the run, so that what is measured
is the daemon and not this program.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any, TypeVar, cast

import uvloop

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_TASK = re.compile(rb'"id":"([A-Z0-9]+-\d+)"')
Spec = dict[str, Any]
P = TypeVar("P", bound=asyncio.Protocol)


class Client(asyncio.Protocol):
    """One kept-alive connection that keeps each answer, and then does what `go_on` says."""

    def __init__(self, go_on: Callable[[int], None] = lambda status: None) -> None:
        self.go_on = go_on
        self.answers: list[tuple[float, int, bytes]] = []
        self.sent = 0.0
        self.lost = asyncio.get_running_loop().create_future()
        self._part = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be ready to ask."""
        self.transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes) -> None:
        """Send a request."""
        self.sent = perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Keep a whole answer, then go on."""
        if self._part:
            data = self._part + data
        head = data.find(b"\r\n\r\n")
        length = _LENGTH.search(data, 0, head) if head > 0 else None
        if head < 0 or (length and len(data) < head + 4 + int(length[1])):
            self._part = data
            return
        self._part = b""
        status = int(data[9:12])
        self.answers.append((perf_counter() - self.sent, status, data))
        self.go_on(status)

    def connection_lost(self, error: Exception | None) -> None:
        """Say so to whoever waits."""
        if not self.lost.done():
            self.lost.set_result(None)

    async def one(self, request: bytes) -> bytes:
        """Ask once and return the body of the answer."""
        done = asyncio.get_running_loop().create_future()
        self.go_on = done.set_result
        self.ask(request)
        await done
        return self.answers[-1][2].partition(b"\r\n\r\n")[2]


class Follower(asyncio.Protocol):
    """One connection that follows /api/events and keeps what came, and when."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.came: list[tuple[float, bytes]] = []
        self.begun = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask once."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Keep it; it is looked at after the run."""
        self.came.append((perf_counter(), data))
        if not self.begun.is_set() and b"event: board" in data:
            self.begun.set()


def request(spec: Spec, line: str, body: bytes = b"", key: str = "") -> bytes:
    """Return one request as bytes."""
    head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{spec['port']}\r\nAuthorization: Bearer {spec['token']}\r\n"
    if key:
        head += f"Idempotency-Key: {key}\r\n"
    if not line.startswith("GET"):
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def _connect(spec: Spec, protocol: P) -> P:
    await asyncio.get_running_loop().create_connection(lambda: protocol, "127.0.0.1", spec["port"])
    return protocol


async def _race(spec: Spec, plans: list[Iterator[bytes]], stop_at: int = 0) -> tuple[float, list[Client]]:
    """Let one client per plan ask at the same time; return the seconds and the clients."""
    racers = [(await _connect(spec, Client()), plan) for plan in plans]
    for client, plan in racers:
        client.go_on = partial(_go_on, client, plan, stop_at)
    began = perf_counter()
    for client, _ in racers:
        client.go_on(0)
    await asyncio.gather(*(client.lost for client, _ in racers))
    return perf_counter() - began, [client for client, _ in racers]


def _go_on(client: Client, plan: Iterator[bytes], stop_at: int, status: int) -> None:
    request = next(plan, None) if not status or status != stop_at else None
    if request is None:
        client.transport.close()
    else:
        client.ask(request)


def _told(seconds: float, clients: list[Client]) -> Spec:
    answers = [answer for client in clients for answer in client.answers]
    statuses: dict[str, int] = {}
    for _, status, _ in answers:
        statuses[str(status)] = statuses.get(str(status), 0) + 1
    return {"seconds": seconds, "statuses": statuses, "times": [took for took, _, _ in answers]}


async def claims(spec: Spec) -> Spec:
    """Claim the board dry."""

    def plan(number: int) -> Iterator[bytes]:
        body = json.dumps({"session": f"worker{number}"}).encode()
        whole = request(spec, "POST /api/claim", body, "KEY")
        before, after = whole.split(b"KEY")
        return (b"%bw%d-%d%b" % (before, number, i, after) for i in count())

    seconds, clients = await _race(spec, [plan(i) for i in range(spec["clients"])], stop_at=204)
    told = _told(seconds, clients)
    told["times"] = [took for client in clients for took, status, _ in client.answers if status == 200]
    found = [
        [_TASK.search(data)[1].decode() for _, status, data in client.answers if status == 200]  # type: ignore[index]
        for client in clients
    ]
    return told | {"tasks": found}


async def leases(spec: Spec) -> Spec:
    """Take leases on folders that nobody has."""

    def plan(number: int) -> Iterator[bytes]:
        mine = range(number, spec["leases"], spec["clients"])
        bodies = (json.dumps({"session": f"worker{number}", "resources": [f"src/mod{i}/**"]}).encode() for i in mine)
        made = [request(spec, "POST /api/leases", body, f"l{number}-{i}") for i, body in enumerate(bodies)]
        return iter(made)

    return _told(*await _race(spec, [plan(i) for i in range(spec["clients"])]))


async def repeat(spec: Spec) -> Spec:
    """Ask the same again and again."""
    body = json.dumps(spec["body"]).encode() if "body" in spec else b""
    whole = request(spec, spec["line"], body)
    plans = [iter([whole] * (spec["count"] // spec["clients"])) for _ in range(spec["clients"])]
    seconds, clients = await _race(spec, plans)
    return _told(seconds, clients) | {"bytes": len(clients[0].answers[-1][2])}


async def imports(spec: Spec) -> Spec:
    """Import many tasks with each request."""
    made = []
    for number in range(spec["requests"]):
        keys = (f"import-{number}-{i}" for i in range(spec["tasks"]))
        body = json.dumps({"tasks": [{"key": key, "title": f"Task {key}"} for key in keys]}).encode()
        made.append(request(spec, "POST /api/board/import", body, f"i-{number}"))
    seconds, clients = await _race(spec, [iter(made)])
    return _told(seconds, clients) | {"tasks": spec["requests"] * spec["tasks"]}


async def tail(spec: Spec) -> Spec:
    """Read the whole log, page after page."""
    client = await _connect(spec, Client())
    last, events = 0, 0
    began = perf_counter()
    while page := json.loads(await client.one(request(spec, f"GET /api/log?after={last}&limit=1000"))):
        last, events = page[-1]["seq"], events + len(page)
    seconds = perf_counter() - began
    return {"seconds": seconds, "events": events, "times": [took for took, _, _ in client.answers]}


async def follow(spec: Spec) -> Spec:
    """Follow the board with many clients while one task after another is claimed."""
    followers = await _followers(spec)
    before = [len(follower.came) for follower in followers]
    sent: dict[bytes, float] = {}
    client = await _connect(spec, Client())
    for task in spec["tasks"]:
        body = b'{"session":"poster"}'
        await client.one(request(spec, f"POST /api/board/{task}/claim", body, f"f-{task}"))
        sent[task.encode()] = client.sent
        await asyncio.sleep(spec["pace"])
    await asyncio.sleep(0.5)
    return _seen(followers, before, sent)


async def _followers(spec: Spec) -> list[Follower]:
    """Begin to follow with many clients, and wait until each has its first page."""
    whole = request(spec, "GET /api/events")
    followers = [await _connect(spec, Follower(whole)) for _ in range(spec["followers"])]
    await asyncio.gather(*(follower.begun.wait() for follower in followers))
    await asyncio.sleep(0.5)
    return followers


def _seen(followers: list[Follower], before: list[int], sent: dict[bytes, float]) -> Spec:
    times: list[float] = []
    size, missed = 0, 0
    for follower, start in zip(followers, before, strict=True):
        found: set[bytes] = set()
        for at, data in follower.came[start:]:
            size += len(data)
            for task in _TASK.findall(data):
                if task in sent and task not in found:
                    found.add(task)
                    times.append(at - sent[task])
        missed += len(sent) - len(found)
        follower.transport.close()
    return {"times": times, "missed": missed, "bytes": size / len(followers) / len(sent)}


async def hold(spec: Spec) -> Spec:
    """Follow the board with many clients until stdin ends; say when all have their first page."""
    await _followers(spec)
    print("following", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    return {}


JOBS: dict[str, Callable[[Spec], Any]] = {
    job.__name__: job for job in (claims, leases, repeat, imports, tail, follow, hold)
}


def main() -> None:
    """Do what stdin says and print what was measured."""
    spec: Spec = json.loads(sys.stdin.readline())
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answer = runner.run(JOBS[spec["job"]](spec))
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
