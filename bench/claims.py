"""Claims: 50 clients through HTTP, and 16 processes without a daemon."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.figures import Report, median
from bench.project import covey, daemon, load, opened, sample
from covey.cli.frame.client import Client
from covey.git.project import Project

CLIENTS = 50
TASKS = (3_000, 12_000)
"""Tasks to claim through HTTP: for a quick look, and for a measurement."""
PROCESSES = 16
PEER = "140/s (amux)"
SHARE = "well under 1x: the machine was busy with something else"


def through_http(*, quick: bool) -> Report:
    """Let 50 clients claim a board dry through the daemon; every claim is on disk before it is answered."""
    tasks = TASKS[0] if quick else TASKS[1]
    report = Report("claims", f"Durable claims through HTTP, {CLIENTS} clients, {tasks:,} tasks")
    with sample(tasks) as project:
        with daemon(project) as running:
            used = running.cpu()
            told = load(running, "claims", clients=CLIENTS)
            used = running.cpu() - used
        by_client: list[list[str]] = told["tasks"]
        claimed = [task for mine in by_client for task in mine]
        held = _held(project)
        look = _look(project)
    report.add("claims", len(claimed) / told["seconds"], "/s", at_least=5_000, peer=PEER)
    report.add_times("claim", told["times"], p99=50, peer="p99 1,150 ms (amux, 30 clients)")
    fair = min(len(mine) for mine in by_client) / (len(claimed) / CLIENTS)
    report.add("least served client against the mean", fair, "x", at_least=0.5)
    report.add("processor time of the daemon for one claim", 1e6 * used / len(claimed), "us")
    report.add("share of a processor that the daemon got", used / told["seconds"], "x", note=SHARE)
    report.add(f"the look for silence every second, {tasks:,} tasks at work", 1000 * look, "ms")
    _check(report, by_client, held, tasks)
    return report


def _look(project: Project) -> float:
    """Return how long the daemon looks, every second, for what silence has ended."""
    took: list[float] = []
    with opened(project) as (store, app):
        for _ in range(11):
            began = time.perf_counter()
            store.read(app.is_anything_silent)
            took.append(time.perf_counter() - began)
    return median(took)


def _held(project: Project) -> dict[str, str]:
    with opened(project) as (store, _):
        sql = "SELECT id, session FROM tasks WHERE status = 'doing'"
        return store.read(lambda tx: dict(tx.db.rows(sql)))


def _check(report: Report, by_client: list[list[str]], held: dict[str, str], tasks: int) -> None:
    """Compare what the clients were told with what the store says, and with what there was to claim."""
    counted = Counter(task for mine in by_client for task in mine)
    report.must_be_zero("claimed twice", sum(number - 1 for number in counted.values()))
    told = {(task, f"worker{number}") for number, mine in enumerate(by_client) for task in mine}
    report.must_be_zero("told, but not held in the store", len(told - set(held.items())))
    report.must_be_zero("left on the board", tasks - len(held))


def without_daemon(*, quick: bool) -> Report:
    """Let 16 processes claim a board dry without a daemon: each claim takes the lock and is on disk by itself."""
    report = Report("processes", f"Claims by {PROCESSES} processes without a daemon")
    tasks = 32 if quick else 128
    _race(report, "by covey task next", tasks, [*covey("task", "next", "--json", "--as")])
    _race(report, "in processes that stay", 4 * tasks, None)
    return report


def _race(report: Report, label: str, tasks: int, command: list[str] | None) -> None:
    with sample(tasks) as project:
        told = _racers(project.root, command or [])
        began = min(one["began"] for one in told)
        seconds = max(one["ended"] for one in told) - began
        held = _held(project)
    by_client: list[list[str]] = [one["tasks"] for one in told]
    times = [took for one in told for took in one["times"]]
    rate = sum(map(len, by_client)) / seconds
    if command:
        report.add(f"claims {label}", rate, "/s")
    else:
        report.add(f"claims {label}", rate, "/s", at_least=500, peer=PEER)
    report.add(f"one claim {label} p50", 1000 * median(times), "ms")
    fair = min(map(len, by_client)) / (tasks / PROCESSES)
    report.add("least served process against the mean", fair, "x", at_least=0.5)
    _check(report, by_client, held, tasks)


def _racers(root: Path, command: list[str]) -> list[dict[str, Any]]:
    """Let the processes race from one start, and return what each of them says; none is left, whatever happens."""
    words = [sys.executable, "-m", "bench.claims", str(root)]
    folder = Path(__file__).parent.parent
    pipe = subprocess.PIPE
    racers = [
        subprocess.Popen([*words, f"worker{number}", *command], stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder)
        for number in range(PROCESSES)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            racer.stdout.readline()
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write(b"go\n")
            racer.stdin.flush()
        printed = [racer.communicate(timeout=120) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    for racer, (_, complaint) in zip(racers, printed, strict=True):
        if racer.returncode:
            raise RuntimeError(complaint.decode().strip().splitlines()[0])
    return [json.loads(said) for said, _ in printed]


def _claim(client: Client, session: str) -> str | None:
    """Claim as a process that stays does: by one client, which keeps the store open and takes its lock each time."""
    answer = client.ask("task.next", fields={"session": session})
    return None if answer.status == 204 else str(answer.value["id"])


def _claim_by_command(root: Path, command: list[str]) -> str | None:
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=False)
    if done.returncode == 3:
        return None
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return str(json.loads(done.stdout)["id"])


def main() -> None:
    """Be one of the racing processes."""
    root, session, *command = sys.argv[1:]
    client = Client(root)
    client.ask("task.list")  # a process that stays has opened what it needs; a command does so each time
    claimed: list[str] = []
    times: list[float] = []
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    while True:
        start = time.perf_counter()
        task = _claim_by_command(Path(root), [*command, session]) if command else _claim(client, session)
        if task is None:
            break
        times.append(time.perf_counter() - start)
        claimed.append(task)
    print(json.dumps({"tasks": claimed, "times": times, "began": began, "ended": time.monotonic()}))


if __name__ == "__main__":
    main()
