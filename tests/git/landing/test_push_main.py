"""Pushing: one commit to one branch of a remote, never by force."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from covey.git import project as projects
from covey.git.candidates.candidates import resolve
from covey.git.landing.push_main import Behind, Failed, Pushed, push
from covey.git.project import Project
from tests.worlds.repositories import commit_files, git_out, make_repository


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "remote.git", {"a": "a\n"}, bare=True)


@pytest.fixture
def path(tmp_path: Path, remote: Path) -> Path:
    git_out(tmp_path, "clone", "-q", str(remote), "repo")
    return tmp_path / "repo"


@pytest.fixture
def project(path: Path) -> Project:
    return projects.find(path)


def head(path: Path, name: str = "main") -> str:
    return git_out(path, "rev-parse", name)


def elsewhere(remote: Path, tmp_path: Path) -> str:
    """Let somebody else push to main, and return what they pushed."""
    git_out(tmp_path, "clone", "-q", str(remote), "other")
    commit_files(tmp_path / "other", {"theirs": "x\n"}, "Theirs")
    git_out(tmp_path / "other", "push", "-q", "origin", "main")
    return head(remote)


def hook(project: Project, text: str) -> None:
    file = project.common / "hooks" / "pre-push"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_a_commit_is_pushed_and_pushing_twice_is_pushing_once(path: Path, remote: Path, project: Project) -> None:
    before = head(remote)
    commit_files(path, {"b": "b\n"}, "Ours")
    git_out(path, "tag", "-a", "-m", "tag", "v1")
    for expected in (before, before, head(path), None):
        assert push(project, "origin", "main", head(path), expected) == Pushed(head(path))
    assert head(remote) == head(path)
    assert git_out(remote, "tag") == ""


def test_a_commit_that_no_branch_names_makes_a_new_branch(path: Path, remote: Path, project: Project) -> None:
    commit = git_out(path, "commit-tree", "main^{tree}", "-p", "main", "-m", "No branch")
    assert push(project, "origin", "integration", commit) == Pushed(commit)
    assert head(remote, "integration") == commit


def test_a_remote_that_has_moved_on_is_fetched_and_not_overwritten(
    path: Path, remote: Path, project: Project, tmp_path: Path
) -> None:
    before = head(remote)
    theirs = elsewhere(remote, tmp_path)
    commit_files(path, {"b": "b\n"}, "Ours")
    assert push(project, "origin", "main", head(path), before) == Behind(theirs)
    assert head(remote) == theirs and resolve(project, theirs) == theirs


def test_a_branch_that_somebody_moved_back_or_deleted_is_left_alone(path: Path, remote: Path, project: Project) -> None:
    before = head(remote)
    commit_files(path, {"b": "b\n"}, "Ours")
    expected = head(path)
    assert push(project, "origin", "main", expected, before) == Pushed(expected)
    git_out(remote, "update-ref", "refs/heads/main", before)
    commit_files(path, {"c": "c\n"}, "More")
    refused = push(project, "origin", "main", head(path), expected)
    assert isinstance(refused, Failed) and "moved back" in refused.why
    assert head(remote) == before
    git_out(remote, "update-ref", "-d", "refs/heads/main")
    refused = push(project, "origin", "main", head(path), expected)
    assert isinstance(refused, Failed) and "deleted" in refused.why


def test_a_remote_that_refuses_or_is_not_there_is_said(path: Path, remote: Path, project: Project) -> None:
    commit_files(path, {"b": "b\n"}, "Ours")
    before = head(remote)
    (remote / "hooks").mkdir(exist_ok=True)
    (remote / "hooks/update").write_text("#!/bin/sh\necho Not on Sundays\nexit 1\n")
    (remote / "hooks/update").chmod(0o755)
    refused = push(project, "origin", "main", head(path), before)
    assert isinstance(refused, Failed) and "hook declined" in refused.why
    assert refused.why.endswith('It says: "Not on Sundays"')
    gone = push(project, "nowhere", "main", head(path))
    assert isinstance(gone, Failed) and "nowhere" in gone.why


def test_the_users_hook_runs_in_the_checkout_and_may_say_no(path: Path, remote: Path, project: Project) -> None:
    commit_files(path, {"b": "b\n"}, "Ours")
    before = head(remote)
    hook(project, "pwd > ran; echo 'too late in the day' >&2; exit 1")
    assert isinstance(push(project, "origin", "main", head(path), before), Failed)
    assert (path / "ran").read_text().strip() == str(path)
    assert head(remote) == before


def test_a_hook_that_never_ends_is_a_push_that_failed(
    path: Path, remote: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_files(path, {"b": "b\n"}, "Ours")
    before = head(remote)
    hook(project, "sleep 1000")
    monkeypatch.setattr("covey.git.landing.push_main.PUSH_TIMEOUT_S", 1.0)
    failed = push(project, "origin", "main", head(path), before)
    assert isinstance(failed, Failed) and "did not end" in failed.why
    assert head(remote) == before
