"""A shell in a repository: runs the real command as a real process."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import msgspec

from covey.app.verbs import VERBS
from tests.worlds.forked import run_covey

PATIENCE = 120


def clean_environment(home: Path) -> dict[str, str]:
    """Return an environment in which nothing of this machine's settings counts."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COVEY_", "GIT_", "PYTHONDONTWRITE", "XDG_")) and name not in ("NO_COLOR", "COLUMNS")
    }
    return kept | {
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Test",
        "GIT_AUTHOR_EMAIL": "test@example.org",
        "GIT_COMMITTER_NAME": "Test",
        "GIT_COMMITTER_EMAIL": "test@example.org",
    }


@dataclass
class Shell:
    """Somewhere to type `covey` and `git`."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str, stdin: str | None = None, env: dict[str, str] | None = None) -> CompletedProcess[str]:
        """Run covey and return how it ended."""
        return run_covey(words, cwd=self.folder, env=self.env | (env or {}), stdin=stdin, timeout=PATIENCE)

    def ok(self, *words: str, stdin: str | None = None, env: dict[str, str] | None = None) -> str:
        """Run covey, which must succeed, and return what it prints."""
        done = self.run(*words, stdin=stdin, env=env)
        assert done.returncode == 0, (words, done.returncode, done.stderr)
        assert done.stderr == "", (words, done.stderr)
        return done.stdout

    def json(self, *words: str, stdin: str | None = None) -> Any:
        """Run covey with --json, which must succeed, and return what it prints."""
        return json.loads(self.ok(*words, "--json", stdin=stdin))

    def verb(self, name: str, *words: str) -> Any:
        """Run covey with --json and hold what it prints against the shape that REST promises for a verb."""
        printed = self.ok(*words, "--json").strip()
        shaped = msgspec.json.decode(printed, type=VERBS[name].answers)
        assert json.loads(msgspec.json.encode(shaped)) == json.loads(printed)
        return json.loads(printed)

    def fails(self, code: int, *words: str, stdin: str | None = None, env: dict[str, str] | None = None) -> str:
        """Run covey, which must fail with this code and one sentence, and return what it complains of."""
        done = self.run(*words, stdin=stdin, env=env)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        assert done.stdout == ""
        assert done.stderr.startswith("covey: ")
        assert "Traceback" not in done.stderr
        return done.stderr

    def git(self, *words: str) -> str:
        """Run git, which must succeed, and return what it prints."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def at(self, folder: Path) -> Shell:
        """Return a shell in another folder."""
        return Shell(folder, self.env)

    @property
    def state(self) -> Path:
        """Return the folder of covey's own files."""
        return Path(self.git("rev-parse", "--path-format=absolute", "--git-common-dir")) / "covey"
