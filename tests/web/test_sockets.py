"""Terminals over WebSocket, by the whole way: a program in a terminal that the daemon started, and viewers of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from covey.runners.tmux import socket_of
from tests.worlds.runners import children, command
from tests.worlds.serving import Client, Daemon, make_repository, wait_until

SETTINGS = """
[sessions]
agent = "echo"
runner = "tmux"
terminal = "100x30"
stagger = 0

[agents.echo]
command = ["bash", "{body_file}"]
"""
ECHO = "stty -echo; echo here; while read -r line; do echo got $line; [ $line = bye ] && exit 0; done"


class House:
    """A daemon with sessions whose programs are in terminals."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    def client(self) -> Client:
        """Return a connection of the owner's."""
        return self.daemon.client()

    def start(self, name: str, script: str = ECHO) -> str:
        """Start a session with a task of its own, wait until its program is there, and return its run."""
        with self.client() as client:
            client.post("/api/board", {"title": name, "body": script, "assignee": name})
            client.post("/api/sessions", {"name": name, "agent": "echo"})
            client.post(f"/api/sessions/{name}/start")
            there = f"/api/sessions/{name}/terminal"
            wait_until(lambda: client.get(there)["run"] is not None, f"the terminal of {name}")
            return str(client.get(there)["run"])

    def is_used(self, name: str) -> bool:
        """Say whether covey thinks that a person is at a terminal."""
        with self.client() as client:
            return bool(client.get(f"/api/sessions/{name}/terminal")["used"])

    @contextmanager
    def viewer(self, name: str, *, query: str = "", **headers: str) -> Iterator[Viewer]:
        """Yield somebody who looks at a session's terminal."""
        url = f"ws://127.0.0.1:{self.daemon.port}/api/sessions/{name}/terminal/socket{query}"
        sent = {"Authorization": f"Bearer {self.daemon.token}"} | headers
        with connect(url, additional_headers=sent, max_size=None, open_timeout=30) as socket:
            yield Viewer(socket)


class Viewer:
    """One who looks, and keeps what was drawn and what was told."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.drawn = b""
        self.told: list[dict[str, Any]] = []
        self.code: int | None = None

    def take(self) -> None:
        """Take what is there."""
        try:
            message = self.socket.recv(timeout=0.05)
        except TimeoutError:
            return
        except ConnectionClosed as closed:
            self.code = closed.rcvd.code if closed.rcvd else 1006
            return
        if isinstance(message, str):
            self.told.append(json.loads(message))
        else:
            self.drawn += message

    def until(self, good: Callable[[], bool], what: str) -> None:
        """Look until something is so."""

        def look() -> bool:
            if self.code is None:
                self.take()
            return good()

        wait_until(look, f"{what}; told {self.told}")

    def sees(self, text: str) -> None:
        """Look until a text shows."""
        self.until(lambda: text.encode() in self.drawn, f"{text!r} before a viewer")

    def hears(self, **said: Any) -> None:
        """Look until something was told."""
        self.until(lambda: any(said.items() <= told.items() for told in self.told), f"{said}")

    def ask(self, what: str) -> None:
        """Ask to type, or only to read."""
        self.socket.send(json.dumps({"ask": what}))

    def write(self) -> None:
        """Begin to type."""
        self.ask("write")
        self.hears(write=True)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Yield a daemon for the module."""
    with opened(tmp_path_factory.mktemp("sockets") / "shop", SETTINGS) as found:
        yield found


@contextmanager
def opened(path: Path, settings: str) -> Iterator[House]:
    """Yield a daemon, and leave nothing behind."""
    project = make_repository(path, settings)
    author = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", str(project.root), *author, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    daemon = Daemon(project, plain=True).start()
    try:
        yield House(daemon)
    finally:
        if daemon.process is not None:
            with daemon.client() as client:
                for session in client.get("/api/sessions"):
                    client.post(f"/api/sessions/{session['name']}/remove", {"force": True})
                wait_until(lambda: not client.get("/api/sessions"), "the end of all sessions")
        daemon.stop()
        place = socket_of(project.state / "runs")
        subprocess.run(["tmux", "-S", str(place), "kill-server"], check=False, stderr=subprocess.DEVNULL)


def test_what_is_typed_arrives_only_after_it_was_asked_for_and_is_seen_by_every_viewer(house: House) -> None:
    run = house.start("ada")
    with house.viewer("ada") as one, house.viewer("ada") as other:
        one.hears(run=run, columns=100, rows=30, below=1, write=False)
        one.sees("here")
        one.socket.send(b"unasked\r")
        assert not house.is_used("ada")
        one.write()
        assert house.is_used("ada")
        one.socket.send("täst\r".encode())
        one.sees("got täst")
        other.sees("got täst")
        one.ask("read")
        one.hears(write=False)
        wait_until(lambda: not house.is_used("ada"), "nobody at the terminal")
        one.socket.send(b"late\r")
        other.write()
        other.socket.send(b"last\r")
        one.sees("got last")
        assert b"unasked" not in one.drawn
        assert b"late" not in one.drawn


def test_a_writer_who_is_gone_uses_nothing_and_leaves_no_process(house: House) -> None:
    house.start("bob")
    with house.viewer("bob", query="?write=1") as one:
        one.hears(write=True)
        assert house.is_used("bob")
    wait_until(lambda: not house.is_used("bob"), "nobody at the terminal")
    wait_until(lambda: not viewers(house.daemon), "no client of a viewer")


