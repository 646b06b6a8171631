"""Where we may be asked, and by whose pages: hosts, origins, and the rules for what our own page asks."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from covey.errors import Denied, Misdirected
from covey.web.asgi import Headers

_USUAL = {"http": 80, "https": 443}
_PLAIN = {"ws": "http", "wss": "https"}
_READS = ("GET", "HEAD")
_ELSEWHERE = "covey open opens the page where it lives."

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
