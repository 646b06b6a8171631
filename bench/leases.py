"""Leases: 50 clients take them while 1,000 are in force."""

from __future__ import annotations

from bench.claims import SHARE
from bench.figures import Report
from bench.project import daemon, load, sample

CLIENTS = 50
LIVE = 1_000


def take(*, quick: bool) -> Report:
    """Take leases on folders of one's own; each is checked against all that are in force."""
    wanted = 1_000 if quick else 4_000
    report = Report("leases", f"Leases taken, {CLIENTS} clients, {LIVE:,} in force at the start")
    with sample(leases=LIVE) as project, daemon(project) as running:
        used = running.cpu()
        told = load(running, "leases", clients=CLIENTS, leases=wanted)
        used = running.cpu() - used
    report.add(
        "leases taken",
        wanted / told["seconds"],
        "/s",
        at_least=2_000,
        peer="17/s; 0.4/s at 20 clients (Agent Mail)",
    )
    report.add_times("take", told["times"], p99=50)
    report.add("processor time of the daemon for one lease", 1e6 * used / wanted, "us")
    report.add("share of a processor that the daemon got", used / told["seconds"], "x", note=SHARE)
    report.must_be_zero("not granted", wanted - told["statuses"].get("201", 0))
    return report
