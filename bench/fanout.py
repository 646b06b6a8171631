"""Sessions from nothing to a running agent, and clean merges beside plain git."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench.figures import Report
from bench.project import Daemon, daemon, sample
from covey.git.candidates import candidates
from covey.git.candidates.candidates import Candidate
from covey.git.landing import landing
from covey.git.project import Project

SESSIONS = 30
FILES = 100
FILES_TO_MERGE = 500
MERGES = 10
PATIENCE = 120.0
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "bench"), ("EMAIL", "bench@localhost"))
}


def sessions(*, quick: bool) -> Report:
    """Make sessions, start them all, and wait until every agent runs at the same time."""
    report = Report("sessions", f"{SESSIONS} sessions from nothing to a running (scripted) agent, {FILES} files")
    failures = left = 0
    times: list[float] = []
    for _ in range(1 if quick else 3):
        with sample() as project:
            fill(project, FILES)
            with daemon(project) as running, asking(running) as ask:
                marks = project.root.parent / "marks"
                marks.mkdir()
                for number in range(SESSIONS):
                    body = f"run touch {marks}/{number}\nwait for {marks}/go\n"
                    ask("POST", "/api/board", {"title": f"Wait {number}", "body": body})
                began = time.perf_counter()
                for number in range(SESSIONS):
                    ask("POST", "/api/sessions", {"name": f"s{number}", "agent": "scripted"})
                    ask("POST", f"/api/sessions/s{number}/start", {})
                deadline = time.monotonic() + PATIENCE
                while len(os.listdir(marks)) < SESSIONS and time.monotonic() < deadline:
                    time.sleep(0.01)
                times.append(time.perf_counter() - began)
                failures += SESSIONS - len(os.listdir(marks))
                left += end_sessions(ask, marks, project)
    report.add("all running after", sorted(times)[len(times) // 2], "s", at_most=5, peer="22 s (amux)")
    report.must_be_zero("sessions that did not come to work", failures)
    report.must_be_zero("worktrees and branches left after removal", left)
    return report


def merges(*, quick: bool) -> Report:
    """Build and land clean changes, and let plain git merge the same ones in a checkout."""
    report = Report("merges", f"{MERGES} clean merges without the gate, {FILES_TO_MERGE} files")
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(2 if quick else 7):
        ours.append(_timed(_land_all))
        plain.append(_timed(_merge_all))
    own, git = min(ours), min(plain)
    report.add("covey: candidate and landing", 1000 * own, "ms")
    report.add("git merge in a checkout", 1000 * git, "ms")
    report.add("covey against git merge", own / git, "x", at_most=0.6, peer="3.8x (Overstory)")
    return report


def _timed(work: Any) -> float:
    with sample() as project:
        fill(project, FILES_TO_MERGE)
        tips = [_change(project, number) for number in range(MERGES)]
        with _aside(project):
            began = time.perf_counter()
            work(project, tips)
            return time.perf_counter() - began


@contextmanager
def _aside(project: Project) -> Iterator[None]:
    """Have the checkout on another branch: then main is moved by its ref alone, as in a night without a person."""
    _git(project, "checkout", "-q", "-b", "elsewhere")
    yield


def _land_all(project: Project, tips: list[str]) -> None:
    main = candidates.resolve(project, "refs/heads/main") or ""
    for tip in tips:
        built = candidates.build(project, main, tip, message="Land it\n", author=("bench", "bench@localhost"), at=None)
        assert isinstance(built, Candidate)
        assert isinstance(landing.land(project, "main", main, built.commit), landing.Landed)
        main = built.commit


def _merge_all(project: Project, tips: list[str]) -> None:
    _git(project, "checkout", "-q", "main")
    for tip in tips:
        _git(project, "merge", "-q", "--no-ff", "-m", "Land it", tip)


def fill(project: Project, files: int) -> None:
    """Commit this many files to a project."""
    for number in range(files):
        path = project.root / f"part{number % 10}" / f"file{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 50)
    _git(project, "add", "-A")
    _git(project, "commit", "-q", "-m", "Begin")


def _change(project: Project, number: int) -> str:
    _git(project, "checkout", "-q", "-b", f"change-{number}", "main")
    (project.root / f"part{number}" / f"new{number}.txt").write_text("new\n")
    _git(project, "add", "-A")
    _git(project, "commit", "-q", "-m", f"Change {number}")
    tip = _git(project, "rev-parse", "HEAD").strip()
    _git(project, "checkout", "-q", "main")
    return tip


def _git(project: Project, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=project.root, env=os.environ | _IDENTITY, check=True, capture_output=True, text=True
    )
    return done.stdout


@contextmanager
def asking(running: Daemon) -> Iterator[Callable[..., Any]]:
    """Have what asks a daemon over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE)

    def ask(method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {running.token}"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:200]!r}")
        return json.loads(data) if data else None

    with closing(connection):
        yield ask


def end_sessions(ask: Any, marks: Path, project: Project) -> int:
    """Remove every session, and return how much is left of them."""
    (marks / "go").touch()
    for number in range(SESSIONS):
        ask("POST", f"/api/sessions/s{number}/remove", {"force": True})
    deadline = time.monotonic() + PATIENCE
    while any(session["kind"] == "run" for session in ask("GET", "/api/sessions")) and time.monotonic() < deadline:
        time.sleep(0.05)
    worktrees = len(_git(project, "worktree", "list").splitlines()) - 1
    branches = len(_git(project, "for-each-ref", "refs/heads/covey").splitlines())
    return worktrees + branches
