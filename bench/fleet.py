"""The fleet: what the daemon takes while many agents work, and how soon an agent runs after its claim."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.fanout import FILES, SESSIONS, asking, end_sessions, fill
from bench.figures import Report
from bench.project import Daemon, daemon, sample
from covey.git.project import Project

PATIENCE = 120.0
SETTLED = 3.0
"""Seconds after the last start in which the daemon still does what starts need."""
SECONDS = (10.0, 60.0)
"""Seconds for which the processor's time is added up: at a quick look, and when it is measured."""
SAYS_ONCE = "say here"
SAYS_MORE = "run while :; do echo working; sleep 1; done"


def at_work(*, quick: bool) -> Report:
    """Look at the daemon with nobody at work, with many agents that are silent, and with as many that print."""
    report = Report("fleet", f"The daemon with {SESSIONS} (scripted) agents at work")
    seconds = SECONDS[0 if quick else 1]
    with sample() as project, daemon(project) as running:
        report.add("processor with no session", _processor(running, seconds / 2), "% of a core")
    for label, step in (("silent", SAYS_ONCE), ("printing each second", SAYS_MORE)):
        with sample() as project:
            fill(project, FILES)
            with daemon(project) as running, _working(running, project, f"{SAYS_ONCE}\n{step}\n"):
                time.sleep(SETTLED)
                report.add(f"processor, all {label}", _processor(running, seconds), "% of a core")
                report.add(f"memory, all {label}", running.memory(), "MiB", at_most=90, peer="128 MB (amux)")
                report.add(f"memory without what is shared, all {label}", running.share(), "MiB")
    return report


def claim_to_agent(*, quick: bool) -> Report:
    """Time each run from its claim on disk to the first word of its program: one by one, and all at once."""
    report = Report("claim", f"From a claim to the first word of a (scripted) agent, {FILES} files")
    with sample() as project:
        fill(project, FILES)
        with daemon(project) as running, asking(running) as ask:
            ask("POST", "/api/sessions", {"name": "ada", "agent": "scripted"})
            ask("POST", "/api/sessions/ada/start", {})
            number = 10 if quick else SESSIONS
            for done in range(number):
                ask("POST", "/api/board", {"title": f"Say {done}", "body": SAYS_ONCE, "kind": "report"})
                _wait(lambda done=done: _ended(ask) > done)  # type: ignore[misc]
            report.add_times(f"{number} one after another", _times(ask, project))
    with sample() as project:
        fill(project, FILES)
        with daemon(project) as running, _working(running, project, SAYS_ONCE), asking(running) as ask:
            report.add_times(f"{SESSIONS} at once", _times(ask, project))
    return report


@contextmanager
def _working(running: Daemon, project: Project, script: str) -> Iterator[None]:
    """Have all sessions play a script and then wait, as long as this lasts."""
    marks = project.root.parent / "marks"
    marks.mkdir()
    with asking(running) as ask:
        for number in range(SESSIONS):
            ask("POST", "/api/board", {"title": f"Work {number}", "body": f"{script}\nwait for {marks}/go\n"})
        for number in range(SESSIONS):
            ask("POST", "/api/sessions", {"name": f"s{number}", "agent": "scripted"})
            ask("POST", f"/api/sessions/s{number}/start", {})
        try:
            _wait(lambda: len(_spoke(project)) == SESSIONS)
            yield
        finally:
            end_sessions(ask, marks, project)


def _times(ask: Callable[..., Any], project: Project) -> list[float]:
    begun = {event["subject"]: event["time"] for event in ask("GET", "/api/log?kind=run.begun&limit=1000")}
    spoke = _spoke(project)
    if begun.keys() != spoke.keys():
        raise RuntimeError(f"{len(begun)} runs began, and {len(spoke)} said something.")
    return [spoke[run] - at for run, at in begun.items()]


def _spoke(project: Project) -> dict[str, float]:
    """Return when the output of each run last grew, of those that have said something."""
    found: dict[str, float] = {}
    for path in Path(project.state, "runs").glob("*/output"):
        seen = path.stat()
        if seen.st_size:
            found[path.parent.name] = seen.st_mtime
    return found


def _ended(ask: Callable[..., Any]) -> int:
    return len(ask("GET", "/api/log?kind=run.ended&limit=1000"))


def _processor(running: Daemon, seconds: float) -> float:
    """Return how much of a core the daemon uses, in percent."""
    before, began = running.cpu(), time.perf_counter()
    time.sleep(seconds)
    return 100 * (running.cpu() - before) / (time.perf_counter() - began)


def _wait(good: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not good():
        if time.monotonic() > deadline:
            raise RuntimeError("The agents did not come to work.")
        time.sleep(0.02)
