"""`python -m bench [names...] [--quick]`: measure, print a table, write bench/results/latest.json."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from bench import (
    board,
    claims,
    fanout,
    figures,
    fleet,
    floors,
    follow,
    growth,
    guard,
    hooks,
    large,
    leases,
    log,
    memory,
    merging,
    page,
    panes,
    queue,
    radar,
    startup,
    warm,
)
from bench.figures import Report
from covey import __version__

RESULTS = Path(__file__).parent / "results" / "latest.json"
BENCHMARKS: dict[str, Callable[..., Report]] = {
    "floors": floors.measure,
    "claims": claims.through_http,
    "processes": claims.without_daemon,
    "leases": leases.take,
    "hooks": hooks.steps,
    "guard": guard.commits,
    "log": log.append_and_tail,
    "sse": follow.latency,
    "board": board.first_page,
    "growth": growth.growth,
    "sessions": fanout.sessions,
    "claim": fleet.claim_to_agent,
    "large": large.sessions,
    "end": large.end_of_run,
    "fleet": fleet.at_work,
    "panes": panes.polling,
    "merges": fanout.merges,
    "chain": merging.chained,
    "landing": merging.through_the_daemon,
    "single": merging.one_by_one,
    "queue": queue.simulated,
    "side": queue.side_by_side,
    "hour": queue.landed_per_hour,
    "warm": warm.gates,
    "radar": radar.overlaps,
    "page": page.latency,
    "scroll": page.scrolling,
    "paint": page.first_paint,
    "heap": page.hour,
    "startup": startup.commands,
    "memory": memory.resident,
}
LONG = ("hour",)
"""What takes minutes, and is measured only when it is named, or at a quick look."""


def main(argv: list[str] | None = None) -> int:
    """Measure; exit 1 only if something is wrong, never for a stopwatch."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure covey.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"some of: {', '.join(BENCHMARKS)} (not by itself: {', '.join(LONG)})"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a look, not a measurement")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON goes")
    words = parser.parse_args(argv)
    unknown = set(words.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    load = os.getloadavg()[0]
    usual = [name for name in BENCHMARKS if words.quick or name not in LONG]
    reports = [_run(name, quick=words.quick) for name in words.names or usual]
    about = _about(quick=words.quick)
    print(f"covey {__version__}, {about['processors']} processors, load {load:.1f} at the start\n")
    print(figures.table(reports))
    print("\nThe best peer was measured elsewhere, on a similar machine. Read ratios rather than numbers.")
    figures.write(words.out, reports, about | {"load": load})
    print(f"Written to {os.path.relpath(words.out)}.")
    return 1 if any(report.wrong for report in reports) else 0


def _run(name: str, *, quick: bool) -> Report:
    print(f"measuring {name} ...", end="", file=sys.stderr, flush=True)
    began = time.perf_counter()
    try:
        report = BENCHMARKS[name](quick=quick)
    except Exception as error:  # noqa: BLE001 - one that fails must not hide the others' figures
        report = Report(name, name, wrong=[f"{type(error).__name__}: {error}"])
    report.seconds = round(time.perf_counter() - began, 1)
    print(f" {report.seconds:g} s", file=sys.stderr)
    return report


def _about(*, quick: bool) -> dict[str, object]:
    return {
        "covey": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "processors": os.cpu_count(),
        "time": round(time.time()),
        "quick": quick,
    }


if __name__ == "__main__":
    sys.exit(main())
