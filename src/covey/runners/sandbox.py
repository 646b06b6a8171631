"""A room for a program that nobody trusts: it sees what it needs and little else, and what it writes is gone with it.

bubblewrap makes the room, where it is there and works; `layers` lays folders under it that can be written and thrown
away, where the kernel allows that.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from itertools import product
from pathlib import Path

from covey import trash
from covey.core.fleet.launches import Layer
from covey.values import dataclass

PROGRAM = "bwrap"
LAYERS = str(Path(__file__).with_name("layers.py"))
PROBE_TIMEOUT_S = 20.0
TEMPORARY_FOLDERS = ("/tmp", "/var/tmp")
SYSTEM = (
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/sys", "/snap", "/nix/store",
    "/gnu/store", "/var/lib/dpkg", "/var/lib/ca-certificates", "/var/lib/texmf", "/var/cache/fontconfig",
)  # fmt: skip
"""What of the machine can be seen in every room."""
KEPT_BY_ROOT = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE",
                "SYS_CHROOT", "SETFCAP")  # fmt: skip
"""What root may still do in a room: nothing by which it would leave it."""
KERNEL = ("/proc/sys", "/proc/fs", "/proc/sysrq-trigger")
"""Where root rules the machine by writing: also from a room, whose own /proc leads to the same kernel."""


@dataclass(frozen=True)
class Room:
    """What a program sees besides the machine's own programs, and what it may write."""

    folder: str
    """Where it works."""
    temporary: str
    """What it finds as /tmp."""
    layers: tuple[Layer, ...] = ()
    readable: tuple[str, ...] = ()
    shown: tuple[tuple[str, str], ...] = ()
    """What can be read at another place than its own, and that place."""
    instead: tuple[tuple[str, str], ...] = ()
    """What the program finds and may write instead of something, and that."""
    hidden: tuple[str, ...] = ()
    """Places in all this that are empty for it: folders, and files."""
    network: bool = False


@dataclass(frozen=True)
class Powers:
    """What a room can have here of its own."""

    processes: bool
    network: bool


_powers: Powers | None = None
"""What the first room that could be made here had."""


def inside(argv: Iterable[str], room: Room, cwd: str) -> tuple[str, ...]:
    """Return the words that start a program in a room, once its layers are laid."""
    words = [*_shell(_powers or Powers(True, True), network=room.network)]
    for _, mount in sorted(_mounts(room), key=lambda each: each[0].rstrip("/").count("/")):  # what is within, after
        words += mount
    return (*words, "--remount-ro", "/", "--chdir", cwd, "--", *argv)


