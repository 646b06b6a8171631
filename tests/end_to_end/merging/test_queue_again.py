"""What comes to the queue again: other checks, branches that went on, work that was rejected, main itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.end_to_end.merging.test_queue import _ends, _good, _settings
from tests.worlds.projects import Line
from tests.worlds.queues import fill, merges
from tests.worlds.serving import wait_until


def test_a_queue_that_halted_goes_on_when_the_checks_are_others(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "false"\n')
    line.up()
    fill(line, [_good("a")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    line.settings(_settings())
    assert _ends(line) == {"landed": ["values/a"]}


@pytest.mark.soak
def test_other_checks_count_for_a_new_daemon_as_well(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "false"\n')
    line.up()
    fill(line, [_good("a")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    line.ok("down")
    line.settings(_settings())
    line.up()
    assert _ends(line) == {"landed": ["values/a"]}


@pytest.mark.soak
def test_a_queue_that_halted_goes_on_when_the_gate_has_more_time(made: Callable[..., Line]) -> None:
    settings = '[merge]\ncheck = "sleep 1.5"\n'
    line = made(settings + "check_minutes = 0.01\n")
    line.up()
    fill(line, [_good("a")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    line.settings(settings)
    assert _ends(line) == {"landed": ["values/a"]}


def _commit_on(line: Line, branch: str, path: str, text: str) -> str:
    """Commit a file on a branch, which begins at main if it is not there, and return the commit."""
    there = line.git("branch", "--list", branch) != ""
    place = line.folder / "theirs" / branch
    if not place.exists():
        line.git("worktree", "add", "-q", str(place), *((branch,) if there else ("-b", branch, "main")))
    (place / path).write_text(text)
    line.git("-C", str(place), "add", path)
    line.git("-C", str(place), "commit", "-q", "-m", f"Write {path}")
    return line.git("rev-parse", branch)


@pytest.mark.parametrize("policy", ["squash", "rebase"])
def test_a_branch_that_goes_on_after_it_landed_brings_only_what_is_new(made: Callable[..., Line], policy: str) -> None:
    line = made(f'[merge]\ncheck = "true"\npolicy = "{policy}"\n', files={"notes": "one\n"})
    line.up()
    _commit_on(line, "feature", "notes", "two\n")
    line.ok("merge", "queue", "feature", "--wait")
    line.git("checkout", "-q", "main")
    line.commit("other", "other\n", "Something else")
    _commit_on(line, "feature", "notes", "three\n")
    line.ok("merge", "queue", "feature", "--wait")
    assert line.git("show", "main:notes") == "three"
    assert len(line.landed()) == 3


@pytest.mark.parametrize("policy", ["squash", "ff"])
def test_a_rejected_branch_that_was_mended_carries_on_its_task(made: Callable[..., Line], policy: str) -> None:
    settings = f'[merge]\ncheck = "! grep -q wrong notes"\npolicy = "{policy}"\n'
    line = made(settings, files={"notes": "one\n"})
    line.up()
    _commit_on(line, "feature", "notes", "wrong\n")
    assert line.run("merge", "queue", "feature", "--wait").returncode == 1
    (first,) = merges(line)
    mended = _commit_on(line, "feature", "notes", "right\n")
    line.ok("merge", "pause")
    said = line.ok("merge", "retry", first["id"])
    assert f"at {first['commit'][:12]}" in said and f"feature is at {mended[:12]} by now" in said
    line.ok("merge", "drop", merges(line)[-1]["id"])
    line.ok("merge", "resume")
    line.ok("merge", "queue", "feature", "--wait")
    assert line.git("show", "main:notes") == "right"
    assert {merge["task"] for merge in merges(line)} == {first["task"]}


def test_a_revert_that_conflicts_names_what_was_built_on_it(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "true"\n', files={"notes": "one\n"})
    line.up()
    for branch, text in (("first", "two\n"), ("second", "three\n")):
        _commit_on(line, branch, "notes", text)
        line.ok("merge", "queue", branch, "--wait")
    first, second = merges(line)
    line.ok("merge", "revert", first["id"])
    wait_until(lambda: merges(line)[-1]["state"] == "rejected", "the conflict")
    whose = f"changed meanwhile by {second['task']} ({second['id']})."
    assert merges(line)[-1]["reason"] == f"It conflicts with main in notes, {whose}"
    assert whose in line.ok("merge", "why", merges(line)[-1]["id"])
    told = line.task(merges(line)[-1]["task"])["tries"][-1]["what"]
    ((_, steps),) = [part.split("1. ", 1) for part in told.split("## ") if part.startswith("What to do")]
    command = steps.partition("    (")[0]
    assert command.startswith("git diff --binary ")
    done = subprocess.run(command, shell=True, cwd=line.root, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "with conflicts" in done.stderr
    assert (line.root / "notes").read_text().count("<<<<<<<") == 1


def test_an_integration_branch_takes_what_a_branch_has_of_main_as_it_is(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "no-such-command"\nbranch = "next"\n')
    line.up()
    _commit_on(line, "first", "one", "one\n")
    line.ok("merge", "queue", "first")
    wait_until(lambda: line.events("gate.lost") != [] and line.alerts() != [], "a gate that cannot be run")
    line.settings('[merge]\ncheck = "test ! -e bad"\nbranch = "next"\n')
    wait_until(lambda: merges(line)[0]["state"] == "landed", "the first")
    theirs = line.commit("other", "other\n", "By somebody on main")
    _commit_on(line, "second", "two", "two\n")
    line.ok("merge", "queue", "second", "--wait")
    assert theirs in line.git("rev-list", "next").splitlines()
    assert line.git("diff", "--name-only", "next^", "next") == "two"
    assert line.git("log", "-1", "--format=%s", "next^") == "Merge main into next"
    assert len(line.events("landing.made")) == 3 and line.git("rev-parse", "main") == theirs
    assert "It landed on next in" in line.ok("merge", "why", merges(line)[-1]["id"])
    assert line.ok("merge", "journal").count(" next ") == 3


def test_what_main_has_and_an_integration_branch_cannot_take_is_told_of_with_the_branch_that_brings_it(
    made: Callable[..., Line],
) -> None:
    line = made('[merge]\ncheck = "test ! -e bad"\nbranch = "next"\n', files={"notes": "one\n"})
    line.up()
    _commit_on(line, "first", "notes", "two\n")
    line.ok("merge", "queue", "first", "--wait")
    line.commit("notes", "three\n", "Another way")
    _commit_on(line, "second", "two", "two\n")
    assert line.run("merge", "queue", "second", "--wait").returncode == 1
    assert "It conflicts with next in notes, changed meanwhile by" in merges(line)[-1]["reason"]
    _commit_on(line, "third", "bad", "bad\n")
    assert line.run("merge", "queue", "third", "--wait").returncode == 1
