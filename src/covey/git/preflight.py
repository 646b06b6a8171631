"""Whether covey can look after a repository: what it cannot do well it refuses, before anything is begun."""

from __future__ import annotations

import re
import shutil
import time
from functools import lru_cache
from pathlib import Path

from covey.errors import Refused, ToolFailed
from covey.git.project import SUBMODULES, Project
from covey.git.run import git, try_git

OLDEST = (2, 39)
"""The first git that merges without a checkout."""
_LISTING_TIMEOUT_S = 300.0
_LFS = re.compile(rb"\bfilter=lfs\b")


def unfit(project: Project, main: str) -> Refused | None:
    """Return why covey cannot look after this repository, in one sentence, or None if it can."""
    said = git("version", at=Path("/"), discover=True).decode(errors="replace")
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST:
        wanted = f"git {OLDEST[0]}.{OLDEST[1]} or newer"
        return Refused(f"covey needs {wanted}, and this is {said.strip()}: install a newer one.")
    storage = try_git("config", "extensions.refStorage", at=project.common).stdout.decode().strip()
    if storage not in ("", "files"):
        return Refused(f"This repository keeps its refs as {storage}, and covey works only with those kept as files.")
    if try_git("show-ref", "--verify", "--quiet", "refs/heads/covey", at=project.common).returncode == 0:
        return Refused("There is a branch called covey, so that no branch covey/<task> can be made: rename it.")
    return _unfit_content(project, main)


def can_write(project: Project) -> bool:
    """Say whether git works here at all: it is there, and the disk takes what it writes."""
    try:
        done = try_git("hash-object", "-w", "--stdin", at=project.common, stdin=f"{time.time_ns()}\n".encode())
    except ToolFailed:
        return False
    return done.returncode == 0


def _unfit_content(project: Project, main: str) -> Refused | None:
    asked = try_git("rev-parse", "--verify", "--quiet", f"refs/heads/{main}^{{tree}}", at=project.common)
    if asked.returncode != 0:
        return None
    has_modules, has_lfs = _content(project.common, asked.stdout.decode().strip())
    if has_modules:
        return Refused(f"{main} has submodules, and covey does not look after those.", hint=SUBMODULES)
    extra = project.common / "info" / "attributes"
    if not has_lfs and not (extra.is_file() and _LFS.search(extra.read_bytes())):
        return None
    own_programs = Path(git("--exec-path", at=Path("/"), discover=True).decode().strip())
    if shutil.which("git-lfs") is None and not (own_programs / "git-lfs").exists():
        why = f"{main} keeps files in Git LFS, and git-lfs is not installed: install it, then run git lfs install."
        return Refused(why)
    if not any(try_git("config", f"filter.lfs.{kind}", at=project.common).stdout for kind in ("process", "smudge")):
        return Refused(f"{main} keeps files in Git LFS, which is not set up for you: run git lfs install.")
    return None


@lru_cache(maxsize=16)
def _content(common: Path, tree: str) -> tuple[bool, bool]:
    """Say whether a tree has submodules, and whether it has files in Git LFS; a tree never changes."""
    listed = git("ls-tree", "-r", "-z", "--full-tree", tree, at=common, patience=_LISTING_TIMEOUT_S).split(b"\0")
    has_modules = any(line.startswith(b"160000 ") or line.endswith(b"\t.gitmodules") for line in listed)
    attributes = [line.split()[2] for line in listed if line.endswith((b"/.gitattributes", b"\t.gitattributes"))]
    asked = b"".join(blob + b"\n" for blob in attributes)
    content = git("cat-file", "--batch", at=common, stdin=asked, patience=_LISTING_TIMEOUT_S) if asked else b""
    return has_modules, _LFS.search(content) is not None
