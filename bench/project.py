"""A throwaway project: a git repository with a filled board, and the daemon that looks after it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey import config
from covey.app.app import App, Request
from covey.app.clock import SystemClock
from covey.app.context import Context, Principal
from covey.app.fleet.heartbeats import Pulses
from covey.app.shapes.board import AddTask, Claim
from covey.app.shapes.leases import TakeLease
from covey.app.verbs import VERBS
from covey.git import project as projects
from covey.git.project import Project
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx

BATCH = 500
OWNER = Principal()
PATIENCE = 30.0
Job = Callable[[Tx], Any]


def covey(*words: str) -> list[str]:
    """Return the command line of the installed covey."""
    return [str(Path(sys.executable).with_name("covey")), *words]


@contextmanager
def sample(tasks: int = 0, leases: int = 0) -> Iterator[Project]:
    """Make a repository with this many tasks and live leases on its board, and remove it in the end."""
    folder = Path(tempfile.mkdtemp(prefix="covey-bench-"))
    try:
        root = folder / "sample"
        subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        subprocess.run(covey("init"), cwd=root, check=True, capture_output=True)
        project = projects.find(root).must_be_begun()
        with opened(project) as (store, app):
            fill(store, app, tasks)
            take_leases(store, app, leases)
        yield project
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened(project: Project) -> Iterator[tuple[SqliteStore, App]]:
    """Open a project's store in this process, as its only writer."""
    store = SqliteStore(project.database, project=project.name)
    try:
        pulses = Pulses(SystemClock(), store.place)
        yield store, App(store, Context(config.load(project.root), pulses, project.name, has_daemon=True))
    finally:
        store.close()


def fill(store: SqliteStore, app: App, tasks: int, batch: int = BATCH) -> None:
    """Add tasks through the verb, many to a commit."""
    run(store, (add_job(app, i) for i in range(tasks)), batch)


def add_job(app: App, number: int) -> Job:
    """Return the work of adding one task."""
    asked = AddTask(title=f"Make part {number} of the sample work", priority=number % 5)
    return app.job(Request(VERBS["task.add"], OWNER, asked, {}))


def claim_job(app: App, session: str) -> Job:
    """Return the work of claiming the next task."""
    asked = Claim(session=session)
    return app.job(Request(VERBS["task.next"], OWNER, asked, {}, secrets.token_hex(8), b"claim"))


def take_leases(store: SqliteStore, app: App, leases: int) -> None:
    """Take leases on folders of their own, held by a few sessions."""
    verb = VERBS["lease.take"]
    wishes = (TakeLease(resources=[f"old/part{i}/**"], session=f"holder{i % 20}") for i in range(leases))
    run(store, (app.job(Request(verb, OWNER, wish, {})) for wish in wishes), BATCH)


def run(store: SqliteStore, jobs: Iterator[Job], batch: int) -> list[float]:
    """Run jobs, `batch` to a commit; return how long each commit took."""
    took: list[float] = []
    waiting: list[Job] = []
    for job in jobs:
        waiting.append(job)
        if len(waiting) == batch:
            took.append(_commit(store, waiting))
            waiting = []
    if waiting:
        took.append(_commit(store, waiting))
    return took


def _commit(store: SqliteStore, jobs: Sequence[Job]) -> float:
    began = time.perf_counter()
    outcomes = store.run(jobs)
    took = time.perf_counter() - began
    for outcome in outcomes:
        outcome.result()
    return took


@dataclass(frozen=True)
class Daemon:
    """A daemon that answers."""

    project: Project
    pid: int
    port: int
    token: str

    def memory(self) -> float:
        """Return what it keeps in memory, in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))

    def share(self) -> float:
        """Return the same with only its share of what other processes have in memory too, in MiB."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))

    def cpu(self) -> float:
        """Return the seconds of processor time that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_with_children(self) -> float:
        """Return the same with that of the processes that it has waited for."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def daemon(project: Project) -> Iterator[Daemon]:
    """Start the project's daemon as a child, and stop it in the end."""
    command = [sys.executable, "-m", "covey.daemon", str(project.root)]
    with (project.state / "daemon.out").open("wb") as out:
        child = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    try:
        said = _announced(project, child)
        yield Daemon(project, child.pid, int(said["port"]), project.owner_token.read_text().strip())
    finally:
        child.terminate()
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _announced(project: Project, child: subprocess.Popen[bytes]) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if project.daemon_file.exists():
            said: dict[str, Any] = json.loads(project.daemon_file.read_text())
            if said["pid"] == child.pid:
                return said
        if child.poll() is not None:
            break
        time.sleep(0.01)
    raise RuntimeError("The daemon did not begin: " + (project.state / "daemon.out").read_text())


def load(daemon: Daemon, job: str, **spec: Any) -> dict[str, Any]:
    """Let another process ask the daemon, and return what it measured."""
    asked = json.dumps({"port": daemon.port, "token": daemon.token, "job": job} | spec)
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        input=asked.encode(),
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent.parent,
        check=True,
        timeout=180,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
