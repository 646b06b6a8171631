"""A repository as a gate sees it: its settings without credentials, its objects borrowed, and nothing else's files.

And what a gate that nothing holds back may have changed outside: the user's checkout, refs, settings.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from covey import files
from covey.git import refs
from covey.git.identity import HEADS, TASK_BRANCHES
from covey.git.landing.fast_forward import MARK_FILE
from covey.git.project import Project
from covey.git.run import quoted, read_config
from covey.git.worktrees.checkout_status import uncommitted

_OURS = (HEADS + TASK_BRANCHES, "refs/covey/", "refs/remotes/", "refs/stash")
_SETTINGS = "git's settings or hooks"
_MAX_NAMED = 5
"""Places that are named."""
_OWN = ("HEAD", "config", "description", "index", "packed-refs", "shallow", "objects", "refs", "reftable", "info",
       "hooks", "branches", "lfs", "rebase-merge", "rebase-apply", "sequencer")  # fmt: skip
"""What of a repository's git folder a gate sees: not the settings of submodules, sockets, or what others keep there."""
_PASSING = re.compile(
    rf".*(?:_HEAD|_MSG|_EDITMSG|_MERGE|\.lock)|(?:gc\.|tmp|sharedindex\.|BISECT_|{MARK_FILE}).*", re.DOTALL
)
"""Files that git, and a landing, make and take away at any moment: what is gone by then cannot be hidden."""
_SECTIONS = frozenset((
    "core", "extensions", "remote", "branch", "submodule", "user", "init", "index", "pack", "feature", "fetch", "push",
    "pull", "merge", "rebase", "diff", "status", "i18n", "log", "advice", "gc", "tag", "commit", "checkout", "apply",
    "lfs", "filter", "rerere", "color", "versionsort",
))  # fmt: skip
"""The sections of its settings that a gate sees: any other may hold a password."""
_PRIVATE = frozenset(("sshcommand", "askpass", "gitproxy", "proxy", "password", "token"))
_USERINFO = re.compile(r"(?<=://)[^/\s\"]*@")


def settings(common: Path) -> str:
    """Return the settings of a repository as a gate may see them."""
    return "".join(_setting(*pair) for pair in read_config("--file", str(common / "config"), "--list", at=common))


def _setting(key: str, value: str | None) -> str:
    """Return a setting of git as a gate may see it, empty if it may not."""
    section, _, rest = key.partition(".")
    part, _, name = rest.rpartition(".")
    if section not in _SECTIONS or name in _PRIVATE:
        return ""
    head = f"[{section} {_shown(part)}]" if part else f"[{section}]"
    said = "" if value is None else " = " + _shown(value).replace("\n", "\\n").replace("\t", "\\t")
    return f"{head}\n\t{name}{said}\n"


def _shown(text: str) -> str:
    return quoted(_USERINFO.sub("", text))


def hidden(common: str) -> tuple[str, ...]:
    """Return what is in a repository's git folder and not git's own."""
    try:
        names = os.listdir(common)
    except OSError:
        return ()
    found = (f"{common}/{each}" for each in names if each not in _OWN and not _PASSING.fullmatch(each))
    # A link holds nothing itself, and nothing can be laid over one: what it leads to is in the room, or is not.
    return tuple(place for place in found if not os.path.islink(place))


def borrow_objects(objects: Path, folder: Path) -> None:
    """Make an object store of a gate's own, which borrows all objects that there are from where they will be shown."""
    (folder / "store").mkdir()
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "objects" / "pack").mkdir()
    lenders = [str(folder / "store")]
    with contextlib.suppress(OSError):
        said = (objects / "info" / "alternates").read_text(errors="surrogateescape").splitlines()
        lenders += [os.path.normpath(objects / line) for line in said if line and not line.startswith("#")]
    text = "".join(f"{line}\n" for line in lenders)
    (folder / "objects" / "info" / "alternates").write_text(text, errors="surrogateescape")


# What it may have changed where nothing holds it back


def look(project: Project, target: str) -> dict[str, object]:
    """Return how all looks that a gate has no business with, by its name.

    Branches of covey's and the one on which work lands move by themselves.
    """
    seen: dict[str, object] = {}
    if not project.bare and (project.common / "index").exists():
        for _, name in uncommitted(project, project.root, patience=300):
            found = files.status(project.root / name)
            seen[f"{name} in your checkout"] = None if found is None else (found.st_mtime_ns, found.st_size)
    others = {name: at for name, at in refs.listed(project).items() if not name.startswith(_OURS)}
    others.pop(f"refs/heads/{target}", None)
    return seen | others | {_SETTINGS: _settings_mark(project.common)}


def strayed(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of what was changed between two looks: files, refs, and then settings."""
    changed = {name for name, _ in before.items() ^ after.items()}
    told = sorted(changed, key=lambda name: (name == _SETTINGS, name.startswith("refs/"), name))
    return tuple(told[:_MAX_NAMED] + ([f"{len(told) - _MAX_NAMED} more"] if len(told) > _MAX_NAMED else []))


def _settings_mark(common: Path) -> str:
    """Return a hash of the repository's settings and the names and times of its hooks."""
    whole = hashlib.sha256()
    try:
        whole.update((common / "config").read_bytes())
        hooks = sorted(os.scandir(common / "hooks"), key=lambda entry: entry.name)
        whole.update(repr([(hook.name, hook.stat(follow_symlinks=False).st_mtime_ns) for hook in hooks]).encode())
    except OSError as error:
        whole.update(repr(error.errno).encode())
    return whole.hexdigest()
