"""Every test gets a world of its own, and its log must tell at the end what its rows say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.boards import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    assert world.folded() == world.tables()
    world.store.close()
