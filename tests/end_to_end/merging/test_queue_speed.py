"""One at a time and the daemon's own strategy side by side: the same changes, real git, a real gate that sleeps."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pytest

from tests.worlds.projects import Line
from tests.worlds.queues import Change, fill, is_through, merges
from tests.worlds.serving import wait_until

CHECK = "! grep -rqs broken values"


@dataclass(frozen=True)
class Ended:
    """What became of a queue, and what that took."""

    tree: str
    rejected: tuple[str, ...]
    gates: int
    landings: int


def _queue(good: int, bad: Collection[int]) -> list[Change]:
    """Return changes of which none touches what another does; those at some places fail the gate."""
    total = good + len(bad)
    return [Change(f"values/{at}", "broken\n" if at in bad else f"{at}\n") for at in range(total)]


def _played(
    made: Callable[..., Line], queue: Sequence[Change], strategy: str, *, slots: int, seconds: float, patience: float
) -> Ended:
    """Land a queue on a project of its own with one strategy."""
    check = f"sleep {seconds} && {CHECK}"
    line = made(f'[merge]\ncheck = "{check}"\nslots = {slots}\nstrategy = "{strategy}"\n')
    line.up()
    tasks = fill(line, queue)
    wait_until(lambda: is_through(line), f"the end of the queue, {strategy}", patience=patience)
    back = {merge["task"] for merge in merges(line) if merge["state"] == "rejected"}
    ended = Ended(
        tree=line.git("rev-parse", "main^{tree}"),
        rejected=tuple(change.path for task, change in zip(tasks, queue, strict=True) if task in back),
        gates=len(line.events("gate.started")),
        landings=len(line.events("landing.made")),
    )
    line.assert_green(CHECK)
    line.ok("down")
    return ended


def test_in_groups_half_of_the_gates_and_fewer_landings_bring_main_to_the_same_tree(
    made: Callable[..., Line],
) -> None:
    queue = _queue(19, {6})
    serial, group = (
        _played(made, queue, strategy, slots=1, seconds=0.02, patience=120) for strategy in ("serial", "group")
    )
    assert (group.tree, group.rejected) == (serial.tree, serial.rejected)
    assert serial.rejected == ("values/6",)
    assert serial.landings == 19
    assert serial.gates >= 21  # one for each, and a second one for the bad one
    assert 2 * group.gates <= serial.gates
    assert 2 * group.landings <= serial.landings


def test_clean_changes_are_landed_by_a_handful_of_git_processes(made: Callable[..., Line]) -> None:
    line = made("")
    log = line.folder / "asked"
    program = line.folder / "logging" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    line.env["PATH"] = f"{program.parent}:{line.env['PATH']}"
    line.up()
    fill(line, [Change(f"values/{at}", f"{at}\n") for at in range(3)])
    line.ok("merge", "pause")
    for merge in merges(line):
        line.ok("merge", "approve", merge["id"])
    before = len(log.read_text().splitlines())
    line.ok("merge", "resume")
    wait_until(lambda: is_through(line), "the end of the queue")
    since = log.read_text().splitlines()[before:]
    until_main = since[: next(at for at, words in enumerate(since) if "covey: land" in words) + 1]
    # Whether commits are signed and how objects are kept, the one that answers questions, main, and looks of others.
    assert len(until_main) <= 6, until_main
    assert not any(words.startswith(("rev-list", "diff-tree")) for words in until_main), until_main
    assert line.git("ls-tree", "--name-only", "main", "values/").split() == [f"values/{at}" for at in range(3)]


@pytest.mark.soak
def test_a_long_queue_with_several_bad_ones_takes_a_third_of_the_gates(made: Callable[..., Line]) -> None:
    queue = _queue(116, {13, 40, 77, 101})
    serial, prefix, group = (
        _played(made, queue, strategy, slots=2, seconds=1, patience=900) for strategy in ("serial", "prefix", "group")
    )
    assert serial.tree == prefix.tree == group.tree
    assert serial.rejected == prefix.rejected == group.rejected == tuple(f"values/{at}" for at in (13, 40, 77, 101))
    assert 3 * group.gates <= serial.gates
    assert group.landings < serial.landings
