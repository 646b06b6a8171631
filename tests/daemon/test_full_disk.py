"""A full disk: 503, no corruption, and on it goes when there is room again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_daemon_lives_through_a_full_disk_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    enter = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    allowed = subprocess.run([*enter, "true"], capture_output=True, text=True, check=False)
    assert allowed.returncode == 0, f"To mount a small disk, be root or allow user namespaces: {allowed.stderr}"
    story = subprocess.run(
        [*enter, sys.executable, "-m", "tests.daemon.full_disk", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert story.returncode == 0, story.stdout[-2000:] + story.stderr[-6000:]
