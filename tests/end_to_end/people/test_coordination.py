"""What users ran into where sessions meet: a way back from a crossing, work from outside, and words that lead on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.worlds.projects import GOOD, PATIENCE, SHELL, Line
from tests.worlds.serving import wait_until

ONCE = "[board]\ntries = 1\n"
FILES = {"held.txt": "as it was\n", "gone.txt": "as it was\n", "free.txt": "as it was\n"}


def ask_guard(line: Line, token: str, *paths: str, daemon: bool) -> str | None:
    """Ask about what is staged as the hook does, and return the refusal."""
    staged = line.git("diff", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--", *paths)
    body = "\0".join([str(line.root), "/written", staged.rstrip("\0"), "/elsewhere", "/end", ""]).encode()
    if daemon:
        with line.client() as client:
            said: str | None = json.loads(client.ask("POST", "/hooks/guard", body, token=token).body)["deny"]
            return said
    env = line.env | {"COVEY_TOKEN": token}
    done = subprocess.run(
        [sys.executable, "-m", "covey", "guard"], cwd=line.root, env=env, input=body, capture_output=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 9), done.stderr
    return done.stderr.decode() if done.returncode else None


@pytest.mark.parametrize("daemon", [pytest.param(False, marks=pytest.mark.soak), True])
def test_what_main_has_may_be_put_back_though_another_holds_it(made: Callable[..., Line], daemon: bool) -> None:
    line = made(GOOD, files=FILES)
    line.git("checkout", "-q", "-b", "covey/T-1")
    line.git("rm", "-q", "gone.txt")
    for path in ("held.txt", "new.txt"):
        line.commit(path, "mine\n")
    line.git("checkout", "-q", "main")
    line.commit("later.txt", "landed\n")
    line.git("checkout", "-q", "covey/T-1")
    line.ok("lease", "take", "repo:", "--as", "bob")
    line.ok("task", "add", "Work")
    line.ok("task", "claim", "T-1", "--as", "ada")
    token = line.json("session", "token", "ada")["token"]
    if daemon:
        line.up()
    line.git("checkout", "main", "--", "held.txt", "gone.txt", "later.txt")
    line.git("rm", "-q", "--cached", "new.txt")
    assert ask_guard(line, token, daemon=daemon) is None
    (line.root / "held.txt").write_text("mine again\n")
    line.git("add", "held.txt")
    said = ask_guard(line, token, daemon=daemon)
    assert said is not None and "held.txt is held by bob" in said and "gone.txt" not in said
    line.git("rm", "-q", "--cached", "free.txt")
    assert "free.txt is held by bob" in str(ask_guard(line, token, "free.txt", daemon=daemon))


def test_a_session_that_crossed_a_lease_takes_it_back_as_it_is_told_and_lands(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD, ONCE, files=FILES)
    body = f"""set -e
    echo >"{line.outside}/ready"; while [ ! -e "{line.outside}/go" ]; do sleep 0.02; done
    echo mine >held.txt; git -c core.hooksPath=/dev/null commit -qam Crossed
    echo mine >free.txt; git commit -qam Free
    git checkout -q main -- held.txt; git commit -qm Back
    """
    running = line.begin("run", "--agent", "sh", line.tasks({"title": "Work", "body": body}))
    try:
        wait_until(lambda: running.poll() is not None or line.mark("ready").exists(), "the session at work")
        line.ok("lease", "take", "held.txt", "--as", "bob")
        line.mark("go").touch()
        said, _ = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
        running.wait()
    assert line.statuses() == {"Work": "done"}, said
    assert (line.git("show", "main:held.txt"), line.git("show", "main:free.txt")) == ("as it was", "mine")


def test_what_was_written_before_a_lease_lands_though_it_was_committed_after_it(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD, ONCE, files=FILES)
    body = f"""set -e
    echo mine >held.txt; rm gone.txt; echo mine >free.txt
    echo >"{line.outside}/ready"; while [ ! -e "{line.outside}/go" ]; do sleep 0.02; done
    git commit -qam Mine; while [ ! -e "{line.outside}/end" ]; do sleep 0.02; done
    """
    running = line.begin("run", "--agent", "sh", line.tasks({"title": "Work", "body": body}))
    try:
        wait_until(lambda: running.poll() is not None or line.mark("ready").exists(), "the session at work")
        line.ok("lease", "take", "held.txt", "gone.txt", "--as", "bob")
        line.mark("go").touch()
        seen = '["free.txt"]'
        wait_until(
            lambda: running.poll() is not None or seen in json.dumps(line.events("lease.taken")), "the radar's look"
        )
        line.mark("end").touch()
        said, _ = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
        running.wait()
    assert line.statuses() == {"Work": "done"}, said
    assert line.events("lease.crossed") == []


# Work from outside


def commit_on(line: Line, branch: str, path: str, text: str = "mine\n") -> str:
    """Commit a file on a branch in a worktree of the worker's own, and return the commit."""
    place = line.folder / "own"
    if not place.exists():
        line.git("worktree", "add", "-q", "-b", branch, str(place), "main")
    (place / path).write_text(text)
    line.git("add", "--", path, at=place)
    line.git("commit", "-q", "-m", f"Write {path}", at=place)
    return line.git("rev-parse", "HEAD", at=place)


