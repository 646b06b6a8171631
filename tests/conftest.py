"""Hypothesis profiles (`dev` while you work, `ci` for `make test`, `soak` for `make soak`), and whole projects."""

import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.worlds.projects import Line, make_line

# Importing and collecting make much and throw nothing away: it is looked through neither meanwhile nor while tests run.
gc.disable()

# No deadline: a slow machine is not a bug. Whether a change lands depends on the change, so `ci` tries the same
# examples again; `dev` and `soak` look somewhere new in every run (docs/decisions/0058).
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True)
settings.register_profile("soak", deadline=None, max_examples=500, print_blob=True)
settings.load_profile("dev")

# A shell starts what runs in its background with interrupts ignored, and children inherit that: nothing that a test
# starts could be interrupted then.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long text by its length: names of tests stand in the environment of all that a test starts."""
    return f"{val[:20]!r} and {len(val) - 20} more" if isinstance(val, str | bytes) and len(val) > 200 else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to run if pytest-xdist has forgotten its groups: a group's daemon would be started once a worker."""
    if getattr(config.option, "loadgroup", False):
        lost = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        if lost:
            raise pytest.UsageError(f"pytest-xdist has forgotten the group of {lost[0]}; which versions are these?")


def pytest_collection_finish() -> None:
    """Look through what the tests make, and not again and again through all that was collected."""
    gc.collect()
    gc.freeze()
    gc.enable()


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
