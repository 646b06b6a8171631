"""A project for each test, and the end of all that runs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.line.lines import Line, make_line


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Line]]:
    """Return a function that makes a project with some settings; it is ended with the test."""
    lines: list[Line] = []

    def make(*settings: str, **more: object) -> Line:
        lines.append(make_line(tmp_path / f"line-{len(lines)}", *settings, **more))  # type: ignore[arg-type]
        return lines[-1]

    yield make
    for line in lines:
        line.end()
