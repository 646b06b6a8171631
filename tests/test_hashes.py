"""Hashes of short texts are those of hashlib, whatever a Python was built with."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from covey import hashes


def test_hashes_are_those_of_hashlib() -> None:
    assert hashes.sha256(b"a").digest() == hashlib.sha256(b"a").digest()
    assert hashes.blake2b(b"a", digest_size=16).digest() == hashlib.blake2b(b"a", digest_size=16).digest()


def test_a_python_with_no_hash_of_its_own_takes_that_of_openssl() -> None:
    code = (
        "import sys; sys.modules['_sha256'] = sys.modules['_sha2'] = None; from covey.hashes import sha256; sha256(b'')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
