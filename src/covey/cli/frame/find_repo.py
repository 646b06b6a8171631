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
    settings = _text(os.path.join(common, "config"))
    if settings is None or any(word in settings.lower() for word in _SETTINGS):
        return None
    return common if os.path.basename(common) == ".git" else None


def _common(entry: str) -> str | None:
    """Return the repository's own folder, if this is the .git of a checkout, a worktree or a submodule."""
    if os.path.isfile(os.path.join(entry, "HEAD")):
        return entry
    said = _text(entry)
    if said is None or not said.startswith("gitdir: "):
        return None
    own = os.path.normpath(os.path.join(os.path.dirname(entry), said[8:]))
    named = os.path.join(own, "commondir")
    if not os.path.lexists(named):
        return own if os.path.isfile(os.path.join(own, "HEAD")) else None
    common = _text(named)
    return None if common is None else os.path.normpath(os.path.join(own, common))


def _text(path: str) -> str | None:
    """Return what stands in a file, None if that cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return None
