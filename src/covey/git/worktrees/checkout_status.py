"""Looks: how a checkout differs from its commit, told by a git that believes nothing that lies in it.

A session can write all that git reads of its worktree: the `.git` file, `commondir`, `config.worktree`, and the
settings that name filters. So git gets a folder of covey's own over the project's objects, as a rescue does, and of
the worktree only its files and its index. Filters that the user's files need are those that were configured when this
process first asked: whatever is added later may be a session's.
"""

from __future__ import annotations

import functools
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from covey.errors import ToolFailed
from covey.git import entries
from covey.git.identity import Replaced, read_identity, why_not, why_not_entry
from covey.git.project import Project
from covey.git.rescue_git import private_git
from covey.git.run import complaint, settings, try_git
from covey.values import dataclass

_FILES = (
    r"^(core\.(excludesfile|attributesfile|autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode"
    r"|checkstat|trustctime)|extensions\.objectformat|filter\..*)$"
)
"""Settings that say how files on disk become what git keeps."""
NO_SUBMODULES = "--ignore-submodules=dirty"
"""In a repository within the checkout git would run another git, by the settings of that one."""


@dataclass(frozen=True)
class Look:
    """A checkout, seen from a git folder of covey's own."""

    checkout: Path
    env: dict[str, str]

    def ask(self, *words: str, patience: float, apart: bool = False) -> CompletedProcess[bytes]:
        """Run git over the checkout, which changes nothing there, and return how it ended."""
        return try_git(*words, at=self.checkout, env=self.env, patience=patience, apart=apart)

    def run(self, *words: str, patience: float) -> bytes:
        """Run git over the checkout, which must succeed, and return what it prints."""
        done = self.ask(*words, patience=patience)
        if done.returncode != 0:
            raise ToolFailed(f"git {words[0]} failed: {complaint(done)}.")
        return done.stdout


@contextmanager
def look(project: Project, checkout: Path) -> Iterator[Look]:
    """Look at a checkout of the project, of a session or of the user."""
    own = entry_of(project, checkout)
    if own is None or not (stat.S_ISREG(mode := _mode(own / "index")) or mode == 0):
        raise ToolFailed(f"git has no index of {checkout}.")
    taken = dict(settings_of_files(project.common))
    with private_git(project, checkout, taken) as private:
        head = _head(project, own)
        if head is not None:
            (private.folder / "HEAD").write_text(f"{head}\n")
        for shared in own.glob("sharedindex.*"):
            os.symlink(shared, private.folder / shared.name)
        own_settings = {key: value for key, value in taken.items() if not key.startswith("extensions.")}
        env = settings({**own_settings, "core.untrackedCache": "false", "status.showUntrackedFiles": "all"})
        env |= {
            "GIT_DIR": str(private.folder), "GIT_COMMON_DIR": str(private.folder), "GIT_WORK_TREE": str(checkout),
            "GIT_INDEX_FILE": str(own / "index"), "GIT_OBJECT_DIRECTORY": str(project.common / "objects"),
            "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0",
        }  # fmt: skip
        yield Look(checkout, env)


def entry_of(project: Project, checkout: Path) -> Path | None:
    """Return where git keeps the index of a checkout: by covey's own record of it, if covey made it."""
    if checkout == project.root:
        return project.common
    records = project.state / "worktrees"
    for record in (records / f"{checkout.name}.made", *sorted(records.glob("*.made"))):
        try:
            said = json.loads(record.read_bytes())
            if Path(os.path.normpath(project.common / said["path"])) == checkout:
                entry = project.common / "worktrees" / said["id"]
                return _ours(project, checkout, entry, said) if entry.is_dir() else None
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return next((entry for entry in entries.entries(project.common) if entries.place(entry) == checkout), None)


def _ours(project: Project, checkout: Path, entry: Path, said: dict[str, Any]) -> Path:
    """Return git's folder of a worktree that covey made, and refuse if it is not what was made there."""
    made, entry_made = read_identity(said.get("made")), read_identity(said.get("entry_made"))
    why = why_not(checkout, made, project.common) or why_not_entry(entry, entry_made, project.common)
    if why is not None:
        raise Replaced(f"{why}.")
    return entry


@functools.lru_cache(maxsize=16)
def settings_of_files(common: Path) -> tuple[tuple[str, str], ...]:
    """Return the settings that say how files become what git keeps, as they were when this was first asked."""
    asked = try_git("config", "-z", "--get-regexp", _FILES, at=common)
    pairs = (entry.partition("\n") for entry in asked.stdout.decode(errors="surrogateescape").split("\0") if entry)
    return tuple((key, value if sep else "true") for key, sep, value in pairs)


def _head(project: Project, own: Path) -> str | None:
    branch = entries.branch(own)
    if branch is None:
        return entries.commit(own)
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}^{{commit}}")
    asked = try_git(*words, at=project.common)
    return asked.stdout.decode().strip() if asked.returncode == 0 else None


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0
