"""Sixteen processes without a daemon empty a board, and none of them goes short."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cli.shell import Shell

WORKERS, TASKS = 16, 300


def _work(shell: Shell, name: str) -> list[str]:
    """Take tasks until none is left, each with a process of its own."""
    taken: list[str] = []
    while True:
        done = subprocess.run(
            [sys.executable, "-m", "covey", "task", "next", "--as", name, "--json"],
            cwd=shell.folder, env=shell.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 3:
            assert done.stdout == ""
            return taken
        assert done.returncode == 0, done.stderr
        taken.append(json.loads(done.stdout)["id"])


@pytest.mark.xdist_group("busy")
def test_every_task_is_claimed_exactly_once_and_fairly(shell: Shell) -> None:
    (shell.folder / "tasks.jsonl").write_text("".join(json.dumps({"title": f"Task {n}"}) + "\n" for n in range(TASKS)))
    shell.ok("task", "import", "tasks.jsonl")
    names = [f"w{number}" for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        taken = dict(zip(names, pool.map(lambda name: _work(shell, name), names), strict=True))
    assert sorted(task for tasks in taken.values() for task in tasks) == sorted(f"T-{n + 1}" for n in range(TASKS))
    held = Counter(task["session"] for task in shell.json("task", "list", "--status", "doing", "--all"))
    assert held == {name: len(tasks) for name, tasks in taken.items()}
    assert min(map(len, taken.values())) >= TASKS / WORKERS / 2
