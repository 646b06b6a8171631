"""Every test of a runner gets a place of its own, and leaves no process behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.runners import RUNNERS, Place


@pytest.fixture(params=sorted(RUNNERS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Yield an empty folder with a runner on it, once for each runner that there is."""
    found = Place(request.param, tmp_path / "runs")
    try:
        yield found
    finally:
        found.end_all()
