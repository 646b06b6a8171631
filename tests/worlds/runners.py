"""The runners that there are, and what a test needs to know of their processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from covey.core.fleet.launches import Launch, Observation
from covey.runners.process import ProcessRunner
from covey.runners.tmux import TmuxRunner, socket_of
from tests.worlds.serving import wait_until

RUNNERS: dict[str, Callable[[Path], ProcessRunner]] = {"process": ProcessRunner, "tmux": TmuxRunner}
"""A runner joins the contract by a line here."""

PATH = os.environ["PATH"]


def shell(script: str, **more: object) -> Launch:
    """Return the launch of a shell script."""
    return program("/bin/sh", "-c", script, **more)


def python(script: str, **more: object) -> Launch:
    """Return the launch of a Python script."""
    return program(sys.executable, "-I", "-S", "-c", script, **more)


def plainly(launch: Launch) -> Launch:
    """Return the launch of the same program in a terminal that changes nothing of what the program says."""
    if not launch.argv or not shutil.which(launch.argv[0]):
        return launch
    return replace(launch, argv=("/bin/sh", "-c", 'stty -onlcr <&1; exec env -u PWD "$@"', "sh", *launch.argv))


def program(*argv: str, **more: object) -> Launch:
    """Return the launch of a program."""
    return Launch(argv=argv, **{"cwd": "/", "env": {"PATH": PATH}} | more)  # type: ignore[arg-type]


class Place:
    """A folder with runs, a runner on it, and whatever the runs say."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.adds = {"TERM": "screen-256color"} if kind == "tmux" else {}
        """What a program finds in its environment since it runs here."""
        self.runner = self.another()

    def another(self) -> ProcessRunner:
        """Return a new runner on the same folder, as a restarted daemon has one."""
        return RUNNERS[self.kind](self.folder)

    def start(self, run_id: str, launch: Launch) -> None:
        """Start a run, drawing on a terminal where there is one, unless lines are typed to it."""
        if self.kind == "tmux" and not launch.typed:
            launch = plainly(replace(launch, terminal=True, stdin=launch.stdin or ""))
        self.runner.start(run_id, launch)

    def ended(self, run_id: str) -> Observation:
        """Wait for the end of a run, and return how it ended."""
        wait_until(lambda: not self.runner.look(run_id).alive, f"the end of {run_id}")
        return self.runner.look(run_id)

    def text(self, run_id: str, since: int = 0) -> str:
        """Return all output of a run so far."""
        return read_on(self.runner, run_id, since).decode()

    def says(self, run_id: str, text: str) -> str:
        """Wait until a run said something, and return all that it said."""
        wait_until(lambda: text in self.text(run_id), f"{text!r} from {run_id}")
        return self.text(run_id)

    def processes(self, run_id: str = "") -> list[int]:
        """Return the living processes of a run, or of all: those that carry its mark."""
        mark = f"COVEY_RUN_FOLDER={self.folder.resolve()}/{run_id}".encode()
        return [
            pid
            for pid, variables in environments().items()
            if any(word == mark if run_id else word.startswith(mark) for word in variables)
        ]

    def end_all(self) -> None:
        """Stop every run, and make sure that nothing is left."""
        for run in self.folder.iterdir() if self.folder.exists() else ():
            self.runner.stop(run.name)
        if isinstance(self.runner, TmuxRunner):
            self.runner.close()
            server = ["tmux", "-S", str(socket_of(self.folder)), "kill-server"]
            subprocess.run(server, check=False, stderr=subprocess.DEVNULL)
            socket_of(self.folder).unlink(missing_ok=True)
        left = {pid: command(pid) for pid in self.processes()}
        assert not any(left.values()), left


def read_on(runner: ProcessRunner, run_id: str, since: int = 0) -> bytes:
    """Return the output of a run from an offset to its end so far."""
    parts: list[bytes] = []
    while True:
        part, after = runner.output(run_id, since)
        assert after == since + len(part)
        if not part:
            return b"".join(parts)
        parts.append(part)
        since = after


def environments() -> Mapping[int, list[bytes]]:
    """Return the environment of every process that we may look at."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found[int(name)] = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
    return found


def command(pid: int) -> str:
    """Return the command line of a process; of a dead one, nothing."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def alive(pid: int) -> bool:
    """Say whether a process lives: there, and not only waiting to be buried."""
    with contextlib.suppress(OSError):
        return state(pid) not in "ZX"
    return False


def state(pid: int) -> str:
    """Return the letter of a process's state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_at_rest(pid: int) -> bool:
    """Say whether a process stands still: stopped, dead, or waiting for its new child, which stands before its exec."""
    with contextlib.suppress(OSError):
        letter = state(pid)
        return letter in "TZ" or (letter == "D" and any(state(child) == "T" for child in children(pid)))
    return not alive(pid)


def children(pid: int) -> list[int]:
    """Return the children of a process, dead ones too."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(name))
    return found
