"""Which repositories covey looks after: the unusual ones work, and what does not work is refused in one sentence."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from covey.git.guard.guard import write_guard
from covey.git.preflight import unfit
from covey.git.project import Project, find
from covey.git.worktrees.worktrees import Worktrees, default_folder
from tests.worlds.repositories import commit_files, git_out, make_repository


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def prepare(repository: Path, name: str = "ada", branch: str = "covey/T-1") -> Path:
    """Make a worktree as a run does, in a repository that is fit."""
    project = find(repository)
    assert unfit(project, "main") is None
    worktrees = Worktrees(project, default_folder(project, "../{repo}.worktrees"))
    worktrees.prepare(name, branch, worktrees.upstream.newest("main", "origin"))
    write_guard(project, project.state / "guard")
    path = worktrees.path(name)
    assert git_out(path, "status", "--porcelain") == ""
    return path


def why(project: Project) -> str:
    error = unfit(project, "main")
    return "" if error is None else error.message


def write_program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_plain_repository_is_fit_and_so_is_an_empty_one(tmp_path: Path) -> None:
    assert unfit(find(make_repository(tmp_path / "repo")), "main") is None
    assert unfit(find(make_repository(tmp_path / "bare.git", bare=True)), "main") is None
    git_out(tmp_path, "init", "--quiet", "empty")
    assert unfit(find(tmp_path / "empty"), "main") is None


def test_submodules_are_refused(tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    repository = make_repository(tmp_path / "repo")
    git_out(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "lib/other")
    assert unfit(find(repository), "main") is None, "not on main yet"
    git_out(repository, "commit", "--quiet", "--message", "Add a submodule")
    assert why(find(repository)) == "main has submodules, and covey does not look after those."
    git_out(repository, "rm", "--quiet", "--cached", ".gitmodules")
    git_out(repository, "commit", "--quiet", "--message", "A link alone")
    assert "submodules" in why(find(repository))


def test_lfs_is_refused_until_it_is_installed_and_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "repo", {"assets/.gitattributes": "*.bin filter=lfs -text\n"})
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(next(p for d in os.get_exec_path() if (p := Path(d) / name).exists()))
    monkeypatch.setenv("PATH", str(programs))
    assert "git-lfs is not installed" in why(find(repository))
    write_program(programs, "git-lfs", "exit 0")
    assert "run git lfs install" in why(find(repository))
    git_out(repository, "config", "filter.lfs.process", "git-lfs filter-process")
    assert unfit(find(repository), "main") is None


def test_lfs_that_is_named_in_the_repositorys_own_attributes_counts_too(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("*.bin filter=lfs\n")
    assert "Git LFS" in why(find(repository))


def test_an_old_git_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = find(make_repository(tmp_path / "repo"))
    write_program(tmp_path / "old", "git", "echo git version 2.34.1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}{os.pathsep}{os.environ['PATH']}")
    assert "covey needs git 2.39 or newer, and this is git version 2.34.1" in why(project)


def test_a_branch_called_covey_is_refused(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    git_out(repository, "branch", "covey")
    assert "rename it" in why(find(repository))


def test_refs_that_are_no_files_are_refused(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    git_out(repository, "config", "extensions.refStorage", "reftable")
    assert "reftable" in why(find(repository))


# The unusual that works


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_a_sparse_checkout_is_as_sparse_in_a_worktree_and_stays_so(tmp_path: Path, cone: str) -> None:
    files = {"apps/web/x": "1\n", "apps/api/x": "1\n", "lib/x": "1\n", "top": "1\n"}
    repository = make_repository(tmp_path / "repo", files)
    git_out(repository, "sparse-checkout", "set", cone, "apps/web" if cone == "--cone" else "/apps/web/")
    settings = (repository / ".git" / "config").read_bytes()
    for branch in ("covey/T-1", "covey/T-2"):
        path = prepare(repository, branch=branch)
        assert (path / "apps/web/x").exists()
        assert not (path / "lib").exists()
        (path / "apps/web/x").write_text("2\n")
        git_out(path, "commit", "--quiet", "--all", "--message", "Inside")
        assert git_out(path, "diff", "--name-only", "main", "HEAD") == "apps/web/x"
    assert (repository / ".git" / "config").read_bytes() == settings
    assert git_out(repository, "status", "--porcelain") == ""


def test_a_subfolder_of_a_large_repository_leads_to_the_whole(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", {"apps/web/x": "1\n", "lib/x": "1\n"})
    path = prepare(repository / "apps" / "web")
    assert path == tmp_path / "repo.worktrees" / "ada"
    assert (path / "lib" / "x").exists()


def test_a_shallow_clone_works(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    for number in range(5):
        commit_files(origin, {"x": f"{number}\n"}, f"Commit {number}")
    git_out(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", "repo")
    commit_files(origin, {"x": "newer\n"}, "Newer")
    path = prepare(tmp_path / "repo")
    assert (path / "x").read_text() == "newer\n", "fetched"
    commit_files(path, {"y": "1\n"}, "Work")
    assert (prepare(tmp_path / "repo") / "y").exists()


def test_a_partial_clone_fetches_what_many_worktrees_need_at_once(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", {f"f{number}": f"{number}\n" for number in range(50)})
    git_out(origin, "config", "uploadpack.allowFilter", "true")
    git_out(tmp_path, "clone", "--quiet", "--filter=blob:none", "--no-checkout", f"file://{origin}", "repo")
    with ThreadPoolExecutor(5) as pool:
        paths = list(pool.map(lambda n: prepare(tmp_path / "repo", f"s{n}", f"covey/T-{n}"), range(5)))
    assert all((path / "f49").read_text() == "49\n" for path in paths)


def test_filters_of_the_user_change_files_on_their_way_in_and_out(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", {".gitattributes": "*.up filter=shout\n"})
    git_out(repository, "config", "filter.shout.smudge", "tr a-z A-Z")
    git_out(repository, "config", "filter.shout.clean", "tr A-Z a-z")
    git_out(repository, "config", "filter.shout.required", "true")
    commit_files(repository, {"x.up": "quiet\n"}, "Filtered")
    assert git_out(repository, "cat-file", "blob", "main:x.up") == "quiet"
    for branch in ("covey/T-1", "covey/T-2"):
        path = prepare(repository, branch=branch)
        assert (path / "x.up").read_text() == "QUIET\n"
        (path / "x.up").write_text("DIRTY\n")


def test_line_ends_are_as_the_attributes_say(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", {".gitattributes": "*.bat eol=crlf\n", "x.bat": "one\n"})
    assert (prepare(repository) / "x.bat").read_bytes() == b"one\r\n"


def test_a_repository_with_a_separate_git_folder_works(tmp_path: Path) -> None:
    git_out(tmp_path, "init", "--quiet", "--initial-branch=main", f"--separate-git-dir={tmp_path}/x.git", "repo")
    commit_files(tmp_path / "repo", {"a": "1\n"}, "Begin")
    path = prepare(tmp_path / "repo")
    assert (path / "a").exists()
    assert path == tmp_path / "repo.worktrees" / "ada"


def test_a_bare_repository_with_worktrees_around_it_works(tmp_path: Path) -> None:
    bare = make_repository(tmp_path / "site" / ".bare", bare=True)
    (tmp_path / "site" / ".git").write_text("gitdir: ./.bare\n")
    git_out(bare, "worktree", "add", "--quiet", str(tmp_path / "site" / "main"), "main")
    for place in (bare, tmp_path / "site" / "main"):
        assert (prepare(place) / "README.md").exists()
