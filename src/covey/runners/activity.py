"""What the processes of a run do, by the kernel's word."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace

from covey.core.fleet.launches import Activity
from covey.values import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGESIZE")
ESTABLISHED = b"01"
STATE, PARENT, OWN_USER, OWN_SYSTEM, THEIR_USER, THEIR_SYSTEM, RESIDENT = 0, 1, 11, 12, 13, 14, 21
"""Fields of /proc/PID/stat, counted from the one after the name."""


class Meter:
    """Adds up processor time so that it never goes back, also when a process ends that nobody waited for."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}

    def read(self, run: str, wrapper: int, *, memory: bool) -> Activity:
        """Return what all processes below a wrapper do; their memory only if asked, since it costs most."""
        now = look(wrapper, memory=memory)
        ticks = round(now.cpu * TICKS_PER_S)  # Whole numbers, since a sum of fractions may shrink a little.
        lost, last = self._seen.get(run, (0, 0))
        lost += max(0, last - ticks)
        self._seen[run] = lost, ticks
        return replace(now, cpu=(ticks + lost) / TICKS_PER_S)

    def forget(self, run: str) -> None:
        """Drop what was seen of a run that has ended."""
        self._seen.pop(run, None)


@dataclass(frozen=True)
class Process:
    """One process at one moment."""

    pid: int
    state: bytes
    parent: int
    own: int
    """Ticks that it used itself."""
    children: int
    """Ticks of those that it waited for."""
    resident: int


def look(wrapper: int, *, memory: bool) -> Activity:
    """Return what all processes below a wrapper do now."""
    holder = process(wrapper)
    family = list(descendants(wrapper))
    ticks = sum(one.own + one.children for one in family) + (holder.children if holder else 0)
    living = [one for one in family if one.state not in b"ZX"]
    return Activity(
        cpu=ticks / TICKS_PER_S,
        processes=len(living),
        memory=sum(_share(one) for one in living) if memory else 0,
        connections=_connections(living),
    )


def descendants(root: int) -> Iterator[Process]:
    """Yield the processes below one, also dead ones that nobody waited for."""
    children = _children if _kernel_lists_children() else _scan()
    waiting, met = [root], {root}
    while waiting:
        for pid in children(waiting.pop()):
            if pid in met or (one := process(pid)) is None:
                continue
            met.add(pid)
            waiting.append(pid)
            yield one


def process(pid: int) -> Process | None:
    """Return a process as it is now, None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as about:
            fields = about.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Process(
        pid,
        fields[STATE],
        parent=int(fields[PARENT]),
        own=int(fields[OWN_USER]) + int(fields[OWN_SYSTEM]),
        children=int(fields[THEIR_USER]) + int(fields[THEIR_SYSTEM]),
        resident=int(fields[RESIDENT]) * PAGE_BYTES,
    )


@functools.cache
def _kernel_lists_children() -> bool:
    return os.path.exists("/proc/thread-self/children")


def _children(pid: int) -> list[int]:
    """Return the children of a process: each belongs to the thread that made it."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as told:
                found += map(int, told.read().split())
    return found


def _scan() -> Callable[[int], list[int]]:
    """Return the same for a kernel without these lists, from a look at all processes."""
    found: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        if one := process(int(name)):
            found.setdefault(one.parent, []).append(one.pid)
    return lambda pid: found.get(pid, [])


def _share(one: Process) -> int:
    """Return the bytes of a process, of what it shares only its share; all of it where the kernel does not say."""
    with contextlib.suppress(OSError), open(f"/proc/{one.pid}/smaps_rollup", "rb", buffering=0) as about:
        for line in about.read().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return one.resident


def _connections(family: list[Process]) -> int:
    """Return how many TCP connections are open that any of them holds."""
    sockets: set[bytes] = set()
    for one in family:
        with contextlib.suppress(OSError):
            for file in os.listdir(f"/proc/{one.pid}/fd"):
                with contextlib.suppress(OSError):
                    name = os.readlink(f"/proc/{one.pid}/fd/{file}")
                    if name.startswith("socket:["):
                        sockets.add(name[8:-1].encode())
    return len(sockets & _established(family[0].pid)) if sockets else 0


def _established(pid: int) -> set[bytes]:
    """Return the sockets of all TCP connections that are open where a process lives."""
    found: set[bytes] = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/net/{table}", "rb") as lines:
            next(lines, None)
            found |= {words[9] for words in map(bytes.split, lines) if words[3] == ESTABLISHED}
    return found
