"""Real daemons on real repositories, and clients that ask them over real sockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from covey.app.app import App
from covey.app.clock import Clock
from covey.app.context import Context
from covey.app.fleet.heartbeats import Pulses
from covey.config import Config
from covey.git import project as projects
from covey.git.project import Project
from covey.store.bus import Bus
from covey.store.engine import audit
from covey.store.engine.sqlite import SqliteStore
from covey.web.addresses import Doors
from covey.web.server import Web
from covey.web.stream import Hub
from tests.worlds.forked import PLAIN_DAEMON, Forked

PATIENCE = 60.0
"""Seconds after which a condition that never comes true is a failure."""

Gone = (OSError, http.client.HTTPException)
"""What a client meets when its daemon is killed."""


def wait_until(condition: Callable[[], bool], what: str, *, patience: float = PATIENCE) -> None:
    """Wait for a condition, and fail when it never comes true.

    It looks less often the longer it waits: who looks all the time keeps busy what it waits for.
    """
    begun = time.monotonic()
    while not condition():
        waited = time.monotonic() - begun
        if waited > patience:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(min(0.005 + waited / 50, 0.05))


def free_port(*hosts: str) -> int:
    """Return a port that is free now, and is given to no outgoing connection before it is used."""
    for port in random.sample(range(10_000, 20_000), 50):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for host in hosts or ("127.0.0.1",):
                family = socket.AF_INET6 if ":" in host else socket.AF_INET
                stack.enter_context(socket.create_server((host, port), family=family))
            return port
    raise AssertionError("no port is free")


def make_repository(folder: Path, settings: str = "") -> Project:
    """Make a git repository that covey looks after."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    if settings:
        (folder / "covey.toml").write_text(settings)
    project = projects.find(folder)
    project.state.mkdir()
    project.owner_token.write_text(secrets.token_urlsafe(32))
    project.owner_token.chmod(0o600)
    SqliteStore(project.database, project=project.name).close()
    return project


@dataclass(frozen=True)
class Reply:
    """What the daemon answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as plain data."""
        return json.loads(self.body)

    def good(self, *statuses: int) -> Any:
        """Return the body of an answer that must be good."""
        expected = statuses or (200, 201)
        assert self.status in expected, f"{self.status}: {self.body[:500]!r}"
        return self.json if self.body else None


