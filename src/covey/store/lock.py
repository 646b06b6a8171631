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
        fd = _open(self.path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        if os.fstat(fd).st_size:  # what somebody told who was killed
            os.ftruncate(fd, 0)
        self._fd = fd
        return True

    def tell(self, what: str) -> None:
        """Tell whoever waits what is done behind the lock, until it is given back."""
        if self._fd is not None:
            os.pwrite(self._fd, what.encode(), 0)

    def take(self, patience: float = 30.0) -> None:
        """Take the lock in turn: one waits at the door and the others behind it, so that nobody is passed over."""
        deadline = time.monotonic() + patience
        turn = WriterLock(self.path.with_name(self.path.name + ".turn"))
        _wait(turn, deadline, longest=0.008)
        try:
            _wait(self, deadline, longest=0.001)
        finally:
            turn.give()

    @property
    def is_ours(self) -> bool:
        """Say whether the name of the lock still leads to what we hold: else another may hold one of that name."""
        try:
            return self._fd is not None and os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except OSError:
            return False

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


class NeedLock:
    """Held by all who need the daemon, together; and by a daemon that goes since nobody does, alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def take(self, patience: float = 60.0) -> None:
        """Hold it with others; a daemon that is about to go is gone before."""
        deadline = time.monotonic() + patience
        while not self._try(fcntl.LOCK_SH):
            if time.monotonic() > deadline:
                raise Unavailable("The daemon is about to end, and does not.", hint="Try covey down.")
            time.sleep(0.02)

    def try_alone(self) -> bool:
        """Hold it alone, if nobody else does; what was held with others is let go of either way."""
        return self._try(fcntl.LOCK_EX)

    def give(self) -> None:
        """Need nothing any more; giving it twice is fine."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _try(self, kind: int) -> bool:
        if self._fd is None:
            self._fd = _open(self.path)
        try:
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            self.give()
            return False
        return True

    def __enter__(self) -> NeedLock:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give()


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        hint = "covey needs to write in its folder."
        raise Unavailable(f"The lock {path} cannot be opened: {error.strerror}.", hint=hint) from error


def held_for(path: Path) -> str:
    """Return what whoever holds a lock does behind it, if that tells it; else it does not take long."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return ""


def taken(path: Path) -> Unavailable:
    """Return what is told to whoever has waited in vain: who holds a lock, if that tells it."""
    told = held_for(path)
    if told:
        return Unavailable(f"{told} at this moment, and holds the board's lock.", hint="Try again when it has ended.")
    return Unavailable(
        "Another covey command has held the board's lock for a long time.",
        hint="Try again; covey status tells whether a daemon is running.",
    )


def _wait(lock: WriterLock, deadline: float, *, longest: float) -> None:
    """Try again and again, after pauses of random length, until the lock is ours."""
    while not lock.try_take():
        if time.monotonic() > deadline:
            raise taken(lock.path)
        time.sleep(longest * (1 + os.urandom(1)[0]) / 256)
