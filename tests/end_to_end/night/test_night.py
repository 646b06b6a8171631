"""Whole nights in minutes: virtual time, real store, real git, real loops; all that goes wrong comes from a seed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.night.night import Night

SEEDS = range(1, 21)
ONE = os.environ.get("COVEY_NIGHT_SEED")
HOURS = float(os.environ.get("COVEY_NIGHT_HOURS", "12"))
MEMORY = Path("/dev/shm")
"""A disk in memory, where there is one: a night is thousands of small files."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return an empty folder, in memory if that can be."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="covey-night-", dir=MEMORY) as folder:
        yield Path(folder)


_RESCUED = re.compile(r'"commit":"[0-9a-f]{40}"(?=,"why":)')


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [int(ONE)] if ONE else SEEDS)
def test_a_night_ends_with_every_task_done_blocked_or_waiting(seed: int, place: Path) -> None:
    story = Night(place, seed, HOURS).run()
    print(story.figures())
    assert story.landed > 0


@pytest.mark.parametrize(
    ("seed", "hours", "sessions", "tasks"), [(3, 1.2, 4, 6), pytest.param(4, 3.0, 6, 14, marks=pytest.mark.soak)]
)
def test_an_evening_ends_with_every_task_done_blocked_or_waiting(
    seed: int, hours: float, sessions: int, tasks: int, place: Path
) -> None:
    story = Night(place, seed, hours, sessions, tasks).run()
    assert story.landed > 0 and story.runs > story.landed


def test_the_same_seed_is_the_same_night_to_the_last_event() -> None:
    first, second = (_told_by_a_process(seed=5, hash_seed=number) for number in (1, 2))
    assert len(first) > 100
    assert first == second


def _told_by_a_process(*, seed: int, hash_seed: int) -> list[list[object]]:
    """Return the log of a third of an hour, lived through by a process whose sets have another order."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.end_to_end.night",
            "--seed",
            str(seed),
            "--hours",
            "0.3",
            "--sessions",
            "3",
            "--tasks",
            "3",
        ],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: list[list[object]] = json.loads(done.stdout)["log"]
    # A rescue keeps the index as it is, and in that stand the times that the disk gave to files, which are no night's.
    return [[_RESCUED.sub('"commit":""', each) if isinstance(each, str) else each for each in event] for event in told]
