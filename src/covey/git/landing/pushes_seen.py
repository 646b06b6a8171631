"""What a session has pushed: told by git before it does, and seen afterwards in reflogs and at the remotes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from covey.core.people.commands import pushes
from covey.core.people.commands.pushes import Push
from covey.errors import ToolFailed
from covey.git import refs
from covey.git.candidates.candidates import is_held
from covey.git.identity import session_author
from covey.git.project import Project
from covey.git.run import try_git
from covey.git.worktrees.upstream import silent_env

BY_PUSH = "update by push"
"""What git notes in the reflog of a remote's branch that it has pushed to."""
REMOTES = "refs/remotes/"
REMOTE_TIMEOUT_S = 10.0
"""Seconds in which a remote has to tell its refs."""
MAX_SOUGHT_COMMITS = 1000
"""Commits of a run that are looked for at the remotes, the newest."""


def about_to(project: Project, remote: str, url: str, told: str) -> Push:
    """Return what git is about to push, as it tells `pre-push`.

    The name of a remote counts only where the repository's own settings have that address for it: a session may give
    any name to any address for one command.
    """
    asked = try_git("remote", "get-url", "--push", "--all", "--", remote, at=project.common)
    addresses = asked.stdout.decode(errors="replace").splitlines() if asked.returncode == 0 else []
    name = remote if remote != url and url in addresses else pushes.address(url)
    found: list[str] = []
    for line in told.splitlines():
        _, new, ref, old = line.split(" ")
        deleted = not new.strip("0")
        forced = bool(old.strip("0")) and not deleted and not is_held(project, old, new)
        found.append(pushes.ref(ref, forced=forced, deleted=deleted))
    return Push(name, tuple(found))


def noted(project: Project, session: str, since: float) -> list[Push]:
    """Return what a session has pushed since a time, as the reflogs of the remotes' branches tell."""
    found: dict[str, list[str]] = {}
    for name, move in _pushes_noted(project):
        if move.email == session_author(session)[1] and move.at >= int(since):
            remote, _, branch = name.removeprefix(REMOTES).partition("/")
            forced = bool(move.old.strip("0")) and not is_held(project, move.old, move.new)
            found.setdefault(remote, []).append(pushes.ref(branch, forced=forced))
    return [Push(remote, tuple(dict.fromkeys(branches))) for remote, branches in found.items()]


def seen(project: Project, remotes: Iterable[str], commits: set[str]) -> list[Push]:
    """Return which refs of remotes are at one of some commits; a remote that is away has none."""
    theirs = {(name, move.new) for name, move in _pushes_noted(project) if not refs.is_of_a_session(move)}
    env = silent_env(project)
    found: list[Push] = []
    for remote in remotes:
        names = [
            pushes.ref(name)
            for commit, name in _listed(project, remote, env)
            if commit in commits
            # What the person pushed themselves is theirs.
            and (f"{REMOTES}{remote}/{name.removeprefix(pushes.BRANCHES)}", commit) not in theirs
        ]
        found += [Push(remote, tuple(names))] if names else []
    return found


def made(project: Project, base: str, head: str, main: str) -> set[str]:
    """Return the commits of a branch that neither its beginning nor main has, the newest of very many."""
    words = ("rev-list", f"--max-count={MAX_SOUGHT_COMMITS}", head, f"^{base}", f"^refs/heads/{main}", "--")
    asked = try_git(*words, at=project.common)
    return set(asked.stdout.decode().split()) if asked.returncode == 0 else set()


def _pushes_noted(project: Project) -> Iterator[tuple[str, refs.RefMove]]:
    top = project.common / "logs" / REMOTES
    for folder, _, names in os.walk(top):
        for name in names:
            path = Path(folder) / name
            for move in refs.moves(path):
                if move.message == BY_PUSH:
                    yield f"{REMOTES}{path.relative_to(top)}", move


def _listed(project: Project, remote: str, env: dict[str, str]) -> list[tuple[str, str]]:
    try:
        asked = try_git(
            "ls-remote", "--refs", "--", remote, at=project.common, env=env, patience=REMOTE_TIMEOUT_S, apart=True
        )
    except ToolFailed:
        return []
    lines = (line.split("\t") for line in asked.stdout.decode(errors="replace").splitlines())
    return [(pair[0], pair[1]) for pair in lines if len(pair) == 2] if asked.returncode == 0 else []
