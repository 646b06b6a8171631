"""Many processes without a daemon empty a board, and none of them goes short."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.worlds.shell import Shell


def _work(shell: Shell, name: str) -> list[str]:
    """Take tasks until none is left, each with a process of its own."""
    taken: list[str] = []
    while True:
        done = shell.run("task", "next", "--as", name, "--json")
        if done.returncode == 3:
            assert done.stdout == ""
            return taken
        assert done.returncode == 0, done.stderr
        taken.append(json.loads(done.stdout)["id"])


@pytest.mark.xdist_group("busy")
@pytest.mark.parametrize(("workers", "tasks"), [(8, 80), pytest.param(16, 300, marks=pytest.mark.soak)])
def test_every_task_is_claimed_exactly_once_and_fairly(shell: Shell, workers: int, tasks: int) -> None:
    (shell.folder / "tasks.jsonl").write_text("".join(json.dumps({"title": f"Task {n}"}) + "\n" for n in range(tasks)))
    shell.ok("task", "import", "tasks.jsonl")
    names = [f"w{number}" for number in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        taken = dict(zip(names, pool.map(lambda name: _work(shell, name), names), strict=True))
    assert sorted(itertools.chain(*taken.values())) == sorted(f"T-{n + 1}" for n in range(tasks))
    held = Counter(task["session"] for task in shell.json("task", "list", "--status", "doing", "--all"))
    assert held == {name: len(theirs) for name, theirs in taken.items()}
    assert min(map(len, taken.values())) >= tasks / workers / 2
