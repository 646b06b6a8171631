"""Clean merges in a chain and one landing, beside plain git doing the same in a checkout of main."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.fanout import fill
from bench.figures import Report
from covey.git import chains, landing
from covey.git import project as projects
from covey.git.chains import Link
from covey.git.project import Project

MERGES = 10
SMALL, LARGE = 500, 20_000
SETTLED = 0.3
"""Seconds after which landing takes a checkout for one that nobody is at work in."""


def chained(*, quick: bool) -> Report:
    """Land ten clean changes at once, with and without a checkout of main, on a small and a large repository."""
    report = Report("chain", f"{MERGES} clean merges as one chain and one landing, without the gate")
    for files in (SMALL, LARGE):
        for place in ("no checkout of main", "checkout of main"):
            with _world(files, follows=place == "checkout of main") as (project, main, links):
                rounds = [_round(project, main, links) for _ in range(2 if quick else 7)]
            own, git = (min(each) for each in zip(*rounds, strict=True))
            about = f"{files} files, {place}"
            report.add(f"covey, {about}", 1000 * own, "ms")
            report.add(f"git merge, {about}", 1000 * git, "ms")
            report.add(f"covey against git merge, {about}", own / git, "x", at_most=0.6, peer="3.8x (Overstory)")
    return report


@contextlib.contextmanager
def _world(files: int, *, follows: bool) -> Iterator[tuple[Project, str, list[Link]]]:
    with tempfile.TemporaryDirectory(prefix="covey-bench-") as folder:
        subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
        project = projects.find(Path(folder))
        fill(project, files)
        tips = [_change(project, number) for number in range(MERGES)]
        links = [Link(id=tip, tip=tip, message="Land it", author=("bench", "bench@localhost")) for tip in tips]
        _git(project, "checkout", "-q", *(["main"] if follows else ["-b", "elsewhere"]))
        yield project, _git(project, "rev-parse", "main").strip(), links


def _change(project: Project, number: int) -> str:
    _git(project, "checkout", "-q", "-b", f"change-{number}", "main")
    (project.root / f"part{number}" / f"new{number}.txt").write_text("new\n")
    _git(project, "add", "-A")
    _git(project, "commit", "-q", "-m", f"Change {number}")
    return _git(project, "rev-parse", "HEAD").strip()


def _round(project: Project, main: str, links: list[Link]) -> tuple[float, float]:
    home = _git(project, "branch", "--show-current").strip()
    own = _timed_landing(project, main, links)
    _back(project, home, main)
    began = time.perf_counter()
    if home != "main":
        _git(project, "checkout", "-q", "main")
    for link in links:
        _git(project, "merge", "-q", "--no-ff", "-m", "Land it", link.tip)
    plain = time.perf_counter() - began
    _back(project, home, main)
    return own, plain


def _timed_landing(project: Project, main: str, links: list[Link]) -> float:
    began = time.perf_counter()
    chain = chains.extend(project, main, links, policy="merge")
    outcome = landing.land(project, "main", main, chain.head)
    took = time.perf_counter() - began
    assert isinstance(outcome, landing.Landed), outcome
    return took


def _back(project: Project, home: str, main: str) -> None:
    """Put main back, and let the checkout rest as it does when nobody works in it."""
    _git(project, "checkout", "-q", "main")
    _git(project, "reset", "-q", "--hard", main)
    _git(project, "checkout", "-q", home)
    _git(project, "status")
    time.sleep(SETTLED)


def _git(project: Project, *words: str) -> str:
    env = os.environ | {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(["git", *words], cwd=project.root, env=env, check=True, capture_output=True, text=True).stdout
