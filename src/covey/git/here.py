"""The checkout that a person stands in: its top, its commits in any name, and files that git should not show there."""

from __future__ import annotations

import os
from pathlib import Path

from covey.errors import Invalid
from covey.files import write_whole
from covey.git.project import Project
from covey.git.run import git, try_git


def top(folder: Path) -> Path | None:
    """Return the top of the checkout around a folder, None where there is none."""
    asked = try_git("rev-parse", "--show-toplevel", at=folder, discover=True)
    return Path(os.fsdecode(asked.stdout).removesuffix("\n")) if asked.returncode == 0 else None


def below_top(folder: Path) -> str | None:
    """Return the path from the top of the checkout to a folder, None where there is no checkout."""
    asked = try_git("rev-parse", "--show-prefix", at=folder, discover=True)
    return asked.stdout.decode().strip() if asked.returncode == 0 else None


def commit_named(folder: Path, name: str) -> str:
    """Return the whole hash of a commit, in whatever way git names it here."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    asked = try_git(*words, at=folder, discover=True)
    if asked.returncode != 0:
        raise Invalid(f"git knows no commit {name[:80]!r} here.", hint="git log shows the commits.")
    return asked.stdout.decode().strip()


def exclude(project: Project, checkout: Path, path: Path, lines: str) -> None:
    """Keep git from showing a file as new, with some lines in its own list, unless it is ignored or committed."""
    if try_git("check-ignore", "--quiet", str(path), at=checkout, discover=True).returncode == 0:
        return
    if try_git("ls-files", "--error-unmatch", str(path), at=checkout, discover=True).returncode == 0:
        return  # somebody has committed it, and will see the change
    excluded = project.common / "info" / "exclude"
    excluded.parent.mkdir(parents=True, exist_ok=True)
    text = excluded.read_text(encoding="utf-8", errors="surrogateescape") if excluded.exists() else ""
    gap = "" if not text or text.endswith("\n") else "\n"
    write_whole(excluded, f"{text}{gap}{lines}")


def include(project: Project, name: Path, lines: str) -> None:
    """Take lines out of git's list again, unless another checkout still has the file that they were written for."""
    listed = git("worktree", "list", "--porcelain", "-z", at=project.common).decode(errors="surrogateescape")
    checkouts = [line.removeprefix("worktree ") for line in listed.split("\0") if line.startswith("worktree ")]
    excluded = project.common / "info" / "exclude"
    if excluded.exists() and not any((Path(checkout) / name).exists() for checkout in checkouts):
        text = excluded.read_text(encoding="utf-8", errors="surrogateescape")
        if lines in text:
            write_whole(excluded, text.replace(lines, "", 1))
