"""What main has that a branch has not, as git tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.core.merging.rejection import Commit
from covey.git.candidates.commits_since import since
from covey.git.project import find
from tests.worlds.repositories import commit_files, git_out, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository whose branch `work` left main before main went on, with a merge on the way."""
    path = make_repository(tmp_path / "shop", {"lib.py": "1\n"})
    git_out(path, "checkout", "-q", "-b", "work")
    commit_files(path, {"mine.py": "1\n"}, "Mine")
    git_out(path, "checkout", "-q", "main")
    commit_files(path, {"lib.py": "2\n"}, "Change lib")
    git_out(path, "checkout", "-q", "-b", "side")
    commit_files(path, {"a name\twith tab": "1\n", "sub/b.py": "1\n"}, "On the side")
    git_out(path, "checkout", "-q", "main")
    git_out(path, "merge", "-q", "--no-ff", "-m", "Merge the side\n\nmore", "side")
    return path


def test_commits_of_main_come_newest_first_with_the_paths_that_they_brought(repository: Path) -> None:
    names = git_out(repository, "log", "--first-parent", "--format=%H", "work..main").split()
    found = since(find(repository), "work", "main")
    assert found.commits == (
        Commit(names[0], "Ada", "Merge the side", ("a name\twith tab", "sub/b.py")),
        Commit(names[1], "Ada", "Change lib", ("lib.py",)),
    )
    assert found.base == git_out(repository, "merge-base", "work", "main")
    assert (found.onto, found.paths) == ("main", ("mine.py",))


def test_a_branch_that_holds_main_has_missed_nothing(repository: Path) -> None:
    git_out(repository, "checkout", "-q", "work")
    git_out(repository, "merge", "-q", "-m", "Bring main in", "main")
    assert since(find(repository), "work", "main").commits == ()


def test_a_branch_of_another_history_has_missed_all(repository: Path) -> None:
    git_out(repository, "checkout", "-q", "--orphan", "other")
    git_out(repository, "commit", "-q", "-m", "Begin elsewhere")
    found = since(find(repository), "other", "main")
    assert found.base == "" and [commit.subject for commit in found.commits][-1] == "Begin"
