"""The stores that keep the contract; a new one joins by adding how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from covey.store.engine.sqlite import Outcome, SqliteStore
from covey.store.engine.transaction import Head
from covey.store.tx import Tx

T = TypeVar("T")


class AnyStore(Protocol):
    """What the contract asks of a store."""

    @property
    def head(self) -> Head: ...
    @property
    def place(self) -> str: ...
    def run(self, jobs: Sequence[Callable[[Tx], Any]]) -> list[Outcome[Any]]: ...
    def write(self, job: Callable[[Tx], T]) -> T: ...
    def read(self, job: Callable[[Tx], T]) -> T: ...
    def close(self) -> None: ...


Open = Callable[[Path, Callable[[], float]], AnyStore]
"""Opens the store of a folder, with the clock that it shall use; the same folder is the same store again."""


def sqlite(folder: Path, clock: Callable[[], float]) -> AnyStore:
    """Open a store in one SQLite file."""
    return SqliteStore(folder / "board.db", clock=clock)


STORES: dict[str, Open] = {"sqlite": sqlite}
SCRATCH = ("pulses", "requests", "tokens", "blobs", "origins", "origin_events")
"""Tables of which no event tells."""
