"""What git keeps of each worktree: the small files in `worktrees/<id>` of the repository, read and mended.

They are read here rather than asked of git, since one entry that is half made lets git fail for all of them. Their
layout is documented (gitrepository-layout): `gitdir` names the checkout's `.git`, `commondir` the repository, `HEAD`
what is checked out.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from covey import files, trash
from covey.git.locks import clear_left_behind

_COMMIT_ID = re.compile(r"(?!0+\Z)([0-9a-f]{40}|[0-9a-f]{64})\Z")
_BRANCH = "ref: refs/heads/"
_HOME = "../.."
"""What an entry says of where its repository is."""
_UNFINISHED_STATE = (
    "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "MERGE_AUTOSTASH", "AUTO_MERGE", "SQUASH_MSG",
    "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "rebase-merge", "rebase-apply", "sequencer",
    "BISECT_START", "BISECT_LOG", "BISECT_TERMS", "BISECT_NAMES", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK",
    "BISECT_HEAD", "BISECT_RUN", "BISECT_FIRST_PARENT", "refs/bisect", "refs/rewritten",
)  # fmt: skip
"""What a merge, rebase, cherry-pick, revert or bisect that never ended keeps in the worktree's own folder."""


MAX_LINE_BYTES = 64 * 1024
"""Bytes of the longest of git's small files that is read."""


def entries(common: Path) -> list[Path]:
    """Return the folders of all linked worktrees of a repository, whoever made them."""
    try:
        found = os.scandir(common / "worktrees")
        return sorted(Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []


def place(entry: Path) -> Path | None:
    """Return the checkout that an entry belongs to, or None if it does not say."""
    said = read_small(entry / "gitdir")
    return None if not said else Path(os.path.normpath(entry / said)).parent


def branch(git_dir: Path) -> str | None:
    """Return the branch that is checked out, or None if there is none."""
    said = read_small(git_dir / "HEAD")
    return said.removeprefix(_BRANCH) if said.startswith(_BRANCH) else None


def commit(git_dir: Path) -> str | None:
    """Return the commit that is checked out without a branch, or None if there is one."""
    said = read_small(git_dir / "HEAD")
    return said if _COMMIT_ID.match(said) else None


def is_commit(name: str) -> bool:
    """Say whether a name is the whole name of an object, which nothing else can have."""
    return _COMMIT_ID.match(name) is not None


def holds(git_dir: Path, name: str) -> bool:
    """Say whether a branch is checked out there, or in the midst of a rebase or bisect."""
    unfinished = (read_small(git_dir / part) for part in ("rebase-merge/head-name", "rebase-apply/head-name"))
    return branch(git_dir) == name or f"refs/heads/{name}" in unfinished or read_small(git_dir / "BISECT_START") == name


def pointed_at(checkout: Path) -> str | None:
    """Return what the `.git` file of a checkout points at, or None if it has none."""
    said = read_small(checkout / ".git")
    return said.removeprefix("gitdir: ") if said.startswith("gitdir: ") else None


def is_whole(entry: Path) -> bool:
    """Say whether git can read an entry."""
    said = read_small(entry / "HEAD")
    return bool(read_small(entry / "commondir")) and (
        said.startswith("ref: refs/") or _COMMIT_ID.match(said) is not None
    )


def draw_up(new: Path, checkout: Path, base: str) -> None:
    """Write a whole entry for a checkout, on no branch at `base`; it counts once it is moved among the others."""
    new.mkdir()
    for name, line in (("gitdir", f"{checkout}/.git"), ("HEAD", base), ("commondir", _HOME)):
        _write(new / name, line)


def link(checkout: Path, entry: Path) -> None:
    """Let a checkout point at its entry; one that does is not touched."""
    checkout.mkdir(parents=True, exist_ok=True)
    pointed = pointed_at(checkout)
    if pointed is None or Path(os.path.normpath(checkout / pointed)) != entry:
        _write(checkout / ".git", f"gitdir: {entry}")


def mend(entry: Path, checkout: Path, base: str) -> None:
    """Make an entry and its checkout whole, whatever is missing of them; what is whole is not touched."""
    if place(entry) != checkout:
        _write(entry / "gitdir", f"{checkout}/.git")
    complete(entry, base)
    link(checkout, entry)
    # git marks an entry so while it makes one.
    if read_small(entry / "locked") == "initializing":
        (entry / "locked").unlink(missing_ok=True)


def complete(entry: Path, base: str) -> None:
    """Let git read an entry whose making was cut short, or that a session led elsewhere."""
    if not is_whole(entry):
        _write(entry / "HEAD", base)
    lead_home(entry)


def lead_home(entry: Path) -> None:
    """Let an entry name its own repository: one that names none makes git fail for everybody."""
    if read_small(entry / "commondir") != _HOME:
        trash.remove(entry / "commondir")
        _write(entry / "commondir", _HOME)


def forget_unfinished(entry: Path) -> None:
    """Forget the merge, rebase, cherry-pick, revert or bisect that was under way; no branch and no file moves."""
    for name in _UNFINISHED_STATE:
        if "/" in name and (entry / name).parent.is_symlink():
            continue  # what it leads to is somebody else's
        trash.remove(entry / name)


def clear_locks(entry: Path) -> None:
    """Remove the lock files that a killed git left in a worktree's own folder."""
    for lock in (*entry.glob("*.lock"), *(entry / "refs").rglob("*.lock")):
        clear_left_behind(lock)


def read_small(path: Path) -> str:
    """Return a small text without the line end; one that is missing, too large, or no file at all is empty."""
    try:
        said = files.read_bytes(path, MAX_LINE_BYTES + 1)
    except OSError:
        return ""
    if len(said) > MAX_LINE_BYTES or b"\0" in said:  # no path, no name and no commit has one
        return ""
    return said.decode("utf-8", "surrogateescape").removesuffix("\n")


def _write(path: Path, line: str) -> None:
    files.write_whole(path, line + "\n")
