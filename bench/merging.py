"""Clean merges, as one chain and one landing and through the whole daemon, beside plain git merging the same."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench.fanout import asking, fill
from bench.figures import Report
from bench.project import Daemon, covey, daemon, sample
from covey.git import project as projects
from covey.git.candidates import candidate_chain
from covey.git.candidates.candidate_chain import Link
from covey.git.landing import landing
from covey.git.project import Project

MERGES = 10
SMALL, LARGE = 500, 20_000
SETTLED = 0.3
"""Seconds after which landing takes a checkout for one that nobody is at work in."""
PATIENCE = 60.0
PLACES = ("no checkout of main", "checkout of main")


def chained(*, quick: bool) -> Report:
    """Land ten clean changes at once, with and without a checkout of main, on a small and a large repository."""
    report = Report("chain", f"{MERGES} clean merges as one chain and one landing, without the gate")
    for files in (SMALL, LARGE):
        for place in PLACES:
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
    chain = candidate_chain.extend(project, main, links, policy="merge")
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


# Through the daemon


def through_the_daemon(*, quick: bool) -> Report:
    """Queue ten branches while the queue is paused, let it go on, and wait until main holds all; beside a clone.

    There is no merge.check, and the branches are approved: a gate's own time is no part of merging. Both sides take
    turns, and their medians are compared.
    """
    report = Report("landing", f"{MERGES} clean merges through the daemon, from covey merge resume until main has them")
    for files in (SMALL, LARGE):
        for place in PLACES:
            rounds = _through(files, follows=place == PLACES[1], rounds=3 if quick else 9)
            asked, commanded, git = (median(each) for each in zip(*rounds, strict=True))
            about = f"{files} files, {place}"
            report.add(f"covey, {about}", 1000 * asked, "ms")
            report.add(f"git merge --no-ff in a clone, {about}", 1000 * git, "ms")
            report.add(f"covey against git merge, {about}", asked / git, "x", at_most=0.6, peer="3.8x (Overstory)")
            report.add(f"the same with the start of the command, {about}", commanded / git, "x", at_most=1)
    return report


def _through(files: int, *, follows: bool, rounds: int) -> list[tuple[float, float, float]]:
    """Return what each round took: asked over HTTP, asked by the command, and merged by git."""
    with sample() as project:
        (project.root / "covey.toml").write_text("")
        fill(project, files)
        clone = project.root.parent / "clone"
        _git(project, "clone", "-q", str(project.root), str(clone))
        for each in (project, replace(project, root=clone)):
            _git(each, "config", "gc.auto", "0")  # which side it hits is chance
        if not follows:
            _git(project, "checkout", "-q", "-b", "elsewhere")
        found = []
        with daemon(project) as running, asking(running) as ask:
            command = covey("merge", "resume")
            for number in range(rounds):
                asked = _landed(project, ask, f"a{number}", lambda: ask("POST", "/api/queue/resume", {}))
                plain = _merged(project, clone, f"a{number}")
                commanded = _landed(
                    project,
                    ask,
                    f"c{number}",
                    lambda: subprocess.run(command, cwd=project.root, check=True, capture_output=True),
                )
                found.append((asked, commanded, plain))
        return found


def _landed(project: Project, ask: Callable[..., Any], name: str, resume: Callable[[], Any]) -> float:
    """Return the seconds from the wish to go on until main holds ten branches that were queued before."""
    before = _git(project, "rev-parse", "main").strip()
    tips = [_branch(project, f"{name}-{part}", part) for part in range(MERGES)]
    ask("POST", "/api/queue/pause", {})
    for part, tip in enumerate(tips):
        merge = ask("POST", "/api/merges", {"branch": f"{name}-{part}", "commit": tip, "title": f"Change {part}"})
        ask("POST", f"/api/merges/{merge['id']}/approve", {})
    time.sleep(SETTLED)
    began = time.perf_counter()
    resume()
    ref, seen, ended = project.common / "refs/heads/main", before, began
    while time.perf_counter() < began + PATIENCE:
        now = ref.read_text().strip() if ref.exists() else before
        if now != seen:
            seen, ended = now, time.perf_counter()
        # Only a landing that is whole ends it, and nobody starts a git meanwhile that landing would wait for.
        elif seen != before and not ask("GET", "/api/merges"):
            break
        time.sleep(0.001)
    added = _git(project, "diff-tree", "-r", "--name-only", before, seen).split()
    assert len(added) == MERGES, f"main got {added}"
    return ended - began


# One by one


@dataclass(frozen=True)
class Cost:
    """What it took: seconds, seconds of processor time, and processes of git."""

    seconds: float
    processor: float
    processes: int


def one_by_one(*, quick: bool) -> Report:
    """Let the daemon land ten branches one after another, each queued when the one before is on main; beside a clone.

    What is counted ends when main has moved: what is written down afterwards keeps nobody waiting.
    """
    report = Report("single", f"{MERGES} clean merges through the daemon, one after another")
    for files in (SMALL, LARGE):
        with _single_world(files) as (project, clone):
            with _counted(project) as count:
                counted = _landed_singly(project, "c", 3, count)
            own = _landed_singly(project, "o", MERGES * (1 if quick else 3), lambda: 0)
            seconds, processor = _merge_one_by_one(project, clone, [f"o{number}-{number}" for number in range(MERGES)])
        processes = median(each.processes for each in counted)
        report.add(f"processes of git for one, {files} files", processes, "", at_most=4)
        for what, ours, plain in (
            ("processor time", fmean(each.processor for each in own), processor),
            ("until main has them", median(each.seconds for each in own), seconds),
        ):
            about = f"{what}, {files} files"
            report.add(f"covey, {about}", 1000 * MERGES * ours, "ms")
            report.add(f"git merge --no-ff in a clone, {about}", 1000 * plain, "ms")
            report.add(f"covey against git merge, {about}", MERGES * ours / plain, "x", at_most=0.6)
    return report


@contextlib.contextmanager
def _single_world(files: int) -> Iterator[tuple[Project, Path]]:
    """Have a project whose main is in no checkout, and a clone of it."""
    with sample() as project:
        (project.root / "covey.toml").write_text("")
        fill(project, files)
        clone = project.root.parent / "clone"
        _git(project, "clone", "-q", str(project.root), str(clone))
        _git(project, "checkout", "-q", "-b", "elsewhere")
        yield project, clone


def _landed_singly(project: Project, name: str, times: int, count: Callable[[], int]) -> list[Cost]:
    with daemon(project) as running, asking(running) as ask:
        return [_one(project, running, ask, f"{name}{number}", number % MERGES, count) for number in range(times)]


def _one(
    project: Project, running: Daemon, ask: Callable[..., Any], name: str, part: int, count: Callable[[], int]
) -> Cost:
    """Return what it takes from the wish to go on until main holds one branch."""
    ref, before = project.common / "refs/heads/main", _git(project, "rev-parse", "main")
    tip = _branch(project, f"{name}-{part}", part)
    ask("POST", "/api/queue/pause", {})
    merge = ask("POST", "/api/merges", {"branch": f"{name}-{part}", "commit": tip, "title": f"Change {name}"})
    ask("POST", f"/api/merges/{merge['id']}/approve", {})
    time.sleep(SETTLED)
    processes, processor, began = count(), running.cpu_with_children(), time.perf_counter()
    ask("POST", "/api/queue/resume", {})
    while not ref.exists() or ref.read_text() == before:
        if time.perf_counter() > began + PATIENCE:
            raise RuntimeError("It did not land.")
        time.sleep(0.001)
    cost = Cost(time.perf_counter() - began, running.cpu_with_children() - processor, count() - processes)
    while ask("GET", "/api/merges"):
        time.sleep(0.005)
    return cost


@contextlib.contextmanager
def _counted(project: Project) -> Iterator[Callable[[], int]]:
    """Have what tells how many processes of git whoever is started from now on has started."""
    log, path = project.root.parent / "asked", os.environ["PATH"]
    program = project.root.parent / "counting" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho >> {log}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    log.touch()
    os.environ["PATH"] = f"{program.parent}:{path}"
    try:
        yield lambda: log.stat().st_size
    finally:
        os.environ["PATH"] = path


def _merge_one_by_one(project: Project, clone: Path, branches: Sequence[str]) -> tuple[float, float]:
    """Return the seconds that plain git takes for branches, and of the processor, where the first of them began."""
    here = replace(project, root=clone)
    _git(here, "fetch", "-q", "origin", *(f"{branch}:{branch}" for branch in branches))
    _git(here, "reset", "-q", "--hard", f"{branches[0]}~")
    _git(here, "status")
    time.sleep(SETTLED)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    for branch in branches:
        _git(here, "merge", "-q", "--no-ff", "-m", "Land it", branch)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _branch(project: Project, name: str, part: int) -> str:
    """Put one file more on main as a branch of its own, without a checkout, and return the commit."""
    index = project.root.parent / "index"
    _git(project, "read-tree", "main", index=index)
    blob = _git(project, "hash-object", "-w", "covey.toml").strip()
    _git(project, "update-index", "--add", "--cacheinfo", f"100644,{blob},part{part}/{name}.txt", index=index)
    tree = _git(project, "write-tree", index=index).strip()
    commit = _git(project, "commit-tree", "-p", "main", "-m", f"Change {name}", tree).strip()
    _git(project, "branch", name, commit)
    return commit


def _merged(project: Project, clone: Path, name: str) -> float:
    """Return the seconds that plain git takes for the same branches, in a checkout of where main was."""
    branches = [f"{name}-{part}" for part in range(MERGES)]
    here = replace(project, root=clone)
    _git(here, "fetch", "-q", "origin", *(f"{branch}:{branch}" for branch in branches))
    _git(here, "reset", "-q", "--hard", f"{branches[0]}~")
    _git(here, "status")
    time.sleep(SETTLED)
    began = time.perf_counter()
    for branch in branches:
        _git(here, "merge", "-q", "--no-ff", "-m", "Land it", branch)
    return time.perf_counter() - began


def _git(project: Project, *words: str, index: Path | None = None) -> str:
    env = os.environ | {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env |= {} if index is None else {"GIT_INDEX_FILE": str(index)}
    return subprocess.run(["git", *words], cwd=project.root, env=env, check=True, capture_output=True, text=True).stdout
