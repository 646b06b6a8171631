"""Folders kept byte for byte: the .git of nested repositories, and what git keeps of a worktree beside its files."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

from covey import files
from covey.errors import ToolFailed
from covey.git.rescue.scan import SPECIAL, LeftOut

MAX_WHOLE_BYTES = 64 * 1024 * 1024
"""Bytes of a file up to which it is read at once, so that one that changes meanwhile does no harm."""


def write_tar(target: Path, root: Path, names: Iterable[bytes]) -> list[LeftOut]:
    """Write files and folders below a root into a tar, and return what could not be read."""
    left_out: list[LeftOut] = []
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape") as tar:
        for path in _below(os.fsencode(root), names):
            try:
                _add(tar, os.fsencode(root), path)
            except FileNotFoundError:
                continue
            except OSError as error:
                left_out.append(LeftOut(path, 0, (error.strerror or "cannot be read").lower()))
    return left_out


def _add(tar: tarfile.TarFile, root: bytes, path: bytes) -> None:
    full = os.path.join(root, path)
    # Another lstat than the one inside gettarinfo: a fifo or socket is never opened.
    if stat.S_IFMT(os.lstat(full).st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        raise OSError(0, SPECIAL)
    entry = tar.gettarinfo(os.fsdecode(full), arcname=path.decode("utf-8", "surrogateescape"))
    if not entry.isreg():
        tar.addfile(entry)
        return
    with open(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if entry.size > MAX_WHOLE_BYTES:
            tar.addfile(entry, file)
            return
        content = file.read()
        entry.size = len(content)
        tar.addfile(entry, BytesIO(content))


def _below(root: bytes, names: Iterable[bytes]) -> Iterator[bytes]:
    """Yield paths, and all that is below those that are folders."""
    pending = list(names)
    while pending:
        path = pending.pop()
        yield path
        full = os.path.join(root, path)
        try:
            if stat.S_ISDIR(os.lstat(full).st_mode):
                pending += [path + b"/" + name for name in os.listdir(full)]
        except OSError:
            continue


def size_below(root: Path, path: bytes) -> int:
    """Return how many bytes a file, or all files of a folder, have."""
    total = 0
    for found in _below(os.fsencode(root), [path]):
        status = files.status(os.path.join(os.fsencode(root), found))
        total += status.st_size if status is not None and stat.S_ISREG(status.st_mode) else 0
    return total


def read_tar(content: bytes, target: Path, *, without: Iterable[str] = ()) -> None:
    """Put what a tar holds below a folder, as it was; nothing may go elsewhere."""
    skipped = set(without)
    try:
        with tarfile.open(fileobj=BytesIO(content), encoding="utf-8", errors="surrogateescape") as tar:
            members = [entry for entry in tar if entry.name.split("/")[0] not in skipped]
            for entry in members:
                _must_be_inside(entry.name)
                if entry.islnk():
                    _must_be_inside(entry.linkname)
            # As an attribute, since the argument came only with a patch release of Python 3.11.
            tar.extraction_filter = _as_it_was
            tar.extractall(target, members, numeric_owner=True)
    except tarfile.TarError as error:
        raise ToolFailed(f"A kept folder cannot be read: {error}.") from error


def _must_be_inside(name: str) -> None:
    if name.startswith("/") or ".." in name.split("/"):
        raise ToolFailed(f"A kept folder names a place outside of itself: {name!r}.")


def _as_it_was(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """Let tarfile refuse what a link would lead out of the folder, and give the rest the mode that it had."""
    tarfile.tar_filter(member, folder)
    return member
