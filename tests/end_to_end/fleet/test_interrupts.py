"""covey run interrupted at any moment: nothing of it lives on, nothing is lost, and a second run finishes the work."""

from __future__ import annotations

import json
import random
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds.projects import SCRIPTED, Line, alive, kill
from tests.worlds.serving import wait_until

TASKS = 5
CHECK = "test ! -e bad"
GATE = f'[merge]\ncheck = "sleep 0.1; {CHECK}"\n'


def _body(line: Line, number: int) -> str:
    note = f"run git rev-parse HEAD >> {line.mark('commits')}\n"
    return (
        f"write files/{number}\n    first\ncommit First of {number}\n{note}wait 0.1\n"
        f"write files/{number}\n    second\ncommit Second of {number}\n{note}"
    )


def _assert_all_reachable(line: Line) -> None:
    """Assert that every commit that an agent made is kept by a ref, or has landed."""
    everything = set(line.git("rev-list", "--all", "--reflog").splitlines())
    from_refs = set(line.git("rev-list", "--all").splitlines())
    landed = {merge["commit"] for merge in line.json("merge", "list", "--all") if merge["state"] == "landed"}
    # What landed was squashed into one commit on main, and its branch is gone with all that led to it.
    behind = set(line.git("rev-list", *landed).splitlines()) if landed else set()
    assert set(line.marks("commits")) <= from_refs | behind, everything


def _listens(pid: int) -> bool:
    """Say whether a process has its own answer to signals by now; before that, it is Python that is interrupted."""
    caught = re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def _interrupt(line: Line, number: int, after: float) -> str:
    """Start a run, interrupt it, and return what it said."""
    wanted = [{"title": f"Task {at}", "body": _body(line, at), "key": str(at)} for at in range(TASKS)]
    running = line.begin("run", "-n", "3", line.tasks(*wanted))
    wait_until(lambda: _listens(running.pid), "a run that has begun")
    time.sleep(after)  # an interrupt waits for nothing
    running.send_signal(number)
    said, _ = running.communicate(timeout=120)
    assert "Traceback" not in said, said
    if running.returncode not in (0, 130):  # 0: it had ended before
        # After it has said its last word, a signal ends the process as it ends any.
        assert running.returncode == -number, (running.returncode, said)
        assert re.search(r"^\d tasks: .*\.$", said, re.MULTILINE), said
    return said


def _one_life(line: Line, number: int, after: float) -> None:
    _interrupt(line, number, after)
    line.assert_nothing_left(branches=True)
    line.assert_green(CHECK)
    _assert_all_reachable(line)
    assert line.git("status", "--porcelain") == ""
    assert set(line.statuses().values()) <= {"todo", "merging", "done"}
    if {"todo", "merging"} & set(line.statuses().values()):
        said = line.run("run", "-n", "3")
        assert said.returncode == 0, said.stdout + said.stderr
    board = line.statuses()
    if board:  # else it was interrupted before it had added any
        assert set(board.values()) == {"done"}
        assert sorted(line.landed()) == sorted(board)
    line.assert_nothing_left()
    assert line.json("log", "verify")["sound"]


@pytest.mark.parametrize(("part", "number"), [(1, signal.SIGTERM), (2, signal.SIGINT)])
def test_an_interrupt_loses_nothing(made: Callable[..., Line], number: int, part: int) -> None:
    after = random.uniform(part, part + 1)
    print(f"after {after:.3f} s")
    _one_life(made(SCRIPTED, GATE), number, after)


def test_an_interrupt_stops_the_agents_although_the_daemon_was_killed(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GATE)
    body = f"dirt left.txt\nrun touch {line.mark('at-work')}\nhang\n"
    running = line.begin("run", line.tasks({"title": "One", "body": body}))
    wait_until(line.mark("at-work").exists, "the agent at work")
    running.send_signal(signal.SIGSTOP)  # so that it cannot start another daemon in between
    daemon = int(json.loads((line.state / "daemon.json").read_text())["pid"])
    kill([daemon])
    wait_until(lambda: not alive(daemon), "the daemon's end")
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGCONT)
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 130, said
    line.assert_nothing_left()
    assert line.statuses() == {"One": "todo"}
    assert len(line.json("rescue", "list")) == 1


@pytest.mark.soak
@pytest.mark.parametrize("part", range(50))
def test_fifty_interrupts_lose_nothing(made: Callable[..., Line], part: int) -> None:
    after = random.uniform(part * 0.08, (part + 1) * 0.08)
    print(f"after {after:.3f} s")
    _one_life(made(SCRIPTED, GATE), random.choice([signal.SIGINT, signal.SIGTERM]), after)
