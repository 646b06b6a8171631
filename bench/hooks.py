"""Hooks: what they add to a step of an agent, by HTTP as Claude Code asks and by a process as Codex does."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.fanout import asking, fill
from bench.figures import Report, median, percentile
from bench.project import Daemon, daemon, sample
from covey.git.project import Project
from covey.loops.fleet.run_launch import relay_words

LIVE = 1_000
FILES = 100
PATIENCE = 60.0
PEER = "118 ms (Overstory)"
NOTHING = "{}"
FREE, OWN, WARNED, AFTER = BY_HTTP = (
    "edit of a free file",
    "edit of its own file",
    "edit of another's file, which warns",
    "after an edit, no mail",
)
RELAY, EMPTY = "relay", "empty"


def steps(*, quick: bool) -> Report:
    """Ask about edits and after them as a session that covey started, each way once in every round."""
    report = Report("hooks", f"What a hook adds to a tool call, {LIVE:,} leases in force")
    rounds = 20 if quick else 300
    with sample(leases=LIVE) as project:
        fill(project, FILES)
        with daemon(project) as running, asking(running) as ask, _at_work(project, ask) as env:
            took, unlike = _measure(env, rounds)
            used = _processor_time(env, running, 10 * rounds)
    for name in BY_HTTP:
        report.add_times(f"by HTTP: {name}", took[name], p50=3)
    report.add("by a process: edit of a free file p50", 1000 * median(took[RELAY]), "ms", at_most=15, peer=PEER)
    report.add("by a process: edit of a free file p99", 1000 * percentile(took[RELAY], 99), "ms")
    report.add("of that, Python that starts and does nothing p50", 1000 * median(took[EMPTY]), "ms")
    report.add("processor time of the daemon for one hook", 1e6 * used, "us")
    report.must_be_zero("answers other than expected", unlike)
    return report


def _measure(env: dict[str, str], rounds: int) -> tuple[dict[str, list[float]], int]:
    """Return how long each way of asking took, and how many answers were not as they should be."""
    worktree = Path(env["COVEY_WORKTREE"])
    free, own, other = (
        _hook(worktree, "PreToolUse", path) for path in ("part0/file0.txt", "part1/file1.txt", "old/part1/file.txt")
    )
    after = _hook(worktree, "PostToolUse", "part1/file1.txt")
    nothing = [*relay_words()[:-1], "-c", "pass"]
    with _posting(env) as post:
        post("PostToolUse", after)  # by this it is its own
        ways: dict[str, Callable[[], str]] = {
            FREE: lambda: post("PreToolUse", free),
            OWN: lambda: post("PreToolUse", own),
            WARNED: lambda: post("PreToolUse", other),
            AFTER: lambda: post("PostToolUse", after),
            RELAY: lambda: _process([*relay_words(), "PreToolUse"], free, env),
            EMPTY: lambda: _process(nothing, "", env),
        }
        took: dict[str, list[float]] = {name: [] for name in ways}
        unlike = 0
        for number in range(rounds):
            for name, way in ways.items():
                began = time.perf_counter()
                said = way()
                if number:  # the first round finds nothing warm
                    took[name].append(time.perf_counter() - began)
                unlike += (said not in ("", NOTHING)) is not (name == WARNED)
    return took, unlike


def _processor_time(env: dict[str, str], running: Daemon, number: int) -> float:
    """Return the seconds of a processor that one hook costs, asked in a row, so that little else counts."""
    body = _hook(Path(env["COVEY_WORKTREE"]), "PreToolUse", "part0/file0.txt")
    with _posting(env) as post:
        used = running.cpu()
        for _ in range(number):
            post("PreToolUse", body)
        return (running.cpu() - used) / number


def _hook(worktree: Path, moment: str, path: str) -> str:
    """Return what Claude Code tells of an edit."""
    return json.dumps(
        {
            "session_id": "5d1ce1a6-6b6e-4c2b-9a57-0c9a0a5a3a52",
            "transcript_path": f"{worktree}/none.jsonl",
            "cwd": str(worktree),
            "permission_mode": "acceptEdits",
            "hook_event_name": moment,
            "tool_name": "Edit",
            "tool_input": {"file_path": f"{worktree}/{path}", "old_string": "0\n" * 20, "new_string": "1\n" * 20},
            "tool_use_id": "toolu_01",
        }
    )


@contextmanager
def _posting(env: dict[str, str]) -> Iterator[Callable[[str, str], str]]:
    """Have what posts hooks over one connection, as a program does that stays."""
    place = urlsplit(env["COVEY_URL"])
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {env['COVEY_TOKEN']}", "Content-Type": "application/json"}

    def post(moment: str, body: str) -> str:
        connection.request("POST", f"/hooks/{moment}", body, headers)
        answer = connection.getresponse()
        data = answer.read().decode()
        if answer.status != 200:
            raise RuntimeError(f"{moment}: {answer.status} {data[:200]}")
        return data

    with closing(connection):
        yield post


def _process(words: list[str], body: str, env: dict[str, str]) -> str:
    return subprocess.run(words, input=body.encode(), stdout=subprocess.PIPE, env=env, check=True).stdout.decode()


@contextmanager
def _at_work(project: Project, ask: Callable[..., Any]) -> Iterator[dict[str, str]]:
    """Have a session at work that waits, and the environment that covey gave to its run."""
    marks = project.root.parent / "marks"
    marks.mkdir()
    body = f"run sh -c 'env -0 > {marks}/part && mv {marks}/part {marks}/env'\nwait for {marks}/go\n"
    ask("POST", "/api/board", {"title": "Wait", "body": body})
    ask("POST", "/api/sessions", {"name": "s0", "agent": "scripted"})
    ask("POST", "/api/sessions/s0/start", {})
    _wait((marks / "env").exists)
    pairs = (marks / "env").read_bytes().decode().split("\0")
    try:
        yield dict(pair.split("=", 1) for pair in pairs if pair)
    finally:
        ask("POST", "/api/sessions/s0/remove", {"force": True})
        _wait(lambda: all(session["kind"] != "run" for session in ask("GET", "/api/sessions")))


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("The session did not begin, or did not end.")
        time.sleep(0.01)