def under(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Return the words of a program that lays layers and becomes what follows; a runner does that by itself."""
    if not layers:
        return ()
    said = json.dumps([astuple(each) for each in layers])
    return (sys.executable, "-I", "-S", LAYERS, said)


def _mounts(room: Room) -> list[tuple[str, tuple[str, ...]]]:
    """Return what is put where, by its place; of two things at one place the later counts."""
    own = {os.path.realpath(each) for each in TEMPORARY_FOLDERS if os.path.isdir(each)}
    found: list[tuple[str, tuple[str, ...]]] = [(top, ("--bind", room.temporary, top)) for top in sorted(own)]
    found += [(place, ("--ro-bind-try", place, place)) for place in room.readable]
    found += [(each.place, ("--bind", each.place, each.place)) for each in room.layers]
    found += [(room.folder, ("--bind", room.folder, room.folder))]
    found += [(place, ("--ro-bind", what, place)) for what, place in room.shown]
    found += [(place, ("--bind", what, place)) for what, place in room.instead]
    found += [(place, _cover(place)) for place in room.hidden]
    return found


def _cover(place: str) -> tuple[str, ...]:
    return ("--tmpfs", place) if os.path.isdir(place) else ("--ro-bind", "/dev/null", place)


def _shell(powers: Powers, *, network: bool) -> list[str]:
    """Return the words for what all rooms are: the machine's programs can be read, and nothing else is there."""
    words = [PROGRAM, "--die-with-parent", "--new-session", "--unshare-ipc"]
    words += ["--unshare-pid"] if powers.processes else []
    words += ["--unshare-net"] if powers.network and not network else []
    if os.geteuid() == 0:
        words += ["--cap-drop", "ALL", *(word for each in KEPT_BY_ROOT for word in ("--cap-add", f"CAP_{each}"))]
    for place in SYSTEM:
        linked = os.path.islink(place)
        words += ["--symlink", os.readlink(place), place] if linked else ["--ro-bind-try", place, place]
    words += [word for place in _private("/etc") if os.path.lexists(place) for word in _cover(place)]
    words += ["--proc", "/proc"] if powers.processes else ["--bind", "/proc", "/proc"]
    if os.geteuid() == 0:
        words += [word for place in KERNEL if os.path.exists(place) for word in ("--ro-bind", place, place)]
    names = os.path.realpath("/etc/resolv.conf")
    words += ["--dev", "/dev", "--tmpfs", "/run", "--symlink", "../run", "/var/run", "--dir", "/var/tmp"]
    return [*words, *(("--ro-bind-try", names, names) if network else ())]


@functools.cache
def _private(top: str) -> tuple[str, ...]:
    """Return what in a folder of the machine we may read and not everybody: passwords, and the machine's own keys."""
    found: list[str] = []
    waiting = [top]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                is_folder = stat.S_ISDIR(mode)
                if not (is_folder or stat.S_ISREG(mode)) or not os.access(entry.path, os.R_OK):
                    continue
                if not mode & (stat.S_IXOTH if is_folder else stat.S_IROTH):
                    found.append(entry.path)
                elif is_folder:
                    waiting.append(entry.path)
    return tuple(found)


# What can be had here


def trouble() -> str | None:
    """Return why no room can be made on this machine, None if one can; that is found out once."""
    global _powers
    if _powers is not None:
        return None
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is not installed"
    found: str | None = None
    for processes, network in product((True, False), repeat=2):
        powers = Powers(processes, network)
        found = _try(powers)
        if found is None:
            _powers = powers
            break
    return found


def powers() -> Powers | None:
    """Return what a room has of its own here; None if no room can be made."""
    return _powers if trouble() is None else None


def clear_ways(room: Room) -> None:
    """Take away what a program left in its room where the next one has something put: a link would lead it outside."""
    places = [place for place, _ in _mounts(room)]
    own = {os.path.realpath(each) for each in TEMPORARY_FOLDERS}
    layers = ((each.upper, each.place) for each in room.layers)
    for written, top in (*((room.temporary, each) for each in own), *room.instead, *layers):
        for place in places:
            if place.startswith(f"{top}/"):
                _clear_way(written, os.path.relpath(place, top).split("/"))


def _clear_way(written: str, parts: list[str]) -> None:
    """Remove a link at the end of a way of folders, and whatever else than a folder stands on that way."""
    ways = (os.path.join(written, *parts[:depth]) for depth in range(len(parts)))
    if all(_is_folder(way) for way in ways) and os.path.islink(os.path.join(written, *parts)):
        trash.remove(Path(written, *parts))


def _is_folder(path: str) -> bool:
    """Say whether there is a folder to go on from, and take away what else is there."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    if not stat.S_ISDIR(mode):
        trash.remove(Path(path))
        return False
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(path, stat.S_IMODE(mode) | stat.S_IRWXU)
    return True


def refusal(room: Room, cwd: str) -> str | None:
    """Return why this room cannot be made, None if a program can be started in it."""
    clear_ways(room)
    return _failure((*under(room.layers), *inside(("/bin/sh", "-c", ":"), room, cwd)), who=PROGRAM)


def layers_trouble(folder: str) -> str | None:
    """Return why nothing that is kept in this folder can be laid over another, None if it can."""
    place = tempfile.mkdtemp(prefix=".layers-", dir=folder)
    try:
        lower, upper, work = (os.path.join(place, name) for name in ("lower", "upper", "work"))
        for each in (lower, upper, work):
            os.mkdir(each)
        Path(lower, "file").touch()
        layer = Layer(lower, (lower,), upper, work, absent=("file",))
        script = 'cd "$1" && test ! -e file && mkdir new && mv new newer && echo x > newer/x'
        words = (*under((layer,)), *_shell(_powers or Powers(True, True), network=False),
                 "--bind", lower, lower, "--", "/bin/sh", "-c", script, "sh", lower)  # fmt: skip
        return _failure(words, most=300)
    except OSError as error:
        return str(error)
    finally:
        trash.remove(Path(place))


def _try(powers: Powers) -> str | None:
    words = (*_shell(powers, network=False), "--remount-ro", "/", "--", "/bin/sh", "-c", "! mkdir /new 2>/dev/null")
    why = _failure(words, most=200)
    return None if why is None else f"{PROGRAM} does not work here: {why}"


def _failure(words: Sequence[str], *, who: str = "it", most: int | None = None) -> str | None:
    """Return why a program fails, in its own words and no more than `most` characters of them; None if it does not."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip()[:most] or f"{who} ended with code {done.returncode}"
