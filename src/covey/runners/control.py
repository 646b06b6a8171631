"""A connection to a tmux server in control mode: commands and answers as lines, many on their way at once."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from covey.errors import ToolFailed, Unavailable

ASK_TIMEOUT_S = 10.0
"""Seconds that a server has to answer."""
READ_CHUNK_BYTES = 1 << 16
OF_OURS = b"1"
"""The flag of an answer to a command that came by this connection."""


@dataclass
class Answer:
    """What the server said to one command."""

    good: bool = False
    lines: list[str] = field(default_factory=list)


class Control:
    """Asks a server, and connects again when the connection was lost. No call waits for ever."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._turn = threading.Lock()

    def ask(self, *commands: str, again: bool = True) -> list[Answer]:
        """Return the answers in their order; what must not be done twice is not asked again after a lost connection."""
        if not self._turn.acquire(timeout=ASK_TIMEOUT_S):
            raise Unavailable("Others keep tmux busy.", hint="Try it again.")
        try:
            return self._ask(commands, again=again)
        finally:
            self._turn.release()

    def _ask(self, commands: Sequence[str], *, again: bool) -> list[Answer]:
        if self._connection is not None and self._connection.is_lost():
            self._drop()
        fresh = self._connection is None
        try:
            if self._connection is None:
                self._connection = self._connect()
            return self._connection.ask(commands)
        except OSError as error:
            self._drop()
            if again and not fresh and not isinstance(error, TimeoutError):
                return self._ask(commands, again=False)
            raise Unavailable(
                f"tmux does not answer: {error}.", hint="Its server may have been killed; try it again."
            ) from None

    def close(self) -> None:
        """Let go of the server; the next question connects again."""
        with self._turn:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Connection:
    """One process of tmux that we talk to. Whatever goes wrong is an OSError, and then it is of no use any more."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], lifeline: int) -> None:
        self._lifeline = lifeline
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        for file in (self._to, self._from):
            os.set_blocking(file, False)
        os.write(lifeline, b"%d\n" % self._process.pid)  # who ends it if we are killed
        self._unread = b""
        self._open: tuple[bytes, Answer] | None = None

    def is_lost(self) -> bool:
        """Say whether the server hung up; what it told us meanwhile without being asked is read and dropped."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._from, READ_CHUNK_BYTES):
                self._unread = (self._unread + data).rpartition(b"\n")[2]
                if data.endswith(b"%exit\n") or b"\n%exit" in data:
                    return True
            return True
        return False

    def ask(self, commands: Sequence[str]) -> list[Answer]:
        """Send commands and return their answers."""
        if any("\n" in command for command in commands):
            raise ToolFailed("A command for tmux has more than one line.", hint="This is a bug of covey.")
        unsent = "".join(f"{command}\n" for command in commands).encode()
        answers: list[Answer] = []
        deadline = time.monotonic() + ASK_TIMEOUT_S
        while len(answers) < len(commands):
            ready = self._wait(deadline - time.monotonic(), sending=bool(unsent))
            if self._to in ready:
                unsent = unsent[os.write(self._to, unsent) :]
            if self._from in ready:
                answers += self._read()
        if len(answers) > len(commands):
            raise ConnectionError("it said more than it was asked")
        return answers

    def _wait(self, patience: float, *, sending: bool) -> set[int]:
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        if sending:
            poll.register(self._to, select.POLLOUT)
        ready = {file for file, _ in poll.poll(max(0.0, patience * 1000))}
        if not ready:
            raise TimeoutError("it took too long")
        return ready

    def _read(self) -> list[Answer]:
        data = os.read(self._from, READ_CHUNK_BYTES)
        if not data:
            raise ConnectionError("it hung up")
        *lines, self._unread = (self._unread + data).split(b"\n")
        return [answer for line in lines if (answer := self._take(line)) is not None]

    def _take(self, line: bytes) -> Answer | None:
        """Take one line, and return the answer that it completes."""
        word, _, rest = line.partition(b" ")
        if self._open is None:
            if word == b"%begin":
                self._open = rest, Answer()
            elif word == b"%exit":
                raise ConnectionError(f"it ended {rest.decode(errors='replace')}".rstrip())
            return None  # News, which we did not ask for.
        name, answer = self._open
        if word not in (b"%end", b"%error") or rest != name:
            answer.lines.append(line.decode(errors="replace"))
            return None
        self._open = None
        answer.good = word == b"%end"
        # The first ones belong to the command line with which it was started.
        return answer if name.rpartition(b" ")[2] == OF_OURS else None

    def close(self) -> None:
        """End the process, and let go of the lifeline: what the server keeps for this connection ends with that."""
        os.close(self._lifeline)
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(ASK_TIMEOUT_S)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
