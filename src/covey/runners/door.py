"""The door of a run: an address of its own on loopback, at which its agent asks covey for as long as the agent lives.

The wrapper of a run holds it, and the agent dies with the wrapper: so nobody else can ever answer there, although the
agent's own programs, and its hooks over HTTP, check nothing. What is asked goes on to the daemon, wherever that answers
by now, once it has proved to be ours; while there is none, whoever asks is hung up on.

Like the wrapper it is found by its path, and imports next to nothing.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import time
from _socket import AF_INET, IPPROTO_TCP, SHUT_RDWR, SOCK_STREAM, TCP_NODELAY, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from covey import proof
else:
    sys.path.append(__file__.rpartition("/runners/")[0])
    import proof

    sys.path.pop()

PROOF_TIMEOUT_S = 10.0
"""Seconds that the daemon has to take a connection and to prove itself; who asks may well give up before."""
LISTEN_BACKLOG = 128
CHECKED_FROM_CONNECTIONS = 64
"""Connections at once beyond which it is asked who is there: other users of this machine can connect as well."""
MAX_CONNECTIONS = 512
"""Connections at once; each has a thread, and the agent needs some for itself."""
COPY_CHUNK_BYTES = 1 << 16


class Door:
    """An address at which a run asks; open from the moment it is made, answered from `begin` on."""

    def __init__(self, folder: str, credential: str) -> None:
        self._said = f"{os.path.dirname(os.path.dirname(folder))}/daemon.json"
        self._name, self._key = proof.parted(credential)
        self._open = 0
        self._counting = _thread.allocate_lock()
        self._listening = socket(AF_INET, SOCK_STREAM)
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen(LISTEN_BACKLOG)
        self.host = f"127.0.0.1:{self._listening.getsockname()[1]}"

    @property
    def url(self) -> bytes:
        """Return the address."""
        return f"http://{self.host}".encode()

    def begin(self) -> None:
        """Answer from now on, beside what else this process does."""
        _thread.start_new_thread(self._serve, ())

    def _serve(self) -> None:
        while True:
            try:
                file, near = self._listening._accept()  # type: ignore[attr-defined]  # what socket.accept calls
            except OSError:  # out of files for a moment
                time.sleep(0.05)
                continue
            if self._open >= MAX_CONNECTIONS or (self._open >= CHECKED_FROM_CONNECTIONS and _is_strangers(near[1])):
                os.close(file)
                continue
            self._count(1)
            try:
                _thread.start_new_thread(self._take, (file,))
            except RuntimeError:  # out of threads
                self._count(-1)
                os.close(file)

    def _count(self, more: int) -> None:
        with self._counting:
            self._open += more

    def _take(self, file: int) -> None:
        """Serve one connection to its end; who asks for a proof first is given one, if the daemon gave one to us."""
        near = socket(fileno=file)
        far: socket | None = None
        try:
            near.settimeout(PROOF_TIMEOUT_S)  # who connects has something to ask
            asked = near.recv(COPY_CHUNK_BYTES)
            near.settimeout(None)
            far = self._daemon() if asked else None
            if far is None:
                return
            if asked.startswith(f"GET {proof.PATH}?".encode()):
                asked = self._prove(near, asked)
            far.sendall(asked)
            self._pass_both_ways(near, far)
        except (OSError, ValueError, proof.Unproved):
            pass  # whoever asked sees that nobody answers
        finally:
            for each in (near, far):
                if each is not None:
                    each.close()
            self._count(-1)

    def _prove(self, near: socket, asked: bytes) -> bytes:
        """Answer the question for a proof, and return what came behind it."""
        while b"\r\n\r\n" not in asked and len(asked) <= proof.MAX_ANSWER_BYTES:
            more = near.recv(COPY_CHUNK_BYTES)
            if not more:
                raise ValueError("cut off")
            asked += more
        head, _, rest = asked.partition(b"\r\n\r\n")
        query = head.partition(b"?")[2].partition(b" ")[0].decode("latin-1").split("&")
        if f"for={self._name}" not in query:
            raise ValueError("asked for another's proof")
        nonce = next((part[6:] for part in query if part.startswith("nonce=")), "")
        body = b'{"proof":"%b","life":""}' % proof.proof(self._key, nonce, self.host, "").encode()
        near.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        return rest

    def _daemon(self) -> socket:
        """Return a connection to the daemon of this moment, which has proved that it is ours."""
        with open(self._said, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                raise ValueError("another user wrote where the daemon answers")
            port = proof.number_of(file.read(), "port")
        far = socket(AF_INET, SOCK_STREAM)
        try:
            far.settimeout(PROOF_TIMEOUT_S)
            far.connect(("127.0.0.1", port))
            far.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            nonce = os.urandom(16).hex()
            sign = proof.signed_door(self._key, nonce, self.host)
            proof.require(far, self._name, self._key, nonce, f"127.0.0.1:{port}", f"&door={self.host}&sign={sign}")
            far.settimeout(None)
        except BaseException:
            far.close()
            raise
        return far

    def _pass_both_ways(self, near: socket, far: socket) -> None:
        over = _thread.allocate_lock()
        over.acquire()

        def back() -> None:
            try:
                _pass(far, near)
            finally:
                over.release()

        near.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        _thread.start_new_thread(back, ())
        _pass(near, far)
        over.acquire()


def _is_strangers(port: int) -> bool:
    """Say whether the other end of a connection from a port of loopback belongs to another user; root is none."""
    end = f"0100007F:{port:04X}"  # 127.0.0.1, as the kernel writes it on every machine that we know
    try:
        with open("/proc/net/tcp", encoding="ascii") as table:
            owners = [int(fields[7]) for fields in map(str.split, table) if fields[1] == end]
    except (OSError, ValueError):
        return False
    return any(owner not in (0, os.geteuid()) for owner in owners)


def _pass(source: socket, sink: socket) -> None:
    """Pass on what comes until its end, which is then the end of both."""
    try:
        while piece := source.recv(COPY_CHUNK_BYTES):
            sink.sendall(piece)
    except OSError:
        pass
    finally:
        for each in (sink, source):
            with contextlib.suppress(OSError):
                each.shutdown(SHUT_RDWR)
