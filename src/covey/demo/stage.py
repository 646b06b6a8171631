"""The demo from its first command to its last: everything that it starts, it stops."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from types import FrameType
from typing import Any

from covey.cli.client import Client
from covey.cli.show import one, table
from covey.demo.board import FILES, TASKS, WORKERS
from covey.demo.picture import Lines, Screen
from covey.demo.scene import Followed, Row, Scene
from covey.errors import CoveyError

PATIENCE = 60.0
"""Seconds after which a demo that does not end is called off."""
INTERRUPTED = 130
TRY = """\
Try it in a repository of your own:

  covey init                             let covey look after it
  covey task add "Fix the flaky test"    put a task on the board
  covey task next --as ada               claim the next one
  covey status                           see who does what
  covey up                               start the daemon: REST and events

All but up and down works without the daemon too, and takes --json."""


class Wrong(Exception):
    """Something in the demo is not as it must be."""


@dataclass(frozen=True)
class Daemon:
    """Where the sample's daemon answers."""

    url: str
    token: str


def main(argv: list[str] | None = None) -> int:
    """Play the demo: 0 when all went well, 1 when something is wrong, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="covey demo", description="Let scripted workers claim a board dry.")
    parser.add_argument("--keep", action="store_true", help="leave the sample repository where it is")
    words = parser.parse_args(argv)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with _folder(keep=words.keep) as folder:
            _play(folder)
    except KeyboardInterrupt:
        print("\nInterrupted; everything that the demo started has been stopped.", file=sys.stderr)
        return INTERRUPTED
    except (Wrong, CoveyError) as error:
        print(f"The demo went wrong: {error}", file=sys.stderr)
        return 1
    print(f"\n{TRY}")
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Begin the end, which a second interrupt must not cut short."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _play(folder: Path) -> None:
    root = _repository(folder)
    _covey(root, "init")
    with _daemon(root) as daemon:
        client = Client(str(root))
        scene = Scene()
        with ExitStack() as ending, client:
            client.ask("task.import", fields={"tasks": TASKS})
            workers = _start_workers(client, root, daemon, ending)
            followed = Followed(daemon.url, daemon.token)
            ending.callback(followed.close)
            _watch(scene, followed, client, workers)
            handed_in = _end_workers(workers)
            events = _whole_log(client)
    _check(scene, events, handed_in)
    print(_report(scene, events))
    print(_verify(root))


# Before


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="covey-demo-"))
    try:
        yield folder
    finally:
        if keep:
            print(f"\nThe sample repository is in {folder / 'bookshop'}.")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _repository(folder: Path) -> Path:
    """Make the sample repository with one commit."""
    root = folder / "bookshop"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    who = ["-c", "user.name=covey demo", "-c", "user.email=demo@covey.invalid", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-q", "-m", "Open the bookshop"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def _covey(root: Path, *words: str) -> str:
    """Run covey as a person would, and return what it printed; an interrupt waits until it has ended."""
    free = {name: value for name, value in os.environ.items() if not name.startswith("COVEY_")}
    command = [sys.executable, "-m", "covey", "-C", str(root), *words]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, env=free, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        printed, complaint = child.communicate()
    except KeyboardInterrupt:
        child.communicate()
        raise
    if child.returncode != 0:
        raise Wrong(f"covey {' '.join(words)} ended with {child.returncode}: {(complaint or printed).strip()}")
    return printed


@contextmanager
def _daemon(root: Path) -> Iterator[Daemon]:
    try:
        said = json.loads(_covey(root, "up", "--json"))
        yield Daemon(said["url"], said["token"])
    finally:
        _covey(root, "down")


# Meanwhile


def _start_workers(client: Client, root: Path, daemon: Daemon, ending: ExitStack) -> dict[str, subprocess.Popen[str]]:
    """Start one process per worker, each with a token of its own."""
    workers: dict[str, subprocess.Popen[str]] = {}
    ending.callback(_stop, workers)
    for name, role in WORKERS.items():
        client.ask("session.new", fields={"name": name, "role": role, "wip": 1})
        token = client.ask("session.token", {"name": name}).value["token"]
        own = {"COVEY_SESSION": name, "COVEY_URL": daemon.url, "COVEY_TOKEN": token}
        workers[name] = subprocess.Popen(
            [sys.executable, "-m", "covey.demo.worker", str(root), *WORKERS],
            env=os.environ | own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    return workers


def _stop(workers: dict[str, subprocess.Popen[str]]) -> None:
    for worker in workers.values():
        worker.terminate()
    for worker in workers.values():
        worker.wait()
        for pipe in (worker.stdin, worker.stdout, worker.stderr):
            if pipe is not None:
                pipe.close()


def _watch(scene: Scene, followed: Followed, client: Client, workers: dict[str, subprocess.Popen[str]]) -> None:
    """Show what happens, as the daemon tells it, until the board is dry."""
    view = Screen() if sys.stdout.isatty() else Lines()
    try:
        while not scene.dry:
            if scene.seconds > PATIENCE:
                raise Wrong(f"the board was not dry after {PATIENCE:g} s")
            _check_alive(workers)
            changed = _take_in(scene, followed)
            news = (
                scene.hear(client.ask("log.list", fields={"after": scene.seq, "limit": 1000}).value) if changed else []
            )
            view.show(scene, news)
        time.sleep(0.8 if isinstance(view, Screen) else 0)
    finally:
        view.close()


def _take_in(scene: Scene, followed: Followed) -> bool:
    """Wait a moment for the daemon's events; take in all that wait, and say whether there were any."""
    changed = False
    try:
        frame = followed.queue.get(timeout=0.1)
        while True:
            if frame is None:
                raise Wrong("the daemon hung up")
            scene.take_in(*frame)
            changed = True
            frame = followed.queue.get_nowait()
    except Empty:
        return changed


