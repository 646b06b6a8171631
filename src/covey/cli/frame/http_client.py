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
    from collections.abc import Iterator
    from io import BufferedReader

ANSWER_TIMEOUT_S = 60.0
"""Seconds that an answer may take."""
CONNECT_TIMEOUT_S = 10.0
"""Seconds until a connection is made and the daemon has proved itself: one that hangs is given up after them."""
SAY_SO_AFTER_S = 2.0
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
        if sys.stderr.isatty() and not select.select([self._link], [], [], SAY_SO_AFTER_S)[0]:
            print("covey: the daemon does not answer yet ...", file=sys.stderr)
        return self._link.recv(size)


class Wire:
    """A connection that lasts as long as both sides want; it is made when first needed.

    Whoever answers has to prove, on each connection, that it is the daemon that knows our key; nothing else is sent
    before. Without a key only a certificate can prove it.
    """

    def __init__(self, url: str, token: str, credential: str = "") -> None:
        self.url = url
        self._credential = credential
        self._name, self._key = proof.parted(credential)
        scheme, _, rest = url.partition("://")
        self._authority = rest.partition("/")[0]
        host, colon, port = self._authority.rpartition(":")
        if scheme not in ("http", "https") or not self._authority or not token.isascii() or not token.isprintable():
            raise Invalid(f"{url[:200]!r} is not the address of a daemon.", hint="It looks like http://127.0.0.1:PORT.")
        if not colon or port.endswith("]"):
            host, port = self._authority, "443" if scheme == "https" else "80"
        if not port.isdigit():
            raise Invalid(f"{url[:200]!r} is not the address of a daemon: {port!r} is not a port.")
        self._address = ("127.0.0.1" if host.endswith(".localhost") else host.strip("[]"), int(port))
        self._tls = scheme == "https"
        if not self._key and not self._tls:
            raise Invalid(
                f"Nothing here can tell whether covey's own daemon answers at {url[:200]}, so the token is not sent.",
                hint="Go into the repository, or set COVEY_PROOF: covey session token NAME --json prints it.",
            )
        self._token = token
        self._socket: socket.socket | None = None
        self._answers: BufferedReader

    def ask(self, method: str, target: str, body: bytes, key: str | None) -> tuple[int, dict[str, str], bytes]:
        """Send one request and return status, headers and body of the answer."""
        while True:
            fresh = self._socket is None
            try:
                return self._ask(method, target, body, key)
            except BaseException as error:  # an interrupt too: what comes must not be taken for the next answer
                self.close()
                # A connection that was kept may have been closed at the other end meanwhile: nothing is lost yet.
                if fresh or not isinstance(error, Lost):
                    raise

    def follow(self, target: str, silence: float) -> Iterator[bytes]:
        """Yield an answer that does not end, part by part, on a connection of its own; `silence` ends it."""
        other = Wire(self.url, self._token, self._credential)
        try:
            link = other._connected()
            link.sendall(other._head("GET", target, b"", None))
            status, _ = other._status()
            link.settimeout(silence)
            while status == 200 and (part := other._chunk()):
                yield part
        except (OSError, ValueError) as error:
            raise Lost(str(error), sent=False) from None
        finally:
            other.close()

    def _head(self, method: str, target: str, body: bytes, key: str | None) -> bytes:
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
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _ask(self, method: str, target: str, body: bytes, key: str | None) -> tuple[int, dict[str, str], bytes]:
        link = self._connected()
        try:
            link.sendall(self._head(method, target, body, key) + body)
            status, headers = self._status()
            if headers.get("transfer-encoding", "").lower() == "chunked":
                answer = b"".join(iter(self._chunk, b""))
            else:
                size = int(headers.get("content-length", "0"))
                answer = _whole(self._answers.read(size), size)
            if headers.get("connection", "").lower() == "close":
                self.close()
            return status, headers, answer
        except TimeoutError:  # it may have been done: only the same key makes it safe to ask again
            raise Lost(f"there was no answer within {ANSWER_TIMEOUT_S:g} s", sent=True, hangs=True) from None
        except ValueError:
            raise Lost("what answers there is not a covey daemon", sent=False) from None
        except OSError as error:
            raise Lost(str(error), sent=True) from None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            import socket  # without a daemon nobody needs it

            try:
                link = socket.create_connection(self._address, timeout=CONNECT_TIMEOUT_S)
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket = _secured(link, self._address[0]) if self._tls else link
                self._answers = self._socket.makefile("rb")
                if self._key:  # nobody is gone on with who does not know what our daemon knows
                    nonce = os.urandom(16).hex()
                    proof.require(_Patient(self._socket), self._name, self._key, nonce, self._authority)
                self._socket.settimeout(ANSWER_TIMEOUT_S)
            except proof.Unproved as error:
                raise Lost(str(error), sent=False) from None
            except TimeoutError:
                raise Lost(f"there was no answer within {CONNECT_TIMEOUT_S:g} s", sent=False, hangs=True) from None
            except (OSError, ValueError) as error:
                raise Lost(getattr(error, "strerror", None) or str(error), sent=False) from None
        return self._socket

    def _status(self) -> tuple[int, dict[str, str]]:
        first, *lines = (line.decode("latin-1") for line in iter(self._line, b""))
        version, _, told = first.partition(" ")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if not version.startswith("HTTP/1.") or not told[:3].isdigit() or "covey-version" not in headers:
            raise Lost("what answers there is not a covey daemon", sent=False)
        return int(told[:3]), headers

    def _line(self) -> bytes:
        return _whole(self._answers.readline()).strip()

    def _chunk(self) -> bytes:
        """Return the next part of an answer whose length is not known before, b"" at its end."""
        size = int(self._line().partition(b";")[0], 16)
        part = _whole(self._answers.read(size), size) if size else b""
        self._line()
        return part

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        if self._socket is not None:
            self._answers.close()
            self._socket.close()
            self._socket = None


def _whole(data: bytes, size: int = 1) -> bytes:
    """Return what was read, if there is as much of it as there should be."""
    if len(data) < size:
        raise ConnectionResetError("the connection was closed")
    return data


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