class Client:
    """One connection that stays open from question to question."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """Send one request and return the answer; bytes are sent as they are, all else as JSON."""
        sent = {"Authorization": f"Bearer {token or self.token}"}
        if key is not None:
            sent["Idempotency-Key"] = key
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            self._connection.request(method, path, body, sent | (headers or {}))
            response = self._connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        except Gone:
            self._connection.close()
            raise

    def get(self, path: str) -> Any:
        """Return what must be there."""
        return self.ask("GET", path).good()

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        """Return the answer to a change that must be taken."""
        return self.ask("POST", path, body or {}, **more).good()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Daemon:
    """A daemon that the test started, and always ends.

    It is forked from a process that has loaded it, unless it has constants of its own or is `plain`: then Python
    starts it, as it does for users.
    """

    def __init__(
        self, project: Project, *words: str, constants: Mapping[str, float] | None = None, plain: bool = False
    ) -> None:
        self.project = project
        self._constants = constants or {}
        self._plain = plain
        self.token = project.owner_token.read_text().strip()
        self._words = words
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.port = 0

    def start(self) -> Daemon:
        """Start it and wait until it answers."""
        self.process = process = self._begin(str(self.project.root), *self._words)
        wait_until(lambda: process.poll() is not None or self._said(process.pid), "the daemon's first word")
        if process.poll() is not None:
            raise AssertionError(f"the daemon ended: {process.communicate()[1].decode()}")
        return self

    def _begin(self, *words: str) -> subprocess.Popen[bytes] | Forked:
        if not self._constants and not self._plain:
            return Forked("covey.daemon", words, cwd=Path.cwd(), env=os.environ)
        module = ["-c", _with(self._constants)] if self._constants else PLAIN_DAEMON
        return subprocess.Popen([sys.executable, *module, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def _said(self, pid: int) -> bool:
        try:
            said = json.loads(self.project.daemon_file.read_text())
        except (OSError, ValueError):
            return False
        self.port = int(said["port"])
        return bool(said["pid"] == pid)

    @property
    def pid(self) -> int:
        """Return the process."""
        assert self.process is not None
        return self.process.pid

    def client(self, token: str | None = None) -> Client:
        """Return a connection of its own."""
        return Client(self.port, token or self.token)

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        """Ask once, on a connection of its own."""
        with self.client() as client:
            return client.ask(method, path, body, **more)

    def seq(self) -> int:
        """Return the number of the last event."""
        return int(self.ask("GET", "/api/status").good()["seq"])

    def resident(self) -> int:
        """Return how many bytes of memory it uses."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def signal(self, number: int) -> None:
        """Send a signal to it and to nobody else."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.signal(signal.SIGKILL)
        self._reap()

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        process, self.process = self.process, None
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.wait()


def _with(constants: Mapping[str, float]) -> str:
    """Return a program that is the daemon, but for some constants."""
    lines = ["import runpy, sys"]
    for name, value in constants.items():
        module, _, constant = name.rpartition(".")
        lines += [f"import {module}", f"assert hasattr({module}, {constant!r})", f"{name} = {value}"]
    return "; ".join([*lines, "runpy.run_module('covey.daemon', run_name='__main__', alter_sys=True)"])


@contextlib.contextmanager
def serving(
    folder: Path,
    *words: str,
    settings: str = "",
    constants: Mapping[str, float] | None = None,
    plain: bool = False,
) -> Iterator[Daemon]:
    """Yield a daemon on a new repository, and end whatever runs of it then.

    `constants`: numbers of its modules by their whole names, for who cannot wait as long as is good for people.
    """
    daemon = Daemon(make_repository(folder, settings), *words, constants=constants, plain=plain)
    try:
        yield daemon.start()
    finally:
        daemon.stop()


@contextlib.asynccontextmanager
async def in_process(
    project: Project, settings: Config, clock: Clock, app_type: type[App] = App
) -> AsyncIterator[tuple[App, Web, Bus]]:
    """Yield the daemon's insides in this process, under a clock of the test's own."""
    store = SqliteStore(project.database, clock=lambda: clock.now().wall)
    app = app_type(store, Context(settings, Pulses(clock, store.place), project.name, has_daemon=True))
    bus = Bus(store)
    web = Web(app, bus, Hub(clock), project.owner_token.read_text(), Doors({"localhost"}, {1: "http"}))
    try:
        yield app, web, bus
    finally:
        await bus.stop()
        web.close()
        bus.close()
        store.close()


# What the disk says


def check_database(project: Project) -> int:
    """Check the file, the chain of hashes, and every row against the fold of the log; return how long the log is."""
    report = audit.verify(project.database)
    assert report.sound, report.problems
    return report.events


def all_events(client: Client, after: int = 0) -> list[dict[str, Any]]:
    """Return the whole log after an event."""
    found: list[dict[str, Any]] = []
    while page := client.get(f"/api/log?after={after}&limit=1000"):
        found += page
        after = page[-1]["seq"]
    return found


def all_tasks(client: Client) -> dict[str, dict[str, Any]]:
    """Return the whole board by id."""
    found: dict[str, dict[str, Any]] = {}
    after = ""
    while page := client.get(f"/api/board?limit=1000{after}"):
        found |= {task["id"]: task for task in page}
        after = f"&after={page[-1]['id']}"
    return found


# Following


@dataclass(frozen=True)
class Frame:
    """One server-sent event as it came in."""

    event: str
    data: Any
    id: int | None
    size: int


def read_frame(block: bytes) -> Frame | None:
    """Return what one block says, or nothing if it only sets the time to retry."""
    fields = dict(line.split(": ", 1) for line in block.decode().splitlines() if ": " in line)
    if "event" not in fields:
        return None
    number = int(fields["id"]) if "id" in fields else None
    return Frame(fields["event"], json.loads(fields["data"]), number, len(block) + 2)


class Follower:
    """One subscriber on /api/events; reads in a thread until the stream ends."""

    def __init__(self, daemon: Daemon, after: int | None = None, token: str | None = None) -> None:
        self.frames: list[Frame] = []
        self.ended = threading.Event()
        self._connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {token or daemon.token}"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        self._connection.request("GET", "/api/events", headers=headers)
        assert self._connection.sock is not None
        self._socket: socket.socket = self._connection.sock
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        assert self._response.headers["Content-Type"] == "text/event-stream"
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        rest = b""
        with contextlib.suppress(*Gone, ValueError):
            while data := self._response.read1(65536):
                *blocks, rest = (rest + data).split(b"\n\n")
                for block in blocks:
                    frame = read_frame(block)
                    if frame is not None:
                        self.frames.append(frame)
        self.ended.set()

    @property
    def last(self) -> int | None:
        """Return the id of the last frame that had one."""
        return next((frame.id for frame in reversed(self.frames) if frame.id is not None), None)

    def of(self, event: str) -> list[Frame]:
        """Return the frames of one kind so far."""
        return [frame for frame in self.frames if frame.event == event]

    def wait_for(self, condition: Callable[[list[Frame]], bool], what: str) -> None:
        """Wait until what has come in fulfils a condition."""
        wait_until(lambda: condition(self.frames), what)

    def wait_for_seq(self, seq: int) -> None:
        """Wait until everything up to an event has come in."""
        wait_until(lambda: (self.last or 0) >= seq, f"event {seq} on the stream, which is at {self.last}")

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)
        self._response.close()
        self._connection.close()
        self._socket.close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
