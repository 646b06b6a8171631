"""Hashes of short texts: those of hashlib, without OpenSSL, which takes longer to load than a claim takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    from _blake2 import blake2b

    try:
        from _sha256 import sha256
    except ImportError:
        try:
            from _sha2 import sha256  # what Python 3.12 calls it
        except ImportError:
            from hashlib import sha256  # some builds have no other than OpenSSL's

__all__ = ["blake2b", "sha256"]
