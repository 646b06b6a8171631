"""Under which names a daemon answers, where its page lives, and whose pages may ask."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import socket
import ssl
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from covey.core.people.devices import Addresses
from covey.errors import Denied, Misdirected
from covey.git.project import Project
from covey.values import dataclass
from covey.web.asgi import Headers

_USUAL = {"http": 80, "https": 443}
_PLAIN = {"ws": "http", "wss": "https"}
_READS = ("GET", "HEAD")
_ELSEWHERE = "covey open opens the page where it lives."
SHARED = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]")
"""Names under which other servers of this machine live too: no page of ours, since they would share its storage."""

Server = tuple[str, int] | None


class Doors:
    """The names under which we may be asked, the pages that may ask, and the origins at which our own page lives."""

    def __init__(self, names: set[str], ports: dict[int, str], pages: Iterable[str] = ()) -> None:
        pages = list(dict.fromkeys(_shortest(page.lower()) for page in pages))
        self._origins = {f"{scheme}://{name}:{port}" for port, scheme in ports.items() for name in names}
        usual = [scheme for port, scheme in ports.items() if port == _USUAL[scheme]]
        self._origins |= {f"{scheme}://{name}" for scheme in usual for name in names}
        self._origins |= set(pages)
        self._hosts = {origin.partition("://")[2] for origin in self._origins}
        self._pages = {page.partition("://")[2]: page for page in pages}
        self._of_runs: set[str] = set()
        self.page = pages[0] if pages else None
        """Where the page lives on this machine."""

    def check(self, headers: Headers, server: Server, scheme: str, *, passed_on: bool = True) -> None:
        """Refuse a foreign Host or Origin; the address that the connection came in by is never foreign.

        `passed_on`: what was asked at the door of a run is taken too.
        """
        host = host_of(headers)
        scheme = _PLAIN.get(scheme, scheme)
        origin = headers.get(b"origin")
        if origin is None and host in self._hosts:
            return
        own = _own_addresses(server, scheme)
        if host not in self._hosts and host not in own and not (passed_on and host in self._of_runs):
            raise Misdirected("This is not the host that you named.", hint="covey status shows the address.")
        if origin is not None:
            name = origin.decode("latin-1").lower()
            if name not in self._origins and name.removeprefix(f"{scheme}://") not in own:
                raise Denied("A page of another origin may not ask here.", hint=_ELSEWHERE)

    def know(self, host: str) -> None:
        """Let what is asked at the door of a run in, which passes it on to us."""
        self._of_runs.add(host)

    def page_at(self, headers: Headers, server: Server, scheme: str) -> str | None:
        """Return the origin of our page under the requested name; None where other services share the name."""
        host = host_of(headers)
        page = self._pages.get(host)
        if page is not None:
            return page
        secure = _PLAIN.get(scheme, scheme) == "https"
        if secure and server is not None and host in _own_addresses(server, "https") and not _is_loopback(server[0]):
            return f"https://{host}"
        return None

    def check_page(self, headers: Headers, server: Server, scheme: str, method: str | None) -> None:
        """Refuse whoever is not our page, which asks by a method or, without one, over a socket.

        Only so does the key of a browser count, wherever another page or program may have it from.
        """
        page = self.page_at(headers, server, scheme)
        if page is None:
            raise Denied("The page does not live under this name.", hint=_ELSEWHERE)
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if (origin or method not in _READS) and origin != page:
            raise Denied("Only the page itself may ask with its key.", hint=_ELSEWHERE)
        if method is not None and headers.get(b"sec-fetch-site") != b"same-origin":
            raise Denied("Only the page itself may ask with its key.", hint=_ELSEWHERE)


def host_of(headers: Headers) -> str:
    """Return the host that a request names, with its port."""
    return headers.get(b"host", b"").decode("latin-1").lower()


def _shortest(origin: str) -> str:
    """Return an origin as browsers write it: without the port that its scheme has anyway."""
    scheme = origin.partition("://")[0]
    return origin.removesuffix(f":{_USUAL[scheme]}")


def _own_addresses(server: Server, scheme: str) -> tuple[str, ...]:
    """Return the address that a connection came in by, with its port unless that is the default one."""
    if server is None:
        return ()
    host, port = server
    name = f"[{host}]" if ":" in host else host
    return (f"{name}:{port}", name) if port == _USUAL[scheme] else (f"{name}:{port}",)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


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