def viewers(daemon: Daemon) -> list[int]:
    """Return the processes that show terminals."""
    return [pid for pid in children(daemon.pid) if "attach-session -r" in command(pid)]


def test_a_run_that_ends_is_told_and_the_socket_ends(house: House) -> None:
    house.start("cleo")
    with house.viewer("cleo") as one:
        one.write()
        one.socket.send(b"bye\r")
        one.hears(ended=True)
        one.until(lambda: one.code == 1000, "the end")
        assert b"got bye" in one.drawn


def test_a_session_without_a_terminal_or_of_no_name_says_why(house: House) -> None:
    with house.client() as client:
        client.post("/api/sessions", {"name": "dana", "agent": "echo"})
    for name, code in (("dana", 4409), ("nobody", 4404)):
        with house.viewer(name) as one:
            one.until(lambda one=one, code=code: one.code == code, f"{code}")  # type: ignore[misc]
            assert set(one.told[0]) == {"error", "hint", "headless"} and not one.told[0]["headless"]


def test_a_session_that_runs_without_a_terminal_is_told_apart(tmp_path: Path) -> None:
    with opened(tmp_path / "shop", SETTINGS.replace('"tmux"', '"process"')) as plain:

        def is_headless() -> bool:
            with plain.viewer("pia") as one:
                one.until(lambda: one.code == 4409, "the end")
                return bool(one.told[0]["headless"])

        with plain.client() as client:
            client.post("/api/board", {"title": "Wait", "body": "sleep 60", "assignee": "pia"})
            client.post("/api/sessions", {"name": "pia", "agent": "echo"})
            client.post("/api/sessions/pia/start")
        wait_until(is_headless, "a run without a terminal")


def test_nobody_but_the_owner_looks_and_no_foreign_page(house: House) -> None:
    house.start("eli")
    with house.client() as client:
        token = client.post("/api/sessions/eli/token")["token"]
    strangers = (
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {token}"},
        {"Authorization": ""},
        {"Origin": "http://evil.example"},
    )
    for headers in strangers:
        with pytest.raises(InvalidStatus) as refused, house.viewer("eli", **headers):
            pass
        assert refused.value.response.status_code in (401, 403)


def test_a_viewer_that_takes_nothing_costs_the_daemon_no_memory_and_gets_the_newest_screen(house: House) -> None:
    house.start("fay", "echo here; read line; seq 1 400000; echo now; sleep 1000")
    with house.viewer("fay") as slow:
        slow.hears(columns=100)
        before = house.daemon.resident()
        with house.viewer("fay") as quick:
            quick.write()
            quick.socket.send(b"\r")
            quick.until(lambda: b"now\r" in quick.drawn or b"\nnow" in quick.drawn, "the end of the flood")
        assert house.daemon.resident() - before < 16 * 1024 * 1024
        slow.until(lambda: b"now" in slow.drawn, "the newest screen")
        assert len(slow.drawn) < 2 * 1024 * 1024


def test_viewers_who_leave_at_once_leave_nobody_behind_who_looks_or_types(house: House) -> None:
    house.start("jan")
    for _ in range(20):
        with house.viewer("jan", query="?write=1") as one:
            one.ask("write")
    wait_until(lambda: not viewers(house.daemon) and not house.is_used("jan"), "the end of all who looked")


def test_keys_of_any_bytes_and_words_of_no_sense_do_no_harm(house: House) -> None:
    house.start("gus")
    with house.viewer("gus") as one:
        one.write()
        for text in ("", "[]", "null", '{"ask": 1}', '{"ask": {}}', "{" * 300, '{"ask": "dance"}'):
            one.socket.send(text)
        one.socket.send(b"")
        one.socket.send(bytes(range(128, 256)))
        one.socket.send(b"\x15ok\r")
        one.sees("got")
        one.socket.send(b"x" * 60_000)
        one.hears(write=True)


def test_the_size_is_followed_when_a_person_attaches(house: House) -> None:
    run = house.start("hana")
    with house.client() as client:
        words = client.get("/api/sessions/hana/terminal")["command"]
    socket = words[words.index("-S") + 1]
    with house.viewer("hana") as one:
        one.hears(columns=100, rows=30)
        size = ["tmux", "-S", socket, "resize-window", "-t", f"={run}:", "-x", "80", "-y", "20"]
        subprocess.run(size, check=True)
        one.hears(columns=80, rows=20)


def test_viewers_come_and_go_with_the_daemon(house: House) -> None:
    house.start("ivo")
    with house.viewer("ivo") as one:
        one.sees("here")
        wait_until(lambda: len(viewers(house.daemon)) == 1, "the end of those who looked before")
        (client,) = viewers(house.daemon)
        house.daemon.kill()
        one.until(lambda: one.code is not None, "the end")
    wait_until(lambda: not Path(f"/proc/{client}").exists() or "attach" not in command(client), "the client's end")
    house.daemon.start()
    with house.viewer("ivo") as again:
        again.sees("here")
        house.daemon.signal(signal.SIGTERM)
        again.until(lambda: again.code is not None, "the end")
        assert again.code in (1001, 1012)
    house.daemon.stop()
    house.daemon.start()
    assert os.path.exists(f"/proc/{house.daemon.pid}")
