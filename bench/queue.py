"""The merge queue: simulated beside one at a time, and a real daemon with real git and a gate that sleeps."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bench.fanout import asking
from bench.figures import Report
from bench.project import daemon, sample
from covey.config import Config
from covey.core.merging.queue.simulate import World, simulate
from covey.git.project import Project
from tests.core.merging.queue.worlds import compare, make

OWN = Config().merge.strategy
"""The strategy of the daemon."""
SEEDS = 20
PATIENCE = 600.0
ENDED = ("landed", "rejected")
SIDE: tuple[tuple[int, Collection[int], float], ...] = ((8, {3}, 0.2), (24, {5, 17}, 2.0))
"""Changes, which of them are bad, and seconds of the gate: at a quick look, and when it is measured."""
APART = ("read-tree", "update-index", "write-tree")
"""What works on an index beside that of the checkout."""


@dataclass(frozen=True)
class Kind:
    """A kind of world, and how much faster than one at a time the queue shall be in it."""

    label: str
    world: Callable[[int], World]
    at_least: float
    first: str = ""
    """What the first hybrid of group testing reached."""


KINDS = (
    Kind("50 changes, k=4", make, 5.5, "5.4x"),
    Kind("500 changes, k=4", lambda seed: make(seed, changes=500), 7, "7.3x"),
    Kind("50 changes, k=1", lambda seed: make(seed, slots=1), 2.5, "2.6x"),
    Kind("50 changes, k=4, all good", lambda seed: make(seed, bad=0, conflicts=0), 20, "25x"),
    Kind("50 changes, k=4, 20 % bad", lambda seed: make(seed, bad=0.2), 3.4, "3.4x"),
)


def simulated(*, quick: bool) -> Report:
    """Compare the daemon's strategy, and one of growing prefixes, with one at a time, in means over seeds."""
    seeds = 3 if quick else SEEDS
    report = Report(
        "queue", f"Merge queue, simulated: speed-up over one at a time, 5 % bad and 5 % in conflict, {seeds} seeds"
    )
    for kind in KINDS:
        speeds = compare((kind.world(seed) for seed in range(seeds)), ("prefix", OWN))
        peer = f"1x; prefixes {speeds['prefix'].makespan:.1f}x, a first hybrid {kind.first}"
        report.add(kind.label, speeds[OWN].makespan, "x", at_least=kind.at_least, peer=peer)
    rates = {strategy: _rate(strategy, seeds) for strategy in ("serial", OWN)}
    label = "landed per hour, gate 10 s, k=2, 5 % bad"
    report.add(label, rates[OWN], "/h", at_least=1000, peer=f"one at a time: {rates['serial']:,.0f}/h here, 340/h")
    return report


def _rate(strategy: str, seeds: int) -> float:
    worlds = [make(seed, changes=500, conflicts=0, slots=2, seconds=10) for seed in range(seeds)]
    reports = [simulate(world, strategy) for world in worlds]
    return fmean(3600 * len(report.landed) / report.makespan for report in reports)


# A real daemon


@dataclass(frozen=True)
class Came:
    """What became of a queue, and what it took."""

    seconds: float
    landed: int
    rejected: int
    gates: int
    tree: str
    red: int
    """Values of main that do not pass the gate."""


def side_by_side(*, quick: bool) -> Report:
    """Land the same changes one at a time and by the daemon's strategy."""
    changes, bad, gate = SIDE[0 if quick else 1]
    title = f"Merge queue, real daemon and git: {changes} changes, {len(bad)} bad, gate that sleeps {gate:g} s"
    report = Report("side", title)
    serial = _land(changes, bad, gate, slots=1, strategy="serial")
    report.add("one at a time", serial.seconds, "s", note=f"{serial.gates} gates")
    wrong = serial.red
    differ = 0
    for slots in (2, 4):
        own = _land(changes, bad, gate, slots=slots, strategy=OWN)
        report.add(f"covey, k={slots}", own.seconds, "s", note=f"{own.gates} gates")
        report.add(f"covey against one at a time, k={slots}", serial.seconds / own.seconds, "x", at_least=1, peer="1x")
        wrong += own.red
        differ += own.tree != serial.tree
    report.must_be_zero("values of main that fail the gate", wrong)
    report.must_be_zero("queues that ended with another tree on main", differ)
    return report


