"""Another user of this machine, who listens where our daemon does or did, gets no secret and is not believed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from covey import proof
from covey.cli.frame.client import Client, check_own, is_daemon
from covey.cli.project.daemon import answering
from covey.core.fleet.launches import Launch
from covey.errors import Denied
from covey.runners.door import CHECKED_FROM_CONNECTIONS
from covey.runners.process import ProcessRunner
from covey.store.engine.lock import WriterLock
from tests.worlds.proving import is_question
from tests.worlds.serving import PATIENCE, Daemon, free_port, make_repository, serving, wait_until

NOBODY = 65534
"""A user that is not us, as root can be."""
HELD = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
kept = []
for host in sys.argv[3:]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kept.append(socket.create_server((host, int(sys.argv[2])), family=family))
print("listens", flush=True)
sys.stdin.read()
"""

LOOPBACK = ("127.0.0.1", "::1")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@contextlib.contextmanager
def held(port: int, *hosts: str, user: int | None = None) -> Iterator[None]:
    """Let a process, of another user if one is named, listen at a port."""
    argv = [sys.executable, "-c", HELD, str(os.geteuid() if user is None else user), str(port), *hosts]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"listens\n"
        yield
        process.stdin.close()


@dataclass
class Impostor:
    """Listens at both addresses of a port, answers whatever is asked, and notes every byte."""

    port: int
    heard: list[bytes] = field(default_factory=list)

    @property
    def all(self) -> bytes:
        return b"".join(self.heard)


@contextlib.contextmanager
def impostor(port: int, true: int | None = None) -> Iterator[Impostor]:
    """Yield one; `true`: where the true daemon is, to which it passes on what it cannot answer."""
    made = Impostor(port)
    listening: list[socket.socket] = []
    clients: list[socket.socket] = []

    def listens(host: str, family: int) -> bool:
        with contextlib.suppress(OSError):  # what was killed may take a moment to be gone
            listening.append(socket.create_server((host, port), family=family))
            return True
        return False

    for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        wait_until(partial(listens, host, family), f"port {port} of {host}")

    def serve(door: socket.socket) -> None:
        while True:
            try:
                client, _ = door.accept()
            except OSError:
                return
            clients.append(client)
            threading.Thread(target=talk, args=(client,), daemon=True).start()

    def talk(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while asked := client.recv(65536):
                made.heard.append(asked)
                client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncovey-version: 9\r\n\r\n{}"
                               if true is None else passed_on(asked, port, true))  # fmt: skip

    for door in listening:
        threading.Thread(target=serve, args=(door,), daemon=True).start()
    try:
        yield made
    finally:
        for each in (*listening, *clients):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for door in listening:
            door.close()


def passed_on(asked: bytes, port: int, true: int) -> bytes:
    """Return what the true daemon answers, asked as if it had been asked itself."""
    with socket.create_connection(("127.0.0.1", true), timeout=PATIENCE) as far:
        far.sendall(asked.replace(b":%d" % port, b":%d" % true))
        return far.recv(65536)


# Both addresses


def test_the_daemon_answers_at_both_addresses_of_loopback(tmp_path: Path) -> None:
    with serving(tmp_path / "shop") as daemon:
        for host in ("127.0.0.1", "::1"):
            connection = http.client.HTTPConnection(host, daemon.port, timeout=PATIENCE)
            connection.request("GET", "/api/status", headers={"Authorization": f"Bearer {daemon.token}"})
            assert connection.getresponse().status == 200, host
            connection.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_daemon_does_not_start_where_one_of_both_is_taken(tmp_path: Path, host: str) -> None:
    port = free_port(*LOOPBACK)
    with held(port, host):
        daemon = Daemon(make_repository(tmp_path / "shop"), "--port", str(port))
        with pytest.raises(AssertionError, match=f"Port {port} of {host} cannot be had"):
            daemon.start()
    with serving(tmp_path / "other", "--port", str(port)) as control:
        assert control.port == port


@as_root
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_that_another_user_took_is_left_to_them_and_every_browser_is_sent_away(
    tmp_path: Path, host: str
) -> None:
    with serving(tmp_path / "shop") as daemon:
        before = daemon.port
        invited = daemon.ask("POST", "/api/devices/invite", {}).good()["id"]
        daemon.kill()
        with held(before, host, user=NOBODY):
            daemon.start()
            assert daemon.port != before
            (alert,) = [each for each in daemon.ask("GET", "/api/alerts").good() if each["type"] == "port_taken"]
            assert str(before) in alert["message"] and "covey open" in alert["message"]
            log = daemon.ask("GET", "/api/log?limit=100").good()
            assert (invited, "device.revoked") in [(each["subject"], each["kind"]) for each in log]
        moved = daemon.port
        daemon.stop()
        daemon.start()
        assert daemon.port == moved, "it stays where it is from then on"


