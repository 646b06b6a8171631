"""The quick way to the state folder: by reading a few files, where git would have to be started.

It answers only for the plain shapes of a repository. Whatever is unusual is left to git.
"""

from __future__ import annotations

import os

_UNUSUAL = (
    "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)  # fmt: skip


def quick_state(folder: str) -> str | None:
    """Return the state folder of the project around a folder, or None if only git can tell."""
    if any(name in os.environ for name in _UNUSUAL):
        return None
    while True:
        common = _common(os.path.join(folder, ".git"))
        if common is not None:
            return os.path.join(common, "covey")
        if os.path.exists(os.path.join(folder, "HEAD")) or os.path.lexists(os.path.join(folder, ".git")):
            return None
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


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
