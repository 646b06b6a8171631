"""Start-up: what a command takes from Enter to its answer."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.figures import Report, median
from bench.project import covey, daemon, sample


def commands(*, quick: bool) -> Report:
    """Time whole commands, with and without a daemon; each claims a task of its own."""
    report = Report("startup", "Whole commands, from start to exit")
    times = 5 if quick else 20
    with sample(4 * times + 4) as project:
        root = project.root
        report.add("python -c pass", _median([[sys.executable, "-c", "pass"]] * times, root), "ms")
        report.add("covey --help", _median([covey("--help")] * times, root), "ms", at_most=150)
        report.add("covey task claim, no daemon", _claims(times, 0, root), "ms", at_most=150)
        with daemon(project):
            report.add("covey task claim", _claims(times, times, root), "ms", at_most=150)
            listing = [covey("task", "list", "--json")] * times
            report.add("covey task list --json", _median(listing, root), "ms", peer="74 ms (ov status)")
    return report


def _claims(times: int, start: int, root: Path) -> float:
    return _median([covey("task", "claim", f"T-{start + i + 1}", "--as", "worker") for i in range(times)], root)


def _median(all_words: list[list[str]], root: Path) -> float:
    took: list[float] = []
    for words in all_words:
        began = time.perf_counter()
        subprocess.run(words, cwd=root, check=True, capture_output=True)
        took.append(time.perf_counter() - began)
    return 1000 * median(took)
