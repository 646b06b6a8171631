"""Pushing: one commit goes to one branch of a remote, never by force and without asking anybody anything.

The user's own pre-push hook runs, without a terminal: git-lfs sends what it keeps by it, and a remote without that
would be broken. A hook that says no, or does not end, is a push that failed.
"""

from __future__ import annotations

import time
from subprocess import CompletedProcess

from covey.errors import ToolFailed
from covey.git import refs
from covey.git.candidates.candidates import is_ancestor, is_held, resolve
from covey.git.guard.guard import read_settings
from covey.git.identity import FETCH_ONLY, FETCHED_MAIN
from covey.git.project import Project
from covey.git.run import complaint, settings, try_git
from covey.git.worktrees.upstream import silent_env
from covey.values import dataclass

PUSH_TIMEOUT_S = 120.0
MIN_TIMEOUT_S = 1.0
MAX_SAID_CHARS = 300
"""Characters of what a remote says that are told."""


@dataclass(frozen=True)
class Pushed:
    """The remote's branch holds the commit."""

    commit: str


@dataclass(frozen=True)
class Behind:
    """The remote's branch is at a commit that ours lacks; it has been fetched."""

    commit: str


@dataclass(frozen=True)
class Failed:
    """The remote's branch is where it was, as far as we know, for this reason."""

    why: str


Outcome = Pushed | Behind | Failed


def push(project: Project, remote: str, branch: str, commit: str, expected: str | None = None) -> Outcome:
    """Bring a branch of a remote forward to `commit`; pushing twice is pushing once.

    `expected` is where we last knew the branch: when somebody has moved it back from there, it is left alone.
    """
    deadline = time.monotonic() + PUSH_TIMEOUT_S
    try:
        there = _look(project, remote, branch, deadline)
        if there == commit:
            return Pushed(commit)
        if there is not None and not is_held(project, there, commit):
            return _fetch(project, remote, branch, commit, deadline)
        if expected is not None and there != expected and (there is None or is_ancestor(project, there, expected)):
            where = "deleted" if there is None else f"moved back to {there[:12]}"
            return Failed(f"Somebody has {where} {branch} on {remote}, where it was at {expected[:12]}.")
        words = ("push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no", "--no-signed", "--", remote)
        done = _ask(project, (*words, f"{commit}:refs/heads/{branch}"), deadline)
        if done.returncode == 0:
            return Pushed(commit)
        if b"(fetch first)" in done.stdout or b"(non-fast-forward)" in done.stdout or b"cannot lock ref" in done.stdout:
            return _fetch(project, remote, branch, commit, deadline)
        return Failed(
            f"{remote} did not take {branch}: {_refusal(done.stdout) or complaint(done)}.{_said(done.stderr)}"
        )
    except ToolFailed as error:
        return Failed(f"{branch} could not be pushed to {remote}: {error.message}")


def _look(project: Project, remote: str, branch: str, deadline: float) -> str | None:
    """Return where a branch of a remote is."""
    done = _ask(project, ("ls-remote", "--refs", "--", remote, f"refs/heads/{branch}"), deadline)
    if done.returncode != 0:
        raise ToolFailed(f"{complaint(done)}.")
    lines = (line.split("\t") for line in done.stdout.decode(errors="replace").splitlines())
    return next((commit for commit, name in lines if name == f"refs/heads/{branch}"), None)


def _fetch(project: Project, remote: str, branch: str, commit: str, deadline: float) -> Outcome:
    words = (*FETCH_ONLY, "--update-head-ok", "--", remote, f"+refs/heads/{branch}:{FETCHED_MAIN}")
    refs.untwist(project, FETCHED_MAIN)  # or what it stands for would be overwritten
    done = _ask(project, words, deadline)
    there = resolve(project, FETCHED_MAIN) if done.returncode == 0 else None
    if there is None:
        return Failed(f"{branch} on {remote} has what we lack, and could not be fetched: {complaint(done)}.")
    if is_ancestor(project, there, commit):
        return Failed(f"{remote} did not take {branch}, though it is behind ours: somebody else pushed meanwhile.")
    return Behind(there)


def _ask(project: Project, words: tuple[str, ...], deadline: float) -> CompletedProcess[bytes]:
    left = max(MIN_TIMEOUT_S, deadline - time.monotonic())
    # Where the user stands when they push, and without git's folder by name: their hook may look into others.
    hooks = {"core.hooksPath": str(read_settings(project).hooks)} if words[0] == "push" else {}
    env = silent_env(project) | settings(hooks)
    return try_git(*words, at=project.root, env=env, patience=left, apart=True, discover=True)


def _refusal(printed: bytes) -> str:
    """Return why the remote refused, from the line that begins with an exclamation mark."""
    lines = [line.split("\t") for line in printed.decode(errors="replace").splitlines() if line.startswith("!")]
    return lines[0][-1] if lines else ""


def _said(printed: bytes) -> str:
    """Return what the remote itself, such as a hook of it, said of that, as another sentence."""
    lines = (line.removeprefix("remote:").strip() for line in printed.decode(errors="replace").splitlines()
             if line.startswith("remote:"))  # fmt: skip
    told = " ".join(line for line in lines if line and not line.startswith("error: hook declined"))
    return f' It says: "{told[:MAX_SAID_CHARS]}"' if told else ""
