"""The demo as a person runs it: a process, its output, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.demo.board import TASKS, WORKERS
from covey.demo.picture import picture
from covey.demo.scene import Scene, frames

pytestmark = pytest.mark.xdist_group("demo")


class Played:
    """One run of the demo, with a mark by which its processes are known."""

    def __init__(self, folder: Path) -> None:
        self.mark = f"DEMO_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "covey.demo"],
            env=os.environ | {name: value, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def left(self) -> list[int]:
        """Return the processes that still carry the mark."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    carried = (entry / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if self.mark.encode() in carried:
                    found.append(int(entry.name))
        return found


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    run = Played(tmp_path)
    yield run
    for pid in run.left():
        os.kill(pid, signal.SIGKILL)
    run.process.communicate()


def test_every_task_is_done_or_handed_in_and_nothing_is_left(played: Played, tmp_path: Path) -> None:
    printed, _ = played.process.communicate(timeout=120)
    assert played.process.returncode == 0, printed
    handed_in = set(re.findall(r"handed in ([A-Z]+-\d+)", printed))
    by_children = set(re.findall(r"([A-Z]+-\d+) is done, because its children are", printed))
    assert len(handed_in | by_children) == len(TASKS)
    assert "no task was ever held by two" in printed
    assert all(re.search(rf"^{name} .* \d+ +[\d.]+ s", printed, re.MULTILINE) for name in WORKERS)
    assert "\x1b" not in printed
    assert played.left() == []
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_stops_everything_that_was_started(played: Played, tmp_path: Path) -> None:
    assert played.process.stdout is not None
    assert any("claimed" in line for line in played.process.stdout)
    played.process.send_signal(signal.SIGINT)
    played.process.communicate(timeout=60)
    assert played.process.returncode == 130
    assert played.left() == []
    assert list(tmp_path.iterdir()) == []


def _scene() -> Scene:
    scene = Scene()
    rows = [
        {"id": f"T-{i}", "title": task["title"], "status": "doing" if i < 5 else "todo", "ready": i % 2 == 0}
        | {"session": list(WORKERS)[i] if i < 5 else None}
        for i, task in enumerate(TASKS)
    ]
    scene.take_in("board", rows)
    scene.take_in("sessions", [{"name": name, "state": "working"} for name in WORKERS])
    event = {"seq": 1, "kind": "task.claimed", "subject": "T-1", "actor": "ada", "data": {"fence": 1}}
    scene.hear([event | {"seq": number} for number in range(1, 40)])
    return scene


@pytest.mark.parametrize("width", [20, 40, 80, 89, 90, 100, 160])
@pytest.mark.parametrize("height", [5, 15, 30, 60])
def test_the_picture_fits_the_terminal(width: int, height: int) -> None:
    lines = picture(_scene(), width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) <= height


def test_frames_are_read_from_a_stream() -> None:
    stream = b'retry: 1000\n\nevent: counts\ndata: {"todo":1}\n\nid: 7\nevent: board\ndata: [{"id":"T-1"}]\n\n'
    read = list(frames(iter(stream.splitlines(keepends=True))))
    assert read == [("counts", {"todo": 1}), ("board", [{"id": "T-1"}])]