# The command line


def test_nobody_who_listens_where_a_killed_daemon_did_hears_the_owners_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "shop") as daemon:
        said = json.loads(daemon.project.daemon_file.read_text())
        assert answering(daemon.project) is not None
        daemon.kill()
        with impostor(daemon.port) as stranger:
            # The worst case: a process of ours that is called like a daemon has its number by now.
            like = [sys.executable, "-c", "input()", "covey.daemon"]
            with subprocess.Popen(like, stdin=subprocess.PIPE) as process:
                wait_until(lambda: is_daemon(process.pid), "its name")
                daemon.project.daemon_file.write_text(json.dumps(said | {"pid": process.pid}))
                assert answering(daemon.project) is None, "nobody holds the lock"
                assert stranger.heard == []
                with WriterLock(daemon.project.lock), monkeypatch.context() as changed:
                    changed.setattr("covey.cli.project.daemon._holders", lambda project: set())  # as in a container
                    assert answering(daemon.project) is None
                process.kill()
        assert stranger.heard and all(map(is_question, stranger.heard))
        assert daemon.token.encode() not in stranger.all


def test_who_passes_the_question_on_to_the_true_daemon_is_not_believed(tmp_path: Path) -> None:
    with serving(tmp_path / "shop") as daemon, impostor(free_port(*LOOPBACK), daemon.port) as stranger:
        said = json.loads(daemon.project.daemon_file.read_text())
        answered = passed_on(
            proof.question("owner", "0" * 32, f"127.0.0.1:{stranger.port}"), stranger.port, daemon.port
        )
        assert b" 200 " in answered and b'"proof"' in answered, "the true daemon answers"
        away = said | {"port": stranger.port, "url": f"http://127.0.0.1:{stranger.port}"}
        daemon.project.daemon_file.write_text(json.dumps(away))
        assert answering(daemon.project) is None
        assert stranger.heard and daemon.token.encode() not in stranger.all
        daemon.project.daemon_file.write_text(json.dumps(said))
        assert answering(daemon.project) is not None


