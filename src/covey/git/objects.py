"""Objects and what names stand for, read through one git that stays for a moment, and written without any.

A landing asks git a dozen small questions one after another, and each process costs more than its answer. So a
`git cat-file` is kept between them. It is asked by name and reads refs and objects from the disk each time; nothing is
remembered here. It goes after a few seconds, so that it never holds packs for long that somebody has removed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import math
import os
import re
import secrets
import select
import stat
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from covey import files
from covey.errors import ToolFailed
from covey.git.project import Project
from covey.git.run import GIT_TIMEOUT_S, complaint, environment, git, try_git
from covey.values import dataclass

IDLE_S = 2.0
"""Seconds after its last answer that a reader stays."""
MAX_AGE_S = 30.0
MAX_IDLE_READERS = 4
"""Readers of one repository that are kept; as many as ask at the same time are started."""
CHUNK_BYTES = 256 * 1024
FASTEST_LEVEL = 1
"""How hard objects are compressed: gc does it better, and later."""
FULL = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_FORM = "--batch-command=%(objectname) %(objecttype) %(objectsize)"
_FOUND = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) (commit|tree|blob|tag) ([0-9]+)")
_LEFT_TO_GIT = r"^(core\.sharedrepository|extensions\.compatobjectformat)$"
"""Settings under which a new object needs more than its file."""


@dataclass(frozen=True)
class Info:
    """What an object is: its full name, `commit`, `tree`, `blob` or `tag`, and its size in bytes."""

    name: str
    kind: str
    size: int


class _Ended(Exception):
    """The reader has ended: killed by somebody, or at something that it cannot read."""


class _Reader:
    """One `git cat-file`, for one thread at a time."""

    def __init__(self, common: Path) -> None:
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - until it is closed
        try:
            self._process = subprocess.Popen(
                ["git", "cat-file", _FORM],
                cwd=common,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env=environment(common, {}),
            )
        except FileNotFoundError as error:
            self._complaints.close()
            raise ToolFailed("git is not installed, or not on the PATH.", hint="Install git.") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self.began = self.used = time.monotonic()
        self.said = ""
        """What git complained of, once it has ended."""

    def ask(self, verb: bytes, names: Sequence[bytes], patience: float) -> list[tuple[Info, bytes] | None]:
        """Return an answer for each name, in their order; None for one that git does not know."""
        deadline = time.monotonic() + patience
        asked = memoryview(b"".join(b"%s %s\n" % (verb, name) for name in names))
        buffer, at = bytearray(), 0
        answers: list[tuple[Info, bytes] | None] = []
        try:
            for _ in names:
                end = -1
                while (end := buffer.find(b"\n", at)) < 0:
                    asked = self._exchange(asked, buffer, deadline)
                found = _FOUND.fullmatch(buffer, at, end)
                at = end + 1
                if found is None:
                    answers.append(None)
                    continue
                info = Info(found[1].decode(), found[2].decode(), int(found[3]))
                content = b""
                if verb == b"contents":
                    while len(buffer) < at + info.size + 1:
                        asked = self._exchange(asked, buffer, deadline)
                    content = bytes(memoryview(buffer)[at : at + info.size])
                    at += info.size + 1
                answers.append((info, content))
                if at > CHUNK_BYTES:
                    del buffer[:at]
                    at = 0
        except BaseException:  # whoever cuts an answer short must not leave the rest of it to the next
            self.close()
            raise
        self.used = time.monotonic()
        return answers

    def _exchange(self, asked: memoryview, buffer: bytearray, deadline: float) -> memoryview:
        """Write what git takes and read what it has; return what is still to be asked."""
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if asked:
            poll.register(self._stdin, select.POLLOUT)
        ready = poll.poll(max(0.0, 1000 * (deadline - time.monotonic())))
        if not ready:
            raise ToolFailed("git cat-file did not answer in time.")
        for file, _ in ready:
            if file == self._stdin.fileno():
                try:
                    asked = asked[os.write(file, asked[:CHUNK_BYTES]) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError as error:
                    raise _Ended from error
            else:
                printed = os.read(file, CHUNK_BYTES)
                if not printed:
                    raise _Ended
                buffer += printed
        return asked

    def close(self) -> None:
        """End it, and note what it complained of; it changes nothing, so it needs no time for that."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()
        self._process.kill()
        code = self._process.wait()
        self._complaints.seek(0)
        self.said = complaint(subprocess.CompletedProcess((), code, b"", self._complaints.read()))
        self._complaints.close()

    def is_fresh(self, now: float) -> bool:
        """Say whether it may be asked again."""
        return now < min(self.used + IDLE_S, self.began + MAX_AGE_S) and self._process.poll() is None


_idle: dict[Path, list[_Reader]] = {}
_lock = threading.Lock()
_timer: threading.Timer | None = None


def infos(project: Project, names: Sequence[str], patience: float = GIT_TIMEOUT_S) -> list[Info | None]:
    """Return what objects names stand for, None where git knows none."""
    answers = _ask(project, b"info", names, patience)
    return [None if answer is None else answer[0] for answer in answers]


def contents(project: Project, names: Sequence[str], patience: float = GIT_TIMEOUT_S) -> Iterator[tuple[Info, bytes]]:
    """Yield what objects are and hold, in the order of their names; all have to be there."""
    for name, answer in zip(names, _ask(project, b"contents", names, patience), strict=True):
        if answer is None:
            raise ToolFailed(f"git cannot read {name}.")
        yield answer


