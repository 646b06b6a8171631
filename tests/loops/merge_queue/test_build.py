"""The trees of the train: built once, and again when git has thrown them away."""

from __future__ import annotations

from pathlib import Path

from covey.config import Config
from covey.git import project as projects
from covey.git.candidates import candidates
from covey.git.candidates.candidate_chain import Link
from covey.loops.merge_queue.build import Builder, CandidateTree
from tests.worlds.repositories import commit_files, git_out, make_repository


def test_a_tree_that_git_threw_away_meanwhile_is_built_again(tmp_path: Path) -> None:
    path = make_repository(tmp_path / "shop", {"a.txt": "a\n"})
    links = []
    for name in ("one", "two"):
        git_out(path, "switch", "-q", "-c", name, "main")
        commit_files(path, {f"{name}.txt": f"{name}\n"}, name)
        tip = git_out(path, "rev-parse", "HEAD")
        links.append(Link(id=name, tip=tip, message=name, author=("ada", "ada@agents.local")))
    git_out(path, "switch", "-q", "main")
    project, base = projects.find(path), git_out(path, "rev-parse", "main")
    builder = Builder(project, lambda: 1_700_000_000.0)
    first = builder.build(base, links, Config(), "1")
    assert isinstance(first, CandidateTree)
    git_out(path, "gc", "-q", "--prune=now")
    assert candidates.resolve(project, first.commit) is None
    again = builder.build(base, links, Config(), "1")
    assert isinstance(again, CandidateTree)
    assert candidates.resolve(project, again.commit) == again.commit == first.commit
