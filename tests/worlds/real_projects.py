"""Projects on which real agent programs work: a real daemon, real git, and a scripted model behind the agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.model.environment import CODEX_MODEL, World
from tests.model.script import Shell, Step, Write
from tests.worlds.projects import GOOD, Line, make_line
from tests.worlds.serving import wait_until

CODEX = f'[agents.codex]\nenv = ["SCRIPTED_KEY"]\nmodel = "{CODEX_MODEL}"\n'
OF_GIT_ONLY = ("GIT_CONFIG_NOSYSTEM",)


def real_line(folder: Path, world: World, *settings: str, agent: str = "claude", sessions: str = "") -> Line:
    """Make a project in a folder of a scripted world whose sessions run a real agent.

    `sessions`: more lines for the table of that name; a table in `settings` takes the place of the usual one.
    """
    told = "".join(settings)
    usual = [f'[sessions]\nagent = "{agent}"\n{sessions}', GOOD, CODEX]
    kept = [table for table in usual if table.partition("\n")[0] not in told]
    line = make_line(folder / "line", *kept, *settings)
    line.env.update({name: value for name, value in world.environment.items() if name not in OF_GIT_ONLY})
    return line


# Asking for work


def add(line: Line, title: str, body: str, **more: Any) -> str:
    """Put a task on the board, whose body names a script, and return its id; the daemon is up."""
    with line.client() as client:
        return str(client.post("/api/board", {"title": title, "body": body, **more})["id"])


def begin(line: Line, name: str = "ada", agent: str = "claude") -> None:
    """Let a session begin to work; the daemon is up."""
    line.start_session(name, agent)


def writing(path: str, content: str = "hello\n", *, first: Step | None = None) -> list[Step]:
    """Return the steps that write a file, commit it and say so, after a first one if that is given."""
    return [
        *([first] if first else []),
        Step(do=(Write(path, content),)),
        commits(f"Add {path}"),
        Step(text=f"Done: {path} is committed."),
    ]


def commits(message: str) -> Step:
    """Return the step that commits all there is."""
    return Step(do=(Shell(f'git add -A && git commit -q -m "{message}"'),))


def at_once(path: str, **more: Any) -> Step:
    """Return the step that writes a file and commits it; harmless when it is taken twice.

    Some agents put a word of the model's into a conversation that broke off, so that a script goes on one step later.
    """
    return Step(do=(Write(path, f"{path}\n"), *commits(f"Add {path}").do), **more)


# What came of it


def lands(line: Line, task: str) -> dict[str, Any]:
    """Wait until a task has landed, and return it; it must not be blocked."""
    ended = line.wait_for(task, "done", "blocked")
    assert ended["status"] == "done", ended
    return ended


def runs(line: Line, task: str | None = None) -> list[dict[str, Any]]:
    """Return the runs, the oldest first; the daemon is up."""
    with line.client() as client:
        found: list[dict[str, Any]] = client.get("/api/runs?limit=1000" + (f"&task={task}" if task else ""))
        return found[::-1]


def outcomes(line: Line, task: str | None = None) -> list[str | None]:
    """Return what came of the runs, the oldest first."""
    return [run["outcome"] for run in runs(line, task)]


def why(line: Line, name: str = "ada") -> dict[str, Any]:
    """Return what the watchdog thinks of a session; the daemon is up."""
    with line.client() as client:
        found: dict[str, Any] = client.get(f"/api/sessions/{name}/why")
        return found


def alerts(line: Line, *, of: str | None = None) -> list[str]:
    """Return the types of what a person was told, the oldest first, or the texts of one type."""
    with line.client() as client:
        found = client.get("/api/alerts?limit=1000")[::-1]
    return [each["type"] if of is None else each["message"] for each in found if of in (None, each["type"])]


def story(line: Line, name: str = "ada") -> list[tuple[str, str]]:
    """Return every state that a session was in, with its evidence, the oldest first."""
    changed = [event for event in line.events("session.changed") if event["subject"] == name]
    return [(event["data"]["state"], event["data"].get("evidence") or "") for event in changed]


def was(line: Line, state: str, evidence: str = "", name: str = "ada") -> bool:
    """Say whether a session was in a state for a reason that has these words."""
    return any(found == state and evidence in said for found, said in story(line, name))


def wait_for_run(line: Line, count: int = 1) -> dict[str, int]:
    """Wait until so many agent programs live, and return them by their runs."""
    wait_until(lambda: len(line.agents()) >= count, f"{count} agents at work")
    return line.agents()


SLOW_S = 150.0
"""Seconds in which a run of a real agent has ended, on a machine that is full."""


def wait_for_ends(line: Line, count: int) -> list[dict[str, Any]]:
    """Wait until so many runs have ended, and return all."""
    what = f"{count} runs that have ended"
    wait_until(lambda: sum(run["outcome"] is not None for run in runs(line)) >= count, what, patience=SLOW_S)
    return runs(line)
