"""The one remover: takes a file, a link or a whole folder away, whatever somebody has put into it.

It never follows a link, never leaves the file system that the folder is on, and never enters a mount: every folder is
moved up to the root of the removal before it is entered, and the kernel refuses that for a mount point. So it needs two
descriptors for any depth, and no path grows too long. Folders without rights are given them back.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from secrets import token_hex

REMOVE_TIMEOUT_S = 600.0
"""Seconds that one removal may take; what is left then is for the next."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(path: Path, *, patience_s: float = REMOVE_TIMEOUT_S) -> bool:
    """Remove whatever is at a path, and say whether nothing is left of it; it never raises for what it finds."""
    deadline = time.monotonic() + patience_s
    try:
        parent = os.open(path.parent, _FOLDER & ~os.O_NOFOLLOW)
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    try:
        name = os.fsencode(path.name)
        with contextlib.suppress(OSError):
            _remove_in(parent, name, deadline)
        return not _is_there(parent, name)
    finally:
        os.close(parent)


def remove_later(folder: Path) -> None:
    """Have a folder removed by a process that outlives us and gives way to others; one at a time does it."""
    # Isolated and without site: it starts in milliseconds, and needs nothing but this file.
    words = [sys.executable, "-I", "-S", os.path.abspath(__file__), str(folder)]
    null = subprocess.DEVNULL
    subprocess.run(words, cwd="/", stdin=null, stdout=null, stderr=null, start_new_session=True, check=False)


def _remove_whole(folder: Path) -> None:
    """Remove all in a folder, and then itself; whoever puts something there meanwhile need not start another."""
    lock = os.open(folder, _FOLDER)
    left: set[str] = set()
    try:
        while names := set(os.listdir(lock)) - left:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # whoever has it looks again after giving it back
            left |= {name for name in names if not remove(folder / name)}
            fcntl.flock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)
    with contextlib.suppress(OSError):  # there is more in it
        os.rmdir(folder)


def _remove_in(parent: int, name: bytes, deadline: float) -> None:
    if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
        os.unlink(name, dir_fd=parent)
        return
    root = _open(parent, name)
    if root is None:
        return
    try:
        if os.fstat(root).st_dev != os.fstat(parent).st_dev:
            return  # something else is mounted here
        while _empty(root, root, deadline):
            pass
    finally:
        os.close(root)
    os.rmdir(name, dir_fd=parent)


def _empty(folder: int, root: int, deadline: float) -> int:
    """Delete the files of a folder, bring its folders up to the root, and return how much has gone from where it was.

    In the root itself each folder is emptied and deleted.
    """
    gone = 0
    with os.scandir(folder) as found:
        names = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in names:
        if time.monotonic() > deadline:
            return 0
        with contextlib.suppress(OSError):  # the others can still go
            if is_folder and folder == root:
                gone += _dissolve(root, name, deadline)
                continue
            if is_folder:
                _move_up(folder, name, root)
            else:
                os.unlink(name, dir_fd=folder)
            gone += 1
    return gone


def _dissolve(root: int, name: bytes, deadline: float) -> int:
    """Delete a folder of the root after its folders have come up; return how much has gone from where it was."""
    fresh = _move_up(root, name, root)
    folder = _open(root, fresh)
    if folder is None:
        return 0
    try:
        if os.fstat(folder).st_dev != os.fstat(root).st_dev:
            return 0
        gone = _empty(folder, root, deadline)
    finally:
        os.close(folder)
    try:
        os.rmdir(fresh, dir_fd=root)
    except OSError:  # something in it stays: a mount, or what is not ours
        return gone
    return gone + 1


def _move_up(folder: int, name: bytes, root: int) -> bytes:
    """Move a folder into the root under a name that is free there; a mount point stays where it is."""
    fresh = f".{token_hex(8)}".encode()
    try:
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=root)
    except PermissionError:
        _give_rights(folder, name)  # to move a folder is to write in it
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=root)
    return fresh


def _open(parent: int, name: bytes) -> int | None:
    """Open a folder so that all in it can be deleted; None if it is a link by now, or not ours."""
    _give_rights(parent, name)
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError:
        return None


def _give_rights(parent: int, name: bytes) -> None:
    """Give ourselves the rights on a folder, and on nothing that has taken its place."""
    with contextlib.suppress(OSError):
        place = os.open(name, _PLACE, dir_fd=parent)
        try:
            if stat.S_IMODE(os.fstat(place).st_mode) & 0o700 != 0o700:
                os.chmod(f"/proc/self/fd/{place}", 0o700)
        finally:
            os.close(place)


def _is_there(parent: int, name: bytes) -> bool:
    try:
        os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    return True


if __name__ == "__main__":
    if os.fork() == 0:  # nobody waits for us
        os.setsid()
        os.nice(10)
        _remove_whole(Path(sys.argv[1]))
