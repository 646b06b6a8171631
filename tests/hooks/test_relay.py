"""The relay as agents start it: a program of its own, against daemons that answer well, badly or not at all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from covey.hooks import relay
from tests.worlds.proving import TOKEN, credential, is_question, proved

PROGRAM = Path(relay.__file__)
PATIENCE = 60.0
SHA256 = ("_sha256", "_sha2")
"""What Python calls the digest that it has in it."""
PATIENT = f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r}); import relay; relay.QUICK = {PATIENCE}; "
"""A relay that waits longer: what is told of an answer does not depend on how busy the machine is."""
SAID = b'{"hookSpecificOutput": {"additionalContext": "h\xc3\xa9llo"}}'


@dataclass
class Daemon:
    """Something that listens where a daemon would, and does with each connection as the test says."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        return {"COVEY_URL": f"http://127.0.0.1:{self.port}", "COVEY_TOKEN": "secret", "COVEY_PROOF": credential()}


Behaviour = Callable[[socket.socket, Daemon], None]


def heard(connection: socket.socket, daemon: Daemon) -> None:
    """Read one request, as long as it says that it is; before that comes the question for a proof."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += connection.recv(65536)
        if is_question(said) and said.endswith(b"\r\n\r\n"):
            connection.sendall(proved(said, f"127.0.0.1:{daemon.port}"))
            said = b""
    head, _, rest = said.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    body = bytearray(rest)  # grows in place
    while len(body) < length:
        body += connection.recv(1 << 20)
    daemon.heard.append(head + b"\r\n\r\n" + body)


def answers(said: bytes, status: bytes = b"200 OK", *, length: int | None = None) -> Behaviour:
    """Return the behaviour of one that answers."""

    def behave(connection: socket.socket, daemon: Daemon) -> None:
        heard(connection, daemon)
        size = len(said) if length is None else length
        connection.sendall(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, size, said))

    return behave


def cuts(said: bytes) -> Behaviour:
    """Return the behaviour of one that hangs up in the middle."""

    def behave(connection: socket.socket, daemon: Daemon) -> None:
        heard(connection, daemon)
        connection.sendall(said)

    return behave


def waits(over: threading.Event, *, hears: bool = True) -> Behaviour:
    """Return the behaviour of one that never answers, until the test is over."""

    def behave(connection: socket.socket, daemon: Daemon) -> None:
        if hears:
            heard(connection, daemon)
        over.wait(PATIENCE)

    return behave


@contextmanager
def serving(behave: Behaviour) -> Iterator[Daemon]:
    """Yield a daemon that behaves so until the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        daemon = Daemon(listening.getsockname()[1])

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    try:
                        behave(connection, daemon)
                    except OSError:
                        continue  # it hung up first

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield daemon
        listening.shutdown(socket.SHUT_RDWR)


