"""One HTTP connection to a daemon, over a bare socket: importing http.client would take longer than the answer."""

from __future__ import annotations

import os
import select
import sys

from covey import PROTOCOL, __version__, proof
from covey.errors import Invalid, Unavailable

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    import socket

PATIENCE = 60.0
"""Seconds that an answer may take."""
PROOF_PATIENCE = 10.0
"""Seconds that a proof may take; it waits for nothing but the daemon's next free moment."""
NOTICED = 2.0
"""Seconds after which a person wonders what is going on."""


class Lost(Exception):
    """There was no answer; `sent`: the daemon may have got the question; `hangs`: it is there, and says nothing."""

    def __init__(self, why: str, *, sent: bool, hangs: bool = False) -> None:
        super().__init__(why)
        self.sent = sent
        self.hangs = hangs


class _Patient:
    """A connection that says so when it is waited for."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self.sendall = link.sendall

    def recv(self, size: int) -> bytes:
        """Return what comes next, and tell a person that waits longer than a moment."""
        if sys.stderr.isatty() and not select.select([self._link], [], [], NOTICED)[0]:
            print("covey: the daemon does not answer yet ...", file=sys.stderr)
        return self._link.recv(size)


class Wire:
    """A connection that lasts as long as both sides want; it is made when first needed.

    Whoever answers has to prove, on each connection, that it is the daemon that knows our key; nothing else is sent
    before. Without a key only a certificate can prove it.
    """

    def __init__(self, url: str, token: str, credential: str = "") -> None:
        self.url = url
        self._name, self._key = proof.parted(credential)
        scheme, _, rest = url.partition("://")
        self._authority = rest.partition("/")[0]
        host, colon, port = self._authority.rpartition(":")
        if scheme not in ("http", "https") or not self._authority or not token.isascii() or not token.isprintable():
            raise Invalid(f"{url[:200]!r} is no address of a daemon.", hint="It looks like http://127.0.0.1:PORT.")
        if not colon or port.endswith("]"):
            host, port = self._authority, "443" if scheme == "https" else "80"
        if not port.isdigit():
            raise Invalid(f"{url[:200]!r} is no address of a daemon: {port!r} is no port.")
        self._address = ("127.0.0.1" if host.endswith(".localhost") else host.strip("[]"), int(port))
        self._tls = scheme == "https"
        if not self._key and not self._tls:
            raise Invalid(
                f"Nothing here can tell whether covey's own daemon answers at {url[:200]}, so the token is not sent.",
                hint="Go into the repository, or set COVEY_PROOF: covey session token NAME --json prints it.",
            )
        self._token = token
        self._socket: socket.socket | None = None
        self._rest = b""

    def ask(self, method: str, target: str, body: bytes, key: str | None) -> tuple[int, dict[str, str], bytes]:
        """Send one request and return status, headers and body of the answer."""
        fresh = self._socket is None
        try:
            return self._ask(method, target, body, key)
        except Lost:
            self.close()
            if fresh:
                raise
        # A connection that was kept may have been closed at the other end meanwhile: that is no loss yet.
        return self._ask(method, target, body, key)

    def _ask(self, method: str, target: str, body: bytes, key: str | None) -> tuple[int, dict[str, str], bytes]:
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {self._authority}",
            f"Authorization: Bearer {self._token}",
            f"Covey-Protocol: {PROTOCOL}",
            f"Covey-Version: {__version__}",
        ]
        if key is not None:
            lines += [f"Idempotency-Key: {key}"]
        if method != "GET":
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        link = self._connected()
        try:
            link.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            return self._answer(link)
        except TimeoutError:  # it may have been done: only the same key makes it safe to ask again
            self.close()
            raise Lost(f"there was no answer within {PATIENCE:g} s", sent=True, hangs=True) from None
        except ValueError:
            self.close()
            raise Lost("what answers there is no covey daemon", sent=False) from None
        except OSError as error:
            self.close()
            raise Lost(str(error), sent=True) from None
        except BaseException:  # an interrupt: the answer that comes must not be taken for that of the next question
            self.close()
            raise

    def _connected(self) -> socket.socket:
        if self._socket is None:
            import socket  # without a daemon nobody needs it

            try:
                link = socket.create_connection(self._address, timeout=PATIENCE)
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket = _secured(link, self._address[0]) if self._tls else link
                self._rest = b""
                self._let_prove(self._socket)
            except proof.Unproved as error:
                self.close()
                raise Lost(str(error), sent=False) from None
            except TimeoutError:
                self.close()
                raise Lost(f"there was no answer within {PROOF_PATIENCE:g} s", sent=False, hangs=True) from None
            except (OSError, ValueError) as error:
                self.close()
                raise Lost(getattr(error, "strerror", None) or str(error), sent=False) from None
        return self._socket

    def _let_prove(self, link: socket.socket) -> None:
        """Refuse to go on with anybody who does not know what our daemon knows."""
        if not self._key:
            return
        link.settimeout(PROOF_PATIENCE)
        proof.require(_Patient(link), self._name, self._key, os.urandom(16).hex(), self._authority)
        link.settimeout(PATIENCE)

    def _answer(self, link: socket.socket) -> tuple[int, dict[str, str], bytes]:
        head = self._until(link, b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, _, told = head[0].partition(" ")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if not version.startswith("HTTP/1.") or not told[:3].isdigit() or "covey-version" not in headers:
            self.close()
            raise Lost("what answers there is no covey daemon", sent=False)
        status = int(told[:3])
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = self._chunks(link)
        else:
            body = self._exactly(link, int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return status, headers, body

    def _more(self, link: socket.socket) -> None:
        data = link.recv(65536)
        if not data:
            raise ConnectionResetError("the connection was closed")
        self._rest += data

    def _until(self, link: socket.socket, mark: bytes) -> bytes:
        while (end := self._rest.find(mark)) < 0:
            self._more(link)
        taken, self._rest = self._rest[:end], self._rest[end + len(mark) :]
        return taken

    def _exactly(self, link: socket.socket, size: int) -> bytes:
        parts, have = [self._rest], len(self._rest)
        while have < size:
            data = link.recv(min(size - have, 1 << 20))
            if not data:
                raise ConnectionResetError("the connection was closed")
            parts.append(data)
            have += len(data)
        whole = b"".join(parts)
        self._rest = whole[size:]
        return whole[:size]

    def _chunks(self, link: socket.socket) -> bytes:
        body = b""
        while size := int(self._until(link, b"\r\n").partition(b";")[0], 16):
            body += self._exactly(link, size)
            self._until(link, b"\r\n")
        self._until(link, b"\r\n")
        return body

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _secured(link: socket.socket, host: str) -> socket.socket:
    import ssl

    try:
        return ssl.create_default_context().wrap_socket(link, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        link.close()
        raise Unavailable(
            f"The certificate of {host} is not trusted: {error.verify_message}.",
            hint="SSL_CERT_FILE=FILE names a certificate to trust.",
        ) from None
