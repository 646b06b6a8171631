"""Blame: from a line to its commit and what that says."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.errors import Invalid, NotFound, Refused
from covey.git import project as projects
from covey.git.blame import who
from tests.worlds.repositories import commit_files, git_out, make_repository

MESSAGE = "Say two\n\nWhy so.\n\nCovey-Task: AF-0\nCovey-Task: AF-1\nCovey-Session: ada"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = make_repository(tmp_path / "repo", {"a.txt": "1\n2\n3\n"})
    return commit_files(path, {"a.txt": "1\ntwo\n3\n"}, MESSAGE)


def test_a_line_leads_to_its_commit_and_its_trailers(path: Path) -> None:
    origin = who(projects.find(path), "a.txt", 2)
    assert origin.commit == git_out(path, "rev-parse", "HEAD")
    assert (origin.path, origin.line, origin.summary) == ("a.txt", 2, "Say two")
    assert (origin.author, origin.email) == ("Ada", "ada@example.org")
    assert origin.time == float(git_out(path, "show", "-s", "--format=%at"))
    assert origin.trailer("covey-task") == "AF-1" and origin.trailer("Covey-Cost") is None
    assert who(projects.find(path), "a.txt", 3).summary == "Begin"


def test_a_file_that_moved_is_named_as_it_was_when_the_line_was_written(path: Path) -> None:
    odd = 'b "ü"\t.txt'
    git_out(path, "mv", "a.txt", odd)
    commit_files(path, {odd: "0\n1\ntwo\n3\n"}, "Move")
    project = projects.find(path)
    origin = who(project, odd, 3)
    assert (origin.path, origin.line) == ("a.txt", 2)
    assert who(project, odd, 1).path == odd


def test_lines_of_the_checkout_that_are_not_committed_are_said(path: Path) -> None:
    (path / "a.txt").write_text("1\nnew\ntwo\n3\n")
    project = projects.find(path)
    with pytest.raises(Refused, match=r"Line 2 of a\.txt is not committed yet"):
        who(project, "a.txt", 2)
    assert who(project, "a.txt", 3).line == 2
    assert who(project, "a.txt", 2, "HEAD").summary == "Say two"


def test_what_is_not_there_is_said(path: Path) -> None:
    project = projects.find(path)
    (path / "new.txt").write_text("x\n")
    for name, rev in (("none.txt", None), ("new.txt", None), ("none.txt", "HEAD"), ("/etc/passwd", None)):
        with pytest.raises(NotFound, match="There is no file"):
            who(project, name, 1, rev)
    with pytest.raises(NotFound, match="has no line 9"):
        who(project, "a.txt", 9)
    for rev in ("nowhere", "--output=x", "0" * 40):
        with pytest.raises(NotFound, match="There is no commit"):
            who(project, "a.txt", 1, rev)
    with pytest.raises(Invalid):
        who(project, "a.txt", 0)


def test_commits_that_only_moved_lines_about_are_looked_through(path: Path) -> None:
    project = projects.find(path)
    git_out(path, "config", "blame.ignoreRevsFile", ".ignored")
    with pytest.raises(Invalid, match=r"ignoreRevsFile.*\.ignored"):
        who(project, "a.txt", 2)
    commit_files(path, {"a.txt": "1\n  two\n3\n"}, "Indent")
    (path / ".ignored").write_text(git_out(path, "rev-parse", "HEAD") + "\n")
    assert who(project, "a.txt", 2).summary == "Say two"


def test_a_bare_repository_has_lines_too(path: Path, tmp_path: Path) -> None:
    git_out(tmp_path, "clone", "-q", "--bare", str(path), "bare.git")
    assert who(projects.find(tmp_path / "bare.git"), "a.txt", 2).summary == "Say two"
