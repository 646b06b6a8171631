"""covey's own git in a checkout that a session has prepared: nothing of the session's runs, and the truth is told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from covey.errors import CoveyError, ToolFailed
from covey.git import diffstat, review
from covey.git.candidates import candidates, signing
from covey.git.project import Project, find
from covey.git.rescue.rescue import rescue
from covey.git.run import NO_PROGRAMS, git, try_git
from covey.git.worktrees import checkout_status, task_branches, worktree_paths
from covey.git.worktrees.worktrees import Worktrees, default_folder
from tests.worlds.repositories import commit_files, git_out, make_repository

BRANCH = "covey/T-1"
Attack = Callable[["Scene"], None]


class Scene:
    """A session's worktree with one change in it, and a program that leaves a mark when it is run."""

    def __init__(self, folder: Path) -> None:
        self.project: Project = find(make_repository(folder / "repo", {"a.txt": "a\n", "b.txt": "b\n"}))
        self.worktrees = Worktrees(self.project, default_folder(self.project, "../{repo}.worktrees"))
        self.base = self.worktrees.prepare("ann", BRANCH, "main")
        self.path = self.worktrees.path("ann")
        entry = self.worktrees.git_dir("ann")
        assert entry is not None
        self.entry = entry
        self.mark = folder / "ran"
        self.program = folder / "program"
        self.program.write_text(f"#!/bin/sh\necho $0 >>{self.mark}\ncat\n")
        self.program.chmod(0o755)
        (self.path / "a.txt").write_text("changed\n")
        (self.path / "new.txt").write_text("new\n")
        checkout_status.settings_of_files(self.project.common)

    def settings(self) -> str:
        """Return settings that let git run the program wherever it may."""
        run = self.program
        return (
            f"[core]\n fsmonitor = {run}\n hooksPath = {run.parent}\n pager = {run}\n editor = {run}\n"
            f' sshCommand = {run}\n alternateRefsCommand = {run}\n[filter "x"]\n clean = {run}\n smudge = {run}\n'
            f' required = true\n[diff]\n external = {run}\n[diff "x"]\n command = {run}\n textconv = {run}\n'
            f"[log]\n showSignature = true\n[gpg]\n program = {run}\n"
        )

    def repository(self) -> Path:
        """Make a repository of the session's own, with such settings, that holds the same commits."""
        own = self.path.parent / "evil"
        git_out(self.path.parent, "clone", "--quiet", "--bare", str(self.project.common), str(own))
        with (own / "config").open("a") as file:
            file.write(f"[core]\n bare = false\n{self.settings()}")
        return own

    def attributes(self) -> None:
        """Let all files be filtered and compared by the program."""
        (self.project.common / "info").mkdir(exist_ok=True)
        (self.project.common / "info" / "attributes").write_text("* filter=x diff=x\n")
        (self.path / ".gitattributes").write_text("* filter=x diff=x\n")

    def looks(self) -> dict[str, object]:
        """Look at the worktree in every way in which covey does."""
        project, path = self.project, self.path
        found = task_branches.look(project, path, BRANCH, self.base)
        with review.working(project, path) as (made, env):
            shown = git("ls-tree", "-r", "--name-only", made, at=project.common, env=env).decode().split()
        return {
            "dirty": {name for name in found.dirty if name != ".gitattributes"},
            "unsaved": {write.path for write in worktree_paths.unsaved(project, path, 1.0)} - {".gitattributes"},
            "size": diffstat.size_of(project, path, self.base).files - (path / ".gitattributes").exists(),
            "is dirty": review.is_dirty(project, path),
            "working": {*shown} - {".gitattributes"},
        }


TRUTH = {
    "dirty": {"a.txt", "new.txt"},
    "unsaved": {"a.txt", "new.txt"},
    "size": 2,
    "is dirty": True,
    "working": {"a.txt", "b.txt", "new.txt"},
}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    checkout_status.settings_of_files.cache_clear()
    return Scene(tmp_path)


def _common_elsewhere(scene: Scene) -> None:
    (scene.entry / "commondir").write_text(f"{scene.repository()}\n")


def _checkout_elsewhere(scene: Scene) -> None:
    (scene.path / ".git").write_text(f"gitdir: {scene.repository()}\n")


def _entry_names_another_place(scene: Scene) -> None:
    (scene.entry / "gitdir").write_text(f"{scene.project.root}/.git\n")


def _settings_of_the_worktree(scene: Scene) -> None:
    git_out(scene.project.root, "config", "extensions.worktreeConfig", "true")
    (scene.entry / "config.worktree").write_text(scene.settings())


def _settings_of_all(scene: Scene) -> None:
    with (scene.project.common / "config").open("a") as file:
        file.write(scene.settings())


