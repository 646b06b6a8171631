"""covey ask: whoever asks waits for a person, and not for a daemon that is stopped meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from covey.cli.frame import client
from tests.worlds.serving import Daemon, serving, wait_until

COVEY = (sys.executable, "-m", "covey")


def covey(daemon: Daemon, *words: str) -> str:
    """Return what a command of the owner prints."""
    done = subprocess.run(
        [*COVEY, *words], cwd=daemon.project.root, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_question_and_who_asks_it_outlive_a_daemon(tmp_path: Path) -> None:
    with serving(tmp_path / "shop") as daemon:
        covey(daemon, "session", "new", "eve")
        own = json.loads(covey(daemon, "session", "token", "eve", "--json"))
        env = os.environ | {"COVEY_URL": f"http://127.0.0.1:{daemon.port}", "COVEY_TOKEN": own["token"],
                            "COVEY_PROOF": own["proof"]}  # fmt: skip
        asking = subprocess.Popen(
            [*COVEY, "ask", "Which colour?", "--wait", "200"], cwd=tmp_path, env=env, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        wait_until(lambda: "Which colour?" in covey(daemon, "inbox"), "the question")
        daemon.stop()
        time.sleep(client.RESTART_TIMEOUT_S + 2.0)  # longer than any single request is repeated for
        assert asking.poll() is None
        covey(daemon, "answer", "blue")
        daemon.start()
        said, _ = asking.communicate(timeout=60)
        assert (asking.returncode, said) == (0, "blue\n")
