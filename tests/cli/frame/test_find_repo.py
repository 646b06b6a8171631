"""The quick way to the project never disagrees with git: it says the same, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.cli.frame.find_repo import quick_common, quick_place
from covey.git.project import find
from tests.worlds.shell import Shell


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES"):
        monkeypatch.delenv(name, raising=False)


def _agrees(folder: Path) -> bool:
    """Say whether the quick way has an answer here; if it has, it must be git's."""
    project = find(folder)
    common = quick_common(str(folder.resolve()))
    if common is not None:
        assert Path(common) == project.common
    place = quick_place(str(folder))
    if place is not None:
        assert (Path(place).parent, Path(place)) == (project.root, project.common)
    return place is not None


def test_plain_checkouts_subfolders_and_worktrees_are_found_quickly(bare_shell: Shell, tmp_path: Path) -> None:
    deep = bare_shell.folder / "a" / "b"
    deep.mkdir(parents=True)
    linked = tmp_path / "linked"
    bare_shell.git("worktree", "add", "-q", str(linked))
    alias = tmp_path / "alias"
    alias.symlink_to(deep)
    for folder in (bare_shell.folder, deep, linked, alias):
        assert _agrees(folder), folder


def test_unusual_repositories_are_left_to_git(bare_shell: Shell, tmp_path: Path) -> None:
    bare_shell.git("clone", "-q", "--bare", str(bare_shell.folder), str(tmp_path / "store.git"))
    bare_shell.git("init", "-q", f"--separate-git-dir={tmp_path / 'apart'}", str(tmp_path / "split"))
    moved = bare_shell.at(tmp_path / "moved")
    moved.folder.mkdir()
    moved.git("init", "-q")
    (tmp_path / "tree").mkdir()
    moved.git("config", "core.worktree", str(tmp_path / "tree"))
    library = bare_shell.at(tmp_path / "library")
    library.folder.mkdir()
    library.git("init", "-q")
    library.git("commit", "-q", "--allow-empty", "-m", "begin")
    bare_shell.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.folder), "lib")
    for folder in (
        tmp_path / "store.git", tmp_path / "split", moved.folder, bare_shell.folder / "lib", bare_shell.folder / ".git",
    ):  # fmt: skip
        assert not _agrees(folder), folder


def test_settings_of_git_in_the_environment_are_left_to_git(bare_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(bare_shell.folder / ".git"))
    assert quick_place(str(bare_shell.folder)) is None
    assert quick_common(str(bare_shell.folder)) is None
