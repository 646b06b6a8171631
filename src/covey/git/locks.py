"""Locks of our own around git's work, and the lock files that a killed git leaves behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from covey.errors import Unavailable

LOCK_TIMEOUT_S = 600.0
"""Seconds that a lock may be waited for: as long as the slowest checkout may take."""
LEFT_BEHIND_S = 1.0
"""Seconds for which a lock file of git stands unchanged before it counts as left behind."""
_PAUSE_S = 0.004

_threads: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
_door = threading.Lock()


@contextlib.contextmanager
def held(path: Path) -> Iterator[int]:
    """Hold an exclusive lock on a file among all threads and processes; its descriptor may be lent to git."""
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    with _door:
        mine = _threads[path]
    if not mine.acquire(timeout=LOCK_TIMEOUT_S):
        raise _busy(path)
    try:
        fd = _take(path, deadline)
        try:
            yield fd
        finally:
            # Unlocked by name: something that git left running may have inherited the descriptor.
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)
    finally:
        mine.release()


def _take(path: Path, deadline: float) -> int:
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            continue
        except OSError as error:
            raise Unavailable(f"The lock {path} cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, fd):
                return fd
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        os.close(fd)
        if time.monotonic() > deadline:
            raise _busy(path)


def _is_at(path: Path, fd: int) -> bool:
    """Say whether the file that we locked is still the one of that name: its last holder may have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _busy(path: Path) -> Unavailable:
    return Unavailable(f"Another covey process has held {path} for a long time.", hint="Try again in a while.")


def clear_left_behind(lock: Path) -> None:
    """Remove a lock file of git that nobody has touched for a moment; wait for one that is new."""
    began = time.monotonic()
    try:
        first = lock.stat()
        while time.time() - first.st_mtime < LEFT_BEHIND_S and time.monotonic() - began < LEFT_BEHIND_S:
            time.sleep(_PAUSE_S)
            now = lock.stat()
            if (now.st_ino, now.st_mtime_ns) != (first.st_ino, first.st_mtime_ns):
                first, began = now, time.monotonic()
        lock.unlink()
    except FileNotFoundError:
        return
