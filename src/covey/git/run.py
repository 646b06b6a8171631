"""One door to the git program, with a bounded time.

Each call names the repository that it means: a session may rewrite whatever git would find it by, in its worktree and
in the shared folder. And no call runs a program that a single setting could name.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from covey.errors import DidNotRun, ToolFailed

if TYPE_CHECKING:
    import subprocess

K = TypeVar("K")
N = TypeVar("N")
V = TypeVar("V")
GIT_TIMEOUT_S = 60.0
_GRACE_S = 3.0
"""Seconds that git has, when it is told to end, to take its lock files away."""
_KEPT_VARIABLES = (
    "GIT_SSH", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_ALLOW_PROTOCOL", "GIT_ASKPASS", "GIT_TERMINAL_PROMPT",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM", "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)  # fmt: skip
"""How git reaches other hosts and finds its settings. The rest would turn our calls to another repository or index:
whoever starts us from a hook hands it down."""
_AS_IT_IS = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
"""What lands is what commits hold: refs/replace and grafts would show a gate something else in its place."""
NO_PROGRAMS = {
    "core.hooksPath": os.devnull, "core.fsmonitor": "false", "core.editor": ":", "sequence.editor": ":",
    "core.pager": "cat", "core.alternateRefsCommand": "true", "log.showSignature": "false",
    "protocol.ext.allow": "never", "submodule.recurse": "false", "gc.auto": "0", "maintenance.auto": "false",
}  # fmt: skip
"""Settings that would let git run a program beside it, or work on its own account: off, whatever the files say."""
_BARE = re.compile(r"^[ \t]*bare[ \t]*(=[ \t]*(true|yes|on|1)[ \t]*)?$", re.IGNORECASE | re.MULTILINE)
_NUMBERED = re.compile(r"GIT_CONFIG_(COUNT|KEY_\d+|VALUE_\d+)")


def git(
    *words: str,
    at: Path,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    patience: float = GIT_TIMEOUT_S,
    discover: bool = False,
) -> bytes:
    """Run git in a folder and return what it prints; what it complains of becomes the error."""
    done = try_git(*words, at=at, stdin=stdin, env=env, patience=patience, discover=discover)
    return checked(_verb(words), done)


def checked(verb: str, done: subprocess.CompletedProcess[bytes]) -> bytes:
    """Return what a git that has ended printed; what it complained of becomes the error."""
    if done.returncode != 0:
        raise ToolFailed(f"git {verb} failed: {complaint(done)}.")
    return done.stdout


def without_unreadable(read: Callable[[Sequence[K]], dict[N, V]], wanted: Sequence[K]) -> dict[N, V]:
    """Return what `read` finds for all at once; where git fails on that, for each half: one must not spoil another."""
    try:
        return read(wanted)
    except DidNotRun:
        raise
    except ToolFailed:
        if len(wanted) < 2:
            return {}
    half = len(wanted) // 2
    return without_unreadable(read, wanted[:half]) | without_unreadable(read, wanted[half:])


def read_config(*words: str, at: Path, env: dict[str, str] | None = None) -> list[tuple[str, str | None]]:
    """Return the settings that `git config --get-regexp` finds, each with its value; None where it has none."""
    printed = try_git("config", "-z", *words, at=at, env=env).stdout.decode(errors="surrogateescape")
    pairs = (entry.partition("\n") for entry in printed.split("\0") if entry)
    return [(key, value if sep else None) for key, sep, value in pairs]


def quoted(text: str) -> str:
    """Return a text in double quotes, as git's settings and lists of folders take it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what git complained of, without a full stop: its first error, since advice may follow that."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    first = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[-1] if lines else "")
    said = first.removeprefix("fatal: ").removeprefix("error: ").strip().rstrip(".")
    return said or f"exit code {done.returncode}"


def inherited_env() -> dict[str, str]:
    """Return our own environment without what would turn git away from the repository that we name."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT_VARIABLES)
    }


def settings(values: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that gives git these settings for one command, over what the user's files say."""
    pairs = {
        f"GIT_CONFIG_{part}_{number}": text
        for number, pair in enumerate(values.items())
        for part, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(len(values)), **pairs}


