"""Files where others may write too: read and written as files, through no link and never waiting for a pipe."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import IO

MAX_READ_BYTES = 16 * 1024 * 1024
"""Bytes that are read of a file when the caller sets no limit."""
_ONLY_FILES = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read(path: Path, most: int = MAX_READ_BYTES) -> str:
    """Return the beginning of a text; OSError if it is missing, or a link, a pipe or a folder."""
    return read_bytes(path, most).decode("utf-8", "replace")


def read_if_any(path: Path) -> str:
    """Return the beginning of a text, nothing if it is missing or cannot be read."""
    try:
        return read(path)
    except OSError:
        return ""


def read_bytes(path: Path, most: int) -> bytes:
    """Return the beginning of a file; OSError if there is none."""
    with open_to_read(path) as file:
        return file.read(most)


def open_to_read(path: Path) -> IO[bytes]:
    """Open a file; OSError if there is none."""
    return _as_file(os.open(path, os.O_RDONLY | _ONLY_FILES), path, "rb")


def status(path: Path | str | bytes, *, follow: bool = False) -> os.stat_result | None:
    """Return what the disk says of a path, None if nothing is there, or nothing that we may look at."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError:
        return None


def append(path: Path, text: str) -> None:
    """Add to a text that need not be there yet, in a folder that is not a link either."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | _ONLY_FILES)
    try:
        opened = os.open(path.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _ONLY_FILES, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
    with _as_file(opened, path, "ab") as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def _as_file(opened: int, path: Path, mode: str) -> IO[bytes]:
    """Return what was opened, if it is a file, else close it."""
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return open(opened, mode)
    os.close(opened)
    raise OSError(f"{path} is not a file")


def write_whole(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file so that nobody ever sees a part of it."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        new.chmod(mode)
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
