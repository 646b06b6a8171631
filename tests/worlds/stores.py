"""The stores that keep the contract; a new one joins by adding how it is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from covey.store.engine.sqlite import SqliteStore

T = TypeVar("T")


AnyStore = SqliteStore
"""What the contract is asked of; there is one kind of store."""
Open = Callable[[Path, Callable[[], float]], AnyStore]
"""Opens the store of a folder, with the clock that it shall use; the same folder is the same store again."""


def sqlite(folder: Path, clock: Callable[[], float]) -> AnyStore:
    """Open a store in one SQLite file."""
    return SqliteStore(folder / "board.db", clock=clock)


STORES: dict[str, Open] = {"sqlite": sqlite}
SCRATCH = ("pulses", "requests", "tokens", "blobs", "origins", "origin_events")
"""Tables of which no event tells."""
