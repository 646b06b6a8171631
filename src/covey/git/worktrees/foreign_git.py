"""Git commands of others that are at work in a checkout at this moment, by the kernel's word."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

WORKING_STATES = b"RD"
"""States of a process that has the processor, waits for it, or for the disk; one with an editor or a pager sleeps."""
LOOK_EVERY_S = 0.005


def at_work(places: Iterable[Path]) -> bool:
    """Say whether somebody's git command is in the middle of its work in one of some checkouts.

    False where the kernel does not tell: then whoever asks has only the clock.
    """
    # What we do ourselves, and several things at a time, is done in the folder of git.
    return _is_any(lambda state, _: state in WORKING_STATES, places, unknown=False, besides=".git/")


def await_rest(places: Iterable[Path], patience: float) -> bool:
    """Wait some time until no git command of others is in the middle of its work there, and say whether that is so."""
    there, deadline = list(places), time.monotonic() + patience
    while at_work(there):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True


def are_in(places: Iterable[Path]) -> bool:
    """Say whether a git command that is not a child of ours runs in one of some folders, at work or not.

    True also where that cannot be known, since it is another user's.
    """
    return _is_any(lambda state, parent: state not in b"ZX" and parent != os.getpid(), places, unknown=True)


def is_occupied(place: Path) -> bool:
    """Say whether any process that can be looked at works in a folder, or below it."""
    return _is_any(None, [place], unknown=False)


def _is_any(
    is_meant: Callable[[bytes, int], bool] | None, places: Iterable[Path], *, unknown: bool, besides: str = ""
) -> bool:
    """Say whether a git command that is meant works in a folder, by its state and parent; without that, any process.

    `unknown` is the answer where the kernel does not list them, and for one at which it does not let us look. What is
    `besides` in a folder is no part of it.
    """
    tops = [f"{os.path.realpath(place)}/" for place in places]
    try:
        names = os.listdir("/proc")
    except OSError:
        return unknown
    for name in filter(str.isdigit, names):
        try:
            cwd = f"{os.readlink(f'/proc/{name}/cwd')}/" if is_meant is None or _is_git(name, is_meant) else ""
        except OSError as error:  # It has just ended, or is another user's.
            if unknown and isinstance(error, PermissionError):
                return True
            continue
        if any(cwd.startswith(top) and not (besides and cwd.startswith(top + besides)) for top in tops):
            return True
    return False


def _is_git(name: str, is_meant: Callable[[bytes, int], bool]) -> bool:
    # Its name first: that costs a third of all else, and few are git.
    if not _read(f"/proc/{name}/comm").startswith(b"git"):
        return False
    state, parent = _read(f"/proc/{name}/stat").rpartition(b") ")[2].split()[:2]
    return is_meant(state, int(parent))


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 1024)
    finally:
        os.close(file)
