"""Who works in a checkout: a git command in the middle of something, and not one that waits for a person."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from covey.git.worktrees.foreign_git import at_work, await_rest
from tests.worlds.repositories import make_repository
from tests.worlds.serving import wait_until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"folder/a": "a\n"})


def _busy(path: Path, at: Path) -> subprocess.Popen[bytes]:
    """Let git work for long, and with little memory: on a large file of nothing, again and again."""
    with (path.parent / "large").open("wb") as large:
        large.truncate(400 * 1024**2)
    return subprocess.Popen(["git", "hash-object", *[large.name] * 200], cwd=at, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("place", ["", "folder"])
def test_a_command_that_works_is_seen_until_it_has_ended(path: Path, tmp_path: Path, place: str) -> None:
    with _busy(path, path / place) as busy:
        try:
            wait_until(lambda: at_work([tmp_path / "elsewhere", path]), "somebody at work")
            assert not at_work([tmp_path / "elsewhere"])
        finally:
            busy.kill()
    assert await_rest([path], 60.0)


def test_a_command_that_waits_or_works_in_the_folder_of_git_is_not_waited_for(path: Path) -> None:
    waits = subprocess.Popen(["git", "cat-file", "--batch"], cwd=path, stdin=subprocess.PIPE)
    with waits, _busy(path, path / ".git") as ours:
        assert await_rest([path], 60.0)
        ours.kill()
        waits.kill()
