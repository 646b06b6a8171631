"""Reverts: main without what one merge brought."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.errors import Refused
from covey.git import project as projects
from covey.git.candidates import candidate_chain
from covey.git.candidates.candidate_chain import Chain, Link, Policy
from covey.git.candidates.candidates import Candidate, Conflict, revert
from covey.git.project import Project
from tests.worlds.repositories import commit_files, git_out, make_repository

ADA = ("ada", "ada@agents.local")


def branch(path: Path, name: str, *commits: dict[str, str]) -> str:
    git_out(path, "switch", "-q", "-c", name, "main")
    for files in commits:
        commit_files(path, files, f"Work of {name}")
    git_out(path, "switch", "-q", "main")
    return git_out(path, "rev-parse", name)


def landed(path: Path, project: Project, policy: Policy) -> Chain:
    """Land two branches, of which the first has two commits."""
    tips = [branch(path, "one", {"one": "1\n"}, {"a": "1\n2\nthree\n"}), branch(path, "two", {"two": "2\n"})]
    links = [Link(id=tip, tip=tip, message=f"Land {tip[:4]}", author=ADA) for tip in tips]
    chain = candidate_chain.extend(project, "main", links, policy=policy)
    assert chain.stopped is None
    git_out(path, "reset", "-q", "--hard", chain.head)
    return chain


@pytest.mark.parametrize("policy", ["merge", "squash", "rebase", "ff"])
def test_a_revert_takes_out_one_merge_and_leaves_the_others(tmp_path: Path, policy: Policy) -> None:
    path = make_repository(tmp_path / "repo", {"a": "1\n2\n3\n"})
    project = projects.find(path)
    first = landed(path, project, policy).links[0]
    commit_files(path, {"later": "x\n"}, "Later")
    brought = first.before, first.commit
    made = revert(project, "main", *brought, author=ADA, trailers=(("Covey-Merge", "merge-9"),))
    assert isinstance(made, Candidate) and not made.empty
    assert git_out(path, "show", f"{made.commit}:a") == "1\n2\n3"
    assert git_out(path, "ls-tree", "--name-only", made.commit).split() == ["a", "later", "two"]
    assert git_out(path, "rev-parse", f"{made.commit}^") == git_out(path, "rev-parse", "main")
    said = git_out(path, "show", "-s", "--format=%an %cn%n%B", made.commit)
    assert said.startswith('ada covey\nRevert "') and "Covey-Merge: merge-9" in said
    again = revert(project, made.commit, *brought, author=ADA)
    assert isinstance(again, Candidate) and again.empty and again.commit == made.commit


def test_what_was_changed_since_cannot_be_taken_out(tmp_path: Path) -> None:
    path = make_repository(tmp_path / "repo", {"a": "1\n2\n3\n"})
    project = projects.find(path)
    first = landed(path, project, "squash").links[0]
    commit_files(path, {"a": "1\n2\nfour\n"}, "Later")
    made = revert(project, "main", first.before, first.commit, author=ADA)
    assert isinstance(made, Conflict) and made.files == ("a",)


def test_what_never_landed_cannot_be_reverted(tmp_path: Path) -> None:
    path = make_repository(tmp_path / "repo", {"a": "1\n"})
    tip = branch(path, "one", {"one": "1\n"})
    with pytest.raises(Refused, match="nothing to revert"):
        revert(projects.find(path), "main", "main", tip, author=ADA)


def test_a_revert_can_be_reverted(tmp_path: Path) -> None:
    path = make_repository(tmp_path / "repo", {"a": "1\n2\n3\n"})
    project = projects.find(path)
    chain = landed(path, project, "merge")
    out = revert(project, chain.head, chain.links[0].before, chain.links[0].commit, author=ADA)
    assert isinstance(out, Candidate)
    back = revert(project, out.commit, chain.head, out.commit, author=ADA)
    assert isinstance(back, Candidate)
    assert back.tree == git_out(path, "rev-parse", f"{chain.head}^{{tree}}")
