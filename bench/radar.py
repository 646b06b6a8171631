"""The radar: 60 open branches of a small repository, one of which gets a new commit."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from itertools import combinations

from bench.figures import Report, median, percentile
from bench.project import sample
from covey.git.overlap import overlap
from covey.git.overlap.overlap import Branches
from covey.git.project import Project

BRANCHES = 60
FILES = 150
LINES = 100
APART = 30
"""Files that are changed by two branches each, at lines next to each other."""


def overlaps(*, quick: bool) -> Report:
    """Measure a look after a new commit, the first look of all, and one when nothing has moved."""
    report = Report("radar", f"Overlap radar, {BRANCHES} branches, {FILES} files")
    commits = 5 if quick else 20
    with sample() as project:
        _fill(project, APART)
        watched = Branches(project)
        first = _timed(lambda: _look(project, watched, None))
        times = _looks(project, watched, APART, commits)
        report.add(
            "a new commit against all others and main, p50",
            1000 * median(times),
            "ms",
            at_most=100,
            peer="no peer has it",
        )
        report.add("the same, p99", 1000 * percentile(times, 99), "ms")
        report.add(f"the first look: {BRANCHES * (BRANCHES - 1) // 2:,} pairs", 1000 * first, "ms")
        rest = [_timed(lambda: overlap.stamp(project, "main")) for _ in range(1000)]
        report.add("a look when nothing has moved", 1e6 * median(rest), "us")
        with sample() as crowded:
            _fill(crowded, 1)
            worst = Branches(crowded)
            _look(crowded, worst, None)
            times = _looks(crowded, worst, 1, commits)
            report.add("a new commit if all branches change one file, p50", 1000 * median(times), "ms", at_most=100)
        report.must_be_zero("pairs that git sees otherwise when it is asked for each", _differing(project, watched))
    return report


def _looks(project: Project, watched: Branches, apart: int, commits: int) -> list[float]:
    times: list[float] = []
    for number in range(commits):
        task = f"T-{number % BRANCHES + 1}"
        _commit(project, task, number, apart)
        times.append(_timed(lambda task=task: _look(project, watched, task)))  # type: ignore[misc]
    return times


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _look(project: Project, watched: Branches, moved: str | None) -> None:
    """Compare what the radar compares: one branch that moved with all others and main, or all with each other."""
    tips = overlap.tips(project, "main")
    assert tips.main is not None
    watched.look(tips.main, set(tips.branches.values()))
    if moved is None:
        pairs = list(combinations(tips.branches.values(), 2))
        mains = [(tip, tips.main) for tip in tips.branches.values()]
    else:
        new = tips.branches[moved]
        pairs = [(new, tip) for tip in tips.branches.values() if tip != new]
        mains = [(new, tips.main)]
    watched.compare(tips.main, [*mains, *pairs])


def _differing(project: Project, watched: Branches) -> int:
    """Count the pairs of a few branches of which git alone says something else."""
    tips = overlap.tips(project, "main")
    assert tips.main is not None
    some = list(tips.branches.values())[:12]
    pairs = list(combinations(some, 2))
    found = watched.compare(tips.main, pairs)
    wrong = 0
    for pair in pairs:
        words = ["git", "merge-tree", "--write-tree", *pair]
        done = subprocess.run(words, cwd=project.root, capture_output=True, check=False)
        wrong += (done.returncode == 1) is not bool(found[pair].conflicts)
    return wrong


def _fill(project: Project, apart: int) -> None:
    """Make a small repository whose branches share files, and of which some collide."""
    text = "".join(f"line {number}\n" for number in range(LINES))
    parts = ["commit refs/heads/main\ncommitter x <x@example.org> 1700000000 +0000\ndata 5\nbegin\n"]
    parts += [f"M 100644 inline d{n % 15}/f{n}.txt\ndata {len(text)}\n{text}\n" for n in range(FILES)]
    _import(project, "".join(parts))
    for number in range(BRANCHES):
        _commit(project, f"T-{number + 1}", number, apart)


def _commit(project: Project, task: str, number: int, apart: int) -> None:
    """Commit on the branch of a task: one file that another branch changes too, and one of its own."""
    own = int(task.removeprefix("T-"))
    path = f"d{own % apart % 15}/f{own % apart}.txt"
    text = "".join(f"line {n}{f' by {task} {number}' if n == 10 + own // apart else ''}\n" for n in range(LINES))
    fresh = f"{task} {number}\n"
    branch = f"refs/heads/covey/{task}"
    known = (project.common / branch).exists()
    _import(
        project,
        f"commit {branch}\ncommitter x <x@example.org> 1700000000 +0000\ndata 4\nwork\n"
        + ("" if known else "from refs/heads/main^0\n")
        + (f"from {branch}^0\n" if known else "")
        + f"M 100644 inline {path}\ndata {len(text)}\n{text}\n"
        f"M 100644 inline new/{task}.txt\ndata {len(fresh)}\n{fresh}\n",
    )


def _import(project: Project, stream: str) -> None:
    env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}
    words = ["git", "fast-import", "--quiet"]
    subprocess.run(words, cwd=project.root, input=stream.encode(), env=env, check=True)