def _included(scene: Scene) -> None:
    (scene.path.parent / "more").write_text(scene.settings())
    with (scene.project.common / "config").open("a") as file:
        file.write(f"[include]\n path = {scene.path.parent / 'more'}\n")


def _repository_elsewhere(scene: Scene) -> None:
    (scene.project.common / "commondir").write_text(f"{scene.repository()}\n")


def _repository_within(scene: Scene) -> None:
    (scene.project.common / ".git").write_text(f"gitdir: {scene.repository()}\n")


def _files_elsewhere(scene: Scene) -> None:
    git_out(scene.project.root, "config", "extensions.worktreeConfig", "true")
    (scene.entry / "config.worktree").write_text(f"[core]\n worktree = {scene.project.root}\n")


def _index_of_a_nested_repository(scene: Scene) -> None:
    nested = make_repository(scene.path / "sub")
    head = git_out(nested, "rev-parse", "HEAD")
    git_out(scene.path, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    with (nested / ".git" / "config").open("a") as file:
        file.write(scene.settings())
    (nested / "README.md").write_text("changed\n")
    (scene.path / ".gitmodules").write_text('[submodule "sub"]\n path = sub\n url = ./sub\n ignore = none\n')


ATTACKS: dict[str, Attack] = {
    "commondir": _common_elsewhere,
    ".git of the worktree": _checkout_elsewhere,
    "gitdir": _entry_names_another_place,
    "config.worktree": _settings_of_the_worktree,
    "core.worktree": _files_elsewhere,
    "config": _settings_of_all,
    "include": _included,
    "commondir of the repository": _repository_elsewhere,
    ".git in the repository": _repository_within,
}


def _run_plainly(scene: Scene) -> None:
    for place in (scene.path, scene.project.root):
        subprocess.run(["git", "--no-optional-locks", "status"], cwd=place, capture_output=True, check=False)


def test_a_worktree_that_nobody_tampered_with_is_told_as_it_is(scene: Scene) -> None:
    assert scene.looks() == TRUTH


@pytest.mark.parametrize("how", ATTACKS)
def test_what_a_session_makes_of_its_worktree_is_neither_run_nor_believed(scene: Scene, how: str) -> None:
    ATTACKS[how](scene)
    scene.attributes()
    assert scene.looks() == TRUTH
    assert not scene.mark.exists()
    if how not in ("gitdir", "core.worktree", ".git in the repository"):
        _run_plainly(scene)
        assert scene.mark.exists(), "a plain git would have run it"


@pytest.mark.parametrize("how", ATTACKS)
def test_a_rescue_and_questions_about_commits_run_nothing_of_a_session(scene: Scene, how: str) -> None:
    ATTACKS[how](scene)
    scene.attributes()
    project = scene.project
    main = candidates.resolve(project, "refs/heads/main")
    assert main == scene.base
    assert candidates.is_ancestor(project, main, f"refs/heads/{BRANCH}")
    git("log", "-1", at=project.common)
    assert rescue(project, scene.path, session="ann", why="a test", task="T-1", at=1.0) is not None
    assert not scene.mark.exists()


def test_a_worktree_is_prepared_anew_without_what_its_session_configured(scene: Scene) -> None:
    _settings_of_the_worktree(scene)
    (scene.entry / "commondir").write_text(f"{scene.repository()}\n")
    scene.attributes()
    assert scene.worktrees.prepare("ann", BRANCH, "main") == scene.base
    assert ((scene.path / "a.txt").read_text(), scene.mark.exists()) == ("a\n", False)
    assert not (scene.entry / "config.worktree").exists()


def test_how_sparse_a_worktree_is_stays(scene: Scene) -> None:
    git_out(scene.path, "sparse-checkout", "set", "--no-cone", "b.txt")
    scene.worktrees.prepare("ann", BRANCH, "main")
    assert not (scene.path / "a.txt").exists()
    assert (scene.path / "b.txt").exists()


def test_commits_are_signed_by_the_program_that_was_named_before(scene: Scene) -> None:
    signing.programs(scene.project.common)
    with (scene.project.common / "config").open("a") as file:
        file.write(f'[gpg]\n program = {scene.program}\n[gpg "ssh"]\n program = {scene.program}\n')
    author = candidates.Author("Ada", "ada@example.org")
    with pytest.raises(ToolFailed, match="could not be signed"):  # by gpg itself, which has no such key
        candidates.commit_tree(scene.project, f"{scene.base}^{{tree}}", (), "Signed\n", author, key="nobody")
    assert not scene.mark.exists()


def test_a_repository_within_a_worktree_is_not_asked_by_another_git(scene: Scene) -> None:
    _index_of_a_nested_repository(scene)
    found = scene.looks()
    assert {"a.txt", "new.txt"} <= set(task_branches.look(scene.project, scene.path, BRANCH, scene.base).dirty)
    assert found["is dirty"] is True
    assert not scene.mark.exists()
    _run_plainly(scene)
    assert scene.mark.exists(), "a plain git would have run it"


def test_a_filter_that_was_there_before_goes_on_working(scene: Scene) -> None:
    clean = scene.program.with_name("clean")
    clean.write_text("#!/bin/sh\ntr A-Z a-z\n")
    clean.chmod(0o755)
    git_out(scene.project.root, "config", "filter.low.clean", str(clean))
    commit_files(scene.path, {".gitattributes": "*.low filter=low\n", "x.low": "TEXT\n", "a.txt": "a\n"}, "Filtered")
    (scene.path / "new.txt").unlink()
    (scene.path / "x.low").write_text("TEXT\n")  # as it was, written anew
    checkout_status.settings_of_files.cache_clear()
    assert task_branches.look(scene.project, scene.path, BRANCH, scene.base).dirty == ()


def test_an_index_that_is_a_pipe_is_an_error_and_no_end_of_waiting(scene: Scene) -> None:
    (scene.entry / "index").unlink()
    os.mkfifo(scene.entry / "index")
    assert "git cannot read the worktree" in task_branches.look(scene.project, scene.path, BRANCH, scene.base).dirty[0]
    with pytest.raises(CoveyError):
        worktree_paths.unsaved(scene.project, scene.path, 1.0)


def test_git_is_asked_about_named_repositories_only(scene: Scene) -> None:
    with pytest.raises(ToolFailed, match="is not a repository"):
        try_git("status", at=scene.path)
    assert try_git("status", at=scene.path, discover=True).returncode == 0, "where a person stands"


def test_what_lets_git_run_a_program_is_off_and_settings_are_told_as_they_are(scene: Scene) -> None:
    _settings_of_all(scene)
    shown = git("config", "core.hooksPath", at=scene.project.common).decode().strip()
    assert shown == str(scene.program.parent)
    printed = git("var", "-l", at=scene.project.common).decode()
    values = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    assert {key: values[key.lower()] for key in NO_PROGRAMS} == NO_PROGRAMS


@pytest.mark.parametrize("bare", [False, True])
def test_a_repository_may_lie_in_a_folder_that_is_called_worktrees(tmp_path: Path, *, bare: bool) -> None:
    place = tmp_path / "worktrees" / "repo.git" if bare else tmp_path / "worktrees"
    project = find(make_repository(place, bare=bare))
    base = candidates.resolve(project, "refs/heads/main")
    assert base == git_out(place, "rev-parse", "main")
    worktrees = Worktrees(project, tmp_path / "elsewhere")
    assert worktrees.prepare("ann", BRANCH, "main") == base
    assert not review.is_dirty(project, worktrees.path("ann"))


# How much a branch changes


def _lines(name: str, count: int) -> str:
    return "".join(f"{name} {number}\n" for number in range(count))


def _one_line_while_others_land(scene: Scene) -> str:
    """Commit one changed line on the branch, let 547 lines land on main meanwhile, and return where main is then."""
    git_out(scene.path, "checkout", "--quiet", "--", ".")
    (scene.path / "new.txt").unlink()
    commit_files(scene.path, {"a.txt": "mended\n"}, "One line")
    commit_files(scene.project.root, {"big.txt": _lines("big", 547)}, "By others")
    return git_out(scene.project.root, "rev-parse", "main")


def test_what_others_landed_is_not_counted_as_the_change_of_work_that_is_carried_on(scene: Scene) -> None:
    """A second try goes on with the branch of the first, which left main before the others landed."""
    found = diffstat.size_of(scene.project, scene.path, _one_line_while_others_land(scene))
    assert (found.plus, found.minus, found.files) == (1, 1, 1)


@pytest.mark.parametrize("taken", [("merge", "--quiet", "--no-edit", "main"), ("rebase", "--quiet", "main")])
def test_a_main_that_work_has_taken_in_is_not_counted_as_its_change(scene: Scene, taken: tuple[str, ...]) -> None:
    newest = _one_line_while_others_land(scene)
    before = git_out(scene.path, "rev-parse", "HEAD")
    git_out(scene.path, *taken)
    found = diffstat.size_of(scene.project, scene.path, newest, scene.base)
    assert (found.plus, found.minus, found.files) == (1, 1, 1)
    commit_files(scene.path, {"b.txt": "mended too\n"}, "Another line")
    tip = git_out(scene.path, "rev-parse", "HEAD")
    assert candidates.changed_between(scene.project, before, tip, newest) == ["b.txt"]
