"""A linked worktree of a scratch repository, and real agent programs at work in it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.agents.agent import Agent, Assignment
from covey.core.fleet.launches import Launch
from covey.core.fleet.signals import Signal
from tests.model.environment import agent_environment, program

PATIENCE = 120
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "ada"), ("EMAIL", "ada@agents.local"))
}


def assignment(**more: Any) -> Assignment:
    """Return a piece of work in no real place."""
    fields: dict[str, Any] = {
        "run": "R-1",
        "session": "ada",
        "task": "T-1",
        "title": "Add a roof",
        "worktree": "/home/ada/shed.worktrees/ada",
        "prompt": "Add a roof.",
        "prompt_file": "/home/ada/runs/R-1/prompt.md",
        "body_file": "/home/ada/runs/R-1/body",
        "folder": "/home/ada/runs/R-1",
        "git": "/home/ada/shed/.git",
        "env": {"HOME": "/home/ada", "PATH": "/usr/bin"},
    }
    return Assignment(**{**fields, **more})


@dataclass(frozen=True)
class Done:
    """What came of a program: what it let us know, and what it wrote."""

    signals: list[Signal]
    code: int
    output: str
    complaints: str


@dataclass(frozen=True)
class Linked:
    """A worktree, as sessions have one: its commits go to the git folder of another checkout."""

    worktree: Path
    common: Path
    env: Mapping[str, str]

    def git(self, *words: str) -> str:
        """Run git in the worktree, which must succeed, and return what it prints."""
        return subprocess.run(
            ["git", *words], cwd=self.worktree, env=dict(self.env), check=True, capture_output=True, text=True
        ).stdout.strip()

    def work(self, agent: Agent, prompt: str, **more: Any) -> Assignment:
        """Return a piece of work, to be done by a real program."""
        folder = self.worktree.parent / "run"
        folder.mkdir(exist_ok=True)
        (folder / "prompt.md").write_text(prompt)
        (folder / "body").write_text(prompt)
        about: dict[str, Any] = {"env": dict(self.env), "program": str(program(agent.name)), "folder": str(folder)}
        return Assignment(
            run="R-1",
            session="ada",
            task="T-1",
            title="Add a roof",
            worktree=str(self.worktree),
            prompt=prompt,
            prompt_file=str(folder / "prompt.md"),
            body_file=str(folder / "body"),
            git=str(self.common),
            **{**about, **more},
        )

    def done(self, agent: Agent, work: Assignment) -> Done:
        """Let a real program do a piece of work until it ends."""
        launch = agent.launch(work)
        with started(launch) as process:
            try:
                output, complaints = process.communicate(launch.stdin or "", timeout=PATIENCE)
            finally:
                process.kill()
        signals = [signal for line in output.splitlines() for signal in agent.read(line)]
        return Done(signals, process.returncode, output, complaints)


def started(launch: Launch) -> subprocess.Popen[str]:
    """Start a program as a runner would, its files written."""
    for path, text in launch.files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    return subprocess.Popen(
        launch.argv,
        cwd=launch.cwd,
        env=dict(launch.env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def linked(folder: Path, url: str) -> Linked:
    """Make a repository with a worktree, and an environment in which agents reach only the model at `url`."""
    repository, worktree = folder / "shed", folder / "shed.worktrees" / "ada"
    repository.mkdir()
    env = {**agent_environment(folder / "home", url), **IDENTITY}
    made = Linked(repository, repository / ".git", env)
    made.git("init", "--quiet", "--initial-branch", "main")
    (repository / "walls.txt").write_text("white\n")
    made.git("add", ".")
    made.git("commit", "--quiet", "--message", "Build walls")
    made.git("worktree", "add", "--quiet", "-b", "covey/T-1", str(worktree))
    (repository / ".git" / "covey").mkdir()  # as in every project of covey; a sandbox binds it
    return Linked(worktree, repository / ".git", env)
