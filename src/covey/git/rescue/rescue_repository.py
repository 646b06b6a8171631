"""git as a rescue uses it: an own empty repository folder over the project's objects.

A session may have configured anything in its checkout. Here none of that is read: the settings, hooks, index and refs
are those of a temporary folder, and only the objects are the project's.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from covey.errors import ToolFailed
from covey.git.project import Project
from covey.git.run import complaint, try_git
from covey.values import dataclass

PATIENCE = 1800.0
"""Seconds for one git process that brings a rescue back, or lists what there is."""
MAX_RESCUE_S = 300.0
"""Seconds that one rescue may take; a worktree that needs longer is kept aside as it is."""
MAX_RESCUE_BYTES = 1024**3
"""Bytes that one rescue stores, by the length of files or by what they take on disk, whichever is more."""
MAX_RESCUE_FILES = 1_000_000
"""Files that HEAD and index do not know, and one rescue looks at."""
MAX_RESCUE_DEPTH = 500
"""Folders in each other that one rescue enters."""

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
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
    "gc.auto": "0",
    "maintenance.auto": "false",
    "checkout.workers": "2",
}
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "covey"), ("EMAIL", "covey@localhost"))
}
_RAW = "* -text -ident !eol !crlf !filter !working-tree-encoding\n"
"""Attributes that stand above all others, and let git write every file as its object is."""

SCRATCH = "tmp"
"""The folder of covey's own in which a rescue that was killed may leave something; the daemon clears it."""


class NotWhole(ToolFailed):
    """A worktree cannot be rescued whole within the limits."""


@dataclass(frozen=True)
class Limits:
    """What one rescue may take."""

    seconds: float = MAX_RESCUE_S
    bytes: int = MAX_RESCUE_BYTES
    files: int = MAX_RESCUE_FILES
    depth: int = MAX_RESCUE_DEPTH


LIMITS = Limits()


def quiet(settings: dict[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which git runs nothing but itself, whatever is configured."""
    named = [*_SETTINGS.items(), *(settings or {}).items()]
    env = {"GIT_CONFIG_PARAMETERS": "", "GIT_CONFIG_COUNT": str(len(named)), "GIT_TERMINAL_PROMPT": "0"}
    for number, (key, value) in enumerate(named):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env | {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1"}


def refs_git(project: Project, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git on the project's refs and objects, with no worktree and no hooks, and return how it ended."""
    env = quiet() | {"GIT_DIR": str(project.common), "GIT_COMMON_DIR": str(project.common)}
    return try_git(*words, at=project.common, stdin=stdin, env=env, patience=PATIENCE)


@dataclass(frozen=True)
class PrivateGit:
    """git with the project's objects, a worktree, and nothing else of theirs."""

    project: Project
    folder: Path
    worktree: Path
    hash_name: str
    limits: Limits = LIMITS
    deadline: float = math.inf

    def patience(self) -> float:
        """Return how many seconds are left, or say that there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise NotWhole(f"It takes longer than {self.limits.seconds:g} s.")
        return min(left, PATIENCE)

    @property
    def index(self) -> Path:
        """Return the file of the private index."""
        return self.folder / "index"

    @property
    def zero(self) -> str:
        """Return the name of no object."""
        return "0" * (hashlib.new(self.hash_name, usedforsecurity=False).digest_size * 2)

    def ask(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run git and return how it ended."""
        env = quiet() | _IDENTITY
        env |= {
            "GIT_DIR": str(self.folder),
            "GIT_COMMON_DIR": str(self.folder),
            "GIT_WORK_TREE": str(self.worktree),
            "GIT_INDEX_FILE": str(self.index),
            "GIT_OBJECT_DIRECTORY": str(self.project.common / "objects"),
        }
        return try_git(*words, at=self.folder, stdin=stdin, env=env, patience=self.patience())

    def run(self, *words: str, stdin: bytes | None = None) -> bytes:
        """Run git, which must succeed, and return what it prints."""
        done = self.ask(*words, stdin=stdin)
        if done.returncode != 0:
            raise ToolFailed(f"git {words[0]} failed: {complaint(done)}.")
        return done.stdout

    def blob_name(self, content: bytes) -> str:
        """Return the name that git gives to a content as it is."""
        sum_of = hashlib.new(self.hash_name, b"blob %d\0" % len(content), usedforsecurity=False)
        sum_of.update(content)
        return sum_of.hexdigest()

    def convert_nothing(self) -> None:
        """Let git write files as their objects are from here on."""
        (self.folder / "info" / "attributes").write_text(_RAW)


@contextmanager
def private_git(
    project: Project, worktree: Path, settings: Mapping[str, str] | None = None, limits: Limits | None = None
) -> Iterator[PrivateGit]:
    """Make a private repository folder over the project's objects while a rescue or a look needs it."""
    settings = _settings_of(project) if settings is None else settings
    hash_name = settings.get("extensions.objectformat", "sha1")
    place = project.state / SCRATCH
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="rescue-", dir=place) as name:
        folder = Path(name)
        (folder / "refs").mkdir()
        (folder / "info").mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        version = 0 if hash_name == "sha1" else 1
        lines = ["[core]", f"\trepositoryformatversion = {version}", "\tbare = false"]
        if "core.excludesfile" in settings:
            quoted = settings["core.excludesfile"].replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'\texcludesFile = "{quoted}"')
        lines += ["[extensions]", f"\tobjectFormat = {hash_name}"] if version else []
        (folder / "config").write_text("\n".join(lines) + "\n", errors="surrogateescape")
        for part in ("exclude", "attributes"):
            if (project.common / "info" / part).is_file():
                shutil.copyfile(project.common / "info" / part, folder / "info" / part)
        deadline = math.inf if limits is None else time.monotonic() + limits.seconds
        yield PrivateGit(project, folder, worktree, hash_name, limits or LIMITS, deadline)


def _settings_of(project: Project) -> dict[str, str]:
    """Return the two settings of the repository that a rescue heeds: what is ignored, and how objects are named."""
    wanted = r"^(core\.excludesfile|extensions\.objectformat)$"
    asked = refs_git(project, "config", "-z", "--type=path", "--get-regexp", wanted)
    pairs = (entry.partition("\n") for entry in asked.stdout.decode(errors="surrogateescape").split("\0") if entry)
    return {key: value for key, _, value in pairs}
