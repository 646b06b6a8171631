"""Where covey itself is installed: the one file by which it is called, and what on a PATH is only there for it."""

from __future__ import annotations

import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from covey import files
from covey.hashes import sha256

NAME = "covey"
MARK = "# The launcher of covey"
TOOLS = frozenset(("pip", "setuptools", "wheel"))
"""What every virtual environment may hold without being anybody's."""
_PROJECT_NAME = re.compile(r"[A-Za-z0-9._-]+")


def launcher() -> str:
    """Return a script that calls this very covey, wherever it is put and whatever Python is told by its caller."""
    python = shlex.quote(os.path.abspath(sys.executable))  # a link is what makes it that of a virtual environment
    return f'#!/bin/sh\n{MARK}; nothing else of it has to be on a PATH.\nexec {python} -E -P -m covey "$@"\n'


def put_launcher(folder: Path) -> Path:
    """Have the launcher in a folder, and return where; what else lies there under its name is replaced."""
    path, text = folder / NAME, launcher()
    if not is_launcher(path) or files.read(path) != text or not os.access(path, os.X_OK):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        files.write_whole(path, text, 0o755)
    return path


def is_launcher(path: Path) -> bool:
    """Say whether a file is a launcher that covey wrote."""
    try:
        return files.read(path, 4096).partition("\n")[2].startswith(MARK)
    except OSError:
        return False


def step_back(project: Path) -> None:
    """Leave to all that this process starts the environment that its user would have without covey."""
    users = users_environment(os.environ, project)
    for name in set(os.environ) - set(users):
        del os.environ[name]
    os.environ.update(users)


def users_environment(env: Mapping[str, str], project: Path) -> dict[str, str]:
    """Return an environment without what is in it only for covey: its own Python, pip and tools.

    What lies in the project is the project's.
    """
    own = os.path.realpath(sys.prefix)
    users = dict(env)
    if not _names_own(env, own) or Path(own).is_relative_to(os.path.realpath(project)) or not _is_for_covey():
        return users
    if "PATH" in env:
        there = (each for each in env["PATH"].split(os.pathsep) if not _is_in(each, own))
        users["PATH"] = os.pathsep.join(there) or os.defpath
    if _is_in(env.get("VIRTUAL_ENV", ""), own):
        for name in ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT"):
            users.pop(name, None)
    return users


def path_mark(env: Mapping[str, str]) -> str:
    """Return what stands for the PATH of an environment: the same where it leads to the same folders in order."""
    folders = dict.fromkeys(env.get("PATH", os.defpath).split(os.pathsep))
    return sha256(os.fsencode(os.pathsep.join(folders))).hexdigest()[:16]


def _names_own(env: Mapping[str, str], own: str) -> bool:
    return any(_is_in(each, own) for each in (env.get("VIRTUAL_ENV", ""), *env.get("PATH", "").split(os.pathsep)))


def _is_in(place: str, own: str) -> bool:
    return os.path.isabs(place) and Path(os.path.realpath(place)).is_relative_to(own)


@cache
def _is_for_covey() -> bool:
    """Say whether our virtual environment was made for covey: that of its own checkout, or one with nothing else in it.

    One in which its user has tools besides is the user's.
    """
    if sys.prefix == sys.base_prefix:
        return False
    own, package = Path(os.path.realpath(sys.prefix)), Path(os.path.realpath(__file__)).parent
    return own.parent == package.parent.parent or _holds_only_covey()


def _holds_only_covey() -> bool:
    from importlib import metadata  # slow, and hardly ever needed

    places = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    there = {_plain(each.name): each for each in metadata.distributions(path=places)}
    needed: set[str] = set()
    waiting = [NAME] if NAME in there else []
    while waiting:
        name = waiting.pop()
        if name not in needed and name in there:
            needed.add(name)
            waiting += [_plain(each) for each in there[name].requires or () if "extra ==" not in each]
    return bool(needed) and set(there) <= needed | TOOLS


def _plain(requirement: str) -> str:
    """Return the name of what is required, in the one spelling that counts."""
    found = _PROJECT_NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", found.group()).lower() if found else ""
