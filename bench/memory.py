"""Memory: what the daemon keeps, idle and at work."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Report
from bench.project import Daemon, daemon, load, sample

TASKS = 10_000
FOLLOWERS = 100


def resident(*, quick: bool) -> Report:
    """Look at the daemon's resident memory: idle, and with a full board and many followers."""
    report = Report("memory", "Memory of the daemon")
    with sample() as project, daemon(project) as running:
        report.add("idle", running.memory(), "MiB", at_most=90, peer="123 MB (amux)")
    label = f"{TASKS:,} tasks and {FOLLOWERS} followers"
    with sample(TASKS) as project, daemon(project) as running, _following(running):
        report.add(label, running.memory(), "MiB", at_most=90, peer="546 MB with one page open (amux)")
        load(running, "claims", clients=50)
        report.add(f"{label}, all tasks claimed", running.memory(), "MiB", at_most=90)
    return report


@contextmanager
def _following(running: Daemon) -> Iterator[None]:
    spec = {"port": running.port, "token": running.token, "job": "hold", "followers": FOLLOWERS}
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.load"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent.parent,
    )
    assert child.stdin and child.stdout
    try:
        child.stdin.write(json.dumps(spec).encode() + b"\n")
        child.stdin.flush()
        if child.stdout.readline() != b"following\n":
            raise RuntimeError("The followers did not begin.")
        yield
    finally:
        child.stdin.close()
        child.wait(30)
        child.stdout.close()
