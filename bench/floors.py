"""Floors: what the machine itself takes in this run, so that the other figures can be read on any machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from bench.figures import Report, median, percentile
from bench.project import daemon, load, sample


def measure(*, quick: bool) -> Report:
    """Measure one bare fsync, one bare HTTP answer and one bare start of Python."""
    report = Report("floors", "Floors of this machine, in this run")
    syncs = _fsyncs(50 if quick else 200)
    report.add("fsync of 4 KiB p50", 1000 * median(syncs), "ms")
    report.add("fsync of 4 KiB p99", 1000 * percentile(syncs, 99), "ms")
    starts = [_start() for _ in range(5 if quick else 15)]
    report.add("start of Python with nothing in it", 1000 * median(starts), "ms")
    with sample() as project, daemon(project) as running:
        asked = {"line": "POST /api/nothing", "body": {}, "clients": 50, "count": 2_000 if quick else 10_000}
        told = load(running, "repeat", **asked)
        report.add("HTTP answers that touch no store, 50 clients", len(told["times"]) / told["seconds"], "/s")
    return report


def _fsyncs(number: int) -> list[float]:
    took: list[float] = []
    with tempfile.TemporaryFile() as file:
        for _ in range(number):
            began = time.perf_counter()
            os.write(file.fileno(), bytes(4096))
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return took


def _start() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began
