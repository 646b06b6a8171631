"""The project: one repository under covey's care, the same from every worktree and subfolder of it."""

from __future__ import annotations

import os
import re
from functools import cached_property, lru_cache
from pathlib import Path

from covey.errors import Invalid, Refused, Unavailable
from covey.git.run import git, try_git
from covey.values import dataclass

MAIN_LISTING_TIMEOUT_S = 60.0
SUBMODULES = (
    "Submodules are not supported. covey init works within a submodule, and where the files of others are files of the "
    "repository itself (git subtree)."
)
"""What to do about a repository that has submodules."""


class _OwnPath(cached_property[Path]):
    """A place among covey's own files, by its name there."""

    def __init__(self, name: str) -> None:
        super().__init__(lambda project: project.state / name)


@dataclass(frozen=True)
class Project:
    """Where a repository keeps its files, and where covey keeps its own."""

    root: Path
    common: Path
    bare: bool

    @property
    def name(self) -> str:
        """Return the project's name: that of its folder, fit for a host name."""
        raw = self.root.name.removesuffix(".git").lower()
        return re.sub(r"[^a-z0-9]+", "-", raw).strip("-")[:40] or "project"

    @cached_property
    def state(self) -> Path:
        """Return the folder of covey's own files: shared by all worktrees, never committed."""
        return self.common / "covey"

    database = _OwnPath("covey.db")
    """The file of the store."""
    runs = _OwnPath("runs")
    """The folder with a folder for each run."""
    records = _OwnPath("worktrees")
    """The folder in which is noted which worktrees covey made."""
    aside = _OwnPath("aside")
    """The folder of what git knew of worktrees that are kept aside."""
    hooks = _OwnPath("hooks")
    """The folder of the guard's hooks and settings."""
    worktrees_lock = _OwnPath("worktrees.lock")
    """The file that is locked while the list of worktrees changes."""
    lock = _OwnPath("lock")
    """The file whose lock makes its holder the only writer."""
    owner_token = _OwnPath("owner.token")
    """The file of the owner's token."""
    daemon_file = _OwnPath("daemon.json")
    """The file in which the daemon says where it answers."""
    needed = _OwnPath("needed")
    """The file whose lock is held by whoever needs the daemon at this moment."""
    kept = _OwnPath("kept")
    """The file that is there from `covey up` to `covey down`: a daemon in between stays."""

    def run_folder(self, run: str) -> Path:
        """Return the folder of what a run printed and left behind."""
        return self.runs / run

    def token(self) -> str:
        """Return the owner's token, or say how to get a new one."""
        return read_token(self.owner_token)

    @property
    def is_begun(self) -> bool:
        """Say whether covey looks after this repository; an empty file does not count."""
        return self.database.exists() and self.database.stat().st_size > 0

    def must_be_begun(self) -> Project:
        """Return the project, or say how to begin."""
        kept = self.rescued()
        if kept is not None:
            now = f"or, to go on with the covey.db that is there now, rm {kept}" if self.database.exists() else ""
            raise Refused(
                f"covey.db was removed or replaced while a daemon ran, which kept the board in {kept}.",
                hint=f"Put it back: covey down; mv {kept} {self.database}; covey up{f' ({now})' if now else ''}",
            )
        if not self.is_begun:
            hint = SUBMODULES if (self.root / ".gitmodules").exists() else "Run covey init there."
            raise Refused(f"covey does not look after {self.root} yet.", hint=hint)
        return self

    def rescued(self) -> Path | None:
        """Return the newest file in which a daemon kept the board when its own file was taken away."""
        try:
            return max(self.state.glob(f"{self.database.name}.rescued-*"), default=None)
        except OSError:
            return None


