"""The command `covey` and the daemon, run as processes of their own that are forked from one which has loaded them.

Loading covey is most of what a short command takes, and of a daemon's first second; the suite runs some thousand of
them. What runs is the same: a process with its own folder, environment, files, words and exit code, which ends as any
Python does. A daemon that a forked command starts is forked too, from the command. Whoever tests the start itself, a
terminal, a signal or another environment runs `python -m covey` or `python -m covey.daemon`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from types import TracebackType
from typing import IO, Any, ClassVar, Literal

CHECKOUT = Path(__file__).parents[2]


PLAIN_DAEMON = "-m", "covey.daemon"
"""The words of Python that start a daemon."""
_ROOM = 8192
"""Bytes for the words of a forked process, which others read in /proc."""


def run_covey(
    words: tuple[str, ...], *, cwd: Path, env: dict[str, str], stdin: str | None = None, timeout: float
) -> CompletedProcess[str]:
    """Run covey and return how it ended."""
    with Forked("covey", words, cwd=cwd, env=env, stdin=stdin) as process:
        try:
            out, err = process.communicate(timeout)
        except TimeoutExpired:
            process.kill()
            raise TimeoutError(f"covey takes longer than {timeout:g} s") from None
        assert process.returncode is not None
        return CompletedProcess(words, process.returncode, out.decode(), err.decode())


class Forked:
    """A process that was forked, and is asked as one of `subprocess` is.

    Its parent is a process that only waits for it, and tells how it has ended.
    """

    def __init__(
        self,
        what: Literal["covey", "covey.daemon"],
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: str | None = None,
    ) -> None:
        self.args = [sys.executable, "-m", what, *words]
        self.returncode: int | None = None
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipes = [os.pipe(), os.pipe()]
        self._reads = [os.fdopen(end, "rb") for end, _ in pipes]
        told = {"argv": self.args, "cwd": str(cwd), "env": dict(env)}
        with (
            theirs,
            _file(json.dumps(told)) as request,
            open(os.devnull, "rb") if stdin is None else _file(stdin) as given,
        ):
            try:
                _ready().send([theirs.fileno(), request.fileno(), given.fileno(), *(end for _, end in pipes)])
            finally:
                for _, end in pipes:
                    os.close(end)
        self.pid = int(self._line.recv(100))

    def poll(self) -> int | None:
        """Return how it has ended, if it has."""
        with contextlib.suppress(TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return how."""
        if self.returncode is None:
            self._line.settimeout(timeout)
            try:
                ended = self._line.recv(100)
            except (TimeoutError, BlockingIOError):
                raise TimeoutExpired(self.args, timeout or 0) from None
            assert ended, f"{self.args} ended without a word"
            self.returncode = int(ended)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Read all that it prints, to the end of it."""
        read: dict[IO[bytes], bytes] = dict.fromkeys(self._reads, b"")
        deadline = None if timeout is None else time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for file in self._reads:
                if not file.closed:
                    selector.register(file, selectors.EVENT_READ, file)
            while selector.get_map():
                ready = selector.select(None if deadline is None else max(deadline - time.monotonic(), 0))
                if not ready:
                    raise TimeoutExpired(self.args, timeout or 0)
                for key, _ in ready:
                    part = os.read(key.fd, 65536)
                    read[key.data] += part
                    if not part:
                        selector.unregister(key.fileobj)
        self.wait(None if deadline is None else max(deadline - time.monotonic(), 0.1))
        out, err = read.values()
        self.close()
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it is gone, and we have not heard of it yet
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close what leads to it."""
        self._line.close()
        for file in self._reads:
            file.close()

    def __enter__(self) -> Forked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _file(text: str) -> IO[bytes]:
    """Return an open file that has no name and holds a text."""
    file = os.fdopen(os.memfd_create("covey"), "w+b")
    file.write(text.encode())
    file.seek(0)
    return file


class _Ready:
    """The process that has loaded covey; it ends with this one, since its door closes then."""

    def __init__(self) -> None:
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.worlds.forked", str(theirs.fileno()), " " * _ROOM],
                cwd=CHECKOUT,
                pass_fds=[theirs.fileno()],
            )
        self._turn = threading.Lock()

    def send(self, files: list[int]) -> None:
        with self._turn:
            socket.send_fds(self._door, [b"run"], files)


@cache
def _ready() -> _Ready:
    return _Ready()


# In the other process


