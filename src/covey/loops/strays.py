"""What a gate that nothing holds back may have changed outside of its worktree: the user's checkout, refs, settings."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from covey.git.looks import NO_SUBMODULES
from covey.git.looks import look as look_at
from covey.git.project import Project
from covey.git.run import try_git
from covey.values import dataclass

_OURS = ("refs/heads/covey/", "refs/covey/", "refs/remotes/", "refs/stash")
_MOST = 5
"""Places that are named."""


@dataclass(frozen=True)
class Picture:
    """How all looked that a gate has no business with."""

    files: Mapping[str, tuple[int, int]]
    """What is not committed in the user's checkout, with its time and size."""
    refs: Mapping[str, str]
    settings: str


def look(project: Project, target: str) -> Picture:
    """Look at what is not the gate's; branches of covey's and the one on which work lands move by themselves."""
    listed = try_git("for-each-ref", "--format=%(objectname) %(refname)", at=project.common).stdout.decode(
        errors="surrogateescape"
    )
    pairs = (line.split(" ", 1) for line in listed.splitlines())
    refs = {name: commit for commit, name in pairs if not name.startswith(_OURS) and name != f"refs/heads/{target}"}
    return Picture({} if project.bare else _files(project), refs, _settings(project.common))


def strayed(before: Picture, after: Picture) -> tuple[str, ...]:
    """Return what was changed between two looks, in words."""
    files = [name for name in {**before.files, **after.files} if before.files.get(name) != after.files.get(name)]
    refs = [name for name in {**before.refs, **after.refs} if before.refs.get(name) != after.refs.get(name)]
    told = [f"{name} in your checkout" for name in sorted(files)] + sorted(refs)
    told += ["git's settings or hooks"] if before.settings != after.settings else []
    return tuple(told[:_MOST] + ([f"{len(told) - _MOST} more"] if len(told) > _MOST else []))


def _files(project: Project) -> dict[str, tuple[int, int]]:
    if not (project.common / "index").exists():
        return {}
    with look_at(project, project.root) as seen:
        asked = seen.ask("status", "--porcelain", "-z", "--no-renames", "-uall", NO_SUBMODULES, patience=300)
    names = [entry[3:] for entry in asked.stdout.decode(errors="surrogateescape").split("\0") if entry]
    return {name: _stamp(project.root / name) for name in names}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
    except OSError:
        return 0, -1
    return found.st_mtime_ns, found.st_size


def _settings(common: Path) -> str:
    """Return a hash of the repository's settings and the names and times of its hooks."""
    whole = hashlib.sha256()
    try:
        whole.update((common / "config").read_bytes())
        hooks = sorted(os.scandir(common / "hooks"), key=lambda entry: entry.name)
        whole.update(repr([(hook.name, hook.stat(follow_symlinks=False).st_mtime_ns) for hook in hooks]).encode())
    except OSError as error:
        whole.update(repr(error.errno).encode())
    return whole.hexdigest()
