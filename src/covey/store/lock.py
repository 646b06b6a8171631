"""The one lock that makes its holder the only writer."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from covey.errors import Unavailable


class WriterLock:
    """An exclusive flock; close-on-exec, so that no child of ours ever keeps it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def try_take(self) -> bool:
        """Take the lock if it is free."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def take(self, patience: float = 30.0) -> None:
        """Take the lock, waiting for whoever holds it at the moment; the wait is random so that all get their turn."""
        deadline = time.monotonic() + patience
        while not self.try_take():
            if time.monotonic() > deadline:
                raise Unavailable(
                    "Another covey command has held the board's lock for a long time.",
                    hint="Try again; covey status tells whether a daemon is running.",
                )
            time.sleep(0.001 + 0.007 * os.urandom(1)[0] / 255)

    def give(self) -> None:
        """Give the lock back; giving it twice is fine."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> WriterLock:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give()
