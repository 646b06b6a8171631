"""Bring a rescue back: a new worktree with every file, the index and nested repositories as they were."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from covey import trash
from covey.errors import Refused, ToolFailed
from covey.git.locks import held
from covey.git.project import Project
from covey.git.rescue.archive import read_tar
from covey.git.rescue.rescue import Rescued, find_rescue, read_files
from covey.git.rescue.rescue_repository import RESTORE_TIMEOUT_S, private_git, refs_git
from covey.git.run import checked, git, try_git
from covey.values import dataclass

_RAW = "* -text -ident !eol !crlf !filter !working-tree-encoding\n"
"""Attributes that stand above all others, and let git write every file as its object is."""
NOT_RESTORED = ("HEAD", "FETCH_HEAD", "config.worktree")
"""What the new worktree has of its own, and settings, which might run something."""


@dataclass(frozen=True)
class Restored:
    """Where a rescue was brought back to, and which files their filter did not give."""

    rescued: Rescued
    path: Path
    head: str | None
    missing: tuple[str, ...] = ()


def restore(project: Project, name: str, target: Path) -> Restored:
    """Bring a rescue back into a new folder, as a worktree detached at the HEAD that it had."""
    found = find_rescue(project, name)
    if found.aside is not None:
        raise Refused(f"{found.name} is kept as it was, in {found.aside}.", hint="Take what you need from there.")
    target = Path(os.path.abspath(target))
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise Refused(f"{target} is there already, and not empty.", hint="Name a folder that does not exist: --to DIR.")
    meta_text, files_text, index = read_files(project, found.commit, ("meta.json", "files.json", "index"))
    if meta_text is None or files_text is None:
        raise ToolFailed(f"{found.ref} is damaged: it does not say what it holds.")
    meta, files = json.loads(meta_text), json.loads(files_text)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        own = _add_worktree(project, found, target)
        try:
            missing = _fill(project, found, target, own, meta, files, index)
        except BaseException:
            with held(project.worktrees_lock):
                refs_git(project, "worktree", "remove", "--force", str(target))
            trash.remove(target)
            raise
    except OSError as error:
        raise ToolFailed(f"{target} cannot be written: {error.strerror or error}.") from error
    return Restored(found, target, found.head, tuple(missing))


def _add_worktree(project: Project, found: Rescued, target: Path) -> Path:
    """Make a worktree with nothing in it, and return the folder in which git keeps its HEAD and index."""
    commit = found.head or found.commit
    with held(project.worktrees_lock):
        words = ("worktree", "add", "--force", "--no-checkout", "--detach", "--quiet", str(target), commit)
        checked("worktree", refs_git(project, *words))
    own = Path((target / ".git").read_text(errors="surrogateescape").strip().removeprefix("gitdir: "))
    if found.head is None:  # HEAD named a branch without commits, and does again; not one that has come to be meanwhile
        branch = found.branch or ""
        if not branch or refs_git(project, "rev-parse", "--verify", "--quiet", branch).returncode == 0:
            branch = f"refs/heads/rescued/{found.name}"
        (own / "HEAD").write_text(f"ref: {branch}\n")
    return own


def _fill(
    project: Project,
    found: Rescued,
    target: Path,
    own: Path,
    meta: dict[str, Any],
    files: dict[str, Any],
    index: bytes | None,
) -> list[str]:
    with private_git(project, target) as quiet_git:
        (quiet_git.folder / "info" / "attributes").write_text(_RAW)
        quiet_git.run("read-tree", f"{found.commit}:work")
        quiet_git.run("checkout-index", "--all", "--force", "--quiet")
    missing = _run_filters(found, target, own, files["checkout"])
    for folder in files["folders"]:
        os.makedirs(_at(target, folder), exist_ok=True)
    for tar in read_files(project, found.commit, [f"nested/{number}.tar" for number in range(len(meta["nested"]))]):
        if tar is not None:
            read_tar(tar, target)
    (state,) = read_files(project, found.commit, ["state.tar"])
    if state is not None:
        read_tar(state, own, without=NOT_RESTORED)
        _mend_submodules(target, own, meta)
    if index is not None:
        (own / "index").write_bytes(index)
    _set_modes(target, files["modes"])
    return missing


def _at(target: Path, path: str) -> bytes:
    return os.path.join(os.fsencode(target), path.encode("utf-8", "surrogateescape"))


def _run_filters(found: Rescued, target: Path, own: Path, paths: list[str]) -> list[str]:
    """Check large unchanged files out through the owner's own filters, and return those that did not come."""
    if not paths or found.head is None:
        return []
    aside = own / "index.filters"
    env = {"GIT_DIR": str(own), "GIT_WORK_TREE": str(target), "GIT_INDEX_FILE": str(aside)}
    names = b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in paths)
    try:
        git("read-tree", found.head, at=target, env=env)
        done = try_git(
            "checkout-index", "-f", "-q", "-z", "--stdin", at=target, stdin=names, env=env, patience=RESTORE_TIMEOUT_S
        )
    finally:
        aside.unlink(missing_ok=True)
    return paths if done.returncode != 0 else []


def _mend_submodules(target: Path, own: Path, meta: dict[str, Any]) -> None:
    """Point submodules, whose repositories lie beside the worktree's index, at their new place."""
    old = meta["own"]
    modules = own / "modules"
    if old is None or not modules.is_dir():
        return
    for path in meta["nested"]:
        pointer = Path(os.fsdecode(_at(target, path)))
        if not pointer.is_file() or pointer.is_symlink():
            continue
        said = pointer.read_text(errors="surrogateescape").strip().removeprefix("gitdir: ")
        meant = os.path.normpath(os.path.join(meta["worktree"], os.path.dirname(path), said))
        inside = os.path.relpath(meant, old)
        if inside.startswith("..") or not (own / inside).is_dir():
            continue
        moved = own / inside
        pointer.write_text(f"gitdir: {os.path.relpath(moved, pointer.parent)}\n", errors="surrogateescape")
        place = os.path.relpath(pointer.parent, moved)
        git("config", "--file", str(moved / "config"), "core.worktree", place, at=own)


def _set_modes(target: Path, modes: dict[str, int]) -> None:
    """Give every file and folder the mode that it had: those that are not listed had the usual one."""
    for folder, _, names in os.walk(os.fsencode(target), topdown=False):
        relative = os.path.relpath(folder, os.fsencode(target))
        for name in names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and not _is_in_repository(relative, name):
                usual = 0o755 if status.st_mode & 0o100 else 0o644
                own = name if relative == b"." else relative + b"/" + name
                _set_mode(path, status.st_mode, modes.get(own.decode("utf-8", "surrogateescape"), usual))
        if relative != b"." and not _is_in_repository(relative, b""):
            _set_mode(folder, os.lstat(folder).st_mode, modes.get(relative.decode("utf-8", "surrogateescape"), 0o755))


def _is_in_repository(folder: bytes, name: bytes) -> bool:
    """Say whether a path belongs to what was kept as a tar, which has its modes already."""
    return b".git" in (part.lower() for part in (*folder.split(b"/"), name))


def _set_mode(path: bytes, now: int, wanted: int) -> None:
    if stat.S_IMODE(now) != wanted:
        os.chmod(path, wanted)
