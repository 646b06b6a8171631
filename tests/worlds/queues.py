"""Branches of a person that are queued all at once, and what becomes of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.worlds.projects import Line
from tests.worlds.repositories import IDENTITY

ENDED = ("landed", "rejected")


@dataclass(frozen=True)
class Change:
    """What a branch changes: a file, and what it holds then."""

    path: str
    text: str


def _commit(line: Line, number: int, change: Change) -> str:
    """Commit a change on a branch of its own without a checkout, and return the commit."""
    env = line.env | {"GIT_INDEX_FILE": str(line.folder / "index")} | IDENTITY

    def git(*words: str, text: str = "") -> str:
        done = subprocess.run(
            ["git", *words], cwd=line.root, env=env, input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    git("read-tree", "main")
    blob = git("hash-object", "-w", "--stdin", text=change.text)
    git("update-index", "--add", "--cacheinfo", f"100644,{blob},{change.path}")
    commit = git("commit-tree", "-p", "main", "-m", f"Change {number}", git("write-tree"))
    git("update-ref", f"refs/heads/work/{number}", commit)
    return commit


def fill(line: Line, queue: Iterable[Change]) -> list[str]:
    """Hand all changes in, in this order, while the queue is paused; then let it go on, and return the tasks."""
    tasks = []
    with line.client() as client:
        client.ask("POST", "/api/queue/pause", {}).good()
        for number, change in enumerate(queue):
            commit = _commit(line, number, change)
            task = client.post("/api/board", {"title": f"{number}: {change.path}"})["id"]
            client.ask("POST", f"/api/board/{task}/claim", {"session": "ann", "overlap": True}).good()
            handed = {"session": "ann", "branch": f"work/{number}", "commit": commit}
            client.ask("POST", f"/api/board/{task}/handin", handed).good()
            tasks.append(task)
        client.ask("POST", "/api/queue/resume", {}).good()
    return tasks


def merges(line: Line) -> list[dict[str, Any]]:
    """Return all merges; the daemon is up."""
    with line.client() as client:
        found: list[dict[str, Any]] = client.get("/api/merges?all=true&limit=1000")
        return found


def is_through(line: Line) -> bool:
    """Say whether every merge has ended."""
    return all(merge["state"] in ENDED for merge in merges(line))
