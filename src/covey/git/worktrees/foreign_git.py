"""Git commands of others that are at work in a checkout at this moment, by the kernel's word."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

AT_WORK = b"RD"
"""States of a process that has the processor, waits for it, or for the disk; one with an editor or a pager sleeps."""
LOOK_EVERY = 0.005


def at_work(places: Iterable[Path]) -> bool:
    """Say whether somebody's git command is in the middle of its work in one of some checkouts.

    False where the kernel does not tell: then whoever asks has only the clock.
    """
    tops = [os.path.realpath(place) for place in places]
    try:
        names = os.listdir("/proc")
    except OSError:
        return False
    return any(_is_git_at_work(name, tops) for name in names if name.isdigit())


def await_rest(places: Iterable[Path], patience: float) -> bool:
    """Wait some time until no git command of others is in the middle of its work there, and say whether that is so."""
    there, deadline = list(places), time.monotonic() + patience
    while at_work(there):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY)
    return True


def are_in(places: Iterable[Path]) -> bool:
    """Say whether a git command that is not a child of ours runs in one of some folders, at work or not.

    True also where that cannot be known, since it is another user's.
    """
    tops = [os.path.realpath(place) for place in places]
    try:
        names = os.listdir("/proc")
    except OSError:
        return True
    return any(_is_git_in(name, tops) for name in names if name.isdigit())


def _is_git_in(name: str, tops: list[str]) -> bool:
    try:
        if not _read(f"/proc/{name}/comm").startswith(b"git"):
            return False
        state, parent = _read(f"/proc/{name}/stat").rpartition(b") ")[2].split()[:2]
        if state in b"ZX" or int(parent) == os.getpid():
            return False
        cwd = os.readlink(f"/proc/{name}/cwd")
    except PermissionError:
        return True
    except OSError:  # It has just ended.
        return False
    return any(f"{cwd}/".startswith(f"{top}/") for top in tops)


def _is_git_at_work(name: str, tops: list[str]) -> bool:
    try:
        # Its name first: that costs a third of all else, and few are git.
        if not _read(f"/proc/{name}/comm").startswith(b"git"):
            return False
        if _read(f"/proc/{name}/stat").rpartition(b") ")[2][:1] not in AT_WORK:
            return False
        cwd = os.readlink(f"/proc/{name}/cwd")
    except OSError:  # It has just ended, or is another user's.
        return False
    # What we do ourselves, and several things at a time, is done in the folder of git.
    return any(f"{cwd}/".startswith(f"{top}/") and not f"{cwd}/".startswith(f"{top}/.git/") for top in tops)


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 1024)
    finally:
        os.close(file)
