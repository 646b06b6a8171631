"""Where no worktree can be made, one alert names the setting to change, and nothing is tried over and over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from tests.worlds.projects import GOOD, SCRIPTED, Line
from tests.worlds.serving import wait_until

SETTING = "worktrees under [sessions] in covey.toml"


def _bound(line: Line, *words: str) -> subprocess.CompletedProcess[str]:
    """Run covey as somebody whom the modes of files bind, which root is only without its capabilities."""
    setpriv = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*setpriv, sys.executable, "-m", "covey", *words], cwd=line.root, env=line.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_run_is_refused_before_anything_is_added(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.worktrees.write_text("a file\n")
    said = line.ends(7, "run", "One")
    assert f"{line.worktrees} is not a folder" in said and SETTING in said
    line.worktrees.unlink()
    line.worktrees.mkdir(mode=0o500)
    done = _bound(line, "run", "One")
    assert done.returncode == 7, done.stdout
    assert f"covey may not write in {line.worktrees}" in done.stdout and SETTING in done.stdout
    assert line.statuses() == {}


def test_a_folder_of_somebody_else_in_a_workers_place_is_left_alone(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    theirs = line.worktrees / "worker-1"
    theirs.mkdir(parents=True)
    (theirs / "notes").write_text("mine\n")
    theirs.chmod(0)
    try:
        done = _bound(line, "run", "One")
        assert done.returncode == 0, done.stdout
    finally:
        theirs.chmod(0o700)
    assert line.landed() == ["One"]
    assert (theirs / "notes").read_text() == "mine\n"
    assert line.refs("refs/covey/rescue") == {}
    assert line.alerts() == []


def test_the_fleet_waits_with_one_alert_and_goes_on_when_the_setting_is_another(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    line.worktrees.write_text("a file\n")
    for number in (1, 2, 3):
        line.ok("task", "add", f"Task {number}")
    for name in ("ada", "bob"):
        line.start_session(name)
    wait_until(lambda: {each["state"] for each in line.sessions().values()} == {"limited"}, "two that wait")
    assert all(SETTING in str(each["evidence"]) for each in line.sessions().values())
    (alert,) = line.alerts()
    assert "is not a folder" in alert and SETTING in alert
    assert line.events("run.begun") == []
    line.settings(SCRIPTED + 'worktrees = "../elsewhere"\n', GOOD)
    for number in (1, 2, 3):
        line.wait_for(f"T-{number}", "done")
    assert len(line.alerts()) == 1
    assert line.worktrees.read_text() == "a file\n"
    line.ok("down", "--agents")


def test_a_run_under_way_ends_when_no_worktree_can_be_made_any_more(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    first = f"run touch {line.mark('at-work')}\nwait for {line.mark('go')}\nwrite one.txt\n    1\ncommit one\n"
    running = line.begin("run", "-n", "1", line.tasks({"title": "One", "body": first}, {"title": "Two"}))
    wait_until(line.mark("at-work").exists, "the agent at work")
    shutil.move(line.worktrees, line.folder / "away")  # such as a disk that was taken out
    line.worktrees.write_text("a file\n")
    line.mark("go").touch()
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 1, said
    assert said.count(SETTING) == 1, said
    assert line.statuses()["Two"] == "todo"


def test_a_repository_that_git_does_not_trust_is_one_sentence_with_its_remedy(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    own, real = line.folder / "bin", shutil.which("git")
    own.mkdir()
    (own / "git").write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {real} "$@"\n')
    (own / "git").chmod(0o755)
    line.env["PATH"] = f"{own}:{line.env['PATH']}"
    for words in (["run", "One"], ["up"], ["init"]):
        said = line.ends(2, *words)
        assert "dubious ownership" in said
        assert f"git config --global --add safe.directory {line.root}" in said
