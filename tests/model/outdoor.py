"""A proxy that refuses everyone and remembers where they wanted to go."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType
from typing import Any


class OutDoor:
    """Stands where HTTP_PROXY and HTTPS_PROXY point, so that every attempt to leave is refused and seen."""

    def __init__(self) -> None:
        self._attempts: list[str] = []
        self._server = _Refusing(("127.0.0.1", 0), _Refusal)
        self._server.attempts = self._attempts
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="outdoor", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return the address of the proxy."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def attempts(self) -> list[str]:
        """Return the first line of every request so far: whom somebody tried to reach."""
        return list(self._attempts)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that make programs use it, for everything but loopback."""
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        proxies = {spelt: self.url for name in names for spelt in (name, name.lower())}
        return proxies | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost,::1")

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> OutDoor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Refusing(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256
    attempts: list[str]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: who hangs up was refused all the same."""


class _Refusal(socketserver.StreamRequestHandler):
    server: _Refusing

    def handle(self) -> None:
        self.server.attempts.append(self.rfile.readline().decode("latin-1").strip())
        self.wfile.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
