"""Where main is checked out: it follows with its checkout, or waits until it can, and nobody commits a revert."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds.projects import GOOD, SCRIPTED, Line, make_line
from tests.worlds.serving import wait_until

CHANGE = "write shared.txt\n    changed by an agent\ncommit Change it\n"
FILES = {"shared.txt": "as it was\n", "other.txt": "as it was\n"}


@pytest.fixture
def line(made: Callable[..., Line]) -> Line:
    return made(SCRIPTED, GOOD, files=FILES)


def _change(line: Line, code: int = 0) -> str:
    return line.ends(code, "run", line.tasks({"title": "Change it", "body": CHANGE}))


def _commits_no_revert(line: Line, at: Path | None = None) -> None:
    """Assert that whatever the user commits now takes nothing back of what landed."""
    assert line.git("diff", "--cached", "--name-only", at=at) == ""
    line.git("commit", "-q", "--allow-empty", "-m", "Anything", at=at)
    assert line.git("show", "HEAD:shared.txt", at=at) == line.git("show", "HEAD~1:shared.txt", at=at)


def test_a_clean_checkout_of_main_follows(line: Line) -> None:
    _change(line)
    assert (line.root / "shared.txt").read_text() == "changed by an agent\n"
    assert line.git("status", "--porcelain") == ""
    _commits_no_revert(line)


def test_changes_elsewhere_stay_as_they_are(line: Line) -> None:
    (line.root / "other.txt").write_text("mine\n")
    _change(line)
    assert (line.root / "shared.txt").read_text() == "changed by an agent\n"
    assert line.git("status", "--porcelain") == "M other.txt".rjust(12)
    assert (line.root / "other.txt").read_text() == "mine\n"
    _commits_no_revert(line)


def _waits(line: Line) -> str:
    """Let a change wait for the user's own, and return where main is meanwhile."""
    (line.root / "shared.txt").write_text("mine\n")
    before = line.git("rev-parse", "main")
    said = _change(line, 1)
    assert "as soon as nothing is in the way" in said
    assert "shared.txt" in said
    assert line.git("rev-parse", "main") == before
    assert (line.root / "shared.txt").read_text() == "mine\n"
    landed = line.git("rev-parse", "refs/covey/landed")
    assert line.git("rev-parse", "refs/covey/landed~1") == before
    assert line.git("show", f"{landed}:shared.txt") == "changed by an agent"
    (told,) = [alert for alert in line.alerts() if "in the way" in alert]
    assert "shared.txt" in told
    assert line.statuses() == {"Change it": "merging"}
    return before


def test_main_follows_when_the_user_takes_back_what_is_in_the_way(line: Line) -> None:
    _waits(line)
    line.up()
    task = line.board()["Change it"]["id"]
    line.git_at_last("restore", "shared.txt")
    line.wait_for(task, "done")
    assert (line.root / "shared.txt").read_text() == "changed by an agent\n"
    assert "refs/covey/landed" not in line.refs("refs/covey")
    assert len([alert for alert in line.alerts() if "in the way" in alert]) == 1
    _commits_no_revert(line)
    line.ok("down")
    line.assert_nothing_left()


def test_what_waits_leaves_the_users_checkout_in_peace_until_something_changes(line: Line) -> None:
    line.up()
    _waits(line)
    task = line.board()["Change it"]["id"]
    wait_until(lambda: not (line.common / "worktrees").exists(), "the end of all worktrees")
    touched = line.common.stat().st_mtime_ns
    for _ in range(5):  # each lets the queue look again
        line.ok("pause")
        line.ok("resume")
    assert line.common.stat().st_mtime_ns == touched  # a try would have made a lock there
    line.git_at_last("restore", "shared.txt")
    line.wait_for(task, "done")


