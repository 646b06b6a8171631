"""Many sessions at once: from nothing to running agents, without a failure, and gone without a trace."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds.projects import GOOD, SCRIPTED, Line
from tests.worlds.serving import Client, wait_until


def _body(line: Line, number: int) -> str:
    return (
        f"run echo $COVEY_RUN >> {line.mark('running')}\nwait for {line.mark('go')}\n"
        f"write files/{number}.txt\n    by {number}\ncommit File {number}\n"
    )


def _start(line: Line, client: Client, count: int, round_: int = 0) -> float:
    """Make and start sessions, each with a task, and return how long it took until every agent ran."""
    for number in range(count):
        client.post("/api/board", {"title": f"Task {round_}.{number}", "body": _body(line, number + round_ * 1000)})
    begun = time.monotonic()
    for number in range(count):
        client.post("/api/sessions", {"name": f"worker-{number}", "agent": "scripted"})
        client.post(f"/api/sessions/worker-{number}/start")
    wait_until(lambda: len(line.marks("running")) >= count, f"{count} agents at work")
    took = time.monotonic() - begun
    assert len(line.agents()) == count  # all of them at once
    return took


def _finish(line: Line, client: Client, count: int) -> None:
    """Let all work land, and remove the sessions."""
    line.mark("go").touch()
    wait_until(lambda: {task["status"] for task in client.get("/api/board?limit=1000")} == {"done"}, "all landed")
    for number in range(count):
        client.post(f"/api/sessions/worker-{number}/remove", {"force": True})
    wait_until(lambda: client.get("/api/sessions") == [], "the end of all sessions")


def _rounds(line: Line, count: int, rounds: int) -> None:
    line.up()
    with line.client() as client:
        for number in range(rounds):
            line.mark("running").unlink(missing_ok=True)
            line.mark("go").unlink(missing_ok=True)
            took = _start(line, client, count, number)
            print(f"{count} sessions from nothing to running agents: {took:.2f} s")
            assert len(set(line.marks("running"))) == count  # none started twice
            _finish(line, client, count)
    assert line.events("run.ended") != []
    assert {event["data"]["outcome"] for event in line.events("run.ended")} == {"handed-in"}
    assert line.alerts() == []
    assert len(line.landed()) == count * rounds
    line.ok("down")
    line.assert_nothing_left()


def test_thirty_sessions_run_at_once(made: Callable[..., Line]) -> None:
    _rounds(made(SCRIPTED, GOOD), 30, 1)


@pytest.mark.soak
def test_thirty_sessions_run_at_once_ten_times(made: Callable[..., Line]) -> None:
    _rounds(made(SCRIPTED, GOOD), 30, 10)


def _fill(root: Path, count: int) -> None:
    """Give main a commit with many files, without writing one by one."""
    parts = [b"blob\nmark :1\ndata 6\nhello\n\n", b"commit refs/heads/big\ncommitter A <a@example.org> 0 +0000\n"]
    parts += [b"data 3\nbig\n", *(b"M 100644 :1 folder%d/file%d.txt\n" % (at % 200, at) for at in range(count))]
    subprocess.run(["git", "fast-import", "--quiet"], input=b"".join(parts) + b"\n", cwd=root, check=True)


@pytest.mark.soak
def test_ten_sessions_run_on_twenty_thousand_files(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    _fill(line.root, 20_000)
    line.git("merge", "-q", "--allow-unrelated-histories", "-m", "Many files", "big")
    line.git("branch", "-q", "-D", "big")
    line.up()
    with line.client() as client:
        print(f"10 sessions on 20,000 files: {_start(line, client, 10):.2f} s")
        _finish(line, client, 10)
    assert {event["data"]["outcome"] for event in line.events("run.ended")} == {"handed-in"}
    line.ok("down")
    old = line.state / "old-worktrees"
    wait_until(lambda: not (old.exists() and any(old.iterdir())), "the end of 200,000 files", patience=300)
    line.assert_nothing_left()
