"""Which worktrees covey made, by the records in its state folder, and whether what stands there is still that.

A record is written before git makes a worktree and removed after it is gone: what has no record is somebody else's.
Whoever works in a worktree can put anything in its place: a link to another repository, another folder, a mount. covey
works only in what it made itself, known by device and inode, with no link on the way to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from covey import files
from covey.errors import Invalid, Refused
from covey.git.locks import held
from covey.git.project import Project
from covey.git.worktrees import worktree_admin
from covey.values import dataclass

UNREADABLE = (ValueError, KeyError, TypeError)
"""What reading a record that a crash cut off raises."""
_FOLDER_NAME = re.compile(r"\.?[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
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
        # In this very repository it is git's own of a worktree, or a checkout that names one.
        said = worktree_admin.pointed_at(folder)
        entry = folder if said is None else Path(os.path.normpath(folder / said))
        return repository / "worktrees" in (folder.parent, entry.parent)
    if found.st_ino != made.inode:
        return False
    if now.st_dev == made.repository:
        return found.st_dev == made.device
    return (found.st_dev == now.st_dev) == (made.device == made.repository)


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


@dataclass(frozen=True)
class Record:
    """What we know of a worktree that we made, or had begun to make."""

    name: str
    path: Path
    id: str
    made: Identity | None = None
    """Which folder the checkout is, and which the entry; None until both are made."""
    entry_made: Identity | None = None


def read(project: Project, file: Path) -> Record:
    """Return what a record says; fails with OSError if it is not there, and with one of UNREADABLE if it is cut off."""
    said = json.loads(file.read_bytes())
    # Relative to the repository, so that both may move together.
    path = Path(os.path.normpath(project.common / said["path"]))
    made, entry_made = read_identity(said.get("made")), read_identity(said.get("entry_made"))
    return Record(file.name.removesuffix(".made"), path, said["id"], made, entry_made)


def why_not_made(project: Project, record: Record) -> str | None:
    """Say why the folders of a record are not those that covey made; None if they are, or are not there."""
    entry = project.common / "worktrees" / record.id
    return why_not(record.path, record.made, project.common) or why_not_entry(entry, record.entry_made, project.common)


class WorktreeRecords:
    """The records of one project's worktrees, and their locks."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        self.folder = folder

    def path(self, name: str) -> Path:
        """Return where a worktree is, or would be made."""
        record = self._record(name)
        return self.folder / name if record is None else record.path

    def is_known(self, name: str) -> bool:
        """Say whether covey made this worktree, or meant to; what lies at its place otherwise is somebody else's."""
        return self._record(name) is not None

    def names(self) -> Sequence[str]:
        """Return the names of the worktrees that covey made, or meant to."""
        return [record.name for record in self._all_records()]

    def git_dir(self, name: str) -> Path | None:
        """Return the folder in which git keeps index and HEAD of a worktree, or None if there is none."""
        record = self._record(name)
        return None if record is None else self._entry(record)

    def is_proven(self, name: str) -> bool:
        """Say whether a record names the very folders that covey made, and not only that it meant to make some."""
        record = self._record(name)
        return record is not None and record.made is not None and record.entry_made is not None

    def why_not_ours(self, name: str) -> str | None:
        """Say why what stands at the place of a worktree must not be touched; None if it may, or nothing is there."""
        record = self._record(name)
        return None if record is None else self._why_not(record)

    def _entry_folder(self, record: Record) -> Path:
        return self.project.common / "worktrees" / record.id

    def _why_not(self, record: Record) -> str | None:
        why = why_not_made(self.project, record)
        if why is None and (mounted := mounted_in(record.path)) is not None:
            why = f"{mounted} is a mount: what is in it is not the worktree's"
        return why

    def _must_be_ours(self, record: Record) -> None:
        why = self._why_not(record)
        if why is not None:
            raise Replaced(f"{why}.", hint="covey leaves it alone, and makes another worktree for the next run.")

    def ours(self, name: str) -> Path | None:
        """Return where a worktree is, None if there is none; refuse if something else stands there."""
        record = self._record(name)
        if record is None or not os.path.lexists(record.path):
            return None
        self._must_be_ours(record)
        entry = self._entry_folder(record)
        if entry.is_dir():
            worktree_admin.lead_home(entry)
        return record.path

    def _entry(self, record: Record) -> Path | None:
        """Return git's folder of a worktree that we made, or None if it is gone or has become another's."""
        entry = self._entry_folder(record)
        if entry.is_symlink() or not entry.is_dir():
            return None
        place = worktree_admin.place(entry)
        if place is None or place == record.path:
            return entry
        # The repository may have moved together with its worktrees; then both still name each other.
        pointed = worktree_admin.pointed_at(record.path)
        has_moved = not os.path.lexists(place / ".git") and pointed is not None and Path(pointed).name == record.id
        return entry if has_moved else None

    def _was_never_made(self, record: Record) -> bool:
        """Say whether we only meant to make a worktree, and what stands at its place is somebody else's."""
        if record.made is not None or self._entry(record) is not None or not os.path.lexists(record.path):
            return False
        try:
            return self._is_foreign(record)
        except OSError:
            return True  # we may not even look

    def _is_foreign(self, record: Record) -> bool:
        """Say whether a checkout has taken the place of ours: another repository, or another's worktree."""
        pointed = worktree_admin.pointed_at(record.path)
        is_ours = pointed is None or Path(pointed).name == record.id
        is_repository = (record.path / ".git").is_dir()
        return is_repository or not is_ours or (os.path.lexists(record.path) and not record.path.is_dir())

    def _must_not_be_foreign(self, record: Record) -> None:
        """Refuse a checkout that has taken the place of ours."""
        if self._is_foreign(record):
            raise Refused(f"{record.path} is no longer a worktree of covey's.", hint="Move it away, then try again.")

    def _alone(self, name: str) -> contextlib.AbstractContextManager[int]:
        return held(self._lock_file(_checked(name)))

    def _lock_file(self, name: str) -> Path:
        return self.project.records / f"{name}.lock"

    def _record_file(self, name: str) -> Path:
        return self.project.records / f"{name}.made"

    def _record(self, name: str) -> Record | None:
        try:
            return read(self.project, self._record_file(_checked(name)))
        except FileNotFoundError:
            return None
        except UNREADABLE:
            # Cut off by a crash of the machine: that it exists still says that we made this one.
            path = self.folder / name
            entries = worktree_admin.entries(self.project.common)
            found = (entry for entry in entries if worktree_admin.place(entry) == path)
            return Record(name, path, next((entry.name for entry in found), plain_id(name)))

    def _write_record(self, record: Record) -> None:
        said: dict[str, object] = {"id": record.id, "path": os.path.relpath(record.path, self.project.common)}
        if record.made is not None and record.entry_made is not None:
            said |= {"made": asdict(record.made), "entry_made": asdict(record.entry_made)}
        files.write_whole(self._record_file(record.name), json.dumps(said) + "\n")

    def _all_records(self) -> Sequence[Record]:
        names = sorted(file.name.removesuffix(".made") for file in self.project.records.glob("*.made"))
        found = (self._record(name) for name in names if _FOLDER_NAME.match(name))
        return [record for record in found if record is not None]


def _checked(name: str) -> str:
    if not _FOLDER_NAME.match(name):
        raise Invalid(f"{name!r} cannot be the name of a worktree.", hint="Letters, digits, dots, dashes, underscores.")
    return name


def plain_id(name: str) -> str:
    """Return the name of a worktree as git would name its folder of it."""
    return re.sub(r"\.lock\Z", "-lock", re.sub(r"\A\.", "-", name.replace("..", "--"))).rstrip(".")