def named_env(git_dir: Path, work_tree: Path | None = None) -> dict[str, str]:
    """Return what names a git folder, its repository and its files, so that git believes no file about where they are.

    The folder of a linked worktree lies in `worktrees` of its repository; its own `commondir` is not asked.
    """
    common = git_dir.parent.parent if _is_entry(git_dir) else git_dir
    env = {"GIT_DIR": str(git_dir), "GIT_COMMON_DIR": str(common)}
    if work_tree is not None:
        return {**env, "GIT_WORK_TREE": str(work_tree)}
    # With both named, git does not heed core.bare, and takes the folder that it runs in for the files.
    return {**env, "GIT_IMPLICIT_WORK_TREE": "0"} if _is_bare(common) else env


@functools.lru_cache(maxsize=64)
def _is_bare(common: Path) -> bool:
    try:
        return _BARE.search((common / "config").read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def _is_entry(place: Path) -> bool:
    """Say whether a folder is where a repository keeps what it knows of a linked worktree."""
    return place.parent.name == "worktrees" and _is_repository(place.parent.parent)


def _is_repository(place: Path) -> bool:
    return (place / "HEAD").exists() and (place / "objects").is_dir()


def environment(at: Path, env: Mapping[str, str], *, discover: bool = False, asks: bool = False) -> dict[str, str]:
    """Return the environment of one git call: the repository by name, and our settings below those of the call.

    What `asks` for settings runs nothing, and is told those of the files.
    """
    if "GIT_DIR" in env:
        work_tree = env.get("GIT_WORK_TREE")
        named = named_env(Path(env["GIT_DIR"]), Path(work_tree) if work_tree else None)
    elif discover:
        named = {}
    elif _is_repository(at) or ((at / "HEAD").exists() and _is_entry(at)):
        named = named_env(at)
    elif not at.is_dir():
        raise ToolFailed(f"There is no folder {at}.")
    else:
        raise ToolFailed(f"{at} is not a repository.")
    count = int(env.get("GIT_CONFIG_COUNT", "0"))
    own = {env[f"GIT_CONFIG_KEY_{number}"]: env[f"GIT_CONFIG_VALUE_{number}"] for number in range(count)}
    rest = {name: value for name, value in env.items() if not _NUMBERED.fullmatch(name)}
    ours = settings(own if asks else {**NO_PROGRAMS, **own})
    return {**inherited_env(), **_AS_IT_IS, "LC_ALL": "C", **named, **rest, **ours}


def try_git(
    *words: str,
    at: Path,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    patience: float = GIT_TIMEOUT_S,
    keep: tuple[int, ...] = (),
    apart: bool = False,
    discover: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder and return how it ended.

    The folder is a repository's own, or `env` names that; only where a person stands, git may `discover` it. It
    inherits the descriptors to `keep`, so that their locks outlive us with it. `apart` from our terminal it can ask
    nobody, and whatever it started ends with it.
    """
    import subprocess  # most commands run no git, and all of them start with this module

    try:
        with subprocess.Popen(
            ["git", *words],
            cwd=at,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(at, env or {}, discover=discover, asks=_verb(words) == "config"),
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
        raise DidNotRun("git is not installed, or not on the PATH.", hint="Install git.") from error
    except subprocess.TimeoutExpired as error:
        raise DidNotRun(f"git {_verb(words)} did not end within {patience:g} s.") from error


def first_of(
    *words: str, at: Path, most: int, env: dict[str, str] | None = None, patience: float = GIT_TIMEOUT_S
) -> tuple[bytes, bool]:
    """Run git, return at most so many bytes of what it prints, and say whether that is all; then it is ended."""
    import subprocess  # as above
    import tempfile

    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            ["git", *words],
            cwd=at,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=environment(at, env or {}),
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
            checked(_verb(words), subprocess.CompletedProcess((), process.returncode, b"", complaints.read()))
        return printed[:most], len(printed) <= most


def _verb(words: tuple[str, ...]) -> str:
    """Return what git was asked to do: the first word that is not a setting."""
    while len(words) > 2 and words[0] == "-c":
        words = words[2:]
    return words[0]


def _end(process: subprocess.Popen[bytes], *, whole_group: bool) -> None:
    """End git, kindly first: killed at once, it would leave its lock files behind."""
    import subprocess  # as above

    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    process.kill()
    if whole_group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