def outside(made: Callable[..., Line]) -> Line:
    """Return a project in which ada, whom covey does not run, has a task."""
    line = made("[merge]\nreview = true\n", files=FILES)
    line.up()
    line.ok("task", "add", "Work")
    line.ok("task", "claim", "T-1", "--as", "ada")
    return line


@pytest.mark.parametrize("how", ["commit", "branch", "neither", "packed"])
def test_work_from_outside_is_refused_while_another_holds_what_it_wrote_into(
    made: Callable[..., Line], how: str
) -> None:
    line = outside(made)
    lease = line.json("lease", "take", "held.txt", "--as", "bob")
    branch = "feature" if how == "branch" else "covey/T-1" if how == "neither" else "mine"
    commit = commit_on(line, branch, "held.txt")
    if how == "packed":
        line.git("gc", "-q", "--prune=now")
        # Its date has whole seconds only: that of the second in which the lease was taken is none of its time.
        wait_until(lambda: _later(line, lease["taken"]), "a commit of a later second")
        commit = line.git("rev-parse", "mine")
    words = {"branch": ("--branch", branch), "neither": ()}.get(how, ("--commit", commit))
    said = line.ends(5, "task", "handin", "T-1", "--as", "ada", *words)
    assert "held.txt is held by bob" in said and f"covey lease give {lease['id']}" in said
    assert "git checkout main -- held.txt" in said and "--timeout 60 --as ada" in said
    line.git("checkout", "-q", "main", "--", "held.txt", at=line.folder / "own")
    line.git("commit", "-q", "--allow-empty", "-m", "Back", at=line.folder / "own")
    words = words if how in ("branch", "neither") else ("--commit", line.git("rev-parse", branch))
    line.ok("task", "handin", "T-1", "--as", "ada", *words)


def _later(line: Line, taken: float) -> bool:
    line.git("commit", "-q", "--amend", "--no-edit", "--reset-author", at=line.folder / "own")
    line.git("gc", "-q", "--prune=now")
    return float(line.git("log", "-1", "--format=%ct", "mine")) > taken


def test_finished_work_from_outside_is_never_held_back_by_a_later_lease(made: Callable[..., Line]) -> None:
    line = outside(made)
    commit_on(line, "mine", "held.txt")
    line.ok("lease", "take", "held.txt", "--as", "bob")
    commit = commit_on(line, "mine", "free.txt")
    line.ok("task", "handin", "T-1", "--as", "ada", "--commit", commit)
    assert line.events("lease.crossed") == []


def test_a_person_hands_in_what_another_holds(made: Callable[..., Line]) -> None:
    line = made("[merge]\nreview = true\n", files=FILES)
    line.up()
    line.ok("task", "add", "Work")
    line.ok("task", "claim", "T-1")
    line.ok("lease", "take", "held.txt", "--as", "bob")
    line.ok("task", "handin", "T-1", "--commit", commit_on(line, "mine", "held.txt"))
