"""The daemon's life: one per repository, the same address and tokens after every end, good or bad."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from covey.git import project as projects
from covey.store.engine.lock import WriterLock
from tests.worlds.serving import (
    PATIENCE,
    Client,
    Daemon,
    Gone,
    Reply,
    check_database,
    free_port,
    make_repository,
    serving,
    wait_until,
)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Serve an empty board."""
    with serving(tmp_path / "repo", plain=True) as served:
        yield served


def covey(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    command = [sys.executable, "-m", "covey", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Path]:
    """Yield a repository that was begun with `covey init`, and end the daemon that was started there."""
    folder = tmp_path / "begun"
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    assert covey(folder, "init").returncode == 0
    yield folder
    assert covey(folder, "down").returncode == 0


def up(folder: Path, *words: str) -> dict[str, Any]:
    """Start the daemon as scripts do, and return what it says."""
    done = covey(folder, "up", "--json", *words)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def is_alive(pid: int) -> bool:
    """Say whether a process lives."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


# Two projects


def test_two_daemons_of_two_repositories_do_not_meet(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as one, serving(tmp_path / "two") as two:
        assert one.port != two.port and one.token != two.token
        assert one.ask("POST", "/api/board", {"title": "Of one"}).status == 201
        assert two.ask("POST", "/api/board", {"title": "Of two"}, key="k").status == 201
        assert [task["title"] for task in one.ask("GET", "/api/board").json] == ["Of one"]
        assert [task["title"] for task in two.ask("GET", "/api/board").json] == ["Of two"]
        assert one.ask("GET", "/api/board", token=two.token).status == 401
        assert two.ask("POST", "/api/claim", {"session": "ada"}, token=one.token).status == 401
        assert two.ask("POST", "/api/board", {"title": "Of two"}, key="k").json["id"] == "T-1"
        one.kill()
        assert two.ask("POST", "/api/claim", {"session": "ada"}).good()["id"] == "T-1"
        check_database(one.project)


def test_a_session_token_of_one_project_is_nothing_in_another(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as one, serving(tmp_path / "two") as two:
        for daemon in (one, two):
            daemon.ask("POST", "/api/sessions", {"name": "ada"}).good()
        token = one.ask("POST", "/api/sessions/ada/token", {}).good()["token"]
        assert one.ask("GET", "/api/board", token=token).status == 200
        assert two.ask("GET", "/api/board", token=token).status == 401


# One daemon


def test_a_second_daemon_of_the_same_repository_is_refused_in_one_sentence(daemon: Daemon) -> None:
    command = [sys.executable, "-m", "covey.daemon", str(daemon.project.root)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert second.returncode == 5
    said = json.loads(second.stderr)
    assert "daemon" in said["error"] and "\n" not in said["error"]
    assert daemon.ask("GET", "/api/status").status == 200
    assert json.loads(daemon.project.daemon_file.read_text())["pid"] == daemon.pid


def test_up_returns_when_it_answers_and_up_again_names_the_same_process(begun: Path) -> None:
    first = up(begun)
    assert set(first) == {"url", "token", "pid"} and is_alive(first["pid"])
    assert up(begun) == first
    port = int(first["url"].rsplit(":", 1)[1])
    with Client(port, first["token"]) as client:
        assert client.ask("GET", "/api/board").status == 200


def test_ten_who_say_up_at_once_get_the_same_daemon(begun: Path) -> None:
    words = [sys.executable, "-m", "covey", "up", "--json"]
    started = [subprocess.Popen(words, cwd=begun, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(10)]
    said = [(process.communicate(timeout=PATIENCE), process.returncode) for process in started]
    assert all(code == 0 for _, code in said), said
    assert len({out for (out, _), _ in said}) == 1


def test_address_and_token_survive_every_end(begun: Path) -> None:
    first = up(begun)
    assert covey(begun, "down").returncode == 0
    wait_until(lambda: not is_alive(first["pid"]), "the end of the daemon")
    second = up(begun)
    assert (second["url"], second["token"]) == (first["url"], first["token"])
    assert second["pid"] != first["pid"]
    os.kill(second["pid"], signal.SIGKILL)
    wait_until(lambda: not is_alive(second["pid"]), "the end of the daemon")
    third = up(begun)
    assert (third["url"], third["token"]) == (first["url"], first["token"])
    assert third["pid"] != second["pid"]


def test_a_daemon_imports_nothing_from_the_project(begun: Path) -> None:
    names = ("msgspec", "uvicorn", "websockets", "csv", "zipfile")
    for name in names:
        (begun / f"{name}.py").write_text("open('imported', 'a').write(__name__)\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "covey", "up", "--json"], cwd=begun, capture_output=True, text=True, check=True
    )
    where = urlsplit(json.loads(done.stdout)["url"])
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=PATIENCE)
    upgrade = {"Upgrade": "websocket", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version": "13"}
    connection.request("GET", "/api/terminals/x", headers={"Connection": "Upgrade", **upgrade})
    assert connection.getresponse().status == 401
    connection.close()
    assert not (begun / "imported").exists()
    for name in names:
        (begun / f"{name}.py").unlink()


def test_down_without_a_daemon_is_fine(begun: Path) -> None:
    done = covey(begun, "down", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (
        0,
        {"stopped": False, "pid": None, "running": [], "ended": [], "back": [], "died": False},
    )


def is_bound(own: socket.socket, port: int) -> bool:
    """Take a port if it can be had by now: what was killed may take a moment to be gone."""
    try:
        own.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def test_a_port_that_another_program_took_is_named(daemon: Daemon) -> None:
    daemon.kill()
    with socket.socket() as taken:
        wait_until(lambda: is_bound(taken, daemon.port), "the port of the killed daemon")
        taken.listen()
        command = [sys.executable, "-m", "covey.daemon", str(daemon.project.root)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 5
    assert str(daemon.port) in json.loads(ended.stderr)["error"]
    port = daemon.port
    assert daemon.start().port == port


def test_a_good_stop_leaves_no_file_and_a_free_lock(daemon: Daemon) -> None:
    assert daemon.ask("POST", "/api/board", {"title": "x"}).status == 201
    assert daemon.stop() == 0
    assert not daemon.project.daemon_file.exists()
    lock = WriterLock(daemon.project.lock)
    assert lock.try_take()
    lock.give()
    check_database(daemon.project)


def keep_asking(daemon: Daemon, number: int, answered: list[Reply], failed: list[str]) -> None:
    """Add tasks until the daemon hangs up; an answer that begins must end."""
    with daemon.client() as client:
        while True:
            try:
                answered.append(client.ask("POST", "/api/board", {"title": f"{number}"}))
            except (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest):
                return
            except Gone as error:
                failed.append(repr(error))
                return


def test_a_good_stop_answers_what_is_under_way(daemon: Daemon) -> None:
    answered: list[Reply] = []
    failed: list[str] = []
    threads = [threading.Thread(target=keep_asking, args=(daemon, i, answered, failed)) for i in range(16)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(answered) > 200, "some answers")
    assert daemon.stop() == 0
    for thread in threads:
        thread.join()
    assert not failed
    assert {reply.status for reply in answered} == {201}
    daemon.start()
    assert daemon.ask("GET", "/api/status").json["counts"]["todo"] == len(answered)


def test_a_client_that_keeps_its_connection_open_does_not_delay_a_stop(daemon: Daemon) -> None:
    with daemon.client() as idle:
        idle.get("/api/board")
        begun = os.times().elapsed
        assert daemon.stop() == 0
        assert os.times().elapsed - begun < 10


# Sessions


def test_a_new_token_of_a_session_kills_the_old_one_and_the_new_one_survives_a_kill(daemon: Daemon) -> None:
    daemon.ask("POST", "/api/board", {"title": "x"}).good()
    daemon.ask("POST", "/api/sessions", {"name": "ada"}).good()
    old = daemon.ask("POST", "/api/sessions/ada/token", {}).good()["token"]
    assert daemon.ask("POST", "/api/claim", {}, token=old).good()["session"] == "ada"
    new = daemon.ask("POST", "/api/sessions/ada/token", {}).good()["token"]
    assert daemon.ask("GET", "/api/board", token=old).status == 401
    assert daemon.ask("GET", "/api/board", token=new).status == 200
    daemon.kill()
    daemon.start()
    assert daemon.ask("GET", "/api/board", token=old).status == 401
    assert daemon.ask("GET", "/api/board", token=new).status == 200


def test_no_token_stands_on_disk_in_the_clear(daemon: Daemon) -> None:
    daemon.ask("POST", "/api/sessions", {"name": "ada"}).good()
    tokens = [daemon.ask("POST", "/api/sessions/ada/token", {}, key=key).good()["token"] for key in (None, "k")]
    daemon.stop()
    for path in daemon.project.state.iterdir():
        assert path.is_dir() or not any(token.encode() in path.read_bytes() for token in tokens), path


def test_claims_are_held_across_a_kill_and_a_restart(daemon: Daemon) -> None:
    daemon.ask("POST", "/api/board", {"title": "x", "kind": "report"}).good()
    fence = daemon.ask("POST", "/api/claim", {"session": "ada"}).good()["fence"]
    for end in (daemon.kill, daemon.stop):
        end()
        daemon.start()
        task = daemon.ask("GET", "/api/board/T-1").good()
        assert (task["status"], task["session"], task["fence"]) == ("doing", "ada", fence)
    done = daemon.ask("POST", "/api/board/T-1/handin", {"session": "ada", "fence": fence, "result": "ok"}).good()
    assert done["status"] == "done"


# Its log


def test_the_daemons_own_log_is_json_and_rotated(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "repo")
    path = project.state / "daemon.log"
    path.write_bytes(b'{"message": "old"}\n' * (4_999_990 // 19))
    daemon = Daemon(project, plain=True).start()
    daemon.stop()
    assert (project.state / "daemon.log.1").stat().st_size > 4_000_000
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines and all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert daemon.token not in path.read_text()


# Beyond loopback


def ask_tls(host: str, port: int, token: str, certificate: Path, said_host: str | None = None) -> tuple[int, Any]:
    """Ask over TLS, trusting that certificate alone."""
    context = ssl.create_default_context(cafile=str(certificate))
    connection = http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=context)
    try:
        headers = {"Authorization": f"Bearer {token}"} | ({"Host": said_host} if said_host else {})
        connection.request("GET", "/api/board", headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def hangs_up_on_plain_http(host: str, port: int) -> bool:
    """Say whether a request without TLS gets no answer that HTTP knows."""
    with socket.create_connection((host, port), timeout=PATIENCE) as raw:
        try:
            raw.sendall(f"GET /api/board HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            return not raw.recv(1000).startswith(b"HTTP/")
        except ConnectionError:
            return True


def test_another_address_is_served_with_tls_and_the_same_token(begun: Path) -> None:
    port = free_port("127.0.0.2")
    said = up(begun, "--bind", f"127.0.0.2:{port}")
    certificate = projects.find(begun).state / "tls" / "certificate.pem"
    assert ask_tls("127.0.0.2", port, said["token"], certificate) == (200, [])
    assert ask_tls("127.0.0.2", port, "wrong", certificate)[0] == 401
    assert ask_tls("127.0.0.2", port, said["token"], certificate, "evil.example")[0] == 421
    assert hangs_up_on_plain_http("127.0.0.2", port)
    with Client(int(said["url"].rsplit(":", 1)[1]), said["token"]) as client:
        assert client.ask("GET", "/api/board").status == 200
    key = certificate.parent / "key.pem"
    assert key.stat().st_mode & 0o077 == 0


def test_an_address_beyond_loopback_without_a_certificate_is_refused(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "repo")
    command = [sys.executable, "-m", "covey.daemon", str(project.root), "--bind", "127.0.0.2:4433"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2 and "certificate" in json.loads(ended.stderr)["error"]
