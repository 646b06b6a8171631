"""The edits of a run whose output only names them: found in its program's ledger, in the same order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path

from covey.app.history import journals
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Calls, Signal
from covey.values import dataclass

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from covey.agents.agent import Agent

Output = Callable[[int], tuple[bytes, int]]
"""Returns a part of what was printed from an offset on, and where the next part begins."""
Reader = Callable[[str], list[Signal]]
EDIT = "edit"
LINE = 8 * 1024 * 1024
"""Bytes of a line beyond which nobody reads it."""
_STAMP = re.compile(r'"timestamp"\s*:\s*(?:"([0-9T:.+Z-]{19,35})"|([0-9]{13})\b)')


@dataclass
class WithEdits:
    """Reads what a run printed, and says of each edit what it changed, also where the output names the paths alone."""

    read: Reader
    find: Callable[[], list[str]]
    """Returns all edits that the ledger tells of; asked only if the output leaves one out."""
    before: Callable[[], int] = field(default=lambda: 0)
    """Returns how many edits the output has left out before the first line that is read."""
    _named: int = 0
    _found: list[str] | None = None

    def __call__(self, line: str) -> list[Signal]:
        return [self._whole(signal) for signal in self.read(line)]

    def beginning_at(self, output: Output, start: int) -> WithEdits:
        """Return a reader of the lines from a place on."""
        return WithEdits(self.read, self.find, lambda: _left_out(self.read, output, start))

    def _whole(self, signal: Signal) -> Signal:
        if not _is_left_out(signal):
            return signal
        assert isinstance(signal, Calls)
        if self._found is None:
            self._found, self._named = self.find(), self.before()
        number, self._named = self._named, self._named + 1
        return replace(signal, edit=self._found[number]) if number < len(self._found) else signal


def reader(agent: Agent, folder: Path, run: Run) -> WithEdits:
    """Return what understands the output of a run; `folder`: the run's own."""
    return WithEdits(agent.read, lambda: _told(agent, folder, run))


def cut(rest: bytes, data: bytes) -> tuple[list[bytes], bytes]:
    """Return the lines that end in what was read, and the beginning of the next one, without one that is too long."""
    *lines, rest = (rest + data).split(b"\n")
    return lines, rest if len(rest) <= LINE else b""


def lines_of(output: Output, until: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a stream up to a place, without one that is too long."""
    rest, at = b"", 0
    while until is None or at < until:
        data, following = output(at)
        lines, rest = cut(rest, data[: None if until is None else until - at])
        at = following
        yield from (line for line in lines if line)
        if not data:
            break
    if rest:
        yield rest


def moment_of(line: str) -> float | None:
    """Return when a line of a stream was written, if it says that."""
    found = _STAMP.search(line)
    if found is None:
        return None
    if found[2]:
        return int(found[2]) / 1000
    try:
        return datetime.fromisoformat(found[1]).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _is_left_out(signal: Signal) -> bool:
    return isinstance(signal, Calls) and signal.tool == EDIT and not signal.edit


def _left_out(read: Reader, output: Output, start: int) -> int:
    lines = (line.decode(errors="replace") for line in lines_of(output, start))
    return sum(_is_left_out(signal) for line in lines for signal in read(line))


def _told(agent: Agent, folder: Path, run: Run) -> list[str]:
    """Return the edits of a run that its ledger tells of; those of later runs in the same file may follow them."""
    ledger = journals.find_ledger(folder)
    if ledger is None:
        return []
    parts = ledger.parts(agent.ledger(ledger.folder, run.conversation or ""))
    lines = (line.decode(errors="replace") for part in parts for line in lines_of(part.read))
    return [edit for line in lines if (edit := agent.edited(line)) is not None]
