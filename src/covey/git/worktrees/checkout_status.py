"""Looks: how a checkout differs from its commit, told by a git that believes nothing that lies in it.

A session can write all that git reads of its worktree: the `.git` file, `commondir`, `config.worktree`, and the
settings that name filters. So git gets a folder of covey's own over the project's objects, as a rescue does, and of
the worktree only its files and its index. Filters that the user's files need are those that were configured when this
process first asked: whatever is added later may be a session's.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess

from covey import files
from covey.errors import ToolFailed
from covey.git.candidates.candidates import resolve
from covey.git.identity import NO_PROMPT
from covey.git.project import Project
from covey.git.rescue.rescue_repository import private_git
from covey.git.run import checked, read_config, settings, try_git
from covey.git.worktrees import worktree_admin, worktree_records
from covey.git.worktrees.worktree_records import Replaced
from covey.values import dataclass

_FILE_SETTINGS = (
    r"^(core\.(excludesfile|attributesfile|autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode"
    r"|checkstat|trustctime)|extensions\.objectformat|filter\..*)$"
)
"""Settings that say how files on disk become what git keeps."""
NO_SUBMODULES = "--ignore-submodules=dirty"
"""In a repository within the checkout git would run another git, by the settings of that one."""


@dataclass(frozen=True)
class CheckoutStatus:
    """A checkout, seen from a git folder of covey's own."""

    checkout: Path
    env: dict[str, str]

    def ask(self, *words: str, patience: float, apart: bool = False) -> CompletedProcess[bytes]:
        """Run git over the checkout, which changes nothing there, and return how it ended."""
        return try_git(*words, at=self.checkout, env=self.env, patience=patience, apart=apart)

    def run(self, *words: str, patience: float) -> bytes:
        """Run git over the checkout, which must succeed, and return what it prints."""
        return checked(words[0], self.ask(*words, patience=patience))


@contextmanager
def look(project: Project, checkout: Path) -> Iterator[CheckoutStatus]:
    """Look at a checkout of the project, of a session or of the user."""
    own = entry_of(project, checkout)
    index = None if own is None else files.status(own / "index")
    if own is None or (index is not None and not stat.S_ISREG(index.st_mode)):
        raise ToolFailed(f"git has no index of {checkout}.")
    taken = dict(settings_of_files(project.common))
    with private_git(project, checkout, taken) as private:
        branch = worktree_admin.branch(own)
        head = worktree_admin.commit(own) if branch is None else resolve(project, f"refs/heads/{branch}")
        if head is not None:
            (private.folder / "HEAD").write_text(f"{head}\n")
        for shared in own.glob("sharedindex.*"):
            os.symlink(shared, private.folder / shared.name)
        own_settings = {key: value for key, value in taken.items() if not key.startswith("extensions.")}
        env = settings({**own_settings, "core.untrackedCache": "false", "status.showUntrackedFiles": "all"})
        objects = {"GIT_OBJECT_DIRECTORY": str(project.common / "objects"), "GIT_OPTIONAL_LOCKS": "0"}
        yield CheckoutStatus(checkout, env | private.named(own / "index") | objects | NO_PROMPT)


def uncommitted(project: Project, checkout: Path, patience: float, *, apart: bool = False) -> list[tuple[str, str]]:
    """Return what is not committed in a checkout, each path with git's letters for it; nothing if git cannot tell."""
    with look(project, checkout) as seen:
        words = ("status", "--porcelain", "-z", "--no-renames", NO_SUBMODULES)
        asked = seen.ask(*words, patience=patience, apart=apart)
    entries = os.fsdecode(asked.stdout).split("\0")[:-1] if asked.returncode == 0 else []
    return [(entry[:2], entry[3:]) for entry in entries]


def entry_of(project: Project, checkout: Path) -> Path | None:
    """Return where git keeps the index of a checkout: by covey's own record of it, if covey made it."""
    if checkout == project.root:
        return project.common
    records = project.records
    for file in (records / f"{checkout.name}.made", *sorted(records.glob("*.made"))):
        with suppress(OSError, *worktree_records.UNREADABLE):
            record = worktree_records.read(project, file)
            if record.path == checkout:
                entry = project.common / "worktrees" / record.id
                if not entry.is_dir():
                    return None
                why = worktree_records.why_not_made(project, record)
                if why is not None:
                    raise Replaced(f"{why}.")
                return entry
    return next(
        (entry for entry in worktree_admin.entries(project.common) if worktree_admin.place(entry) == checkout), None
    )


@functools.lru_cache(maxsize=16)
def settings_of_files(common: Path) -> tuple[tuple[str, str], ...]:
    """Return the settings that say how files become what git keeps, as they were when this was first asked."""
    found = read_config("--get-regexp", _FILE_SETTINGS, at=common)
    return tuple((key, "true" if value is None else value) for key, value in found)
