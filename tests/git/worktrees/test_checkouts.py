"""Which checkouts hold a branch: a person's do, and nothing that a session writes makes another of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.git.worktrees import checkouts
from tests.git.worktrees.test_worktrees import main_of, make_worktrees
from tests.worlds.repositories import git_out


@pytest.mark.parametrize("twist", ["nowhere", "a-folder"])
def test_an_entry_that_leads_elsewhere_hides_no_checkout_and_is_led_home(tmp_path: Path, twist: str) -> None:
    worktrees = make_worktrees(tmp_path)
    project = worktrees.project
    worktrees.prepare("ada", "covey/T-1", main_of(worktrees))
    entry = worktrees.git_dir("ada")
    assert entry is not None
    (entry / "commondir").unlink()
    if twist == "nowhere":
        (entry / "commondir").write_text(f"{tmp_path}/nowhere\n")
    else:
        (entry / "commondir").mkdir()

    assert [each.path for each in checkouts.holding(project, "main")] == [project.root]

    assert worktrees.ours("ada") is not None
    assert (entry / "commondir").read_text() == "../..\n"
    assert "worktrees/ada" in git_out(project.root, "worktree", "list")


def test_a_session_that_writes_main_into_its_head_does_not_hold_main(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    project = worktrees.project
    worktrees.prepare("ada", "covey/T-1", main_of(worktrees))
    git_out(project.root, "switch", "-q", "--detach")
    entry = worktrees.git_dir("ada")
    assert entry is not None
    (entry / "HEAD").write_text("ref: refs/heads/main\n")
    assert checkouts.holding(project, "main") == []


def test_a_worktree_of_a_person_holds_its_branch_and_counts_when_it_is_locked_and_gone(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    project, place = worktrees.project, tmp_path / "second"
    git_out(project.root, "worktree", "add", "-q", "-b", "side", str(place))
    assert [each.path for each in checkouts.holding(project, "side")] == [place]
    place.rename(tmp_path / "moved")
    assert checkouts.holding(project, "side") == []
    git_out(project.root, "worktree", "lock", str(place))
    assert ["its folder is not there" in each.obstacle for each in checkouts.holding(project, "side")] == [True]


def test_a_head_that_is_a_link_counts_as_git_lets_it_count(tmp_path: Path) -> None:
    project = make_worktrees(tmp_path).project
    (project.common / "HEAD").unlink()
    (project.common / "HEAD").symlink_to("refs/heads/main")
    assert [each.path for each in checkouts.holding(project, "main")] == [project.root]
