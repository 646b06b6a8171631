"""The one door to refs: whatever covey moves or deletes is the ref itself, never what that stands for.

All sessions share one repository, and git asks no hook about a symbolic ref. A branch of a session may have become
another name of main: to delete or move what it stands for would delete or move main. So no ref is followed here, each
is compared with what it was, and one that is not a plain ref is taken for what a session made of it: it goes, the value
that it had before comes back from its reflog, and the caller tells. Kinds are read from the files, which costs no
process, since git passes over a ref that leads nowhere and waits for ever at a pipe.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

from covey import trash
from covey.git.identity import (
    COMMITTER,
    FETCHED_MAIN,
    INCOMING_REFS,
    KEPT_REFS,
    LANDED,
    LANDED_SINCE,
    LOG_REFS,
    OUR_ADDRESSES,
    RESCUE_REFS,
    SESSION_DOMAIN,
    TASK_REFS,
    UPSTREAM_MAIN,
    kept_ref,
)
from covey.git.locks import clear_left_behind
from covey.git.project import Project
from covey.git.run import GIT_TIMEOUT_S, git, settings, try_git
from covey.values import dataclass

OURS = ("refs/heads/covey", "refs/covey")
"""Folders in which all refs are covey's or its sessions'."""
_FOLDERS = (*OURS, *(name[:-1] for name in (TASK_REFS, KEPT_REFS, RESCUE_REFS, LOG_REFS, INCOMING_REFS)))
_LEAVES = (LANDED, LANDED_SINCE, UPSTREAM_MAIN, FETCHED_MAIN)
_BLOCKED = re.compile(
    rb"cannot create '|blocking reference"
    rb"|\.lock': (File exists|Not a directory|Is a directory|No such file or directory)"
)
REF_FILE_BYTES = 512
"""Bytes of a ref's file that are read: a name and a line end."""
MAKE_ROOM_TRIES = 3
"""Times that room is made for a ref before it is given up: others may be at it just then."""
REFLOG_TAIL_BYTES = 64 * 1024
"""Bytes from the end of a reflog that are read."""

_UNTWISTING = threading.Lock()
_ALONE = COMMITTER | settings(
    {"core.filesRefLockTimeout": "5000", "core.packedRefsTimeout": "10000", "core.fsync": "reference"}
)
_PUT_BACK = "covey: put back"
_VALUE = re.compile(rb"(?!0+\s)([0-9a-f]{64}|[0-9a-f]{40})\s*\Z")
_NAMED = re.compile(rb"ref:\s*(\S.*?)\s*\Z", re.DOTALL)
_ENTRY = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^<]*<([^>]*)> (\d+) [+-]\d{4}(?:\t(.*))?")


@dataclass(frozen=True)
class Order:
    """One ref that is to change: what it becomes (None: nothing), and what it is now (None: whatever; "": nothing)."""

    name: str
    new: str | None
    expected: str | None = None

    def words(self) -> str:
        """Return the order as git reads it, for the ref itself."""
        number = len(self.new or self.expected or "") or 40
        old = "" if self.expected is None else f" {self.expected or '0' * number}"
        verb = f"delete {self.name}" if self.new is None else f"update {self.name} {self.new}"
        return f"option no-deref\n{verb}{old}\n"


@dataclass(frozen=True)
class Twisted:
    """A ref that was not a plain one: what it was instead, and the earlier value that it has again, if there is one."""

    name: str
    what: str
    value: str | None


@dataclass(frozen=True)
class _Twist:
    """What a ref is that is not a plain one, in words; for a link or a symbolic ref also where it leads."""

    what: str = ""
    target: str = ""
    is_symbolic: bool = False
    """Git itself takes it for a symbolic ref, and does not open what it leads to."""


@dataclass(frozen=True)
class RefMove:
    """One line of a reflog: from where to where a ref was moved, by whom, and the message."""

    old: str
    new: str
    email: str
    message: str
    at: int
    """When, as its committer says, in seconds since 1970."""


