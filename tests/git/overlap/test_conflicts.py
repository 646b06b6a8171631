"""Clashes: which branches git cannot merge."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.git import project as projects
from covey.git.overlap import overlap
from covey.git.project import Project
from tests.worlds.repositories import commit_files, git_out, make_repository

LINES = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_repository(
        tmp_path / "repo", {"a": LINES, "b": LINES, "log.u": "1\n", ".gitattributes": "*.u merge=union\n"}
    )


@pytest.fixture
def project(path: Path) -> Project:
    return projects.find(path)


def branch(path: Path, name: str, files: dict[str, str], start: str = "main") -> str:
    git_out(path, "switch", "-q", "-c", name, start)
    commit_files(path, files, f"Work of {name}")
    git_out(path, "switch", "-q", "main")
    return git_out(path, "rev-parse", name)


def test_tips_that_do_not_merge_with_main_are_told_with_their_files(path: Path, project: Project) -> None:
    clean = branch(path, "clean", {"a": LINES.replace("9", "nine"), "log.u": "1\n2\n"})
    bad = branch(path, "bad", {"a": LINES.replace("1", "one"), "b": LINES + "x\n"})
    commit_files(path, {"a": LINES.replace("1", "uno"), "log.u": "1\nmain\n"}, "On main")
    held = git_out(path, "rev-parse", "main")
    git_out(path, "switch", "-q", "--orphan", "alien")
    commit_files(path, {"z": "z\n"}, "Alien")
    alien = git_out(path, "rev-parse", "HEAD")
    git_out(path, "switch", "-q", "main")
    before = git_out(path, "count-objects")
    branches = overlap.Branches(project)
    looked = branches.look(held, [clean, bad, held, alien, "0" * 40])
    assert "0" * 40 not in looked
    assert looked[alien].own and looked[alien].trees is None
    found = branches.compare(held, [(tip, held) for tip in (clean, bad, held)])
    assert {tip: contact.conflicts for (tip, _), contact in found.items()} == {clean: (), bad: ("a",), held: ()}
    assert git_out(path, "count-objects") == before


def test_the_branches_that_one_cannot_be_merged_with_are_named(path: Path, project: Project) -> None:
    mine = branch(path, "mine", {"a": LINES.replace("5", "five")})
    same = branch(path, "same", {"a": LINES.replace("5", "cinq"), "b": "x\n"})
    apart = branch(path, "apart", {"b": LINES.replace("5", "cinq")})
    stacked = branch(path, "stacked", {"a": LINES.replace("5", "six")}, start="mine")
    main = git_out(path, "rev-parse", "main")
    of_mine = [(mine, tip) for tip in (same, apart, stacked, mine)]
    assert overlap.between(project, main, of_mine) == {(mine, same)}
    of_same = [(same, tip) for tip in (mine, apart, stacked)]
    assert overlap.between(project, main, of_same) == set(of_same)
    pairs = [(mine, same), (mine, apart), (mine, mine), (same, apart), (mine, "1" * 40)]
    assert overlap.between(project, main, pairs) == {(mine, same), (same, apart)}
    assert overlap.between(project, main, []) == set()


def test_what_each_tip_changes_is_told_for_all(path: Path, project: Project) -> None:
    one = branch(path, "one", {"a": "x\n", "dir/new": "n\n"})
    git_out(path, "switch", "-q", "-c", "two")
    git_out(path, "mv", "b", "c")
    git_out(path, "commit", "-q", "-m", "Move")
    git_out(path, "switch", "-q", "main")
    two = git_out(path, "rev-parse", "two")
    commit_files(path, {"a": "main\n"}, "On main")
    main = git_out(path, "rev-parse", "main")
    assert overlap.changed(project, main, [one, two, main]) == {one: ("a", "dir/new"), two: ("b", "c"), main: ()}