def _serve(door: socket.socket) -> None:
    """Fork for every request; return in the process that is to be the command."""
    while True:
        _, files, _, _ = socket.recv_fds(door, 10, 5)
        if not files:
            os._exit(0)
        if os.fork() == 0:
            door.close()
            return _become(*files)
        for file in files:
            os.close(file)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _become(report: int, told: int, *files: int) -> None:
    """Fork once more: one process says how the other, which returns from here, has ended."""
    pid = os.fork()
    if pid:
        with socket.socket(fileno=report) as line, contextlib.suppress(BrokenPipeError):
            line.send(str(pid).encode())
            line.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
        os._exit(0)
    os.close(report)
    with os.fdopen(told, "rb") as file:
        request: dict[str, Any] = json.load(file)
    if not _STARTERS.isdisjoint(request["argv"]):
        request, files = _sow(request, files)
    for number, each in enumerate(files):
        os.dup2(each, number)
        os.close(each)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    _take_words(request["argv"])


_STARTERS = {"merge", "open", "run", "session", "up"}
"""Commands that may start a daemon; what another one starts is not forked."""


def _sow(request: dict[str, Any], files: tuple[int, ...]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Fork a process that becomes the daemon if one is started, before there is anything a daemon must not inherit.

    Returns what this process is to be, in the command at once, and in the daemon when it is started.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid:
        theirs.close()
        _Popen.seed = _Seed(pid, ours)
        return request, files
    ours.close()
    for file in files:
        os.close(file)
    with theirs:
        said, given, _, _ = socket.recv_fds(theirs, 10, 4)
    if not said:
        os._exit(0)
    os.setsid()
    told, *given = given
    with os.fdopen(told, "rb") as asked:
        request = json.load(asked)
    signal.pthread_sigmask(signal.SIG_SETMASK, request["mask"])
    return request, tuple(given)


class _Seed:
    """A child that waits for what it is to be."""

    def __init__(self, pid: int, door: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._door = door

    def become(self, args: list[str], *, stdin: int, stdout: IO[bytes], stderr: IO[bytes], cwd: Path) -> None:
        """Be a daemon; takes what `subprocess.Popen` takes, with no standard input."""
        assert stdin == subprocess.DEVNULL
        mask = [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
        told = {"argv": args, "cwd": str(cwd), "env": dict(os.environ), "mask": mask}
        with self._door, _file(json.dumps(told)) as request, open(os.devnull, "rb") as nothing:
            socket.send_fds(self._door, [b"be"], [each.fileno() for each in (request, nothing, stdout, stderr)])

    def poll(self) -> int | None:
        """Return how it has ended, if it has."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait until it has ended, and return how."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise TimeoutExpired("covey.daemon", timeout)
            time.sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


class _Popen(subprocess.Popen[Any]):
    """A process that a command starts: if it is its daemon, that has been forked already."""

    seed: ClassVar[_Seed | None] = None

    def __new__(cls, args: Any, **more: Any) -> Any:
        if cls.seed is None or tuple(args[2:4]) != PLAIN_DAEMON or not more.pop("start_new_session", False):
            return super().__new__(cls)
        seed, cls.seed = cls.seed, None
        seed.become(args, **more)
        return seed


def _take_words(words: list[str]) -> None:
    """Be known by the words by which this would have been started: to this program, and to who looks into /proc."""
    sys.argv = words[words.index("-m") + 1 :]
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(stat[45]), int(stat[46])
    told = b"".join(os.fsencode(word) + b"\0" for word in words)
    assert len(told) <= _ROOM < end - begin
    ctypes.memmove(begin, told.ljust(end - begin, b"\0"), end - begin)


def _end(code: int) -> None:
    """End as Python does, but for taking every module apart, for which it would get a copy of each page of memory."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        sys.exit(code)  # it is told as Python tells it
    sys.stderr.flush()
    os._exit(code)


def _load() -> None:
    import covey.app.app
    import covey.cli
    import covey.daemon.command

    for module in pkgutil.walk_packages(covey.cli.__path__, "covey.cli."):
        importlib.import_module(module.name)
    gc.freeze()


if __name__ == "__main__":
    from covey.cli.main import main
    from covey.daemon.__main__ import main as daemon

    _load()
    subprocess.Popen = _Popen  # type: ignore[assignment,misc]
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _end(daemon() if sys.argv[0] == "covey.daemon" else main())
