"""Candidates: what main would be, built without a checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from covey.errors import NotFound
from covey.git import project as projects
from covey.git.candidates.candidates import Candidate, Conflict, build, changed_paths, is_ancestor, resolve
from covey.git.project import Project
from covey.git.worktrees.worktrees import Worktrees
from tests.worlds.repositories import commit_files, git_out, make_repository

SESSION = ("ada", "ada@agents.local")


def repository(tmp_path: Path, files: dict[str, str] | None = None) -> tuple[Path, Project]:
    path = make_repository(tmp_path / "repo", files or {"a.txt": "1\n2\n3\n", "b.txt": "b\n"})
    return path, projects.find(path)


def branch(path: Path, name: str, files: dict[str, str], *, start: str = "main") -> str:
    """Commit files on a new branch and return to main."""
    git_out(path, "switch", "-q", "-c", name, start)
    commit_files(path, files, f"Work of {name}")
    git_out(path, "switch", "-q", "main")
    return git_out(path, "rev-parse", name)


def built(project: Project, tip: str, base: str = "main") -> Candidate:
    made = build(project, base, tip, message="Add it\n\nCovey-Task: AF-1", author=SESSION, at=None)
    assert isinstance(made, Candidate), made
    return made


def refused(project: Project, tip: str) -> Conflict:
    made = build(project, "main", tip, message="No", author=SESSION, at=None)
    assert isinstance(made, Conflict), made
    return made


def test_a_candidate_holds_both_sides_and_touches_no_branch_or_checkout(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    tip = branch(path, "work", {"c.txt": "c\n"})
    commit_files(path, {"b.txt": "changed\n"}, "On main")
    before = git_out(path, "for-each-ref"), (project.common / "index").read_bytes()
    made = built(project, "work")
    assert (git_out(path, "for-each-ref"), (project.common / "index").read_bytes()) == before
    assert git_out(path, "status", "--porcelain") == ""
    assert git_out(path, "show", f"{made.commit}:b.txt") == "changed"
    assert git_out(path, "show", f"{made.commit}:c.txt") == "c"
    main = git_out(path, "rev-parse", "main")
    parents = git_out(path, "show", "-s", "--format=%P", made.commit).split()
    assert parents == [main, tip]
    assert (made.base, made.tip, made.empty) == (main, tip, False)
    assert made.tree == git_out(path, "rev-parse", f"{made.commit}^{{tree}}")
    who = git_out(path, "show", "-s", "--format=%an %ae %cn %ce%n%B", made.commit)
    assert who.startswith("ada ada@agents.local covey covey@localhost\nAdd it\n\nCovey-Task: AF-1")


def test_the_same_words_at_the_same_time_give_the_same_commit(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    branch(path, "work", {"c.txt": "c\n"})
    made = {build(project, "main", "work", message="é", author=SESSION, at=1_700_000_000.5) for _ in range(2)}
    assert len(made) == 1


def test_a_branch_that_adds_nothing_gives_an_empty_candidate(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    branch(path, "contained", {})
    git_out(path, "branch", "-f", "contained", "main")
    branch(path, "same", {"b.txt": "new\n"})
    commit_files(path, {"b.txt": "new\n"}, "The same on main")
    main = git_out(path, "rev-parse", "main")
    for tip in ("contained", "same", "main"):
        made = built(project, tip)
        assert made.empty and made.commit == main == made.base


def test_the_users_signing_hooks_and_encoding_have_no_part_in_it(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    branch(path, "work", {"c.txt": "c\n"})
    for key, value in {
        "commit.gpgSign": "true",
        "gpg.program": "false",
        "i18n.commitEncoding": "ISO-8859-1",
        "user.useConfigOnly": "true",
    }.items():
        git_out(path, "config", key, value)
    hook = project.common / "hooks/commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    raw = git_out(path, "cat-file", "commit", built(project, "work").commit)
    assert "gpgsig" not in raw and "encoding" not in raw


def test_a_name_with_odd_characters_is_reported_whole(tmp_path: Path) -> None:
    odd = 'a "quoted"\tfile\nin two lines ü.txt'
    path, project = repository(tmp_path, {odd: "1\n", "plain": "1\n"})
    branch(path, "work", {odd: "2\n", "plain": "2\n"})
    commit_files(path, {odd: "3\n", "plain": "3\n"}, "Otherwise")
    conflict = refused(project, "work")
    assert sorted(conflict.files) == sorted([odd, "plain"])
    assert "CONFLICT" in conflict.message and "plain" in conflict.message


def test_a_name_that_is_no_utf8_is_shown_with_escapes(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    name = os.fsdecode(b"caf\xe9")
    branch(path, "work", {name: "2\n"})
    commit_files(path, {name: "3\n"}, "Otherwise")
    assert refused(project, "work").files == ("caf\\xe9",)
    assert changed_paths(project, "main~1", "work") == ["caf\\xe9"]


def test_every_kind_of_conflict_names_its_files(tmp_path: Path) -> None:
    files = {"gone": "x\n" * 9, "kept": "x\n", "moved": "m\n" * 9, "script": "s\n", "binary": "\0\1", "dir/file": "d\n"}
    path, project = repository(tmp_path, files)
    git_out(path, "switch", "-q", "-c", "work")
    git_out(path, "rm", "-q", "gone", "dir/file")
    git_out(path, "mv", "moved", "renamed")
    (path / "dir").write_text("a file now\n")
    commit_files(path, {"dir": "a file now\n", "binary": "\0\2", "both": "work\n", "script": "w\n"}, "Work")
    git_out(path, "switch", "-q", "main")
    git_out(path, "rm", "-q", "moved")
    git_out(path, "update-index", "--chmod=+x", "script")
    commit_files(
        path,
        {"gone": "x\n" * 8 + "y\n", "binary": "\0\3", "both": "main\n", "dir/file": "e\n", "script": "z\n"},
        "Main",
    )
    conflict = refused(project, "work")
    assert {"gone", "binary", "both", "script", "dir/file"} <= set(conflict.files)
    assert {"renamed", "moved"} & set(conflict.files)
    assert "dir" in conflict.files and not any("~" in name for name in conflict.files)
    for kind in ("modify/delete", "rename/delete", "add/add", "content", "file/directory"):
        assert f"CONFLICT ({kind})" in conflict.message, conflict.message
    assert "Auto-merging" not in conflict.message


def test_a_conflict_of_submodules_is_named(tmp_path: Path) -> None:
    path, project = repository(tmp_path)

    def point(commit: str) -> None:
        git_out(path, "update-index", "--add", "--cacheinfo", f"160000,{commit * 40},sub")
        git_out(path, "commit", "-q", "-m", "Point")

    point("1")
    git_out(path, "switch", "-q", "-c", "work")
    point("2")
    git_out(path, "switch", "-q", "main")
    point("3")
    assert refused(project, "work").files == ("sub",)


def test_unrelated_histories_are_a_conflict_that_says_so(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    git_out(path, "switch", "-q", "--orphan", "other")
    commit_files(path, {"o.txt": "o\n"}, "Alone")
    git_out(path, "switch", "-q", "main")
    assert "unrelated" in refused(project, "other").message
    assert "o.txt" in changed_paths(project, "main", "other")


@pytest.mark.parametrize("bare", [False, True])
def test_the_merge_drivers_that_main_asks_for_are_used(tmp_path: Path, bare: bool) -> None:
    path, project = repository(tmp_path, {"log": "1\n", ".gitattributes": "log merge=union\n"})
    branch(path, "work", {"log": "1\nwork\n"})
    commit_files(path, {"log": "1\nmain\n"}, "Otherwise")
    if bare:
        git_out(tmp_path, "clone", "-q", "--bare", str(path), "bare.git")
        project = projects.find(tmp_path / "bare.git")
    else:
        (path / ".gitattributes").write_text("log -merge\n")  # what lies in a checkout has no say
    assert "main\nwork" in git_out(project.common, "show", f"{built(project, 'work').commit}:log")


def test_a_missing_commit_is_not_found(tmp_path: Path) -> None:
    _, project = repository(tmp_path)
    for base, tip in (("main", "nothing"), ("-x", "main"), ("main", "--all")):
        with pytest.raises(NotFound):
            build(project, base, tip, message="m", author=SESSION, at=None)


def test_names_are_resolved_to_commits_and_never_taken_for_options(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    main = git_out(path, "rev-parse", "main")
    git_out(path, "tag", "-a", "-m", "t", "v1")
    assert resolve(project, "v1") == resolve(project, "refs/heads/main") == main
    assert [resolve(project, name) for name in ("--all", "nothing", "main:a.txt", "")] == [None] * 4


def test_descent_and_changed_paths(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    tip = branch(path, "work", {"c d.txt": "c\n", "b.txt": "new\n"})
    commit_files(path, {"a.txt": "main\n"}, "On main")
    assert is_ancestor(project, "main~1", tip) and is_ancestor(project, tip, tip)
    assert not is_ancestor(project, "main", tip)
    assert changed_paths(project, "main", "work") == ["b.txt", "c d.txt"]
    git_out(path, "mv", "a.txt", "z.txt")
    git_out(path, "commit", "-q", "-m", "Rename")
    assert changed_paths(project, "main~1", "main") == ["a.txt", "z.txt"]


def test_what_stands_in_for_an_object_is_not_what_is_tested_or_built(tmp_path: Path) -> None:
    path, project = repository(tmp_path)
    tip = branch(path, "work", {"b.txt": "bad\n"})
    bad, good = git_out(path, "rev-parse", "work:b.txt"), git_out(path, "rev-parse", "main:a.txt")
    git_out(path, "replace", bad, good)
    worktree = Worktrees(project, tmp_path / "worktrees").gate(".gate-1", tip)
    assert (worktree / "b.txt").read_text() == "bad\n"
    (path / ".git" / "info").mkdir(exist_ok=True)
    (path / ".git" / "info" / "grafts").write_text(f"{tip}\n")
    assert is_ancestor(project, "main", tip)