def test_what_waits_is_built_and_tested_again_when_the_user_commits_on_main(line: Line) -> None:
    _waits(line)
    line.up()
    task = line.board()["Change it"]["id"]
    line.git_at_last("restore", "shared.txt")
    # The daemon may have brought main along in this moment; both orders are sound.
    (line.root / "other.txt").write_text("mine\n")
    line.git_at_last("commit", "-q", "-am", "Mine")
    line.wait_for(task, "done")
    assert sorted(line.landed()) == ["Change it", "Mine"]
    assert (line.root / "shared.txt").read_text() == "changed by an agent\n"
    assert line.git("show", "main:other.txt") == "mine"
    assert line.git("status", "--porcelain") == ""
    line.ok("down")
    line.assert_nothing_left()


@pytest.mark.soak
def test_what_waits_is_tested_with_a_commit_that_came_in_its_way(line: Line) -> None:
    line.settings(SCRIPTED, '[merge]\ncheck = "cat other.txt >> $OUTSIDE/tested && test ! -e bad"\n')
    _waits(line)
    line.git("stash", "push", "-q")
    line.commit("other.txt", "mine\n")
    line.up()
    task = line.board()["Change it"]["id"]
    line.wait_for(task, "done")
    assert line.landed() == ["Change it", "By the user"]
    assert line.marks("tested") == ["as it was", "mine"]
    assert [event["data"]["why"] for event in line.events("merge.requeued")] == [
        "main went another way while it waited"
    ]


@pytest.mark.soak
def test_a_change_that_the_user_made_otherwise_needs_a_person_when_nobody_works_who_could_mend_it(line: Line) -> None:
    _waits(line)
    line.git("commit", "-q", "-am", "Otherwise")
    line.up()
    task = line.board()["Change it"]["id"]
    line.wait_for(task, "blocked")
    (tried,) = line.task(task)["tries"]
    assert "conflicts with" in tried["what"]
    assert line.landed() == ["Otherwise"]


def test_a_checkout_on_another_branch_is_not_touched(line: Line) -> None:
    line.git("switch", "-q", "-c", "feature")
    (line.root / "shared.txt").write_text("mine\n")
    _change(line)
    assert line.landed() == ["Change it"]
    assert (line.root / "shared.txt").read_text() == "mine\n"
    assert line.git("symbolic-ref", "HEAD") == "refs/heads/feature"
    assert line.git("status", "--porcelain") == "M shared.txt".rjust(13)


def test_main_that_is_checked_out_in_two_worktrees_waits(line: Line) -> None:
    second = line.folder / "second"
    line.git("worktree", "add", "-q", "--force", str(second), "main")
    before = line.git("rev-parse", "main")
    said = _change(line, 1)
    assert "can move only with one checkout" in said
    assert line.git("rev-parse", "main") == before
    line.up()
    line.git("worktree", "remove", str(second))
    line.wait_for(line.board()["Change it"]["id"], "done")
    assert (line.root / "shared.txt").read_text() == "changed by an agent\n"
    _commits_no_revert(line)


def test_main_in_a_worktree_of_the_users_follows_there(line: Line) -> None:
    second = line.folder / "second"
    line.git("switch", "-q", "-c", "feature")
    line.git("worktree", "add", "-q", str(second), "main")
    _change(line)
    assert (second / "shared.txt").read_text() == "changed by an agent\n"
    assert (line.root / "shared.txt").read_text() == "as it was\n"
    assert line.git("status", "--porcelain", at=second) == ""
    _commits_no_revert(line, second)


def test_work_lands_in_a_bare_repository(tmp_path: Path) -> None:
    source = make_line(tmp_path / "source", init=False, files=FILES)
    bare = tmp_path / "bare" / "shop.git"
    source.git("clone", "-q", "--bare", str(source.root), str(bare))
    (tmp_path / "bare" / "outside").mkdir()
    line = Line(tmp_path / "bare", bare, source.env)
    try:
        line.ok("init")
        line.settings(SCRIPTED, GOOD)
        _change(line)
        assert line.landed() == ["Change it"]
        assert line.git("show", "main:shared.txt") == "changed by an agent"
    finally:
        line.end()
