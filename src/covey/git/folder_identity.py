"""Whether a folder is still the very one that covey made: by device and inode, with no link on the way to it.

Whoever works in a worktree can put anything in its place: a link to another repository, another folder, a mount. covey
works only in what it made itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from covey.errors import Refused
from covey.git.worktrees import worktree_admin
from covey.values import dataclass

MAX_ENTRY_FILES = 2000
"""Files in git's folder of a worktree that are looked at; an honest one has some dozens, beside its submodules."""
MAX_ENTRY_FILE_BYTES = 512 * 1024**2
"""Bytes of the largest of them: an index of two million files is smaller."""
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Replaced(Refused):
    """What stands where covey made a worktree is not that folder, or is not fit to work in."""


@dataclass(frozen=True)
class Identity:
    """Which folder it was that we made."""

    device: int
    inode: int
    repository: int
    """The repository's own device then: after a restart of the machine file systems may have other numbers."""
    repository_inode: int = 0
    """Which folder the repository was then: one that was copied or restored is another, with all that is in it."""


def identify(folder: Path, repository: Path) -> Identity:
    """Return which folder stands at a place now."""
    found, own = folder.lstat(), repository.stat()
    return Identity(found.st_dev, found.st_ino, own.st_dev, own.st_ino)


def read_identity(said: dict[str, int] | None) -> Identity | None:
    """Return an identity as a record has it."""
    if said is None:
        return None
    return Identity(said["device"], said["inode"], said["repository"], said.get("repository_inode", 0))


def why_not(folder: Path, made: Identity | None, repository: Path) -> str | None:
    """Say why a folder is not the one that covey made there; None if it is, or if nothing is there."""
    try:
        with opened(folder.parent) as parent:
            found = os.lstat(folder.name, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError:
        return f"{folder.parent} is not a folder any more"
    if stat.S_ISLNK(found.st_mode):
        return f"{folder} is a link now"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder any more"
    if found.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    if made is not None and not _is_same(folder, found, made, repository):
        return f"{folder} is another folder than the one that covey made there"
    return None


def _is_same(folder: Path, found: os.stat_result, made: Identity, repository: Path) -> bool:
    now = repository.stat()
    if made.repository_inode not in (0, now.st_ino):
        return _leads_into(folder, repository)
    if found.st_ino != made.inode:
        return False
    if now.st_dev == made.repository:
        return found.st_dev == made.device
    return (found.st_dev == now.st_dev) == (made.device == made.repository)


def _leads_into(folder: Path, repository: Path) -> bool:
    """Say whether a folder is git's own of a worktree, or a checkout that names one, in this very repository."""
    own = repository / "worktrees"
    said = worktree_admin.pointed_at(folder)
    return folder.parent == own or (said is not None and Path(os.path.normpath(folder / said)).parent == own)


def why_not_entry(entry: Path, made: Identity | None, repository: Path) -> str | None:
    """Say why git's own folder of a worktree must not be used; None if it may, or is not there."""
    why = why_not(entry, made, repository)
    if why is not None or not os.path.lexists(entry):
        return why
    # git would write through a link, and wait for ever for what is neither a file nor a folder.
    odd = _odd_file(entry)
    return None if odd is None else f"{odd} is not a file of git's any more"


def _odd_file(entry: Path) -> Path | None:
    pending, seen = [entry], 0
    while pending and seen < MAX_ENTRY_FILES:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as children:
            for child in children:
                seen += 1
                if child.is_dir(follow_symlinks=False):
                    if child.name != "modules":
                        pending.append(Path(child.path))
                    continue
                found = child.stat(follow_symlinks=False)
                is_socket = stat.S_ISSOCK(found.st_mode)  # of git's own file monitor; nobody waits at one
                if not (is_socket or stat.S_ISREG(found.st_mode)) or found.st_size > MAX_ENTRY_FILE_BYTES:
                    return Path(child.path)
    return None


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[int]:
    """Open a folder itself, never one that a link in its place leads to."""
    place = os.open(folder, _PLACE)
    try:
        yield place
    finally:
        os.close(place)


def mounted_in(folder: Path) -> str | None:
    """Return a place in a folder where something is mounted, None if there is none that we can see."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return None
    below = os.fsencode(folder) + b"/"
    places = (_unescaped(line.split()[4]) for line in lines)
    return next((os.fsdecode(place) for place in places if place.startswith(below)), None)


def _unescaped(place: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), place)
