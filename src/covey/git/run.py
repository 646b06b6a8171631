"""One door to the git program, with a bounded time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from covey.errors import ToolFailed

PATIENCE = 60.0
_GRACE = 3.0
"""Seconds that git has, when it is told to end, to take its lock files away."""
_KEPT = (
    "GIT_SSH", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_ALLOW_PROTOCOL", "GIT_ASKPASS", "GIT_TERMINAL_PROMPT",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM", "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)  # fmt: skip
"""How git reaches other hosts and finds its settings. The rest would turn our calls to another repository or index:
whoever starts us from a hook hands it down."""
_AS_IT_IS = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
"""What lands is what commits hold: refs/replace and grafts would show a gate something else in its place."""


def git(
    *words: str,
    at: Path,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    patience: float = PATIENCE,
    keep: tuple[int, ...] = (),
) -> bytes:
    """Run git in a folder and return what it prints; what it complains of becomes the error."""
    done = try_git(*words, at=at, stdin=stdin, env=env, patience=patience, keep=keep)
    if done.returncode != 0:
        raise ToolFailed(f"git {_verb(words)} failed: {complaint(done)}.")
    return done.stdout


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what git complained of, without a full stop: its first error, since advice may follow that."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    first = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[-1] if lines else "")
    said = first.removeprefix("fatal: ").removeprefix("error: ").strip().rstrip(".")
    return said or f"exit code {done.returncode}"


def inherited_env() -> dict[str, str]:
    """Return our own environment without what would turn git away from the repository that we name."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}


def try_git(
    *words: str,
    at: Path,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    patience: float = PATIENCE,
    keep: tuple[int, ...] = (),
    apart: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder and return how it ended.

    It inherits the descriptors to `keep`, so that their locks outlive us with it. `apart` from our terminal it can
    ask nobody, and whatever it started ends with it.
    """
    try:
        with subprocess.Popen(
            ["git", *words],
            cwd=at,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**inherited_env(), **_AS_IT_IS, "LC_ALL": "C", **(env or {})},
            pass_fds=keep,
            start_new_session=apart,
        ) as process:
            try:
                out, complaints = process.communicate(stdin, timeout=patience)
            except BaseException:
                _end(process, whole_group=apart)
                raise
            return subprocess.CompletedProcess(process.args, process.returncode, out, complaints)
    except FileNotFoundError as error:
        if not at.is_dir():
            raise ToolFailed(f"There is no folder {at}.") from error
        raise ToolFailed("git is not installed, or not on the PATH.", hint="Install git.") from error
    except subprocess.TimeoutExpired as error:
        raise ToolFailed(f"git {_verb(words)} did not end within {patience:g} s.") from error


def first_of(
    *words: str, at: Path, most: int, env: dict[str, str] | None = None, patience: float = PATIENCE
) -> tuple[bytes, bool]:
    """Run git, return at most so many bytes of what it prints, and say whether that is all; then it is ended."""
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            ["git", *words],
            cwd=at,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={**inherited_env(), **_AS_IT_IS, "LC_ALL": "C", **(env or {})},
        ) as process,
    ):
        assert process.stdout is not None
        timer = threading.Timer(patience, process.terminate)
        timer.start()
        try:
            printed = process.stdout.read(most + 1)
            if len(printed) > most:
                _end(process, whole_group=False)
        except BaseException:
            _end(process, whole_group=False)
            raise
        finally:
            timer.cancel()
        if len(printed) <= most and process.wait() != 0:
            complaints.seek(0)
            done = subprocess.CompletedProcess(process.args, process.returncode, b"", complaints.read())
            raise ToolFailed(f"git {_verb(words)} failed: {complaint(done)}.")
        return printed[:most], len(printed) <= most


def _verb(words: tuple[str, ...]) -> str:
    """Return what git was asked to do: the first word that is not a setting."""
    while len(words) > 2 and words[0] == "-c":
        words = words[2:]
    return words[0]


def _end(process: subprocess.Popen[bytes], *, whole_group: bool) -> None:
    """End git, kindly first: killed at once, it would leave its lock files behind."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    process.kill()
    if whole_group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
