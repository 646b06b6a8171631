"""A scripted world for each test, and projects in it that are ended with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.model.environment import World, scripted_world
from tests.worlds.projects import Line
from tests.worlds.real_projects import real_line


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Yield a world of the test's own; at its end nobody may have tried to leave it."""
    with scripted_world(tmp_path) as made:
        yield made


@pytest.fixture
def real(tmp_path: Path, world: World) -> Iterator[Callable[..., Line]]:
    """Return a function that makes a project of real agents with some settings, and starts its daemon."""
    lines: list[Line] = []

    def make(*settings: str, agent: str = "claude", sessions: str = "", env: dict[str, str] | None = None) -> Line:
        place = tmp_path / f"project-{len(lines)}"
        lines.append(real_line(place, world, *settings, agent=agent, sessions=sessions))
        lines[-1].env.update(env or {})
        lines[-1].up()
        return lines[-1]

    yield make
    for line in lines:
        line.end()
