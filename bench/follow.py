"""Following: from a change to everyone who watches, and what it weighs."""

from __future__ import annotations

from bench.figures import Report
from bench.project import daemon, load, sample

FOLLOWERS = 100
PACE = 0.02
PEERS = {
    "few": "p50 826 ms, p99 2,050 ms, 369 KB (amux, 802 tasks)",
    "many": "2,800 ms, 18.5 MB (amux, 10,000 tasks)",
}


def latency(*, quick: bool) -> Report:
    """Claim one task after another and note when each of 100 followers sees it."""
    report = Report("sse", f"From a change being sent to its frame, {FOLLOWERS} followers")
    changes = 100 if quick else 300
    for tasks, label in ((changes, "few"), (10_000, "many")):
        with sample(tasks) as project, daemon(project) as running:
            chosen = [f"T-{number}" for number in range(1, changes + 1)]
            told = load(running, "follow", followers=FOLLOWERS, tasks=chosen, pace=PACE)
            memory = running.memory()
        name = f"{tasks:,} tasks:"
        report.add_times(f"{name} frame", told["times"], p50=20, p99=100)
        report.add(f"{name} weight of one change", told["bytes"], "bytes", at_most=2_048, peer=PEERS[label])
        report.add(f"{name} memory of the daemon", memory, "MiB")
        report.must_be_zero(f"{name} frames missed", told["missed"])
    return report
