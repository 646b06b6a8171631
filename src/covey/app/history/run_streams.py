"""What programs write of a run, line by line: output, journals and ledgers, and the edits that only these have."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from covey import files
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Calls, Signal
from covey.values import dataclass

if TYPE_CHECKING:  # agents take their time to import
    from covey.agents.agent import Agent

Output = Callable[[int], tuple[bytes, int]]
"""Returns a part of what was printed from an offset on, and where the next part begins."""
Reader = Callable[[str], list[Signal]]
EDIT = "edit"
LINE = 8 * 1024 * 1024
"""Bytes of a line beyond which nobody reads it."""
_STAMP = re.compile(r'"timestamp"\s*:\s*(?:"([0-9T:.+Z-]{19,35})"|([0-9]{13})\b)')
NOTE = "journal"
"""The file of a run that says how much of its conversation is older, and where its program writes it."""
LEDGER = "ledger"
"""The file of a run that says where its program writes what it spends, and how much of that is older."""
PART = 256 * 1024


@dataclass(frozen=True)
class Journal:
    """A file that a program writes its conversation to; all places in it are counted from where the run began."""

    path: str
    start: int = 0
    end: int | None = None
    """Where the part of a run ends that has ended; a later one may go on in the same file."""

    def size(self) -> int:
        """Return how much the run has written."""
        found = files.status(self.path, follow=True)
        written = 0 if found is None else found.st_size
        return max((written if self.end is None else min(self.end, written)) - self.start, 0)

    def read(self, since: int) -> tuple[bytes, int]:
        """Return a part of it from a place on, and where the next part begins."""
        try:
            with open(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                file.seek(self.start + since)
                data = file.read(PART if self.end is None else max(min(PART, self.end - self.start - since), 0))
        except OSError:
            return b"", since
        return data, since + len(data)


def expect_journal(pattern: str, *, taken_up: bool) -> str:
    """Return the note for a run that is about to start; of a conversation taken up again, what is there was heard."""
    old = sum(os.path.getsize(path) for path in glob.glob(pattern)) if taken_up else 0
    return f"{old}\n{pattern}"


def find_journal(folder: Path) -> Journal | None:
    """Return the journal of the run with this folder, None if it has none or has not begun it."""
    try:
        places, _, pattern = files.read(folder / NOTE).partition("\n")
        found = sorted(path for path in glob.glob(pattern) if os.path.isfile(path)) if pattern else []
        return Journal(found[-1], *map(int, places.split())) if found else None
    except (OSError, ValueError, TypeError):
        return None


def close_journal(folder: Path) -> None:
    """Note where the part of a run that has ended is over; noted already, it stays so."""
    journal = find_journal(folder)
    if journal is not None and journal.end is None:
        pattern = files.read(folder / NOTE).partition("\n")[2]
        files.write_whole(folder / NOTE, f"{journal.start} {journal.start + journal.size()}\n{pattern}", 0o600)


# Ledgers


@dataclass(frozen=True)
class Ledger:
    """Below which folder a program writes what its calls cost; `old`: how much of each file earlier runs wrote."""

    folder: str
    old: Mapping[str, int]

    def parts(self, patterns: Iterable[str]) -> list[Journal]:
        """Return its files that are there."""
        found = dict.fromkeys(path for pattern in patterns for path in sorted(glob.glob(pattern)))
        return [Journal(path, self.old.get(path, 0)) for path in found if os.path.isfile(path)]


def expect_ledger(folder: str, patterns: Iterable[str]) -> str:
    """Return the note for a run that is about to start; `patterns`: where the conversation that it takes up stands."""
    found = {path: os.path.getsize(path) for pattern in patterns for path in glob.glob(pattern)}
    return json.dumps({"folder": folder, "old": found})


def find_ledger(folder: Path) -> Ledger | None:
    """Return the ledger of the run with this folder, None if it has none."""
    try:
        told = json.loads(files.read(folder / LEDGER))
        return Ledger(str(told["folder"]), {str(path): int(size) for path, size in told["old"].items()})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


# Edits that the output only names: the ledger tells them in the same order


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
    ledger = find_ledger(folder)
    if ledger is None:
        return []
    parts = ledger.parts(agent.ledger(ledger.folder, run.conversation or ""))
    lines = (line.decode(errors="replace") for part in parts for line in lines_of(part.read))
    return [edit for line in lines if (edit := agent.edited(line)) is not None]
