"""git as a rescue uses it: an own empty repository folder over the project's objects.

A session may have configured anything in its checkout. Here none of that is read: the settings, hooks, index and refs
are those of a temporary folder, and only the objects are the project's.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from covey.errors import ToolFailed
from covey.git import run
from covey.git.identity import AUTHOR_AND_COMMITTER, NO_PROMPT
from covey.git.project import Project
from covey.git.run import checked, named_env, quoted, read_config, try_git
from covey.values import dataclass

RESTORE_TIMEOUT_S = 1800.0
"""Seconds for one git process that brings a rescue back, or lists what there is."""
MAX_RESCUE_S = 300.0
"""Seconds that one rescue may take; a worktree that needs longer is kept aside as it is."""

_SETTINGS = {
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.sparseCheckout": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.ignoreCase": "false",
    "core.precomposeUnicode": "false",
    # These forbid names that only other systems misread.
    "core.protectNTFS": "false",
    "core.protectHFS": "false",
    "core.fsync": "all",
    "core.fsyncMethod": "batch",
    "core.logAllRefUpdates": "false",
    "checkout.workers": "2",
}
SCRATCH_FOLDER = "tmp"
"""The folder of covey's own in which a rescue that was killed may leave something; the daemon clears it."""


class NotWhole(ToolFailed):
    """A worktree cannot be rescued whole within the limits."""


def quiet(settings: dict[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which git runs nothing but itself, whatever is configured."""
    own = run.settings({**_SETTINGS, **(settings or {})})
    return {**own, **NO_PROMPT, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}


def refs_git(project: Project, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git on the project's refs and objects, with no worktree and no hooks, and return how it ended."""
    env = quiet() | named_env(project.common)
    return try_git(*words, at=project.common, stdin=stdin, env=env, patience=RESTORE_TIMEOUT_S)


@dataclass(frozen=True)
class PrivateGit:
    """git with the project's objects, a worktree, and nothing else of theirs."""

    project: Project
    folder: Path
    worktree: Path
    hash_name: str
    deadline: float = math.inf

    def patience(self) -> float:
        """Return how many seconds are left, or say that there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise NotWhole(f"It takes longer than {MAX_RESCUE_S:g} s.")
        return min(left, RESTORE_TIMEOUT_S)

    @property
    def index(self) -> Path:
        """Return the file of the private index."""
        return self.folder / "index"

    @property
    def zero(self) -> str:
        """Return the name of no object."""
        return "0" * (40 if self.hash_name == "sha1" else 64)

    def ask(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run git and return how it ended."""
        objects = {"GIT_OBJECT_DIRECTORY": str(self.project.common / "objects")}
        env = quiet() | AUTHOR_AND_COMMITTER | self.named(self.index) | objects
        return try_git(*words, at=self.folder, stdin=stdin, env=env, patience=self.patience())

    def named(self, index: Path) -> dict[str, str]:
        """Return what names this folder, the worktree and an index to git."""
        return {**named_env(self.folder, self.worktree), "GIT_INDEX_FILE": str(index)}

    def run(self, *words: str, stdin: bytes | None = None) -> bytes:
        """Run git, which must succeed, and return what it prints."""
        return checked(words[0], self.ask(*words, stdin=stdin))


@contextmanager
def private_git(
    project: Project, worktree: Path, settings: Mapping[str, str] | None = None, *, is_rescue: bool = False
) -> Iterator[PrivateGit]:
    """Make a private repository folder over the project's objects while a rescue or a look needs it.

    Of the repository's settings two are heeded: what is ignored, and how objects are named.
    """
    if settings is None:
        wanted = r"^(core\.excludesfile|extensions\.objectformat)$"
        env = quiet() | named_env(project.common)
        found = read_config("--type=path", "--get-regexp", wanted, at=project.common, env=env)
        settings = {key: value or "" for key, value in found}
    hash_name = settings.get("extensions.objectformat", "sha1")
    place = project.state / SCRATCH_FOLDER
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="rescue-", dir=place) as name:
        folder = Path(name)
        (folder / "refs").mkdir()
        (folder / "info").mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        version = 0 if hash_name == "sha1" else 1
        lines = ["[core]", f"\trepositoryformatversion = {version}", "\tbare = false"]
        if "core.excludesfile" in settings:
            lines.append(f"\texcludesFile = {quoted(settings['core.excludesfile'])}")
        lines += ["[extensions]", f"\tobjectFormat = {hash_name}"] if version else []
        (folder / "config").write_text("\n".join(lines) + "\n", errors="surrogateescape")
        for part in ("exclude", "attributes"):
            if (project.common / "info" / part).is_file():
                shutil.copyfile(project.common / "info" / part, folder / "info" / part)
        deadline = time.monotonic() + MAX_RESCUE_S if is_rescue else math.inf
        yield PrivateGit(project, folder, worktree, hash_name, deadline)
