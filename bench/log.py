"""The log: how fast it grows and how fast it is read."""

from __future__ import annotations

import time
from functools import partial

from bench.figures import Report
from bench.project import add_job, daemon, load, opened, run, sample
from covey.store.tx import Tx

PAGE = 1_000


def append_and_tail(*, quick: bool) -> Report:
    """Append by adding tasks, then read everything in pages of `seq > last`."""
    report = Report("log", "Append and tail")
    events = 4_000 if quick else 20_000
    with sample() as project:
        with opened(project) as (store, app):
            took = sum(run(store, (add_job(app, i) for i in range(events)), 256))
            report.add("events appended by task.add, 256 to a commit", events / took, "/s")
            began = time.perf_counter()
            last, read = 0, 0
            while page := store.read(partial(Tx.events, after=last, limit=PAGE)):
                last, read = page[-1].seq, read + len(page)
            report.add("events read from the store in pages", read / (time.perf_counter() - began), "/s")
        with daemon(project) as running:
            told = load(running, "tail")
            report.must_be_zero("events not read", max(0, events - told["events"]))
            report.add("events read through HTTP in pages", told["events"] / told["seconds"], "/s")
            report.add_times(f"page of {PAGE:,} events", told["times"])
            told = load(running, "imports", requests=4 if quick else 10, tasks=500)
            report.add("tasks imported through HTTP, 500 a request", told["tasks"] / told["seconds"], "/s")
    return report
