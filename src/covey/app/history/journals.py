"""What programs write beside their output: conversations and ledgers, and what of them is a run's own."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from covey import files
from covey.values import dataclass

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


def expect(pattern: str, *, taken_up: bool) -> str:
    """Return the note for a run that is about to start; of a conversation taken up again, what is there was heard."""
    old = sum(os.path.getsize(path) for path in glob.glob(pattern)) if taken_up else 0
    return f"{old}\n{pattern}"


def find(folder: Path) -> Journal | None:
    """Return the journal of the run with this folder, None if it has none or has not begun it."""
    try:
        places, _, pattern = files.read(folder / NOTE).partition("\n")
        found = sorted(path for path in glob.glob(pattern) if os.path.isfile(path)) if pattern else []
        return Journal(found[-1], *map(int, places.split())) if found else None
    except (OSError, ValueError, TypeError):
        return None


def close(folder: Path) -> None:
    """Note where the part of a run that has ended is over; noted already, it stays so."""
    journal = find(folder)
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
