"""The one door to refs: whatever covey moves or deletes is the ref itself, never what that stands for.

All sessions share one repository, and git asks no hook about a symbolic ref. A branch of a session may have become
another name of main: to delete or move what it stands for would delete or move main. So no ref is followed here, each
is compared with what it was, and one that is no plain ref is taken for what a session made of it: it goes, the value
that it had before comes back from its reflog, and the caller tells. Kinds are read from the files, which costs no
process, since git passes over a ref that leads nowhere and waits for ever at a pipe.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

from covey import trash
from covey.git.locks import clear_left_behind
from covey.git.project import Project
from covey.git.run import PATIENCE, settings, try_git
from covey.values import dataclass

OURS = ("refs/heads/covey", "refs/covey")
"""Folders in which all refs are covey's or its sessions'."""
KEPT = "refs/covey/kept/"
"""Where refs go that nobody wants to lose and that were in the way."""
_FOLDERS = (*OURS, *(f"refs/covey/{name}" for name in ("tasks", "kept", "rescue", "log", "incoming")))
_LEAVES = tuple(f"refs/covey/{name}" for name in ("landed", "landed-since", "upstream", "fetched"))
_BLOCKED = re.compile(
    rb"cannot create '|blocking reference"
    rb"|\.lock': (File exists|Not a directory|Is a directory|No such file or directory)"
)
COVEY = {"GIT_COMMITTER_NAME": "covey", "GIT_COMMITTER_EMAIL": "covey@localhost"}
"""Who moves refs, whatever the user's own name is."""
SESSIONS = "@agents.local"
"""How the address of each session ends."""
_OUR_ADDRESSES = (COVEY["GIT_COMMITTER_EMAIL"], f"covey{SESSIONS}")
READ = 512
"""Bytes of a ref's file that are read: a name and a line end."""
ROOM_TRIES = 3
"""Times that room is made for a ref before it is given up: others may be at it just then."""
LOG_READ = 64 * 1024
"""Bytes from the end of a reflog that are read."""