def change(
    project: Project, *orders: Order, message: str = "", keep: tuple[int, ...] = (), patience: float = GIT_TIMEOUT_S
) -> CompletedProcess[bytes]:
    """Move or delete refs, all or none, each only if it is what the order expects; return how git ended."""
    for order in orders:
        clear_way(project, order.name)
    words = ("-m", message) if message else ()
    stdin = "".join(order.words() for order in orders).encode(errors="surrogateescape")
    tries_left = MAKE_ROOM_TRIES
    while True:
        done = try_git(
            "update-ref", *words, "--stdin", at=project.common, stdin=stdin, env=_ALONE, keep=keep, patience=patience
        )
        if done.returncode == 0 or not tries_left or not _BLOCKED.search(done.stderr):
            return done
        made = [each for order in orders for each in make_room(project, order.name)]
        if not made and b".lock': File exists" in done.stderr:
            return done  # whoever holds it has been waited for
        tries_left -= 1  # also if there was nothing in the way by then: another thread may have made room


def make_room(project: Project, name: str) -> list[Twisted]:
    """Move aside whatever keeps git from a ref where all refs are covey's: refs above or below it, a lock, a folder."""
    if not name.startswith(tuple(f"{folder}/" for folder in OURS)):
        return []
    parts = name.split("/")
    above = {KEPT_REFS[:-1], *("/".join(parts[:count]) for count in range(2, len(parts)))}
    is_sessions = any(map(is_of_a_session, reflog(project, OURS[0])[-1:]))
    above -= {"refs/heads"} if is_sessions else {"refs/heads", OURS[0]}
    there = values(project, *above, f"{name}/").items()
    made = [_move_aside(project, each, at) for each, at in there if each in above or each.startswith(f"{name}/")]
    if os.path.lexists(lock := project.common / f"{name}.lock"):
        clear_left_behind(lock)
        made.append(Twisted(name, "locked by nobody", None))
    if (project.common / name).is_dir() and trash.remove(project.common / name):  # of files that are not refs
        made.append(Twisted(name, "a folder", None))
    return made


def _move_aside(project: Project, name: str, at: str) -> Twisted:
    """Give a ref another name, under which it is in nobody's way."""
    kept = Order(kept_ref(name.removeprefix("refs/"), at), at)
    drop = Order(name, None, at)
    # Where the ref is in the way of its own new name, that can only come after.
    for order in (drop, kept) if f"{kept.name}/".startswith(f"{name}/") else (kept, drop):
        try_git("update-ref", "--stdin", at=project.common, stdin=os.fsencode(order.words()), env=_ALONE)
    return Twisted(name, f"in the way of another, and is {kept.name} now", None)


def values(project: Project, *patterns: str) -> dict[str, str]:
    """Return the refs below some names with what they hold, in one process; symbolic ones are left out."""
    done = try_git("for-each-ref", "--format=%(objectname) %(refname) %(symref)", *patterns, at=project.common)
    lines = (line.split(" ") for line in done.stdout.decode(errors="surrogateescape").splitlines())
    return {line[1]: line[0] for line in lines if len(line) == 3 and not line[2]}


def listed(project: Project, *patterns: str) -> dict[str, str]:
    """Return all refs below some names with what they stand for, symbolic ones too; fails if git does."""
    printed = git("for-each-ref", "--format=%(objectname) %(refname)", *patterns, at=project.common)
    lines = (line.split(" ", 1) for line in printed.decode(errors="surrogateescape").splitlines())
    return {name: commit for commit, name in lines}


def value(project: Project, name: str) -> str | None:
    """Return what a plain ref holds, without a process unless it is packed."""
    try:
        said = (project.common / name).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        said = values(project, name).get(name, "")
    return said or None


def twist(project: Project, name: str) -> str:
    """Say what a ref is if it is not a plain one, from its file; nothing if it is plain or not there."""
    return _twist(project, name).what


def _twist(project: Project, name: str) -> _Twist:
    path = project.common / name
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return _Twist()
    if stat.S_ISDIR(found.st_mode):
        return _Twist()
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(path)
        return _Twist(f"a link to {target}", target, is_symbolic=target.startswith("refs/"))
    if not stat.S_ISREG(found.st_mode):
        return _Twist("no file")
    try:
        with path.open("rb") as file:
            said = file.read(REF_FILE_BYTES)
    except FileNotFoundError:
        return _Twist()
    except OSError as error:
        return _Twist(f"a file that cannot be read ({error.strerror})")
    if _VALUE.fullmatch(said):
        return _Twist()
    named = _NAMED.match(said)
    if named is None:
        return _Twist("a file without a commit")
    target = named[1].decode(errors="replace")
    return _Twist(f"a symbolic ref to {target}", target, is_symbolic=True)


