"""Idle connections of nobody: they take no room from those whom the daemon knows, and every clock may be wrong."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from covey.cli.project import daemon as commands
from covey.git.project import Project
from covey.web.http import Crowd, Http
from tests.daemon.test_life import covey
from tests.worlds.serving import Client, make_repository, wait_until

FILES = 256
"""Files that the daemon of this test may open."""


def _open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@contextlib.contextmanager
def _few_files(project: Project) -> Iterator[subprocess.Popen[bytes]]:
    """Run a daemon that may open few files."""
    command = f"ulimit -n {FILES} && exec {sys.executable} -m covey.daemon {project.root}"
    process = subprocess.Popen(["bash", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: project.daemon_file.exists() or process.poll() is not None, "the daemon's first word")
        yield process
    finally:
        process.terminate()
        process.communicate()


def test_the_oldest_idle_connection_of_nobody_is_ended_first_and_who_is_known_stays(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "repo")
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(_few_files(project))
        port = int((project.state / "port").read_text())
        known = stack.enter_context(Client(port, project.owner_token.read_text().strip()))
        assert known.get("/api/status")
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(2 * FILES)]
        wait_until(lambda: _open_files(process.pid) < FILES // 2, "room for others")
        assert known.get("/api/status"), "on the connection from before"
        for _ in range(10):
            with Client(port, known.token) as another:
                assert another.get("/api/status"), "on a new one"
        idle[0].settimeout(10)
        assert idle[0].recv(1) == b"", "the oldest was ended"
        last = idle[-1]
        last.sendall(b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        last.settimeout(10)
        assert last.recv(12).startswith(b"HTTP/1.1 4"), "the newest is answered"
        assert b"accept" not in (project.state / "daemon.log").read_bytes()


def test_connections_of_nobody_that_never_end_what_they_ask_keep_nobody_out(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "repo")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_few_files(project))
        said = json.loads(project.daemon_file.read_text())
        begun = (
            f"POST /api/devices/join HTTP/1.1\r\nHost: {said['page'].partition('://')[2]}\r\nOrigin: {said['page']}\r\n"
            "Sec-Fetch-Site: same-origin\r\nContent-Length: 9\r\n\r\n{"
        ).encode()
        for _ in range(FILES):
            asking = stack.enter_context(socket.create_connection(("127.0.0.1", said["port"])))
            asking.sendall(begun)
        for _ in range(10):
            with Client(said["port"], project.owner_token.read_text().strip()) as owner:
                assert owner.get("/api/status")


def test_streams_and_connections_of_one_session_keep_nobody_else_out(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "repo")
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(_few_files(project))
        port = int((project.state / "port").read_text())
        owner = stack.enter_context(Client(port, project.owner_token.read_text().strip()))
        tokens = []
        for name in ("bad", "good"):
            owner.post("/api/sessions", {"name": name})
            tokens.append(owner.post(f"/api/sessions/{name}/token")["token"])
        good = stack.enter_context(Client(port, tokens[1]))
        assert good.get("/api/status")
        for path in ("events", "status"):
            for _ in range(FILES):
                flood = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                head = f"GET /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {tokens[0]}"
                flood.sendall(f"{head}\r\n\r\n".encode())
                flood.settimeout(10)
                with contextlib.suppress(ConnectionResetError):
                    flood.recv(12)
        wait_until(lambda: _open_files(process.pid) < FILES // 2, "room for others")
        assert good.get("/api/status"), "on the connection from before"
        for token in (owner.token, tokens[1]):
            with Client(port, token) as another:
                assert another.get("/api/status"), "on a new one"


@dataclass(eq=False)
class Caller:
    """A connection as far as a crowd needs it."""

    address: str
    is_gone: bool = False

    def hang_up(self) -> None:
        """End it."""
        self.is_gone = True


def _gone(callers: list[Caller], most: int) -> list[int]:
    crowd = Crowd(most)
    for caller in callers:
        crowd.join(cast("Http", caller))
    return [number for number, caller in enumerate(callers) if caller.is_gone]


def test_an_address_with_many_connections_loses_one_before_any_other_does() -> None:
    assert _gone([Caller("phone"), *[Caller("flood") for _ in range(5)], Caller("laptop")], 4) == [1, 2, 3]
    assert _gone([Caller("phone"), Caller("laptop"), Caller("desk")], 3) == []


@pytest.mark.parametrize("at", [-5000, 0, 2_147_483_648, 4_102_444_800, 253_402_300_801])
def test_a_daemon_starts_serves_and_ends_whatever_the_clock_on_the_wall_says(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"import time\nreal, begun = time.time, time.time()\ntime.time = lambda: {at} + real() - begun\n"
    )
    project = make_repository(tmp_path / "repo")
    assert covey(project.root, "task", "add", "Before").returncode == 0
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for words in (("up",), ("task", "add", "Then"), ("log",), ("status",), ("task", "show", "T-2"), ("down",)):
        done = covey(project.root, *words)
        assert done.returncode == 0 and "bug" not in done.stderr, (words, done.stderr)
    monkeypatch.delenv("PYTHONPATH")
    done = covey(project.root, "log", "verify")
    assert done.returncode == 0, done.stdout
    assert '"trace"' not in (project.state / "daemon.log").read_text()
    assert "stopped" in covey(project.root, "log", "-n", "1").stdout, "it ended in order"


def test_a_daemon_that_does_not_hear_is_ended_without_a_word_of_a_bug() -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline()
    commands.end(child, signal.SIGTERM, 0.2)
    child.stdout.close()
    assert child.returncode == -9
