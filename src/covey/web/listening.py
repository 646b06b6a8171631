"""The sockets at which a daemon listens: the same port after every restart, on both addresses of loopback."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import socket
from pathlib import Path

from covey.errors import Refused
from covey.files import write_whole
from covey.git.project import Project

PORTS = range(20_000, 32_768)
LISTENING = "0A"
"""How the kernel writes the state of a socket that listens."""
STUCK_AFTER_S = 60
"""Seconds that a client may go without reading anything it was sent."""


def loopback(project: Project, port: int | None) -> tuple[list[socket.socket], int | None]:
    """Listen on the port that the project had before, or on one that is free and stays the project's.

    Where another user has taken it, another is chosen, and the one that was taken is told.
    """
    kept = project.state / "port"
    text = kept.read_text().strip() if kept.exists() else ""
    known = int(text) if text.isdigit() else 0
    taken: int | None = None
    try:
        listening = _listen_both(port or known) if port or known else _listen_anywhere()
    except Refused:
        if port or not _is_anothers(known):
            raise
        listening, taken = _listen_anywhere(), known
    own = listening[0].getsockname()[1]
    if own != known:
        write_whole(kept, str(own))
    return listening, taken


def _listen_anywhere() -> list[socket.socket]:
    """Listen on a free port that the kernel gives to no outgoing connection, so that it is free after a restart too."""
    for port in random.sample(PORTS, 50):
        with contextlib.suppress(Refused):
            return _listen_both(port)
    return _listen_both(0)


def _listen_both(port: int) -> list[socket.socket]:
    """Listen at both addresses of loopback: a browser that asks for a name under localhost takes either.

    Where there is no second one, nobody else can have it.
    """
    first = listen("127.0.0.1", port)
    if not _has_second_loopback():
        return [first]
    try:
        return [first, listen("::1", first.getsockname()[1])]
    except Refused:
        first.close()
        raise


def _has_second_loopback() -> bool:
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as asked:
            asked.bind(("::1", 0))
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT):
            return False
        raise
    return True


def _is_anothers(port: int) -> bool:
    """Say whether a process of another user listens at a port of this machine."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for fields in map(str.split, Path(table).read_text().splitlines()[1:]):
                listens = fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port
                if listens and int(fields[7]) != os.geteuid():
                    return True
    return False


def listen(host: str, port: int, option: str = "--port N") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # the kernel hangs up on a client that takes nothing, whatever is buffered
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STUCK_AFTER_S * 1000)
    try:
        listening.bind((host, port))
        listening.listen(1024)  # fails too if another bound the same in this very moment and was faster
    except (OSError, UnicodeError) as error:  # the latter of a name that cannot be one of a host
        listening.close()
        raise Refused(
            f"Port {port} of {host} cannot be had: {getattr(error, 'strerror', None) or error}.",
            hint=f"End what uses it, or give the daemon another: covey up {option}.",
        ) from error
    listening.setblocking(False)
    return listening
