"""The quick way to the project: by reading a few files, where git would have to be started.

It answers only for the plain shapes of a repository. Whatever is unusual is left to git.
"""

from __future__ import annotations

import os

from covey.errors import Invalid

_UNUSUAL = (
    "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)  # fmt: skip
_SETTINGS = ("worktree", "bare = true", "include")
"""What a repository's own settings may hold that makes its place unusual."""


def here() -> str:
    """Return the folder that we stand in, or say that it is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise Invalid("The folder that you are in does not exist any more.", hint="cd to one that does.") from None


def quick_common(folder: str) -> str | None:
    """Return the own folder of the repository around a folder, or None if only git can tell."""
    if any(name in os.environ for name in _UNUSUAL):
        return None
    while True:
        entry = os.path.join(folder, ".git")
        common = _common(entry)
        if common is not None:
            return common
        if os.path.exists(os.path.join(folder, "HEAD")) or os.path.lexists(entry):
            return None
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def quick_place(folder: str) -> str | None:
    """Return the folder .git in the first checkout of the project around a folder, or None if only git can tell."""
    common = quick_common(os.path.realpath(folder))
    if common is None:
        return None
    try:
        with open(os.path.join(common, "config"), encoding="utf-8") as file:
            settings = file.read().lower()
    except (OSError, UnicodeDecodeError):
        return None
    is_unusual = any(word in settings for word in _SETTINGS) or os.path.basename(common) != ".git"
    return None if is_unusual else common


def _common(entry: str) -> str | None:
    """Return the repository's own folder, if this is the .git of a checkout, a worktree or a submodule."""
    if os.path.isfile(os.path.join(entry, "HEAD")):
        return entry
    try:
        with open(entry, encoding="utf-8") as file:
            said = file.read(4096).strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not said.startswith("gitdir: "):
        return None
    own = os.path.normpath(os.path.join(os.path.dirname(entry), said[8:]))
    try:
        with open(os.path.join(own, "commondir"), encoding="utf-8") as file:
            return os.path.normpath(os.path.join(own, file.read(4096).strip()))
    except FileNotFoundError:
        return own if os.path.isfile(os.path.join(own, "HEAD")) else None
    except (OSError, UnicodeDecodeError):
        return None