def landed_per_hour(*, quick: bool) -> Report:
    """Land a queue with a gate of ten seconds, and extrapolate; three minutes long unless it is a quick look."""
    changes, gate = (12, 1.0) if quick else (75, 10.0)
    bad = set(range(9, changes, 20))
    title = f"Merge queue, real daemon and git: {changes} changes, {len(bad)} bad, gate that sleeps {gate:g} s, k=2"
    report = Report("hour", title)
    came = _land(changes, bad, gate, slots=2, strategy=OWN)
    report.add("until all had ended", came.seconds, "s", note=f"{came.gates} gates, {came.landed} landed")
    target = None if quick else 1000.0
    peer = "one at a time: 340/h"
    report.add("landed per hour, extrapolated", 3600 * came.landed / came.seconds, "/h", at_least=target, peer=peer)
    report.must_be_zero("values of main that fail the gate", came.red)
    report.must_be_zero("changes that ended otherwise than they should", abs(came.rejected - len(bad)))
    return report


def _land(changes: int, bad: Collection[int], gate: float, *, slots: int, strategy: str) -> Came:
    """Queue branches from outside while the queue is paused, let it go on, and wait until every one has ended."""
    with sample() as project:
        settings = (
            f'[merge]\ncheck = "sleep {gate} && ! grep -rqs broken values"\nslots = {slots}\nstrategy = "{strategy}"\n'
        )
        (project.root / "covey.toml").write_text(settings)
        _git(project, "add", "-A")
        _git(project, "commit", "-q", "-m", "Begin")
        tips = [_change(project, at, "broken" if at in bad else str(at)) for at in range(changes)]
        with daemon(project) as running, asking(running) as ask:
            ask("POST", "/api/queue/pause", {})
            for at, tip in enumerate(tips):
                ask("POST", "/api/merges", {"branch": f"work/{at}", "commit": tip, "title": f"Change {at}"})
            began = time.perf_counter()
            ask("POST", "/api/queue/resume", {})
            states = _ends(ask)
            seconds = time.perf_counter() - began
            gates = len(ask("GET", "/api/log?kind=gate.started&limit=1000"))
            values = [landing["commit"] for landing in ask("GET", "/api/landings?limit=1000")]
        tree = _git(project, "rev-parse", "main:values")
        red = sum(_is_red(project, value) for value in values)
        return Came(seconds, states.count("landed"), states.count("rejected"), gates, tree, red)


def _ends(ask: Callable[..., Any]) -> list[str]:
    deadline = time.monotonic() + PATIENCE
    while True:
        states = [merge["state"] for merge in ask("GET", "/api/merges?all=true&limit=1000")]
        if all(state in ENDED for state in states):
            return states
        if time.monotonic() > deadline:
            raise RuntimeError(f"The queue did not end: {json.dumps(states)}")
        time.sleep(0.1)


def _change(project: Project, number: int, text: str) -> str:
    """Commit a change on a branch of its own without a checkout, and return the commit."""
    _git(project, "read-tree", "main")
    blob = _git(project, "hash-object", "-w", "--stdin", text=f"{text}\n")
    _git(project, "update-index", "--add", "--cacheinfo", f"100644,{blob},values/{number}")
    commit = _git(project, "commit-tree", "-p", "main", "-m", f"Change {number}", _git(project, "write-tree"))
    _git(project, "update-ref", f"refs/heads/work/{number}", commit)
    return commit


def _is_red(project: Project, commit: str) -> bool:
    """Say whether a value of main holds what the gate does not let pass."""
    words = ["git", "grep", "-q", "broken", commit, "--", "values"]
    return subprocess.run(words, cwd=project.root, capture_output=True, check=False).returncode == 0


def _git(project: Project, *words: str, text: str = "") -> str:
    who = {f"GIT_{role}_{what}": "bench" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    apart = {"GIT_INDEX_FILE": str(project.root.parent / "index")} if words[0] in APART else {}
    done = subprocess.run(
        ["git", *words],
        cwd=project.root,
        env=os.environ | who | apart,
        input=text,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()
