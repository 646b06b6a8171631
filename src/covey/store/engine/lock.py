"""The one lock that makes its holder the only writer."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

from covey.errors import Unavailable

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable

ASK_EVERY_S = 0.02
"""Between two looks of somebody who waits: whether it is answered by now, and whether it has waited too long."""


class _Lock:
    """A file that is locked while it is open; close-on-exec, so that no child of ours ever keeps it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def give(self) -> None:
        """Give the lock back; giving it twice is fine."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __exit__(self, *_: object) -> None:
        self.give()


class WriterLock(_Lock):
    """An exclusive lock: its holder is the only writer."""

    def try_take(self) -> bool:
        """Take the lock if it is free."""
        fd = _open(self.path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._hold(fd)
        return True

    def _hold(self, fd: int) -> None:
        if os.fstat(fd).st_size:  # what somebody told who held it before
            os.ftruncate(fd, 0)
        self._fd = fd

    def tell(self, what: str) -> None:
        """Tell whoever waits what is done behind the lock, until it is given back."""
        if self._fd is not None:
            os.pwrite(self._fd, what.encode(), 0)

    def take(self, patience: float = 30.0, is_answered: Callable[[], bool] = lambda: False) -> bool:
        """Take the lock, first come, first served.

        Whoever waits asks `is_answered` at once and now and then, and goes away without the lock when it is so.
        """
        deadline = time.monotonic() + patience
        if self.try_take():
            return True
        if is_answered():
            return False
        place = _Place(self.path)
        try:
            while not place.has_come(ASK_EVERY_S):
                if is_answered():
                    return False
                if time.monotonic() > deadline:
                    raise taken(self.path)
            self._hold(place.keep())
            return True
        finally:
            place.leave()

    @property
    def is_ours(self) -> bool:
        """Say whether the name of the lock still leads to what we hold: else another may hold one of that name."""
        try:
            return self._fd is not None and os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except OSError:
            return False

    def __enter__(self) -> WriterLock:
        self.take()
        return self


class NeedLock(_Lock):
    """Held by all who need the daemon, together; and by a daemon that goes since nobody does, alone."""

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
        "Another covey command is writing, and has been for a long time.",
        hint="Try again; covey status tells whether a daemon is running.",
    )


class _Place:
    """A place in the kernel's line for a lock: held by a thread, since only a call that waits has one."""

    def __init__(self, path: Path) -> None:
        self._fd: int | None = _open(path)
        self._guard = threading.Lock()
        self._come = threading.Event()
        self._is_left = False
        threading.Thread(target=self._stand, args=(self._fd,), name="covey-in-line", daemon=True).start()

    def _stand(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with self._guard:
            self._come.set()
            if self._is_left:
                os.close(fd)

    def has_come(self, patience: float) -> bool:
        """Say whether the lock is ours, after waiting for it."""
        return self._come.wait(patience)

    def keep(self) -> int:
        """Return the lock that has come; it is the caller's from now on."""
        fd, self._fd = self._fd, None
        assert fd is not None
        return fd

    def leave(self) -> None:
        """Leave the line; what comes nevertheless is given back at once."""
        with self._guard:
            self._is_left = True
            if self._come.is_set() and self._fd is not None:
                os.close(self._fd)
