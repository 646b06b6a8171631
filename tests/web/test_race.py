"""Many clients, one board: each task goes to exactly one of them."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.worlds.serving import Daemon, all_events, all_tasks, check_database, serving

CLIENTS = 50


def fill(daemon: Daemon, tasks: int) -> None:
    """Put tasks on the board."""
    with daemon.client() as client:
        for start in range(0, tasks, 500):
            keys = range(start, min(start + 500, tasks))
            client.post("/api/board/import", {"tasks": [{"key": f"k{i}", "title": f"Task {i}"} for i in keys]})


def race(daemon: Daemon) -> dict[str, list[tuple[str, int]]]:
    """Let all clients claim until nothing is left; return what each was given, with its fences."""
    given: dict[str, list[tuple[str, int]]] = {f"client-{i}": [] for i in range(CLIENTS)}
    together = threading.Barrier(CLIENTS)
    failures: list[str] = []

    def work(name: str) -> None:
        with daemon.client() as client:
            client.get("/api/alerts")
            together.wait()
            while (reply := client.ask("POST", "/api/claim", {"session": name})).status == 200:
                given[name].append((reply.json["id"], reply.json["fence"]))
            if reply.status != 204:
                failures.append(f"{reply.status}: {reply.body!r}")

    threads = [threading.Thread(target=work, args=(name,)) for name in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    return given


def check(daemon: Daemon, given: dict[str, list[tuple[str, int]]], tasks: int) -> None:
    """Every task was claimed exactly once, none is left, and everybody had a fair share."""
    times = Counter(task for claims in given.values() for task, _ in claims)
    assert len(times) == tasks
    assert set(times.values()) == {1}
    with daemon.client() as client:
        board = all_tasks(client)
        claimed = Counter(event["subject"] for event in all_events(client) if event["kind"] == "task.claimed")
    assert claimed == times
    holders = {task["id"]: (task["session"], task["fence"], task["status"]) for task in board.values()}
    assert holders == {task: (name, fence, "doing") for name, claims in given.items() for task, fence in claims}
    shares = [len(claims) for claims in given.values()]
    assert min(shares) >= sum(shares) / len(shares) / 2, f"unfair: {sorted(shares)}"


def run(folder: Path, tasks: int) -> None:
    """Race over a board of so many tasks."""
    with serving(folder) as daemon:
        fill(daemon, tasks)
        check(daemon, race(daemon), tasks)
        daemon.stop()
        check_database(daemon.project)


def test_fifty_clients_race_over_2000_tasks_and_each_task_is_claimed_exactly_once(tmp_path: Path) -> None:
    run(tmp_path / "repo", 2000)


@pytest.mark.soak
def test_fifty_clients_race_over_20000_tasks_and_each_task_is_claimed_exactly_once(tmp_path: Path) -> None:
    run(tmp_path / "repo", 20_000)