def untwist(project: Project, name: str, last: str | None = None) -> Twisted | None:
    """Remove a ref that is not a plain one, never what it leads to, and give it back the value that it had before.

    That is `last` if the caller knows it, else what its reflog says; a value that git does not know is not put back.
    One thread at a time: what another has just put back must not be taken for where the twisted ref led.
    """
    with _UNTWISTING:
        led_away = clear_way(project, name)
        twisted = _twist(project, name)
        what = twisted.what or led_away
        if not what:
            return None
        value = last or value_before(project, name)
        if value is not None and twisted.is_symbolic:
            # In one step: whoever kills us finds it as it was or as it should be, never an older one in packed-refs.
            change(project, Order(name, value), message=_PUT_BACK)
            if not twist(project, name):
                return Twisted(name, what, value)
        if not led_away:
            (project.common / name).unlink(missing_ok=True)
        if value is not None and change(project, Order(name, value), message=_PUT_BACK).returncode != 0:
            value = None
        return Twisted(name, what, value)


def value_before(project: Project, name: str) -> str | None:
    """Return where a ref was before it became a symbolic one, as its reflog tells.

    git notes there where the new one led then, as if the ref had been moved to it, mostly without a message.
    """
    target = _twist(project, name).target
    led_to = {resolved(project, name), *(move.new for move in (reflog(project, target) if target != name else ()))}
    value = None
    for move in reversed(reflog(project, name)):
        is_noted = move.old.strip("0") and (move.new in led_to or not move.message)
        value = move.old if is_noted else move.new
        if not is_noted:
            break
    return value


def resolved(project: Project, name: str) -> str | None:
    """Return where a symbolic ref leads in the end; None for any other, and for one that leads nowhere."""
    if not _twist(project, name).is_symbolic:
        return None
    asked = try_git("rev-parse", "--verify", "--quiet", "--end-of-options", name, at=project.common)
    return asked.stdout.decode().strip() if asked.returncode == 0 else None


def untwist_all(project: Project, *folders: str) -> list[Twisted]:
    """Remove each ref in some folders that is not a plain one, and return what they were."""
    names = [name for folder in folders or OURS for name in _odd(project, folder)]
    found = [each for name in names if (each := untwist(project, name)) is not None]
    if folders:
        return found
    in_the_way = [f"{name}/any" for name in _FOLDERS if (project.common / name).is_file()]
    in_the_way += [name for name in _LEAVES if (project.common / name).is_dir()]
    return found + [each for name in in_the_way for each in make_room(project, name)]


def _odd(project: Project, folder: str) -> Iterator[str]:
    top = project.common / folder
    if top.is_symlink():
        yield f"{folder}/any"
        return
    for place, folders, files in os.walk(top):
        below = os.path.relpath(place, project.common)
        for name in (*files, *(each for each in folders if os.path.islink(os.path.join(place, each)))):
            if not name.endswith(".lock") and twist(project, f"{below}/{name}"):
                yield f"{below}/{name}"


def clear_way(project: Project, name: str) -> str:
    """Remove the links by which git would write a ref or its reflog elsewhere, and say where the ref's own led."""
    parts = name.split("/")
    led = ""
    for top, first in ((project.common, 2), (project.common / "logs", 1)):
        for number in range(first, len(parts) + (top != project.common)):
            path = top.joinpath(*parts[:number])
            if path.is_symlink():
                led = f"in a folder that was a link to {os.readlink(path)}" if top == project.common else led
                path.unlink(missing_ok=True)
    return led


def reflog(project: Project, name: str) -> list[RefMove]:
    """Return the last moves of a ref, the newest last, from the file that git keeps of them."""
    return moves(project.common / "logs" / name)


def moves(path: Path) -> list[RefMove]:
    """Return the last moves that a reflog tells of, the newest last."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return []
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - REFLOG_TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return []
    found = []
    for entry in filter(None, map(_ENTRY.fullmatch, lines)):
        old, new, email, at, message = (part.decode(errors="replace") for part in entry.groups(b""))
        found.append(RefMove(old, new, email, message, int(at)))
    return found


def is_of_a_session(move: RefMove) -> bool:
    """Say whether a session made a move, and not covey or a person."""
    return move.email.endswith(SESSION_DOMAIN) and move.email not in OUR_ADDRESSES
