"""Scratch repositories for tests: real git, an identity by environment only, and none of this machine's settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
"""Who commits in a scratch repository."""


def user_env() -> dict[str, str]:
    """Return the environment of a person who has no settings of git but a name."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C", **IDENTITY}


def git_out(path: Path, *words: str, env: dict[str, str] | None = None, stdin: str | None = None) -> str:
    """Run git in a folder as its user and return what it prints, without the last line end."""
    done = subprocess.run(
        ["git", *words],
        cwd=path,
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**user_env(), **(env or {})},
    )
    assert done.returncode == 0, f"git {' '.join(words)} in {path}: {done.stderr}"
    return done.stdout.rstrip("\n")


def make_repository(path: Path, files: dict[str, str] | None = None, *, bare: bool = False) -> Path:
    """Make a repository whose branch main has one commit, holding `files` (one README when not said)."""
    path.mkdir(parents=True, exist_ok=True)
    git_out(path, "init", "--quiet", "--initial-branch=main", *(["--bare"] if bare else []))
    content = {"README.md": "A scratch repository.\n"} if files is None else files
    if not bare:
        return commit_files(path, content, "Begin")
    blobs = {name: git_out(path, "hash-object", "-w", "--stdin", stdin=text) for name, text in content.items()}
    lines = "".join(f"100644 {blob}\t{name}\n" for name, blob in blobs.items())
    aside = {"GIT_INDEX_FILE": str(path / "scratch.index")}
    git_out(path, "update-index", "--add", "--index-info", stdin=lines, env=aside)
    tree = git_out(path, "write-tree", env=aside)
    git_out(path, "update-ref", "refs/heads/main", git_out(path, "commit-tree", tree, "-m", "Begin"))
    (path / "scratch.index").unlink()
    return path


def commit_files(path: Path, files: dict[str, str], message: str) -> Path:
    """Write files into a checkout and commit exactly those there, whatever hooks it has."""
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    if files:
        git_out(path, "add", "--force", "--", *files)
    git_out(path, "commit", "--quiet", "--allow-empty", "--no-verify", "--message", message)
    return path