def relayed(
    env: dict[str, str], *words: str, hook: bytes = b'{"tool_name": "Write"}', quick: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Run the relay with a hook on its standard input; it must end well and complain of nothing.

    `quick`: as agents start it, so that it goes on without an answer after a second.
    """
    program = [str(PROGRAM)] if quick else ["-c", f"{PATIENT}relay.main(sys.argv[1:])"]
    argv = [sys.executable, "-I", "-S", *program, *(words or ("PreToolUse",))]
    run = subprocess.run(argv, input=hook, env=env, capture_output=True, timeout=PATIENCE, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    return run


def test_a_hook_reaches_the_daemon_and_the_answer_comes_back_as_it_is() -> None:
    with serving(answers(SAID)) as daemon:
        assert relayed(daemon.env).stdout == SAID
    head, _, body = daemon.heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hooks/PreToolUse HTTP/1.1\r\n") and b"\r\nAuthorization: Bearer secret\r\n" in head
    assert body == b'{"tool_name": "Write"}'


def test_an_answer_that_says_nothing_is_not_printed_and_not_missed(tmp_path: Path) -> None:
    with serving(answers(b"{}")) as daemon:
        assert relayed({**daemon.env, "COVEY_MISSED": str(tmp_path / "missed")}).stdout == b""
    assert not (tmp_path / "missed").exists()


@pytest.mark.parametrize("size", [0, 1024 * 1024, 5 * 1024 * 1024])
def test_a_hook_of_any_size_arrives_whole(size: int) -> None:
    with serving(answers(SAID)) as daemon:
        assert relayed(daemon.env, hook=b"x" * size).stdout == SAID
    assert daemon.heard[0].partition(b"\r\n\r\n")[2] == b"x" * size


def test_an_answer_of_many_pieces_comes_back_whole() -> None:
    said = b'{"reason": "' + b"x" * 300_000 + b'"}'
    with serving(answers(said)) as daemon:
        assert relayed(daemon.env).stdout == said


BAD: dict[str, tuple[Behaviour, str]] = {
    "401": (answers(b'{"error": "no"}', b"401 Unauthorized"), "answered 401"),
    "404": (answers(b'{"error": "no"}', b"404 Not Found"), "answered 404"),
    "500": (answers(b"<html>", b"500 Internal Server Error"), "answered 500"),
    "nothing at all": (cuts(b""), "cut off"),
    "half a head": (cuts(b"HTTP/1.1 200 OK\r\nContent-Le"), "cut off"),
    "no length": (cuts(b"HTTP/1.1 200 OK\r\n\r\n{}"), "cut off"),
    "half a body": (answers(b'{"half": ', length=50), "cut off"),
    "a page": (answers(b"<html>It works</html>"), "answered nonsense"),
    "no HTTP": (cuts(b"SSH-2.0-OpenSSH_9.2\r\n"), "cut off"),
    "a length that is none": (cuts(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}"), "invalid literal"),
    "binary": (cuts(bytes(range(256)) * 10), ""),
    "too much": (answers(b"{" + b" " * (2 * relay.MAX_ANSWER_BYTES) + b"}"), "cut off"),
}


@pytest.mark.parametrize("name", BAD)
def test_whatever_else_is_answered_is_never_printed_and_noted_as_missed(name: str, tmp_path: Path) -> None:
    behave, why = BAD[name]
    with serving(behave) as daemon:
        run = relayed({**daemon.env, "COVEY_MISSED": str(tmp_path / "missed")})
    assert run.stdout == b""
    at, moment, said = (tmp_path / "missed").read_text().split(" ", 2)
    assert float(at) > 0 and moment == "PreToolUse" and why in said and said.count("\n") == 1


def test_a_daemon_that_hangs_is_given_up(tmp_path: Path) -> None:
    over = threading.Event()
    with serving(waits(over)) as daemon:
        run = relayed({**daemon.env, "COVEY_MISSED": str(tmp_path / "missed")}, quick=True)
        over.set()
    assert run.stdout == b"" and (tmp_path / "missed").read_text().endswith(" PreToolUse too late\n")


def test_a_daemon_that_reads_nothing_is_given_up(tmp_path: Path) -> None:
    over = threading.Event()
    with serving(waits(over, hears=False)) as daemon:
        env = {**daemon.env, "COVEY_MISSED": str(tmp_path / "missed")}
        run = relayed(env, hook=b"x" * 32 * 1024 * 1024, quick=True)
        over.set()
    assert run.stdout == b"" and (tmp_path / "missed").read_text().endswith(" PreToolUse too late\n")


def test_a_hook_that_never_ends_is_given_up(tmp_path: Path) -> None:
    env = {"COVEY_URL": "http://127.0.0.1:9", "COVEY_TOKEN": "secret", "COVEY_MISSED": str(tmp_path / "missed")}
    argv = [sys.executable, "-I", "-S", str(PROGRAM), "Stop"]
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(PATIENCE) == 0
        assert process.stdout is not None and process.stdout.read() == b""
    assert (tmp_path / "missed").read_text().endswith(" Stop too late\n")


def test_a_daemon_that_is_away_is_noted_line_by_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    env = {"COVEY_URL": f"http://127.0.0.1:{port}", "COVEY_TOKEN": "t", "COVEY_PROOF": credential()}
    env["COVEY_MISSED"] = str(tmp_path / "missed")
    for moment in ("PreToolUse", "PostToolUse"):
        assert relayed(env, moment).stdout == b""
    lines = (tmp_path / "missed").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [
        "PreToolUse Connection refused",
        "PostToolUse Connection refused",
    ]


HEARD = b"HTTP/1.1 100 Continue\r\n\r\n"


def test_a_question_to_a_person_is_waited_for() -> None:
    decided = threading.Event()

    def behave(connection: socket.socket, daemon: Daemon) -> None:
        heard(connection, daemon)
        connection.sendall(HEARD)
        decided.wait(PATIENCE)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(SAID), SAID))

    threading.Timer(2 * relay.QUICK, decided.set).start()
    with serving(behave) as daemon:
        assert relayed(daemon.env, "PermissionRequest", quick=True).stdout == SAID


def test_nobody_waits_for_a_person_whom_a_daemon_that_stands_still_never_asks(tmp_path: Path) -> None:
    over = threading.Event()
    threading.Timer(20 * relay.QUICK, over.set).start()
    with serving(waits(over)) as daemon:
        run = relayed({**daemon.env, "COVEY_MISSED": str(tmp_path / "missed")}, "PermissionRequest", quick=True)
        assert not over.is_set()
        over.set()
    assert run.stdout == b"" and (tmp_path / "missed").read_text().endswith(" PermissionRequest too late\n")


def test_a_question_of_an_agent_that_is_gone_is_waited_for_no_longer(tmp_path: Path) -> None:
    left = threading.Event()

    def behave(connection: socket.socket, daemon: Daemon) -> None:
        heard(connection, daemon)
        connection.sendall(HEARD)
        os.kill(int((tmp_path / "agent").read_text()), signal.SIGKILL)
        connection.settimeout(PATIENCE)
        if connection.recv(1) == b"":
            left.set()

    with serving(behave) as daemon:
        relay_words = f"{sys.executable} -I -S {PROGRAM} PermissionRequest"
        words = ["sh", "-c", f"echo $$ > {tmp_path}/agent; echo {{}} | {relay_words}; true"]
        subprocess.run(words, env={**daemon.env, "PATH": os.environ["PATH"]}, timeout=PATIENCE, check=False)
        assert left.wait(PATIENCE)


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"COVEY_URL": "http://127.0.0.1:1"},
        {"COVEY_TOKEN": "t"},
        {"COVEY_URL": "https://127.0.0.1:1", "COVEY_TOKEN": "t"},
        {"COVEY_URL": "nonsense", "COVEY_TOKEN": "t"},
        {"COVEY_URL": "http://127.0.0.1:many", "COVEY_TOKEN": "t"},
        {"COVEY_URL": "http://127.0.0.1:99999", "COVEY_TOKEN": "t"},
        {"COVEY_URL": "http://127.0.0.1:1", "COVEY_TOKEN": "t", "COVEY_MISSED": "/nowhere/at/all"},
    ],
)
def test_without_a_place_to_ask_it_says_nothing(env: dict[str, str]) -> None:
    assert relayed(env).stdout == b""


# Who is not covey


def impostor(passes_on: int | None = None) -> Behaviour:
    """Return the behaviour of one that knows nothing of ours; it may pass the question on to the true daemon."""

    def behave(connection: socket.socket, daemon: Daemon) -> None:
        asked = connection.recv(65536)
        daemon.heard.append(asked)
        if passes_on is None:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(SAID), SAID))
        else:
            connection.sendall(proved(asked, f"127.0.0.1:{passes_on}"))
        while more := connection.recv(65536):
            daemon.heard.append(more)

    return behave


@pytest.mark.parametrize("passes_on", [None, 20_000])
@pytest.mark.parametrize("moment", ["PreToolUse", "PermissionRequest", "guard"])
def test_who_cannot_prove_to_be_covey_hears_no_token_and_is_not_believed(
    tmp_path: Path, passes_on: int | None, moment: str
) -> None:
    with serving(impostor(passes_on)) as daemon:
        assert relayed({**daemon.env, "COVEY_MISSED": str(tmp_path / "missed")}, moment).stdout == b""
    assert b"secret" not in b"".join(daemon.heard) and b"Write" not in b"".join(daemon.heard)
    assert len(daemon.heard) == 1 and is_question(daemon.heard[0])
    assert "did not prove" in (tmp_path / "missed").read_text()


def test_a_run_from_before_there_were_proofs_finds_the_key_beside_its_folder(tmp_path: Path) -> None:
    missed = tmp_path / "runs" / "run-1" / "missed"
    missed.parent.mkdir(parents=True)
    (tmp_path / "owner.token").write_text(f"{TOKEN}\n")
    with serving(answers(SAID)) as daemon:
        env = {name: value for name, value in daemon.env.items() if name != "COVEY_PROOF"}
        assert relayed({**env, "COVEY_MISSED": str(missed)}).stdout == SAID
    with serving(answers(SAID)) as daemon:
        assert relayed(env | {"COVEY_URL": daemon.env["COVEY_URL"]}).stdout == b"", "nothing could prove who answers"
    assert daemon.heard == []


# Whom covey did not start


@pytest.fixture(scope="module")
def daemons_pid() -> Iterator[int]:
    """Yield a process that is called like a daemon."""
    with subprocess.Popen([sys.executable, "-c", "input()", "covey.daemon"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def state(folder: Path, port: int, pid: int) -> list[str]:
    """Write what a daemon keeps in the project's folder, and return the words that name it."""
    (folder / "daemon.json").write_text(
        f'{{"pid": {pid}, "url": "http://127.0.0.1:{port}", "port": {port}, "version": ""}}'
    )
    (folder / "owner.token").write_text("owners\n")
    return ["PreToolUse", "--state", str(folder)]


def test_installed_hooks_find_the_daemon_by_its_files(tmp_path: Path, daemons_pid: int) -> None:
    with serving(answers(SAID)) as daemon:
        assert relayed({}, *state(tmp_path, daemon.port, daemons_pid)).stdout == SAID
    assert b"\r\nAuthorization: Bearer owners\r\n" in daemon.heard[0]


@pytest.mark.parametrize("whose", ["nobody", "another's", "none"])
def test_installed_hooks_tell_no_token_to_who_listens_where_a_killed_daemon_did(tmp_path: Path, whose: str) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with serving(answers(SAID)) as daemon:
        words = state(tmp_path, daemon.port, {"nobody": ended.pid, "another's": os.getpid(), "none": 0}[whose])
        assert relayed({}, *words).stdout == b""
    assert daemon.heard == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_installed_hooks_tell_nothing_to_another_users_process_with_the_daemons_number(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import os; os.setuid(65534); print(1, flush=True); input()", "covey.daemon"]
    with (
        serving(answers(SAID)) as daemon,
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
    ):
        assert other.stdout is not None and other.stdout.readline()
        assert relayed({}, *state(tmp_path, daemon.port, other.pid)).stdout == b""
        other.kill()
    assert daemon.heard == []


def test_installed_hooks_leave_to_the_hooks_of_a_run_what_is_theirs(tmp_path: Path, daemons_pid: int) -> None:
    with serving(answers(SAID)) as daemon:
        assert relayed(daemon.env, *state(tmp_path, daemon.port, daemons_pid)).stdout == b""
    assert daemon.heard == []


@pytest.mark.parametrize("name", ["daemon.json", "owner.token"])
@pytest.mark.parametrize("text", [None, "", "{}", '{"port": }', '{"port": "x"}', "\ufffd\0"])
def test_installed_hooks_of_a_project_without_a_daemon_say_nothing(
    name: str, text: str | None, tmp_path: Path, daemons_pid: int
) -> None:
    words = state(tmp_path, 1, daemons_pid)
    (tmp_path / name).unlink() if text is None else (tmp_path / name).write_text(text)
    assert relayed({}, *words).stdout == b""
    assert relayed({}, "Stop", "--state").stdout == b""


def test_it_needs_nothing_but_the_interpreter() -> None:
    argv = [sys.executable, "-I", "-S", "-X", "importtime", str(PROGRAM), "Stop"]
    loaded = subprocess.run(argv, input=b"", env={}, capture_output=True, timeout=PATIENCE, check=True)
    bare = subprocess.run([*argv[:5], "-c", "pass"], env={}, capture_output=True, timeout=PATIENCE, check=True)
    assert _names(loaded.stderr) - _names(bare.stderr) <= {"_socket", "_signal", "posix", "time", "proof", *SHA256}


def _names(told: bytes) -> set[str]:
    return {line.rpartition(b"|")[2].strip().decode() for line in told.splitlines()}


def test_nothing_of_it_stays_behind(tmp_path: Path) -> None:
    with serving(answers(SAID)) as daemon:
        relayed({**daemon.env, "COVEY_MISSED": str(tmp_path / "missed")})
    assert os.listdir(tmp_path) == []
