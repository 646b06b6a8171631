"""What lands is what was meant to land: never past a person, past the gate, or after it was taken back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.projects import GOOD, SCRIPTED, Line
from tests.worlds.repositories import git_out
from tests.worlds.serving import Client, wait_until

ONCE = "[board]\ntries = 1\n"
SHARED = {"shared.txt": "as it was\n"}
CHANGE = "write shared.txt\n    changed by an agent\ntry 2+: write mended.txt\n    mended\ncommit Change it\n"


def _merge(line: Line, task: str) -> dict[str, Any]:
    """Return the last merge of a task."""
    found: list[dict[str, Any]] = line.json("merge", "list", "--all")
    return [merge for merge in found if merge["task"] == task][-1]


# Protected paths


def test_a_change_of_the_settings_waits_for_a_person_although_it_would_pass(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD, files={".gitignore": ""})
    line.git("add", "covey.toml")
    line.git("commit", "-q", "-m", "The settings")
    before = line.git("rev-parse", "main")
    body = "append covey.toml\n    # nothing\ncommit Settings\n"
    said = line.ends(1, "run", line.tasks({"title": "Settings", "body": body}, {"title": "Other"}))

    task = line.board()["Settings"]["id"]
    assert line.statuses() == {"Settings": "review", "Other": "done"}
    merge = _merge(line, task)
    assert merge["state"] == "review"
    assert "covey.toml" in merge["reason"]
    assert f"covey merge approve {merge['id']}" in said
    (told,) = line.alerts()
    assert "covey.toml" in told
    assert merge["id"] in told
    assert line.git("show", "main:covey.toml") == line.git("show", f"{before}:covey.toml")

    line.ok("merge", "approve", merge["id"])
    line.up()
    line.wait_for(task, "done")
    assert line.git("show", "main:covey.toml").endswith("# nothing")
    assert len(line.alerts()) == 1
    line.ok("down")
    line.assert_nothing_left()


@pytest.mark.soak
def test_a_protected_path_that_is_rejected_can_be_taken_back_and_the_rest_lands(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD + 'protected = ["ci/**"]\n', files={"ci/plan": "as it was\n"})
    body = (
        "write a.txt\n    a\ntry 1: delete ci/plan\ntry 1: run git mv README.md ci/README.md\ncommit One\n"
        "try 2+: run git checkout -q main -- . && git rm -q ci/README.md && git commit -qm Back\n"
    )
    line.ends(1, "run", line.tasks({"title": "One", "body": body}))
    merge = _merge(line, "T-1")
    assert "ci/README.md, ci/plan" in merge["reason"]
    line.ok("merge", "reject", merge["id"], "Leave the plan alone.")
    line.ok("run")
    assert line.git("diff", "--name-only", "HEAD~1", "HEAD") == "a.txt"


# The remote's work


def _remote(line: Line, folder: Path, path: str) -> str:
    """Give a project a remote that has one more commit, with one more file, and return that commit."""
    git_out(folder, "clone", "-q", "--bare", str(line.root), "remote.git")
    git_out(folder, "clone", "-q", "remote.git", "colleague")
    other = folder / "colleague"
    (other / path).write_text("theirs\n")
    git_out(other, "add", ".")
    git_out(other, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "Theirs")
    git_out(other, "push", "-q")
    line.git("remote", "add", "origin", str(folder / "remote.git"))
    return git_out(other, "rev-parse", "HEAD")


def test_main_takes_no_commit_of_the_remote_past_the_gate(made: Callable[..., Line], tmp_path: Path) -> None:
    line = made(SCRIPTED, GOOD, ONCE)
    _remote(line, tmp_path, "bad")
    before = line.git("rev-parse", "main")
    line.ends(1, "run", line.tasks({"title": "One", "body": "write a\n    a\ncommit A\n"}))
    assert line.statuses() == {"One": "merging"}  # nobody here is to blame
    (told,) = [alert for alert in line.alerts() if "fails its gate" in alert]
    assert "(Theirs)" in told
    assert line.git("rev-parse", "main") == before
    line.assert_green("test ! -e bad")


def test_empty_work_on_a_commit_of_the_remote_is_sent_back_and_lands_nothing(
    made: Callable[..., Line], tmp_path: Path
) -> None:
    line = made(SCRIPTED, GOOD, "[board]\ntries = 1\n")
    _remote(line, tmp_path, "good")
    before = line.git("rev-parse", "main")
    line.ends(1, "run", line.tasks({"title": "One", "body": "run git commit -q --allow-empty -m Nothing\n"}))
    assert "change nothing" in line.json("task", "show", "T-1")["reason"]
    assert line.git("rev-parse", "main") == before


# Taken back after it had passed


def _pass_and_wait(line: Line) -> str:
    """Let the work on T-1 pass while main cannot follow, and return the commit that would have landed."""
    (line.root / "shared.txt").write_text("mine\n")
    line.ends(1, "run", line.tasks({"title": "Change it", "body": CHANGE}))
    return line.git("rev-parse", "refs/covey/landed")


def _assert_never_landed(line: Line, commit: str) -> None:
    assert "refs/covey/landed" not in line.refs("refs/covey")
    for value in line.main_values():
        assert commit not in line.git("rev-list", value).splitlines()
        assert line.git("show", f"{value}:shared.txt") == "as it was"


@pytest.mark.parametrize(
    ("is_up", "is_restored"),
    [
        (False, False),
        *(pytest.param(*each, marks=pytest.mark.soak) for each in ((True, True), (False, True))),
        pytest.param(True, False, marks=pytest.mark.soak),
    ],
)
def test_what_was_dropped_after_it_had_passed_lands_nowhere(
    made: Callable[..., Line], is_up: bool, is_restored: bool
) -> None:
    line = made(SCRIPTED, GOOD, files=SHARED)
    commit = _pass_and_wait(line)
    if is_up:
        line.up()
    line.ok("task", "drop", "T-1", "Not wanted.")
    if is_restored:
        line.git_at_last("restore", "shared.txt")
    line.ok("run", "Two")  # which has nothing to do with what is in the way
    line.git_at_last("restore", "shared.txt")
    line.ok("run", "Three")
    assert line.landed() == ["Three", "Two"]
    _assert_never_landed(line, commit)
    line.run("down")
    line.assert_nothing_left(branches=True)


@pytest.mark.soak
def test_work_that_was_built_on_what_was_dropped_does_not_carry_it_along(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD, files=SHARED)
    commit = _pass_and_wait(line)
    body = (
        f"run touch {line.mark('begun')}\nwait for {line.mark('go')}\nwrite two.txt\n    two\ncommit Two\n"
        f"try 2+: run git rebase -q --onto main {commit}\n"
    )
    running = line.begin("run", line.tasks({"title": "Two", "body": body}))
    wait_until(line.mark("begun").exists, "the agent at work")
    line.ok("task", "drop", "T-1", "Not wanted.")
    line.git_at_last("restore", "shared.txt")
    line.mark("go").touch()
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert line.landed() == ["Two"]
    _assert_never_landed(line, commit)


@pytest.mark.parametrize("is_up", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_what_was_rejected_after_it_had_passed_is_mended_and_lands(made: Callable[..., Line], is_up: bool) -> None:
    line = made(SCRIPTED, GOOD, files=SHARED)
    commit = _pass_and_wait(line)
    if is_up:
        line.up()
    line.ok("merge", "reject", _merge(line, "T-1")["id"], "Mend it.")
    line.git_at_last("restore", "shared.txt")
    line.ok("run")
    assert line.statuses() == {"Change it": "done"}
    assert line.landed() == ["Change it"]
    assert line.git("show", "main:mended.txt") == "mended"
    assert commit not in line.git("rev-list", "main").splitlines()
    line.run("down")
    line.assert_nothing_left()


# Hand-ins and branches


def test_a_session_of_ours_that_hands_in_without_a_commit_is_told_what_is_missing(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    body = f"run env | grep ^COVEY_ > {line.mark('env')}.part; mv {line.mark('env')}.part {line.mark('env')}\nhang\n"
    line.ok("task", "add", "One", "--body", body)
    line.ok("session", "new", "ada", "--agent", "scripted")
    line.ok("session", "start", "ada")
    wait_until(line.mark("env").exists, "the agent at work")
    env = dict(text.split("=", 1) for text in line.marks("env"))
    port = int(env["COVEY_URL"].rpartition(":")[2])
    with Client(port, env["COVEY_TOKEN"]) as client:
        reply = client.ask("POST", "/api/board/T-1/handin", {"fence": int(env["COVEY_FENCE"])})
        assert reply.status == 400
        said = json.loads(reply.body)
        assert "commit" in said["error"]
        assert "--commit HEAD" in said["hint"]
        head = line.git("commit-tree", "covey/T-1^{tree}", "-p", "covey/T-1", "-m", "Work")
        handed = client.post("/api/board/T-1/handin", {"fence": int(env["COVEY_FENCE"]), "commit": head})
        assert handed["status"] == "merging"
    line.ok("down", "--agents")


@pytest.mark.parametrize("is_forged", [False, True])
def test_a_branch_of_which_the_board_knows_nothing_is_set_aside(made: Callable[..., Line], is_forged: bool) -> None:
    line = made(SCRIPTED, GOOD)
    line.git("switch", "-q", "-c", "covey/T-1")
    theirs = line.commit("theirs.txt", "theirs\n")
    line.git("switch", "-q", "main")
    if is_forged:  # by who knows what the next task will be called
        line.git("update-ref", "refs/covey/tasks/T-1", theirs)
    line.ok("run", "One")
    assert line.landed() == ["One"]
    assert "theirs.txt" not in line.git("ls-tree", "-r", "--name-only", "main").splitlines()
    assert line.refs("refs/covey/kept") == {f"refs/covey/kept/T-1-{theirs[:12]}": theirs}
    line.assert_nothing_left()


def test_a_session_cannot_touch_the_branch_of_another_task(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED)
    line.ends(1, "run", "One")
    handed_in = line.git("rev-parse", "covey/T-1")
    tries = (
        "branch -D covey/T-1",
        "branch -f covey/T-1 HEAD",
        "branch -M covey/T-1 covey/T-2-mine",
        "update-ref refs/heads/covey/T-1 HEAD",
        "update-ref -d refs/heads/covey/T-1",
        "update-ref -d refs/covey/tasks/T-1",
        "push -q . HEAD:refs/heads/covey/T-1",
        "branch covey/T-12",
    )
    body = "".join(
        f"run ! git {words} 2>> {line.mark('said')} || echo {words.split()[0]} >> {line.mark('done')}\n"
        for words in tries
    )
    body += "run git branch covey/T-2-second && git branch -D -q covey/T-2-second\n"
    line.ends(1, "run", line.tasks({"title": "Two", "body": body + "write two.txt\n    two\ncommit Two\n"}))
    assert line.statuses() == {"One": "review", "Two": "review"}
    assert line.marks("done") == []
    assert len([said for said in line.marks("said") if "belongs to another task" in said]) >= 5
    assert line.git("rev-parse", "covey/T-1") == handed_in


def test_what_was_handed_in_stays_until_it_has_landed_whatever_becomes_of_its_branch(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED)
    line.ends(1, "run", "One")
    assert line.refs("refs/covey/tasks") == {"refs/covey/tasks/T-1": line.git("rev-parse", "covey/T-1")}
    line.git("branch", "-q", "-D", "covey/T-1")
    line.git("reflog", "expire", "--expire=now", "--all")
    line.git("gc", "-q", "--prune=now")
    line.ok("merge", "approve", _merge(line, "T-1")["id"])
    line.up()
    line.wait_for("T-1", "done")
    assert line.landed() == ["One"]
    wait_until(lambda: line.refs("refs/covey/tasks") == {}, "the end of what was kept")
    line.ok("down")
    line.assert_nothing_left()
