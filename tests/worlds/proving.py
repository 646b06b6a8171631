"""What stands in for the daemon in a test, and knows what it knows: it can prove itself as the daemon does."""

from __future__ import annotations

from covey import proof

TOKEN = "owners"
"""The owner's token of a project that is only in a test."""


def credential(name: str = "run:run-1") -> str:
    """Return what a run is given to let the daemon prove itself."""
    return proof.credential(TOKEN, name)


def proved(head: bytes, host: str, token: str = TOKEN) -> bytes:
    """Return the answer to a question for a proof, whatever it is asked for."""
    asked = dict(part.split("=") for part in head.split(b" ")[1].decode().partition("?")[2].split("&"))
    made = proof.proof(proof.key_of(token, asked["for"]), asked["nonce"], host, "life")
    body = f'{{"proof":"{made}","life":"life"}}'.encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def is_question(said: bytes) -> bool:
    """Say whether a request asks for a proof."""
    return said.startswith(f"GET {proof.PATH}?".encode())
