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

from covey.demo.shop import FIXES, GOOD

pytestmark = pytest.mark.xdist_group("demo")
PATIENCE = 240


class Played:
    """One run of the demo, with a mark by which its processes are known."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.mark = f"DEMO_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "covey.demo", *words],
            env=os.environ | {name: value, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def left(self) -> list[int]:
        """Return the processes that still carry the mark, or work in the demo's folder: agents get no marks of ours."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                marked = self.mark.encode() in (entry / "environ").read_bytes().split(b"\0")
                if marked or Path(os.readlink(entry / "cwd")).is_relative_to(self.folder):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def end(self) -> None:
        """End what a failed test may have left."""
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    run = Played(tmp_path)
    yield run
    run.end()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Played]:
    run = Played(tmp_path, "--keep")
    yield run
    run.end()


def test_every_bug_is_mended_on_main_and_nothing_is_left(played: Played, tmp_path: Path) -> None:
    printed, _ = played.process.communicate(timeout=PATIENCE)
    assert played.process.returncode == 0, printed
    for fix in FIXES:
        assert re.search(rf"{re.escape(fix.asked)} +{re.escape(fix.wrong)} +{re.escape(fix.right)}\n", printed), fix.key
    assert "passes in a fresh clone of main" in printed
    assert "was rejected, went back, and landed mended" in printed
    _assert_the_queue_is_shown(printed)
    told = "changed CHANGES.md next to each other: covey saw it before either landed, and told both."
    assert told in printed or "The radar had nothing to tell this time." in printed  # they may miss each other
    assert "all sound" in printed
    assert "Nothing is left running." in printed
    assert "\x1b" not in printed
    assert played.left() == []
    assert list(tmp_path.iterdir()) == []


def _assert_the_queue_is_shown(printed: str) -> None:
    """The branches wait together, the good ones land in the end, the bad one goes back, and a line has its story."""
    waiting, _, rest = printed.partition("$ covey merge queue\n")[2].partition("$ covey merge journal")
    assert waiting.count("the queue is paused") == len(GOOD) + 1
    journal, _, told = rest.partition("$ covey merge why")
    landed = [line.split("  ")[-1].split(", ") for line in journal.splitlines() if line.startswith("landing-")]
    assert sum(map(len, landed)) == len(GOOD)
    assert "is rejected." in told
    assert "$ covey why bookshop/cart.py:" in told
    assert re.search(r"  run +run-\d+ of worker-\d: scripted", told)


def _interrupt_at_work(played: Played) -> None:
    assert played.process.stdout is not None
    assert any("doing" in line for line in played.process.stdout)
    played.process.send_signal(signal.SIGINT)
    said, _ = played.process.communicate(timeout=PATIENCE)
    assert played.process.returncode == 130, said
    assert played.left() == []


def test_an_interrupt_stops_everything_that_was_started(played: Played, tmp_path: Path) -> None:
    _interrupt_at_work(played)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_demo_that_is_kept_has_lost_no_task(kept: Played, tmp_path: Path) -> None:
    _interrupt_at_work(kept)
    (root,) = tmp_path.glob("covey-demo-*/bookshop")
    done = subprocess.run(
        [sys.executable, "-m", "covey", "-C", str(root), "task", "list"], capture_output=True, text=True, check=True
    )
    assert all(fix.title in done.stdout for fix in FIXES)
    assert kept.left() == []
