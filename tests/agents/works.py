"""A repository, a piece of work in it, and the program that an agent would start on it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from covey.agents.agent import Agent, Assignment
from covey.core.fleet.launches import Launch

PATIENCE = 60


@dataclass(frozen=True)
class Place:
    """A git repository with one commit, and an environment in which nothing of this machine counts."""

    worktree: Path
    env: dict[str, str]

    def git(self, *words: str) -> str:
        """Run git, which must succeed, and return what it prints."""
        return subprocess.run(
            ["git", *words], cwd=self.worktree, env=self.env, check=True, capture_output=True, text=True
        ).stdout.strip()

    def work(self, body: str, *, title: str = "Paint the shed", **env: str) -> Assignment:
        """Return a task with a body, its files written."""
        files = self.worktree.parent
        (files / "body").write_text(body)
        (files / "prompt").write_text(f"Do this.\n\n{body}")
        return Assignment(
            run="R-1",
            session="ada",
            task="T-1",
            title=title,
            worktree=str(self.worktree),
            prompt=f"Do this.\n\n{body}",
            prompt_file=str(files / "prompt"),
            body_file=str(files / "body"),
            env={**self.env, **env},
        )

    def started(self, launch: Launch) -> subprocess.Popen[str]:
        """Start a program as a runner would."""
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

    def played(self, agent: Agent, body: str, answers: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Let an agent work on a body until it ends, with all answers typed beforehand."""
        launch = agent.launch(self.work(body, **env))
        with self.started(launch) as process:
            said, complaint = process.communicate(answers, timeout=PATIENCE)
        return subprocess.CompletedProcess(launch.argv, process.returncode, said, complaint)


def place(folder: Path) -> Place:
    """Make a place to work in."""
    home, worktree = folder / "home", folder / "shed"
    home.mkdir()
    worktree.mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "ada",
        "GIT_AUTHOR_EMAIL": "ada@agents.local",
        "GIT_COMMITTER_NAME": "ada",
        "GIT_COMMITTER_EMAIL": "ada@agents.local",
    }
    made = Place(worktree, env)
    made.git("init", "--quiet", "--initial-branch", "main")
    (worktree / "shed.txt").write_text("walls\nroof\ndoor\n")
    made.git("add", ".")
    made.git("commit", "--quiet", "--message", "Build a shed")
    return made
