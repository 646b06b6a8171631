"""What a run writes, read on from where we were and understood line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from covey.core.heard import Heard
from covey.core.signals import Failed, Signal

LINE = 8 * 1024 * 1024
"""Bytes of a line beyond which it is nobody's signal."""
MOST = 64 * 1024 * 1024
"""Bytes that are read at most of what was printed before we began to listen."""

Source = Callable[[int], tuple[bytes, int]]
"""Returns a part of what was written from an offset on, and where the next part begins."""
Reader = Callable[[str], list[Signal]]


@dataclass
class Tail:
    """How far something was read, and the beginning of a line that has not ended."""

    read: int = 0
    rest: bytes = b""


def listen(heard: Heard, tail: Tail, reader: Reader | None, source: Source, size: int, at: float) -> None:
    """Read all that was written since; what nobody can read any more is passed over."""
    if size - tail.read > MOST:
        tail.read, tail.rest = size - MOST, b""
    while True:
        data, following = source(tail.read)
        if not data:
            return
        tail.read = following
        *lines, tail.rest = (tail.rest + data).split(b"\n")
        if len(tail.rest) > LINE:
            tail.rest = b""
        _understand(heard, reader, lines, at)


def finish(heard: Heard, tail: Tail, reader: Reader | None, at: float) -> None:
    """Understand a last line that nothing ended."""
    lines, tail.rest = [tail.rest], b""
    _understand(heard, reader, lines, at)


def overhear(heard: Heard, reader: Reader, complaint: str, at: float) -> None:
    """Understand what a program said on standard error as far as it says that it failed: it said nothing else."""
    for line in complaint.splitlines():
        for signal in reader(line):
            if isinstance(signal, Failed):
                heard.take(signal, at)


def _understand(heard: Heard, reader: Reader | None, lines: list[bytes], at: float) -> None:
    if reader is not None:
        for line in lines:
            for signal in reader(line.decode(errors="replace")):
                heard.take(signal, at)
