"""One door to the git program, with a bounded time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from covey.errors import ToolFailed

PATIENCE = 60.0


def git(
    *words: str,
    at: Path,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    patience: float = PATIENCE,
) -> bytes:
    """Run git in a folder and return what it prints; what it complains of becomes the error."""
    done = try_git(*words, at=at, stdin=stdin, env=env, patience=patience)
    if done.returncode != 0:
        raise ToolFailed(f"git {words[0]} failed: {complaint(done)}.")
    return done.stdout


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what git complained of, without a full stop: its first error, since advice may follow that."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    first = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[-1] if lines else "")
    said = first.removeprefix("fatal: ").removeprefix("error: ").strip().rstrip(".")
    return said or f"exit code {done.returncode}"


def try_git(
    *words: str,
    at: Path,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    patience: float = PATIENCE,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder and return how it ended."""
    try:
        return subprocess.run(
            ["git", *words],
            cwd=at,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            check=False,
            env={**os.environ, "LC_ALL": "C", **(env or {})},
        )
    except FileNotFoundError as error:
        if not at.is_dir():
            raise ToolFailed(f"There is no folder {at}.") from error
        raise ToolFailed("git is not installed, or not on the PATH.", hint="Install git.") from error
    except subprocess.TimeoutExpired as error:
        raise ToolFailed(f"git {words[0]} did not end within {patience:g} s.") from error
