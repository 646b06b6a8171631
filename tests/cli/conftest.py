"""A repository to work in, with and without covey."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.shell import Shell, clean_environment


def _repository(folder: Path) -> Shell:
    place, home = folder / "shop", folder / "home"
    place.mkdir()
    home.mkdir()
    shell = Shell(place, clean_environment(home))
    shell.git("init", "-q", "-b", "trunk")
    shell.git("commit", "-q", "--allow-empty", "-m", "begin")
    return shell


@pytest.fixture
def bare_shell(tmp_path: Path) -> Shell:
    """Return a shell in a repository that covey does not look after yet."""
    return _repository(tmp_path)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a repository with an empty board, to be copied."""
    shell = _repository(tmp_path_factory.mktemp("template"))
    shell.ok("init")
    return shell


@pytest.fixture
def shell(template: Shell, tmp_path: Path) -> Shell:
    """Return a shell in a repository that covey looks after, without a daemon."""
    return _copy(template, tmp_path)


@pytest.fixture(scope="module")
def shared(template: Shell, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a shell with one task on its board, for tests that change nothing."""
    shell = _copy(template, tmp_path_factory.mktemp("shared"))
    shell.ok("task", "add", "There is one")
    return shell


def _copy(template: Shell, folder: Path) -> Shell:
    shutil.copytree(template.folder, folder / "shop")
    (folder / "home").mkdir()
    return Shell(folder / "shop", clean_environment(folder / "home"))


@pytest.fixture
def served(shell: Shell) -> Iterator[Shell]:
    """Return a shell in a repository whose daemon runs."""
    shell.ok("up")
    yield shell
    shell.run("down")
