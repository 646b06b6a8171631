"""Under which names a daemon answers, and where its page lives, on this machine and beyond it."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
from dataclasses import replace
from pathlib import Path

from covey.core.people.devices import Addresses
from covey.git.project import Project
from covey.values import dataclass
from covey.web.allowed_origins import Doors

SHARED = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]")
"""Names under which other servers of this machine live too: no page of ours, since they would share its storage."""


@dataclass(frozen=True)
class Bind:
    """An address beyond loopback, with its certificate."""

    host: str
    port: int
    certificate: Path
    key: Path

    @property
    def url(self) -> str:
        """Return where it answers."""
        return f"https://[{self.host}]:{self.port}" if ":" in self.host else f"https://{self.host}:{self.port}"

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the certificate, in the way that browsers and openssl show it."""
        text = self.certificate.read_text()
        end = text.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)
        first = text[text.index(ssl.PEM_HEADER) : end]
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest().hex(":").upper()


def host_name(project: Project, log_id: str) -> str:
    """Return the name under which this project's page lives; no other server on loopback shares its storage."""
    return f"{project.name}-{log_id[:6]}.localhost"


def doors_of(page: str, port: int, bind: Bind | None, name: str | None) -> Doors:
    """Return the names under which we may be asked, and where the page lives: its own name, and beyond loopback."""
    ports = {port: "http"} | ({bind.port: "https"} if bind else {})
    machine = socket.gethostname().lower()
    names = {"127.0.0.1", "localhost", "[::1]", page.removeprefix("http://").rpartition(":")[0], machine}
    pages = [page]
    if bind is not None:
        host = f"[{bind.host}]" if ":" in bind.host else bind.host.lower()
        names.add(host)
        pages += [f"https://{each}:{bind.port}" for each in (host, machine) if each not in SHARED]
    if name is not None:
        pages.append(_named(name, bind))
    return Doors(names, ports, pages)


def addresses_of(page: str, bind: Bind | None, name: str | None) -> Addresses:
    """Return where a browser finds the page, on this machine and beyond it."""
    fingerprint = bind.fingerprint if bind else None
    if name is not None:
        return Addresses(page, _named(name, bind), fingerprint)
    if bind is None:
        return Addresses(page)
    host = _outward() if bind.host in ("0.0.0.0", "::") else bind.host
    return Addresses(page, replace(bind, host=host).url, fingerprint)


def _named(name: str, bind: Bind | None) -> str:
    """Return the origin of a name of the owner's: behind a tunnel, or at the port to which we bind."""
    host, colon, port = name.rpartition(":")
    if colon and port.isdigit():
        return f"https://{host}:{port}".lower()
    return f"https://{name}:{bind.port}".lower() if bind else f"https://{name}".lower()


def _outward() -> str:
    """Return the address of this machine from which it would speak to others; nothing is sent to find it."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(("192.0.2.1", 9))
        return str(asked.getsockname()[0])
    return socket.gethostname()
