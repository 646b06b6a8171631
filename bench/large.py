"""A large repository: how soon ten sessions work on it, what the daemon keeps in memory, and how soon a run ends."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.fanout import asking
from bench.figures import Report
from bench.project import Daemon, covey, daemon
from covey.git import project as projects
from covey.git.project import Project

SESSIONS = 10
FILES, FOLDERS, COMMITS = 7_000, 500, 200
PATIENCE = 300.0
ANOTHER = "COVEY_BENCH_REPOSITORY"
"""The variable that names a repository to clone and measure in place of one that is made up."""
WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
OVER = ("done", "blocked", "dropped")
"""What a task can come to here."""


def sessions(*, quick: bool) -> Report:
    """Start ten sessions at once, let them commit, and remove them; look at the daemon meanwhile."""
    report = Report("large", f"{SESSIONS} (scripted) sessions on {_named()}")
    rounds = [_round() for _ in range(1 if quick else 3)]
    running, before, after, removed = (median(each) for each in zip(*rounds, strict=True))
    report.add("all running after", running, "s", at_most=5, peer="22 s (amux, 30 on 100 files)")
    report.add("memory, all at work", before, "MiB", at_most=90)
    report.add("memory at most, until all were removed", after, "MiB", at_most=90)
    report.add("all removed after", removed, "s", at_most=5)
    return report


def end_of_run(*, quick: bool) -> Report:
    """Let `covey run` work on ten tasks, and see how long it stays after the last of them has landed."""
    report = Report("end", f"covey run -n {SESSIONS}: from the last landing to its end, on {_named()}")
    stays = [_stays() for _ in range(1 if quick else 3)]
    report.add("stays after the last landing", median(stays), "s", at_most=5)
    return report


def _named() -> str:
    another = os.environ.get(ANOTHER)
    return Path(another).name if another else f"{FILES:,} files in {FOLDERS} folders"


def _round() -> tuple[float, float, float, float]:
    with _repository() as project, daemon(project) as running, asking(running) as ask:
        marks = project.root.parent / "marks"
        marks.mkdir()
        for number in range(SESSIONS):
            body = f"run touch {marks}/{number}\nwait for {marks}/go\nwrite new{number}.txt new\ncommit Add {number}\n"
            ask("POST", "/api/board", {"title": f"Wait {number}", "body": body})
        began = time.perf_counter()
        for number in range(SESSIONS):
            ask("POST", "/api/sessions", {"name": f"s{number}", "agent": "scripted"})
            ask("POST", f"/api/sessions/s{number}/start", {})
        _wait(lambda: len(os.listdir(marks)) == SESSIONS)
        all_run = time.perf_counter() - began
        at_work = running.memory()
        (marks / "go").touch()
        _wait(lambda: all(task["status"] in OVER for task in ask("GET", "/api/board")))
        began = time.perf_counter()
        for number in range(SESSIONS):
            ask("POST", f"/api/sessions/s{number}/remove", {"force": True})
        _wait(lambda: not any(session["kind"] == "run" for session in ask("GET", "/api/sessions")))
        return all_run, at_work, _most(running), time.perf_counter() - began


def _stays() -> float:
    with _repository() as project:
        tasks = project.root.parent / "tasks.jsonl"
        lines = ({"title": f"Add {n}", "body": f"write new{n}.txt new\ncommit Add {n}\n"} for n in range(SESSIONS))
        tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = covey("run", "-n", str(SESSIONS), "--agent", "scripted", str(tasks))
        with subprocess.Popen(words, cwd=project.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            main = project.common / "refs/heads/main"
            seen, landed = "", time.perf_counter()
            while run.poll() is None:
                now = main.read_text() if main.exists() else seen
                if now != seen:
                    seen, landed = now, time.perf_counter()
                time.sleep(0.01)
            stayed = time.perf_counter() - landed
        if run.returncode != 0:
            raise RuntimeError(f"covey run ended with {run.returncode}.")
        return stayed


@contextmanager
def _repository() -> Iterator[Project]:
    with tempfile.TemporaryDirectory(prefix="covey-bench-", ignore_cleanup_errors=True) as folder:
        root, another = Path(folder, "sample"), os.environ.get(ANOTHER)
        if another:
            subprocess.run(["git", "clone", "-q", "--shared", another, str(root)], check=True)
            subprocess.run(["git", "remote", "remove", "origin"], cwd=root, check=True)
            subprocess.run(["git", "branch", "-q", "-M", "main"], cwd=root, check=True)
        else:
            subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
            subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=_history(), check=True)
            subprocess.run(["git", "reset", "-q", "--hard"], cwd=root, check=True)
        (root / "covey.toml").write_text('[merge]\ncheck = "true"\n')
        subprocess.run(["git", "add", "-A"], cwd=root, check=True)
        subprocess.run(["git", *WHO, "commit", "-q", "-m", "Let covey look after it"], cwd=root, check=True)
        subprocess.run(covey("init", "--no-try"), cwd=root, check=True, capture_output=True)
        yield projects.find(root).must_be_begun()


def _history() -> bytes:
    """Return a repository of many files, most of some kilobytes, and a history in which each changed now and then."""
    lines: list[bytes] = []
    for number in range(COMMITS):
        paths = range(FILES) if number == 0 else range(number, FILES, COMMITS)
        said = b"Change %d" % number
        lines += [b"commit refs/heads/main", b"committer bench <bench@localhost> %d +0000" % (1_700_000_000 + number)]
        lines += [b"data %d\n%s" % (len(said), said)]
        for path in paths:
            text = b"".join(b"line %d of %d in %d\n" % (at, path, number) for at in range(50 + path % 300))
            lines += [b"M 100644 inline part%d/file%d.txt" % (path % FOLDERS, path), b"data %d\n%s" % (len(text), text)]
    return b"\n".join([*lines, b""])


def _most(running: Daemon) -> float:
    """Return the most that a daemon ever kept in memory, in MiB."""
    lines = Path(f"/proc/{running.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def _wait(good: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not good():
        if time.monotonic() > deadline:
            raise RuntimeError("It took too long.")
        time.sleep(0.02)
