"""How the daemon proves to be ours before anybody sends it a secret, and how everyone checks it.

Whoever means to send a token asks first, on the same connection, for the proof of a nonce: a MAC over the nonce and
over the address that was asked for, so that nobody at another address can pass on what the true daemon answers. The
key is made from the owner's token for each who asks, which a name says: `owner`, `session:ada`, `run:run-7`,
`device:device-3`; so nobody can prove anything to anybody else.

The relay and the wrapper start in milliseconds and read this file by its path: it imports next to nothing.
"""

try:
    from _sha256 import sha256  # type: ignore[import-not-found]  # hashlib takes longer to import than a question takes
except ImportError:
    from _sha2 import sha256  # type: ignore[import-not-found]  # what Python 3.12 calls it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Connection(Protocol):
        """A socket, as far as a proof needs it."""

        def sendall(self, data: bytes, /) -> None:
            """Send all of it."""

        def recv(self, size: int, /) -> bytes:
            """Return what comes."""


PATH = "/api/proof"
NAME_FORM, NONCE_FORM = "[A-Za-z0-9_.:-]{1,200}", "[A-Za-z0-9_-]{16,128}"
"""How the name of who asks, and a nonce, may look."""
OWNER = "owner"
DOOR = "http://127.0.0.1:0"
"""What stands for the address at which a run asks, until its wrapper knows that."""
VARIABLE = "COVEY_PROOF"
"""The variable in which a run, or whoever has a session's token, is given a name and its key."""
MAX_ANSWER_BYTES = 4096
"""Bytes that the answer with a proof may have."""
_INNER, _OUTER = bytes(byte ^ 0x36 for byte in range(256)), bytes(byte ^ 0x5C for byte in range(256))


class Unproved(Exception):
    """Whoever answers there does not know what our daemon knows."""


def mac(key: bytes, *parts: str) -> str:
    """Return the HMAC-SHA-256 of some texts without line breaks, in hexadecimal digits."""
    block = key.ljust(64, b"\0") if len(key) <= 64 else sha256(key).digest().ljust(64, b"\0")
    inner = sha256(block.translate(_INNER) + "\n".join(parts).encode("utf-8", "surrogatepass")).digest()
    return str(sha256(block.translate(_OUTER) + inner).hexdigest())


def key_of(owner_token: str, name: str) -> str:
    """Return the key with which the daemon proves itself to whoever has this name."""
    return mac(owner_token.encode("utf-8", "surrogatepass"), "covey key", name)


def proof(key: str, nonce: str, host: str, life: str) -> str:
    """Return what only a daemon can answer that knows the key, and that was asked by this address itself."""
    return mac(key.encode(), "covey daemon", nonce, host.lower(), life)


def page_key(key: str, host: str, life: str) -> str:
    """Return what a browser sends to the daemon that proved itself: it is worth nothing once that daemon has ended."""
    return mac(key.encode(), "covey page", host.lower(), life)


def signed_door(key: str, nonce: str, door: str) -> str:
    """Return what shows that the wrapper of a run names the address at which it takes what it passes on."""
    return mac(key.encode(), "covey door", nonce, door)


def credential(owner_token: str, name: str) -> str:
    """Return a name and its key, as a variable holds them."""
    return f"{name}:{key_of(owner_token, name)}"


def parted(credential: str) -> tuple[str, str]:
    """Return the name and the key of a credential, "" for both if it is none."""
    name, _, key = credential.strip().rpartition(":")
    return (name, key) if name and len(key) == 64 else ("", "")


def question(name: str, nonce: str, host: str, more: str = "") -> bytes:
    """Return the request for a proof."""
    line = f"GET {PATH}?for={name}&nonce={nonce}{more} HTTP/1.1"
    return f"{line}\r\nHost: {host}\r\n\r\n".encode("latin-1", "replace")


def check(answer: bytes, key: str, nonce: str, host: str) -> None:
    """Refuse the answer to a question if it does not prove that our daemon gave it."""
    head, _, body = answer.partition(b"\r\n\r\n")
    said = body.decode("latin-1")
    if b" 200" not in head[:12] or said_of(said, "proof") != proof(key, nonce, host, said_of(said, "life")):
        raise Unproved("what answers there did not prove to be your covey daemon")


def said_of(said: str, name: str) -> str:
    """Return a plain text of a JSON object; json takes too long to import for who asks at every step."""
    return said.partition(f'"{name}":"')[2].partition('"')[0]


def number_of(said: str, name: str) -> int:
    """Return a number of a JSON object, 0 if it has none."""
    digits = said.partition(f'"{name}":')[2].lstrip()
    end = next((place for place, letter in enumerate(digits) if letter not in "0123456789"), len(digits))
    return int(digits[:end] or "0")


def require(connection: "Connection", name: str, key: str, nonce: str, host: str, more: str = "") -> None:
    """Ask whoever is at the other end of a fresh connection for a proof, and refuse to go on without it."""
    connection.sendall(question(name, nonce, host, more))
    answer = b""
    while not is_whole(answer):
        piece = connection.recv(MAX_ANSWER_BYTES)
        if not piece or len(answer) > MAX_ANSWER_BYTES:
            raise Unproved("what answers there did not prove to be your covey daemon")
        answer += piece
    check(answer, key, nonce, host)


def is_whole(answer: bytes) -> bool:
    """Say whether the answer to a question is here to its last byte."""
    head, found, body = answer.partition(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return bool(found) and len(body) >= int(lengths[0] if lengths else 0)
