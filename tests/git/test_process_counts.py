"""Git is asked no more than is needed: what a landing takes is the number of processes that it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from covey.config import Config
from covey.git import objects
from covey.git import project as projects
from covey.git.candidates import candidates, chain_inputs, incoming, signing
from covey.git.candidates.candidate_chain import Link
from covey.git.candidates.candidates import is_ancestor
from covey.git.landing import landing
from covey.loops.merge_queue.build import Builder, CandidateTree
from tests.worlds.repositories import commit_files, git_out, make_repository


def _branches(path: Path, count: int) -> list[str]:
    tips = []
    for number in range(count):
        git_out(path, "switch", "-q", "-c", f"work-{number}", "main")
        commit_files(path, {f"part/{number}": "new\n"}, f"Change {number}")
        tips.append(git_out(path, "rev-parse", "HEAD"))
    git_out(path, "switch", "-q", "main")
    return tips


def test_that_a_commit_holds_itself_needs_no_git(tmp_path: Path, asked: Callable[[], list[str]]) -> None:
    project = projects.find(make_repository(tmp_path / "repo", {"a": "a\n"}))
    head = git_out(project.root, "rev-parse", "main")
    objects.close()
    asked()
    assert is_ancestor(project, head, head)
    assert asked() == []
    assert is_ancestor(project, "main", "main")
    assert asked() == ["merge-base"]


def test_what_joined_is_built_from_what_was_read_then(tmp_path: Path, asked: Callable[[], list[str]]) -> None:
    path = make_repository(tmp_path / "repo", {"a": "a\n"})
    project = projects.find(path)
    base, tips = git_out(path, "rev-parse", "main"), _branches(path, 10)
    chain_inputs.works(project, base, tips)
    links = [Link(id=tip, tip=tip, message="Land it", author=("ada", "ada@x")) for tip in tips]
    objects.close()
    asked()
    built = Builder(project, lambda: 1_700_000_000).build(base, links, Config(), "1.1", {"0" * 40: "0" * 40})
    assert isinstance(built, CandidateTree)
    assert sorted(asked()) == ["cat-file", "config", "config", "diff-tree"]  # signed? for a group?


def test_what_was_compared_when_it_joined_is_not_compared_again(tmp_path: Path, asked: Callable[[], list[str]]) -> None:
    path = make_repository(tmp_path / "repo", {"a": "a\n"})
    project = projects.find(path)
    base, (tip,) = git_out(path, "rev-parse", "main"), _branches(path, 1)
    pair = (git_out(path, "rev-parse", f"{base}^{{tree}}"), git_out(path, "rev-parse", f"{tip}^{{tree}}"))
    first = chain_inputs.changes(project, [pair])
    asked()
    assert chain_inputs.changes(project, [pair]) == first
    assert [change.path for change in first[pair]] == [b"part/0"]
    assert asked() == []


def test_one_change_after_another_takes_two_processes_each(tmp_path: Path, asked: Callable[[], list[str]]) -> None:
    path = make_repository(tmp_path / "repo", {"a": "a\n"})
    project = projects.find(path)
    tips = _branches(path, 3)
    git_out(path, "switch", "-q", "-c", "elsewhere")
    main = git_out(path, "rev-parse", "main")
    objects.close()
    asked()
    for tip in tips:
        built = candidates.build(project, main, tip, message="Land it\n", author=("ada", "ada@x"))
        assert isinstance(built, candidates.Candidate)
        assert isinstance(landing.land(project, "main", main, built.commit), landing.Landed)
        main = built.commit
    # How objects are kept here is asked once, whatever lands.
    assert sorted(asked()) == ["cat-file", "config", *["merge-tree"] * 3, *["update-ref"] * 3]


def test_what_is_looked_at_built_and_landed_takes_one_process(
    tmp_path: Path, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "CONFIG_SETTLED_NS", 0)
    path = make_repository(tmp_path / "repo", {"a": "a\n", "part/b": "b\n"})
    project = projects.find(path)
    tips = _branches(path, 3)
    git_out(path, "switch", "-q", "-c", "elsewhere")
    main, builder = git_out(path, "rev-parse", "main"), Builder(project, lambda: 1_700_000_000)
    objects.close()
    asked()
    for tip in tips:
        assert incoming.look(project, main, [tip]) == {tip: ()}
        link = Link(id=tip, tip=tip, message="Land it", author=("ada", "ada@x"))
        built = builder.build(main, [link], Config(), "1.1")
        assert isinstance(built, CandidateTree)
        assert isinstance(landing.land(project, "main", main, built.commit), landing.Landed)
        main = built.commit
    # How objects are kept here, and whether commits are signed, is asked once, whatever lands.
    assert sorted(asked()) == ["cat-file", "config", "config", *["update-ref"] * 3]
    assert git_out(path, "ls-tree", "-r", "--name-only", main, "part").split() == [
        "part/0",
        "part/1",
        "part/2",
        "part/b",
    ]


def test_a_history_that_grew_backwards_is_read_again(tmp_path: Path) -> None:
    path = make_repository(tmp_path / "whole", {"a": "a\n"})
    tip = _branches(path, 1)[0]
    base = git_out(path, "rev-parse", "main")
    shallow = tmp_path / "shallow"
    git_out(tmp_path, "clone", "-q", "--depth", "1", "-b", "work-0", f"file://{path}", str(shallow))
    git_out(shallow, "fetch", "-q", "--depth", "1", "origin", "main")
    project = projects.find(shallow)
    assert chain_inputs.works(project, base, [tip])[0][tip].forks == ()
    git_out(shallow, "fetch", "-q", "--unshallow", "origin")
    assert [fork.name for fork in chain_inputs.works(project, base, [tip])[0][tip].forks] == [base]


def test_whether_commits_are_signed_is_asked_again_once_settings_were_written(
    tmp_path: Path, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "CONFIG_SETTLED_NS", 0)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "own"))
    project = projects.find(make_repository(tmp_path / "repo", {"a": "a\n"}))
    asked()
    assert [signing.key(project) for _ in range(3)] == [None] * 3
    assert asked() == ["config"]
    (tmp_path / "own").write_text("[user]\n\tsigningKey = ABCD\n[commit]\n\tgpgSign = true\n")
    assert [signing.key(project) for _ in range(3)] == [""] * 3
    assert asked() == ["config"] * 2
    git_out(project.root, "config", "commit.gpgSign", "false")
    asked()
    assert [signing.key(project) for _ in range(3)] == [None] * 3
    assert asked() == ["config"]


def test_settings_that_may_come_from_elsewhere_are_asked_for_each_time(
    tmp_path: Path, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "CONFIG_SETTLED_NS", 0)
    project = projects.find(make_repository(tmp_path / "repo", {"a": "a\n"}))
    git_out(project.root, "config", "include.path", str(tmp_path / "more"))
    asked()
    assert signing.key(project) is None
    (tmp_path / "more").write_text("[user]\n\tsigningKey = ABCD\n[commit]\n\tgpgSign = true\n")
    assert signing.key(project) == ""


def test_settings_that_were_just_written_are_asked_for_again(tmp_path: Path, asked: Callable[[], list[str]]) -> None:
    project = projects.find(make_repository(tmp_path / "repo", {"a": "a\n"}))
    git_out(project.root, "config", "commit.gpgSign", "false")
    asked()
    assert [signing.key(project), signing.key(project)] == [None, None]
    assert asked() == ["config", "config"]


def test_settings_named_by_no_whole_path_are_those_that_git_reads(
    tmp_path: Path, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "CONFIG_SETTLED_NS", 0)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "own")
    project = projects.find(make_repository(tmp_path / "repo", {"a": "a\n"}))
    asked()
    assert [signing.key(project) for _ in range(2)] == [None] * 2
    (project.common / "own").write_text("[user]\n\tsigningKey = ABCD\n[commit]\n\tgpgSign = true\n")
    assert signing.key(project) == ""
