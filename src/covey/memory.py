"""What the C library keeps of memory that was freed: little, and nothing of what was large."""

from __future__ import annotations

import ctypes

MAX_ARENAS = 2
"""Places from which threads get their memory: each keeps what was freed in it, and by itself there are many."""
_M_ARENA_MAX = -8
_LIBC = ctypes.CDLL(None)


def keep_little() -> None:
    """Let all threads of this process share a few places for memory, where the C library has several."""
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_M_ARENA_MAX, MAX_ARENAS)


def give_back() -> None:
    """Give memory that is not in use any more back to the machine."""
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
