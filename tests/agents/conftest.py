"""A place for an agent to work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents import works
from tests.agents.works import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a repository with one commit."""
    return works.place(tmp_path)