_UNTWISTING = threading.Lock()
_ALONE = COVEY | settings(
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
    """A ref that was no plain one: what it was instead, and the value from before that it has again, if it has one."""

    name: str
    what: str
    value: str | None


@dataclass(frozen=True)
class Moved:
    """One line of a reflog: from where to where a ref was moved, by whom, and the message."""

    old: str
    new: str
    email: str
    message: str
    at: int
    """When, as its committer says, in seconds since 1970."""


def change(
    project: Project, *orders: Order, message: str = "", keep: tuple[int, ...] = (), patience: float = PATIENCE
) -> CompletedProcess[bytes]:
    """Move or delete refs, all or none, each only if it is what the order expects; return how git ended."""
    for order in orders:
        clear_way(project, order.name)
    words = ("-m", message) if message else ()
    stdin = "".join(order.words() for order in orders).encode(errors="surrogateescape")

    def run() -> CompletedProcess[bytes]:
        return try_git(
            "update-ref", *words, "--stdin", at=project.common, stdin=stdin, env=_ALONE, keep=keep, patience=patience
        )

    done = run()
    for _ in range(ROOM_TRIES):
        if done.returncode == 0 or not _BLOCKED.search(done.stderr):
            break
        made = [each for order in orders for each in make_room(project, order.name)]
        if not made and b".lock': File exists" in done.stderr:
            break  # whoever holds it has been waited for
        done = run()  # also if there was nothing in the way by then: another thread may have made room
    return done


def make_room(project: Project, name: str) -> list[Twisted]:
    """Move aside whatever keeps git from a ref where all refs are covey's: refs above or below it, a lock, a folder."""
    if not name.startswith(tuple(f"{folder}/" for folder in OURS)):
        return []
    parts = name.split("/")
    above = {KEPT[:-1], *("/".join(parts[:count]) for count in range(2, len(parts)))}
    above -= {"refs/heads"} | (set() if _is_sessions(project, OURS[0]) else {OURS[0]})
    there = values(project, *above, f"{name}/").items()
    made = [_move_aside(project, each, at) for each, at in there if each in above or each.startswith(f"{name}/")]
    if os.path.lexists(lock := project.common / f"{name}.lock"):
        clear_left_behind(lock)
        made.append(Twisted(name, "locked by nobody", None))
    if (project.common / name).is_dir() and trash.remove(project.common / name):  # of what are no refs
        made.append(Twisted(name, "a folder", None))
    return made


def _move_aside(project: Project, name: str, at: str) -> Twisted:
    """Give a ref another name, under which it is in nobody's way."""
    kept = Order(f"{KEPT}{name.removeprefix('refs/').replace('/', '-')}-{at[:12]}", at)
    drop = Order(name, None, at)
    # Where the ref is in the way of its own new name, that can only come after.
    for order in (drop, kept) if f"{kept.name}/".startswith(f"{name}/") else (kept, drop):
        try_git("update-ref", "--stdin", at=project.common, stdin=os.fsencode(order.words()), env=_ALONE)
    return Twisted(name, f"in the way of another, and is {kept.name} now", None)


def _is_sessions(project: Project, name: str) -> bool:
    return any(map(is_of_a_session, reflog(project, name)[-1:]))


def values(project: Project, *patterns: str) -> dict[str, str]:
    """Return the refs below some names with what they hold, in one process; symbolic ones are left out."""
    done = try_git("for-each-ref", "--format=%(objectname) %(refname) %(symref)", *patterns, at=project.common)
    lines = (line.split(" ") for line in done.stdout.decode(errors="surrogateescape").splitlines())
    return {line[1]: line[0] for line in lines if len(line) == 3 and not line[2]}


def value(project: Project, name: str) -> str | None:
    """Return what a plain ref holds, without a process unless it is packed."""
    try:
        said = (project.common / name).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        said = values(project, name).get(name, "")
    return said or None


def twist(project: Project, name: str) -> str:
    """Say what a ref is if it is no plain one, from its file; nothing if it is plain or not there."""
    path = project.common / name
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if stat.S_ISDIR(found.st_mode):
        return ""
    if stat.S_ISLNK(found.st_mode):
        return f"a link to {os.readlink(path)}"
    if not stat.S_ISREG(found.st_mode):
        return "no file"
    try:
        with path.open("rb") as file:
            said = file.read(READ)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"a file that cannot be read ({error.strerror})"
    if _VALUE.fullmatch(said):
        return ""
    named = _NAMED.match(said)
    return f"a symbolic ref to {named[1].decode(errors='replace')}" if named else "a file without a commit"


def untwist(project: Project, name: str, last: str | None = None) -> Twisted | None:
    """Remove a ref that is no plain one, never what it leads to, and give it back the value that it had before.

    That is `last` if the caller knows it, else what its reflog says; a value that git does not know is none.
    One thread at a time: what another has just put back must not be taken for where the twisted ref led.
    """
    with _UNTWISTING:
        return _untwist(project, name, last)


def _untwist(project: Project, name: str, last: str | None) -> Twisted | None:
    led_away = clear_way(project, name)
    what = twist(project, name) or led_away
    if not what:
        return None
    value = last or value_before(project, name)
    if value is not None and _is_symbolic(what):
        # In one step: whoever kills us finds it as it was or as it shall be, and never an older one in packed-refs.
        change(project, Order(name, value), message=_PUT_BACK)
        if not twist(project, name):
            return Twisted(name, what, value)
    if not led_away:
        with contextlib.suppress(FileNotFoundError):
            (project.common / name).unlink()
    if value is not None and change(project, Order(name, value), message=_PUT_BACK).returncode != 0:
        value = None
    return Twisted(name, what, value)


def value_before(project: Project, name: str) -> str | None:
    """Return where a ref was before it became a symbolic one, as its reflog tells.

    git notes there where the new one led then, as if the ref had been moved to it, mostly without a message.
    """
    target = twist(project, name).rpartition(" ")[2]
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
    if not _is_symbolic(twist(project, name)):
        return None
    asked = try_git("rev-parse", "--verify", "--quiet", "--end-of-options", name, at=project.common)
    return asked.stdout.decode().strip() if asked.returncode == 0 else None


def _is_symbolic(what: str) -> bool:
    """Say whether git itself takes a twisted ref for a symbolic one, and does not open what it leads to."""
    return what.startswith(("a symbolic ref to ", "a link to refs/"))


def untwist_all(project: Project, *folders: str) -> list[Twisted]:
    """Remove each ref in some folders that is no plain one, and return what they were."""
    names = [name for folder in folders or OURS for name in _odd(project, folder)]
    found = (untwist(project, name) for name in names)
    return [*(each for each in found if each is not None), *([] if folders else _make_room_for_all(project))]


def _make_room_for_all(project: Project) -> list[Twisted]:
    in_the_way = [f"{name}/any" for name in _FOLDERS if (project.common / name).is_file()]
    in_the_way += [name for name in _LEAVES if (project.common / name).is_dir()]
    return [each for name in in_the_way for each in make_room(project, name)]


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


def reflog(project: Project, name: str) -> list[Moved]:
    """Return the last moves of a ref, the newest last, from the file that git keeps of them."""
    return moves(project.common / "logs" / name)


def moves(path: Path) -> list[Moved]:
    """Return the last moves that a reflog tells of, the newest last."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return []
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_READ))
            lines = file.read().splitlines()
    except OSError:
        return []
    found = (_ENTRY.fullmatch(line) for line in lines)
    return [_moved(each) for each in found if each]


def _moved(entry: re.Match[bytes]) -> Moved:
    old, new, email, at, message = (part.decode(errors="replace") for part in entry.groups(b""))
    return Moved(old, new, email, message, int(at))


def is_of_a_session(move: Moved) -> bool:
    """Say whether a session made a move, and not covey or a person."""
    return move.email.endswith(SESSIONS) and move.email not in _OUR_ADDRESSES
