"""What lies in a session's worktree when its run has ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from covey.core.judge import is_cache
from covey.git.project import Project
from covey.git.run import git, try_git

_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "status.showUntrackedFiles=all")


@dataclass(frozen=True)
class Tree:
    """The tip of the task's branch, whether it has commits that its base lacks, and what was not committed."""

    there: bool
    head: str | None = None
    ahead: bool = False
    dirty: tuple[str, ...] = ()


def look(project: Project, path: Path, branch: str, base: str) -> Tree:
    """Look at a worktree without changing anything in it."""
    if not path.exists():
        return Tree(there=False)
    tip = try_git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", at=project.common)
    head = tip.stdout.decode().strip() if tip.returncode == 0 else None
    ahead = False
    if head is not None:
        ahead = git("rev-list", "--count", head, f"^{base}", at=project.common).strip() != b"0"
    return Tree(True, head, ahead, _dirty(path))


def _dirty(path: Path) -> tuple[str, ...]:
    asked = try_git(*_QUIET, "status", "--porcelain", "-z", "--no-renames", at=path, patience=300)
    if asked.returncode != 0:
        return (f"(git cannot read the worktree: {asked.stderr.decode(errors='replace').strip()[:200]})",)
    entries = [entry for entry in asked.stdout.decode(errors="replace").split("\0") if entry]
    return tuple(entry[3:] for entry in entries if not (entry.startswith("??") and is_cache(entry[3:])))
