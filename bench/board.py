"""The board: its first page."""

from __future__ import annotations

from bench.figures import Report, percentile
from bench.project import daemon, load, sample

TASKS = 10_000


def first_page(*, quick: bool) -> Report:
    """Ask for the first page again and again, one client and then ten."""
    report = Report("board", f"First page of the board at {TASKS:,} tasks")
    size = 0
    with sample(TASKS) as project, daemon(project) as running:
        for clients in (1, 10):
            asked = {"line": "GET /api/board", "clients": clients, "count": 50 if quick else 300}
            told = load(running, "repeat", **asked)
            size = told["bytes"]
            label = "page, one client" if clients == 1 else f"page, {clients} clients"
            p50, p99 = (1000 * percentile(told["times"], percent) for percent in (50, 99))
            report.add(f"{label} p50", p50, "ms", at_most=50, peer="583 ms (amux)")
            report.add(f"{label} p99", p99, "ms", at_most=50 if clients == 1 else None)
            report.must_be_zero(f"{label}: not answered", len(told["times"]) - told["statuses"].get("200", 0))
        report.add("size of the page of 200 tasks", size / 1024, "KiB")
    return report
