"""One run of a real agent program without covey; as a program of its own, also in a network that leads nowhere."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.model.environment import AIDER_MODEL, agent_environment, program
from tests.model.script import committing
from tests.model.server import ModelServer

PATIENCE = 120.0
"""Seconds after which a run that never ends is a failure."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "claude": ("-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"),
    "codex": ("exec", "--json"),
    "gemini": ("--output-format", "stream-json", "--approval-mode", "yolo", "-p"),
    "opencode": ("run", "--format", "json"),
    "aider": (
        *("--model", AIDER_MODEL, "--edit-format", "diff", "--yes-always", "--no-stream", "--no-pretty"),
        *("--map-tokens", "0", "--no-gitignore", "--message"),
    ),
}
"""What each is called with before the prompt."""


def make_repository(folder: Path, environment: Mapping[str, str]) -> Path:
    """Make a repository with one commit, whose identity stands in it: Gemini's shell hides the one of the home."""
    folder.mkdir(parents=True)
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Agent"],
        ["config", "user.email", "agent@example.com"],
        ["commit", "-q", "--allow-empty", "-m", "Begin"],
    ):
        subprocess.run(["git", *words], cwd=folder, env=dict(environment), check=True)
    return folder


def run_agent(
    name: str, prompt: str, repository: Path, environment: Mapping[str, str], *more: str
) -> subprocess.CompletedProcess[str]:
    """Run an agent on one prompt to its end; `more` are words before the prompt."""
    command = [str(program(name)), *more, *WORDS[name], prompt]
    if name == "codex":  # its words are those of a subcommand
        command = [str(program(name)), *WORDS[name], *more, prompt]
    process = subprocess.Popen(
        command,
        cwd=repository,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def lines(run: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    """Return the events that an agent printed, one a line."""
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def main(name: str, folder: Path) -> None:
    """Serve the model and run an agent in this network, and print what became of it."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with ModelServer() as model:
        environment = agent_environment(folder / "home", model.url())
        repository = make_repository(folder / "repository", environment)
        prompt = model.add("sealed", committing("hello.txt", "hello\n", "Add hello"))
        run = run_agent(name, prompt, repository, environment)
        print(json.dumps({"returned": run.returncode, "said": run.stdout[-2000:], "turns": len(model.turns("sealed"))}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
