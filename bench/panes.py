"""Panes: looking at many terminals at once."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from bench.figures import Report
from covey.core.fleet.launches import Launch
from covey.runners.tmux import TmuxRunner

PANES = 100
QUIET = "n=0; while [ $n -lt 45 ]; do n=$((n+1)); echo $n words on a screen that is quite full; done; exec sleep 1000"
BUSY = "while :; do echo working; date; sleep 0.5; done"


def polling(*, quick: bool) -> Report:
    """Look at 100 terminals again and again: all at rest, a tenth of them at work, and all of them at work."""
    report = Report("panes", f"One look at {PANES} tmux panes")
    if shutil.which("tmux") is None:
        report.skipped = "tmux is not installed"
        return report
    rounds = 20 if quick else 100
    for label, busy in (("all at rest", 0), ("10 print twice a second", 10), ("all print twice a second", PANES)):
        with tempfile.TemporaryDirectory() as folder:
            runner = TmuxRunner(Path(folder, "runs"), Path(folder, "socket"))
            try:
                times, seen = _look(runner, busy, rounds)
            finally:
                for n in range(PANES):
                    runner.stop(f"run-{n}")
                runner.close()
        report.add_times(label, times, p50=20 if busy else 5)
        report.must_be_zero(f"{label}: screens not seen", PANES * rounds - seen)
    return report


def _look(runner: TmuxRunner, busy: int, rounds: int) -> tuple[list[float], int]:
    """Return how long each look took, and how many screens all of them showed."""
    for n in range(PANES):
        words = ("/bin/sh", "-c", BUSY if n < busy else QUIET)
        runner.start(f"run-{n}", Launch(argv=words, cwd="/", env={"PATH": os.environ["PATH"]}, terminal=True))
    while len(runner.screens()) < PANES:
        time.sleep(0.1)
    time.sleep(2.5)  # What printed in the second of the last look is read once more.
    runner.screens()
    times, seen = [], 0
    for _ in range(rounds):
        began = time.perf_counter()
        seen += len(runner.screens())
        times.append(time.perf_counter() - began)
        time.sleep(0.05)
    return times, seen