@as_root
def test_a_process_of_another_user_is_no_daemon_of_ours(tmp_path: Path) -> None:
    code = "import os, sys; os.setuid(int(sys.argv[1])); print(1, flush=True); input()"
    for user in (NOBODY, os.geteuid()):
        argv = [sys.executable, "-c", code, str(user), "covey.daemon"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline()
            assert is_daemon(process.pid) is (user == os.geteuid())
            process.kill()


def owner_asks(daemon: Daemon) -> int:
    """Ask as the command line does for the owner."""
    client = Client(str(daemon.project.root))
    try:
        return client.ask("task.list").status
    finally:
        if client._wire is not None:
            client._wire.close()


def test_files_that_another_user_could_have_written_are_not_believed(tmp_path: Path) -> None:
    with serving(tmp_path / "shop") as daemon:
        assert owner_asks(daemon) == 200
        for path in (daemon.project.daemon_file, daemon.project.owner_token, daemon.project.state):
            mode = path.stat().st_mode
            path.chmod(mode | 0o020)
            with pytest.raises(Denied, match="may be written by other users"):
                owner_asks(daemon)
            path.chmod(mode)
        assert owner_asks(daemon) == 200
        daemon.stop()
        daemon.project.state.chmod(0o777)
        with pytest.raises(AssertionError, match="may be written by other users"):
            daemon.start()
        daemon.project.state.chmod(0o700)
        daemon.start()


def test_a_file_of_another_user_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_own(str(tmp_path), tmp_path.stat())
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(Denied, match="belongs to another user"):
        check_own(str(tmp_path), tmp_path.stat())


# Runs


@dataclass
class Asking:
    """A run whose agent prints where it asks, and what it was told to ask there."""

    daemon: Daemon
    runner: ProcessRunner
    url: str
    env: dict[str, str]

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Ask as a hook of an agent does, which checks nothing."""
        connection = http.client.HTTPConnection(self.url.partition("://")[2], timeout=PATIENCE)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {self.env['COVEY_TOKEN']}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextlib.contextmanager
def asking(daemon: Daemon) -> Iterator[Asking]:
    with daemon.client() as owner:
        owner.post("/api/sessions", {"name": "ada"})
        token = owner.post("/api/sessions/ada/token")["token"]
    runner = ProcessRunner(daemon.project.state / "runs")
    env = {"PATH": os.environ["PATH"], "COVEY_TOKEN": token, "COVEY_URL": proof.DOOR}
    env[proof.VARIABLE] = proof.credential(daemon.token, "run:run-1")
    script = f"echo $COVEY_URL; echo {proof.DOOR}/hooks/Stop; exec sleep 600"
    runner.start("run-1", Launch(argv=("sh", "-c", script), cwd="/", env=env))
    try:
        wait_until(lambda: runner.output("run-1", 0)[0].count(b"\n") == 2, "what it prints")
        url, hook = runner.output("run-1", 0)[0].decode().split()
        assert hook == f"{url}/hooks/Stop" and url != proof.DOOR
        yield Asking(daemon, runner, url, env | {"COVEY_URL": url})
    finally:
        runner.stop("run-1")


def test_a_run_asks_at_a_door_of_its_own_that_leads_to_the_daemon(tmp_path: Path) -> None:
    with serving(tmp_path / "shop") as daemon, asking(daemon) as run:
        assert run.ask("GET", "/api/board") == (200, b"[]")
        large = json.dumps({"title": "Large", "body": "x" * 60_000}).encode()
        assert run.ask("POST", "/api/board", large)[0] in (201, 403)
        connection = http.client.HTTPConnection(run.url.partition("://")[2], timeout=PATIENCE)
        connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {daemon.token}"})
        stream = connection.getresponse()
        assert stream.readline() == b"retry: 1000\n"
        daemon.ask("POST", "/api/board", {"title": "A stream passes too"}).good()
        while b"A stream passes too" not in stream.readline():
            pass
        connection.close()
        # Only what the door of a run passes on may name its address, and no page may.
        foreign = daemon.ask("GET", "/api/board", headers={"Host": f"127.0.0.1:{free_port(*LOOPBACK)}"})
        assert foreign.status == 421


def test_who_takes_the_port_of_a_killed_daemon_hears_nothing_of_its_runs(tmp_path: Path) -> None:
    with serving(tmp_path / "shop") as daemon, asking(daemon) as run:
        assert run.ask("GET", "/api/board")[0] == 200
        daemon.kill()
        with pytest.raises((OSError, http.client.HTTPException)):
            run.ask("POST", "/hooks/Stop", b"{}")
        with impostor(daemon.port) as stranger:
            for _ in range(3):
                with pytest.raises((OSError, http.client.HTTPException)):
                    run.ask("POST", "/hooks/Stop", b"{}")
            assert stranger.heard and all(map(is_question, stranger.heard))
            assert run.env["COVEY_TOKEN"].encode() not in stranger.all
            (daemon.project.state / "port").unlink()
            daemon.start()  # at another port, and the door finds it
            assert daemon.port != stranger.port
            assert run.ask("GET", "/api/board") == (200, b"[]")


FLOOD = """
import encodings.idna, os, socket, sys
os.setuid(int(sys.argv[1]))
opened = [socket.create_connection(("127.0.0.1", int(sys.argv[2]))) for _ in range(int(sys.argv[3]))]
for each in opened[int(sys.argv[4]):]:
    each.settimeout(60)
    try:
        assert each.recv(1) == b""
    except ConnectionResetError:
        pass
print("hung up on", flush=True)
input()
"""


@as_root
def test_connections_of_another_user_to_the_door_of_a_run_are_few(tmp_path: Path) -> None:
    with serving(tmp_path / "shop") as daemon, asking(daemon) as run:
        port = int(run.url.rpartition(":")[2])
        own = [socket.create_connection(("127.0.0.1", port)) for _ in range(CHECKED_FROM_CONNECTIONS)]
        argv = [
            sys.executable,
            "-c",
            FLOOD,
            str(NOBODY),
            str(port),
            str(4 * CHECKED_FROM_CONNECTIONS),
            str(CHECKED_FROM_CONNECTIONS),
        ]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as flood:
            assert flood.stdin is not None and flood.stdout is not None
            assert flood.stdout.readline() == b"hung up on\n"
            assert run.ask("GET", "/api/board") == (200, b"[]"), "its own user is let in beside them"
            flood.stdin.close()
        for each in own:
            each.close()


def test_a_run_whose_wrapper_is_gone_does_not_trust_who_has_its_door(tmp_path: Path) -> None:
    with serving(tmp_path / "shop") as daemon, asking(daemon) as run:
        argv = [sys.executable, "-m", "covey", "task", "list"]
        env = {**os.environ, **run.env}
        assert subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, check=False).returncode == 0
        run.runner.stop("run-1")
        with impostor(int(run.url.rpartition(":")[2])) as stranger:
            told = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert told.returncode == 7 and "did not prove" in told.stderr
        assert run.env["COVEY_TOKEN"].encode() not in stranger.all
