"""The guard: what it adds to a commit of a session, beside the same commit without hooks."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.fanout import asking, fill
from bench.figures import Report, median
from bench.project import daemon, sample

FILES = 100
LIVE = 1_000
PATIENCE = 60.0
BARE = ("-c", "core.hooksPath=/dev/null")


def commits(*, quick: bool) -> Report:
    """Commit files as a session that covey started, in turns with and without the guard, then without the daemon."""
    report = Report("guard", f"What the guard adds to a commit of {FILES} files, {LIVE:,} leases in force")
    rounds = 5 if quick else 25
    with sample(leases=LIVE) as project:
        fill(project, FILES)
        with daemon(project) as running, asking(running) as ask:
            marks = project.root.parent / "marks"
            marks.mkdir()
            body = f"run sh -c 'env -0 > {marks}/part && mv {marks}/part {marks}/env'\nwait for {marks}/go\n"
            ask("POST", "/api/board", {"title": "Wait", "body": body})
            ask("POST", "/api/sessions", {"name": "s0", "agent": "scripted"})
            ask("POST", "/api/sessions/s0/start", {})
            env = _environment(marks / "env")
            guarded, bare = _in_turns(env, rounds)
            alone, _ = _in_turns(env | {"COVEY_URL": "http://127.0.0.1:9"}, max(rounds // 5, 2))
            ask("POST", "/api/sessions/s0/remove", {"force": True})
            _wait(lambda: all(session["kind"] != "run" for session in ask("GET", "/api/sessions")))
    report.add("a bare commit p50", 1000 * median(bare), "ms")
    report.add(
        "added by the guard p50", 1000 * (median(guarded) - median(bare)), "ms", at_most=30, peer="319 ms (Agent Mail)"
    )
    report.add("added while the daemon is away p50", 1000 * (median(alone) - median(bare)), "ms")
    return report


def _environment(file: Path) -> dict[str, str]:
    """Return the environment that covey gave to a run, once it is there."""
    _wait(file.exists)
    return dict(pair.split("=", 1) for pair in file.read_bytes().decode().split("\0") if pair)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("The session did not begin, or did not end.")
        time.sleep(0.01)


def _in_turns(env: dict[str, str], rounds: int) -> tuple[list[float], list[float]]:
    """Return how long commits took with the guard and without."""
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(2 * rounds):
        _stage(env, number)
        words = ["git", *(BARE if number % 2 else ()), "commit", "-q", "-m", f"Change {number}"]
        began = time.perf_counter()
        subprocess.run(words, cwd=env["COVEY_WORKTREE"], env=env, check=True, capture_output=True)
        took[number % 2].append(time.perf_counter() - began)
    return took


def _stage(env: dict[str, str], number: int) -> None:
    folder = Path(env["COVEY_WORKTREE"])
    for name in range(FILES):
        (folder / f"changed-{name}.txt").write_text(f"{number} {os.urandom(8).hex()}\n")
    subprocess.run(["git", "add", "."], cwd=folder, env=env, check=True, capture_output=True)
