"""The command `covey`, run as a process of its own that is forked from one which has loaded it.

Loading covey is most of what a short command takes, and the suite runs some thousand of them. What runs is the same:
a process with its own folder, environment, files and exit code, which ends as any Python does. Whoever tests the start
itself, a terminal, a signal or another environment runs `python -m covey`.
"""

from __future__ import annotations

import contextlib
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
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, Any

CHECKOUT = Path(__file__).parents[2]


def run_covey(
    words: tuple[str, ...], *, cwd: Path, env: dict[str, str], stdin: str | None = None, timeout: float
) -> CompletedProcess[str]:
    """Run covey and return how it ended."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, contextlib.ExitStack() as stack:
        told = stack.enter_context(_file(json.dumps({"words": words, "cwd": str(cwd), "env": env})))
        given = stack.enter_context(open(os.devnull, "rb") if stdin is None else _file(stdin))  # noqa: SIM115
        pipes = [os.pipe(), os.pipe()]
        reads = [stack.enter_context(os.fdopen(end, "rb")) for end, _ in pipes]
        try:
            with theirs:
                _ready().send([theirs.fileno(), told.fileno(), given.fileno(), *(end for _, end in pipes)])
        finally:
            for _, end in pipes:
                os.close(end)
        ours.settimeout(timeout)
        pid = int(ours.recv(100))
        out, err = _read_all(reads, pid, timeout)
        ended = ours.recv(100)
        assert ended, f"covey {words} ended without a word"
        return CompletedProcess(words, int(ended), out, err)


def _file(text: str) -> IO[bytes]:
    """Return an open file that has no name and holds a text."""
    file = os.fdopen(os.memfd_create("covey"), "w+b")
    file.write(text.encode())
    file.seek(0)
    return file


def _read_all(files: Sequence[IO[bytes]], pid: int, timeout: float) -> list[str]:
    """Read files until whoever writes them has ended; kill who takes too long."""
    read: dict[int, bytes] = {file.fileno(): b"" for file in files}
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for file in files:
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(deadline - time.monotonic())
            if not ready:
                os.kill(pid, signal.SIGKILL)
                raise TimeoutError(f"covey takes longer than {timeout:g} s")
            for key, _ in ready:
                part = os.read(key.fd, 65536)
                read[key.fd] += part
                if not part:
                    selector.unregister(key.fileobj)
    return [text.decode() for text in read.values()]


class _Ready:
    """The process that has loaded covey; it ends with this one, since its door closes then."""

    def __init__(self) -> None:
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.worlds.forked", str(theirs.fileno())],
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
    for number, each in enumerate(files):
        os.dup2(each, number)
        os.close(each)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["covey", *request["words"]]


def _load() -> None:
    import covey.app.app
    import covey.cli

    for module in pkgutil.walk_packages(covey.cli.__path__, "covey.cli."):
        importlib.import_module(module.name)
    gc.freeze()


if __name__ == "__main__":
    from covey.cli.main import main

    _load()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(main())
