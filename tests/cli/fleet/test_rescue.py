"""covey rescue: list, show and restore, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from covey.git.project import find
from covey.git.rescue.rescue import Rescued, rescue
from tests.worlds.shell import Shell

AT = 1_700_000_000.0
NAME = "ada/20231114T221320Z"


@pytest.fixture
def kept(shell: Shell, tmp_path: Path) -> Rescued:
    """Return a rescue of a session that left something behind."""
    (shell.folder / "README").write_text("Hello\n")
    shell.git("add", "README")
    shell.git("commit", "-q", "-m", "A file")
    shell.git("worktree", "add", "-q", "-b", "covey/ada", str(tmp_path / "ada"))
    (tmp_path / "ada/README").write_text("Changed\n")
    (tmp_path / "ada/new\x1b[31m\nname").write_text("new")
    made = rescue(find(shell.folder), tmp_path / "ada", session="ada", why="it was removed", task="AF-1", at=AT)
    assert made is not None
    shell.git("worktree", "remove", "--force", str(tmp_path / "ada"))
    return made


def test_nothing_to_rescue_is_said(shell: Shell) -> None:
    assert shell.ok("rescue", "list") == "Nothing had to be rescued.\n"
    assert shell.json("rescue", "list") == []


def test_list_and_show_tell_what_is_kept(shell: Shell, kept: Rescued) -> None:
    listed = shell.ok("rescue", "list")
    assert listed.startswith(f"{NAME}  ")
    assert "1 changed, 1 untracked" in listed and "it was removed" in listed and "AF-1" in listed
    (row,) = shell.json("rescue", "list", "--session", "ada")
    assert (row["id"], row["ref"], row["commit"], row["session"]) == (NAME, kept.ref, kept.commit, "ada")
    assert shell.json("rescue", "list", "--session", "bob") == []
    shown = shell.ok("rescue", "show", "ada")
    assert "README" in shown and "changed" in shown and "\x1b" not in shown
    details = shell.json("rescue", "show", NAME[:8])
    assert [entry["path"] for entry in details["files"]] == ["README", "new\x1b[31m\nname"]


@pytest.mark.parametrize("is_head", [True, False])
def test_commits_on_no_branch_are_named(shell: Shell, tmp_path: Path, is_head: bool) -> None:
    shell.git("worktree", "add", "-q", "-b", "covey/ada", str(tmp_path / "ada"))
    there = shell.at(tmp_path / "ada")
    there.git("checkout", "-q", "--detach")
    there.git("commit", "-q", "--allow-empty", "-m", "On no branch")
    lost = there.git("rev-parse", "HEAD")
    if not is_head:
        there.git("reset", "-q", "--hard", "HEAD~1")
    assert rescue(find(shell.folder), tmp_path / "ada", session="ada", why="it was removed", at=AT) is not None
    shell.git("worktree", "remove", "--force", str(tmp_path / "ada"))
    assert shell.json("rescue", "show", "ada")["commits"] == [lost]
    assert f"{lost}, on no branch" in shell.ok("rescue", "show", "ada")
    shell.git("branch", "again", lost)
    assert shell.git("log", "-1", "--format=%s", "again") == "On no branch"


def test_restore_brings_it_back_beside_the_repository(shell: Shell, kept: Rescued, tmp_path: Path) -> None:
    said = shell.ok("rescue", "restore", "ada")
    place = tmp_path / "shop.rescued/ada-20231114T221320Z"
    assert str(place) in said and "git switch -c" in said
    assert (place / "README").read_text() == "Changed\n"
    assert shell.at(place).git("rev-parse", "HEAD") == kept.head
    told = json.loads(shell.ok("rescue", "restore", kept.ref, "--to", "../elsewhere", "--json"))
    assert told == {"id": NAME, "path": str(tmp_path / "elsewhere"), "head": kept.head, "missing": []}
    assert (tmp_path / "elsewhere/new\x1b[31m\nname").read_text() == "new"
    assert str(tmp_path / "a third") in shell.ok("rescue", "restore", "ada", "../a third")
    between = ("rescue", "restore", "ada", "--json", "../a fourth", "-C", str(shell.folder))
    assert json.loads(shell.ok(*between))["path"] == str(tmp_path / "a fourth")
    assert "given twice" in shell.fails(2, "rescue", "restore", "ada", "../one", "--to", "../two")


def test_wrong_names_and_taken_folders_are_refused(shell: Shell, kept: Rescued, tmp_path: Path) -> None:
    assert f"Did you mean {NAME}?" in shell.fails(4, "rescue", "show", "ada/20231115T221320Z")
    shell.fails(4, "rescue", "restore", "nobody-like-that")
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").write_text("mine")
    assert "not empty" in shell.fails(5, "rescue", "restore", "ada", "--to", str(taken))
    assert (taken / "mine").read_text() == "mine"


def test_rescues_are_for_the_owner(shell: Shell, kept: Rescued) -> None:
    for words in (("list",), ("show", "ada"), ("restore", "ada")):
        assert "for the owner" in shell.fails(6, "rescue", *words, env={"COVEY_TOKEN": "a-run"})