def read_token(path: Path) -> str:
    """Return the token in a file; covey init replaces one that is missing or empty."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        token = ""
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"The owner's token of this project cannot be read: {error}.") from error
    if not token:
        raise Refused("The owner's token of this project is missing.", hint="covey init makes a new one.")
    return token


def find(folder: Path) -> Project:
    """Return the project that a folder belongs to, or say why there is none."""
    if not folder.is_dir():
        raise Invalid(f"There is no folder {folder}.")
    asked = try_git(
        "rev-parse",
        "--path-format=absolute",
        "--git-common-dir",
        "--absolute-git-dir",
        "--is-bare-repository",
        at=folder,
        discover=True,
    )
    if asked.returncode != 0:
        complaint = asked.stderr.decode(errors="replace").strip()
        if "not a git repository" in complaint:
            raise Invalid(f"{folder} is in no git repository.", hint="Go into one, or make one with git init.")
        hint = ""
        if "dubious ownership" in complaint:
            trust = f"git config --global --add safe.directory {folder}"
            hint = f"It belongs to another user. Make it yours (chown), or trust it: {trust}"
        raise Invalid(f"git does not accept {folder}: {complaint.splitlines()[0].removeprefix('fatal: ')}.", hint=hint)
    try:
        common_text, own_text, bare_text = asked.stdout.decode().removesuffix("\n").split("\n")
    except ValueError:
        raise Invalid(
            f"The path {str(folder)!r} has a line break in it, or is not UTF-8.",
            hint="covey needs the repository in another place: move it.",
        ) from None
    common, own = Path(common_text), Path(own_text)
    if bare_text == "true" and common == own:
        if folder != common and common.name == ".git" and common in folder.parents:
            return find(common.parent)
        return Project(root=common, common=common, bare=True)
    return Project(root=_main_worktree(folder, common, own), common=common, bare=False)


def _main_worktree(folder: Path, common: Path, own: Path) -> Path:
    """Return the checkout that the repository began with, whatever worktree we stand in."""
    if common == own:
        top = try_git("rev-parse", "--show-toplevel", at=folder, discover=True)
        if top.returncode == 0 and top.stdout.strip():
            return Path(top.stdout.decode().strip())
    if common.name == ".git":
        return common.parent
    named = try_git("config", "--file", str(common / "config"), "core.worktree", at=common)
    if named.returncode == 0:
        return (common / named.stdout.decode().strip()).resolve()
    return common


def checkout_around(project: Project, folder: Path) -> Path | None:
    """Return the top of the checkout of a project in which a folder lies, None if it lies in none."""
    words = ("rev-parse", "--show-toplevel", "--git-common-dir")
    told = try_git(*words, at=folder, discover=True) if os.path.isdir(folder) else None
    lines = [] if told is None or told.returncode else os.fsdecode(told.stdout).splitlines()
    if len(lines) != 2 or os.path.realpath(folder / lines[1]) != os.path.realpath(project.common):
        return None
    return Path(lines[0])


def first_branch(project: Project) -> str:
    """Return the branch that is main here: the one checked out, else what git calls a first branch."""
    checked_out = try_git("symbolic-ref", "--short", "--quiet", "HEAD", at=project.common)
    if checked_out.returncode == 0:
        return checked_out.stdout.decode().strip()
    named = try_git("config", "init.defaultBranch", at=project.common)
    return named.stdout.decode().strip() if named.returncode == 0 else "main"


def has_remote(project: Project, name: str) -> bool:
    """Say whether git knows a remote of this name."""
    return try_git("remote", "get-url", "--", name, at=project.common).returncode == 0


def messages(project: Project, span: str, most: int) -> list[tuple[str, str]]:
    """Return subject and body of the newest commits of a span such as main..branch, the newest first."""
    words = ("log", f"--max-count={most}", "--no-show-signature", "--encoding=UTF-8", "--format=%s%x00%b%x01", span)
    printed = git(*words, at=project.common).decode(errors="replace")
    parts = (part.strip("\n").partition("\0") for part in printed.split("\x01"))
    return [(subject, body) for subject, _, body in parts]


def recent_commits(project: Project, since: str) -> list[tuple[str, float, str, str]]:
    """Return hash, time, author and subject of the commits on any branch since a time, the newest first."""
    printed = git(
        "log",
        "--branches",
        "--date-order",
        f"--since={since}",
        "--format=%h%x00%ct%x00%an%x00%s",
        "--max-count=200",
        at=project.common,
    )
    lines = (line.split("\0", 3) for line in printed.decode(errors="replace").splitlines())
    return [(parts[0], float(parts[1] or 0), parts[2], parts[3]) for parts in lines if len(parts) == 4]


# Which files a branch has


def tracked(project: Project, branch: str) -> tuple[str, ...]:
    """Return the paths of all files of a branch, none if there is no such branch."""
    asked = try_git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{tree}}", at=project.common)
    return _paths(project.common, asked.stdout.decode().strip()) if asked.returncode == 0 else ()


def blob(project: Project, name: str) -> bytes:
    """Return what is in a file of a commit, named as main:README.md; nothing if there is no such file."""
    return try_git("cat-file", "blob", name, at=project.common).stdout


@lru_cache(maxsize=2)
def _paths(common: Path, tree: str) -> tuple[str, ...]:
    words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
    listed = git(*words, at=common, patience=MAIN_LISTING_TIMEOUT_S)
    return tuple(path.decode("utf-8", "replace") for path in listed.split(b"\0") if path)