def _check_alive(workers: dict[str, subprocess.Popen[str]]) -> None:
    for name, worker in workers.items():
        if worker.poll() not in (None, 0):
            assert worker.stderr is not None
            raise Wrong(f"{name} ended with {worker.returncode}: {worker.stderr.read().strip()}")


# Afterwards


def _end_workers(workers: dict[str, subprocess.Popen[str]]) -> dict[str, list[str]]:
    """Let every worker see that nothing is left, and return what each handed in."""
    told: dict[str, list[str]] = {}
    for name, worker in workers.items():
        try:
            worker.wait(10)
        except subprocess.TimeoutExpired:
            raise Wrong(f"{name} does not end") from None
        _check_alive({name: worker})
        assert worker.stdout is not None
        told[name] = json.loads(worker.stdout.read())
    return told


def _whole_log(client: Client) -> list[Row]:
    events: list[Row] = []
    while page := client.ask("log.list", fields={"after": events[-1]["seq"] if events else 0, "limit": 1000}).value:
        events += page
    return events


def _check(scene: Scene, events: list[Row], handed_in: dict[str, list[str]]) -> None:
    """Compare the log with what each worker says of itself: every task was held by one at a time, and none is left."""
    holder: dict[str, str] = {}
    done: dict[str, list[str]] = {name: [] for name in WORKERS}
    for event in events:
        task, who = event["subject"], event["actor"]
        if event["kind"] == "task.claimed":
            if task in holder:
                raise Wrong(f"{task} was claimed by {who} while {holder[task]} held it")
            holder[task] = who
        elif event["kind"] in ("task.released", "task.handed_in"):
            if holder.pop(task, None) != who:
                raise Wrong(f"{who} let go of {task} without holding it")
            if event["kind"] == "task.handed_in":
                done[who].append(task)
    if holder or done != handed_in:
        raise Wrong("the log and the workers tell different stories")
    left = [task["id"] for task in scene.tasks.values() if task["status"] not in ("done", "merging", "review")]
    if left or len(scene.tasks) != len(TASKS):
        raise Wrong(f"{', '.join(left) or 'a task'} was not done")


def _report(scene: Scene, events: list[Row]) -> str:
    """Return who did what, and how long it took."""
    began: dict[str, float] = {}
    took: dict[str, list[float]] = {name: [] for name in WORKERS}
    for event in events:
        if event["kind"] == "task.claimed":
            began[event["subject"]] = event["time"]
        elif event["kind"] == "task.handed_in":
            took[event["actor"]].append(event["time"] - began[event["subject"]])
    rows = [("worker", "role", "tasks", "at work", "longest")]
    for name, times in took.items():
        span = (f"{sum(times):.1f} s", f"{max(times):.1f} s") if times else ("-", "-")
        rows.append((name, WORKERS[name] or "-", str(len(times)), *span))
    counts = {status: len(scene.in_status(status)) for status in ("done", "merging", "review")}
    waiting = counts["merging"] + counts["review"]
    ended = f"{one(counts['done'], 'task')} done, {waiting} handed in and waiting to land"
    by = f"{one(_number(events, 'lease.taken'), 'lease')}, {one(_number(events, 'mail.sent'), 'message')}"
    head = f"The board is dry after {scene.story[-1][0]:.1f} s: {ended}."
    return f"{head}\n{by}; no task was ever held by two.\n\n{table(rows)}\n"


def _number(events: list[Row], kind: str) -> int:
    return sum(event["kind"] == kind for event in events)


def _verify(root: Path) -> str:
    """Let covey fold the log again and compare it with every row."""
    said: dict[str, Any] = json.loads(_covey(root, "log", "verify", "--json"))
    if not said["sound"]:
        raise Wrong(f"covey log verify found {one(said['count'], 'problem')}: {said['problems'][0]}")
    return f"covey log verify: {one(said['events'], 'event')} and {one(said['rows'], 'row')}, all sound."
