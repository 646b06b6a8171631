"""A session that is removed leaves nothing but its work, and touches nothing of anybody else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.worlds.projects import GOOD, SCRIPTED, Line, alive, processes_of
from tests.worlds.serving import wait_until


def _others(line: Line) -> None:
    """Make what is not covey's: a worktree of the user's, branches, and files in the worktrees' folder."""
    line.worktrees.mkdir(exist_ok=True)
    (line.worktrees / "notes.txt").write_text("mine\n")
    (line.worktrees / "folder").mkdir()
    (line.worktrees / "folder" / "file").write_text("mine\n")
    line.git("worktree", "add", "-q", "-b", "covey-like", str(line.worktrees / "users"))
    line.git("branch", "covey/users-own")
    line.git("branch", "feature")


def _picture(line: Line) -> dict[str, Any]:
    """Return all that must be the same before a session came and after it went."""
    there = sorted(
        str(path.relative_to(line.worktrees)) for path in line.worktrees.rglob("*") if ".git" not in path.parts
    )
    refs = {name: at for name, at in line.refs().items() if not name.startswith("refs/covey/rescue/")}
    return {
        "files": there,
        "listed": line.git("worktree", "list", "--porcelain"),
        "refs": refs,
        "entries": sorted(path.name for path in (line.common / "worktrees").iterdir()),
        "ours": sorted(path.name for path in (line.state / "worktrees").glob("*")),
        "temporary": sorted(path.name for path in line.state.glob(".*")),
    }


def _leaves_work(line: Line) -> str:
    return f"dirt left.txt\nrun touch {line.mark('dirty')}\nhang\n"


def _at_work(line: Line) -> int:
    """Let ada leave work in her worktree, and return her agent's process."""
    line.ok("task", "add", "Long", "--body", _leaves_work(line))
    line.ok("session", "new", "ada", "--agent", "scripted")
    line.ok("session", "start", "ada")
    wait_until(line.mark("dirty").exists, "what the agent leaves")
    return next(iter(line.agents().values()))


def _assert_gone(line: Line, before: dict[str, Any], daemon: int) -> None:
    assert _picture(line) == before
    assert (line.worktrees / "folder" / "file").read_text() == "mine\n"
    wait_until(lambda: set(processes_of(line.folder)) <= {daemon}, "the end of what the daemon itself asks git")
    kept = {"output", "errors", "rc", "failure", "started", "lock", "lost", "transcript.gz"}
    left = {path.name for path in (line.state / "runs").glob("*/*")}
    assert left <= kept, left
    (rescued,) = line.json("rescue", "list", "--session", "ada")
    assert rescued["counts"]["untracked"] == 1
    assert rescued["counts"]["changed"] == 1
    assert line.statuses() == {"Long": "todo"}
    assert line.json("session", "list") == []


def test_a_stopped_session_is_removed_without_a_trace(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    _others(line)
    before = _picture(line)
    daemon = line.up()
    agent = _at_work(line)
    line.ok("session", "stop", "ada")
    assert not alive(agent)
    said = line.ok("session", "remove", "ada")
    assert "refs/covey/rescue/ada/" in said
    _assert_gone(line, before, daemon)


def test_a_session_at_work_is_removed_only_by_force(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    _others(line)
    before = _picture(line)
    daemon = line.up()
    agent = _at_work(line)
    assert "--force" in line.ends(5, "session", "remove", "ada")
    assert alive(agent)
    line.ok("session", "remove", "ada", "--force")
    assert not alive(agent)
    _assert_gone(line, before, daemon)


def test_a_session_is_removed_without_a_daemon_too(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    _others(line)
    before = _picture(line)
    line.up()
    agent = _at_work(line)
    line.ok("down")
    assert alive(agent)
    line.ok("session", "remove", "ada", "--force")
    assert not alive(agent)
    _assert_gone(line, before, 0)


def test_commits_of_a_removed_session_stay_on_their_branch(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    body = f"write kept.txt\n    kept\ncommit Kept\nrun touch {line.mark('kept')}\nhang\n"
    line.ok("task", "add", "Long", "--body", body)
    line.ok("session", "new", "ada", "--agent", "scripted")
    line.ok("session", "start", "ada")
    wait_until(line.mark("kept").exists, "the commit")
    line.ok("session", "remove", "ada", "--force")
    (branch,) = line.refs("refs/heads/covey")
    assert line.git("show", f"{branch}:kept.txt") == "kept"
    assert not line.worktrees.exists()