def texts(
    project: Project, names: Sequence[str], most: float = math.inf, patience: float = GIT_TIMEOUT_S
) -> Iterator[bytes | None]:
    """Yield what files hold; None for a name of no file, and for a file of more than `most` bytes."""
    for info in infos(project, names, patience):
        if info is None or info.kind != "blob" or info.size > most:
            yield None
        else:
            ((_, content),) = contents(project, [info.name], patience)
            yield content


def _ask(project: Project, verb: bytes, names: Sequence[str], patience: float) -> list[tuple[Info, bytes] | None]:
    """Ask a reader that is there, and if that has ended meanwhile, a new one; nothing has a name with a line end."""
    plain = [name.encode("utf-8", "surrogateescape") for name in names if "\n" not in name and "\0" not in name]
    if not plain:
        return [None] * len(names)
    reader = _take(project.common)
    found = None
    if reader is not None:
        with contextlib.suppress(_Ended):
            found = reader.ask(verb, plain, patience)
    if reader is None or found is None:
        reader = _Reader(project.common)
        try:
            found = reader.ask(verb, plain, patience)
        except _Ended:
            raise ToolFailed(f"git cat-file failed: {reader.said}.") from None
    _give(project.common, reader)
    answers = iter(found)
    return [next(answers) if "\n" not in name and "\0" not in name else None for name in names]


def _take(common: Path) -> _Reader | None:
    """Return a reader that nobody asks at this moment."""
    with _lock:
        while kept := _idle.get(common):
            reader = kept.pop()
            if reader.is_fresh(time.monotonic()):
                return reader
            reader.close()
    return None


def _give(common: Path, reader: _Reader) -> None:
    """Keep a reader for whoever asks next, and see that it goes if nobody does."""
    global _timer
    with _lock:
        kept = _idle.setdefault(common, [])
        if len(kept) >= MAX_IDLE_READERS:
            reader.close()
            return
        kept.append(reader)
        if _timer is None:
            _timer = _sweep_later()


def _sweep() -> None:
    """End the readers that nobody has asked for some time."""
    global _timer
    now = time.monotonic()
    with _lock:
        for common, kept in [*_idle.items()]:
            for reader in [each for each in kept if not each.is_fresh(now)]:
                kept.remove(reader)
                reader.close()
            if not kept:
                del _idle[common]
        _timer = _sweep_later() if _idle else None


def _sweep_later() -> threading.Timer:
    timer = threading.Timer(IDLE_S, _sweep)
    timer.daemon = True
    timer.start()
    return timer


def close() -> None:
    """End all readers that nobody asks at this moment."""
    global _timer
    with _lock:
        if _timer is not None:
            _timer.cancel()
            _timer = None
        for kept in _idle.values():
            for reader in kept:
                reader.close()
        _idle.clear()


def _forget() -> None:
    """Leave the readers to the process that we come from: two who talk to one would get each other's answers."""
    global _lock, _timer
    _lock, _timer = threading.Lock(), None
    _idle.clear()


atexit.register(close)
os.register_at_fork(after_in_child=_forget)


def name_of(kind: str, content: bytes, digits: int) -> str:
    """Return the name that git gives to an object, of so many digits."""
    hashed = hashlib.new("sha1" if digits == 40 else "sha256", usedforsecurity=False)
    hashed.update(b"%s %d\0" % (kind.encode(), len(content)))
    hashed.update(content)
    return hashed.hexdigest()


# Writing


class Writer:
    """Writes objects into a repository, as git would write them loose.

    They are on the disk for sure only after `landing.make_durable`, as those that git writes.
    """

    def __init__(self, project: Project, digits: int) -> None:
        self._project = project
        self._hash = hashlib.sha1 if digits == 40 else hashlib.sha256
        self._top = project.common / "objects"
        self._leaves_to_git = _needs_git(project)

    def write(self, kind: str, content: bytes) -> str:
        """Write an object, unless it is there already, and return its name; no gc takes it for an old one then."""
        if self._leaves_to_git:
            return self._written_by_git(kind, content)
        whole = b"%s %d\0%s" % (kind.encode(), len(content), content)
        name = self._hash(whole).hexdigest()
        place = self._top / name[:2] / name[2:]
        with contextlib.suppress(OSError):
            os.utime(place)  # it counts as written now: gc removes what is old and named by nothing yet
            return name
        try:
            self._put(place, zlib.compress(whole, FASTEST_LEVEL))
        except OSError:  # a gc that took the folder away just then, a full disk: git finds a way or says why not
            return self._written_by_git(kind, content)
        return name

    def _written_by_git(self, kind: str, content: bytes) -> str:
        words = ("hash-object", "-t", kind, "-w", "--stdin")
        return git(*words, at=self._project.common, stdin=content).decode().strip()

    def _put(self, place: Path, packed: bytes) -> None:
        """Write a file that is there whole or not at all; what a crash leaves has the name by which gc knows it."""
        place.parent.mkdir(exist_ok=True)
        new = place.with_name(f"tmp_obj_{secrets.token_hex(8)}")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o444)
        try:
            with open(file, "wb") as out:
                out.write(packed)
            os.rename(new, place)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


def _needs_git(project: Project) -> bool:
    """Say whether only git knows how a new object is to be kept: for a group of people, or under two names."""
    folder, config = (files.status(project.common / name, follow=True) for name in ("objects", "config"))
    if folder is None or config is None or folder.st_mode & stat.S_ISGID:
        return True
    return _asks_for_git(project.common, config.st_mtime_ns, config.st_ino, config.st_size)


@functools.lru_cache(maxsize=64)
def _asks_for_git(common: Path, *_config: int) -> bool:
    """Say whether settings want more of a new object than its file; asked again when those of the repository change."""
    asked = try_git("config", "--name-only", "--get-regexp", _LEFT_TO_GIT, at=common)
    return asked.returncode != 1  # 1: none of them is set
