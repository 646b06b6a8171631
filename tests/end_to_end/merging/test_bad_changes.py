"""One bad change halts nobody: it goes back, waits or is blocked by name, and the good one behind it lands."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from covey.git.project import find
from covey.git.worktrees import task_branches
from tests.worlds.crafted import BROKEN, FILE, HONEST, ODD, Forge
from tests.worlds.projects import Line
from tests.worlds.queues import merges
from tests.worlds.repositories import make_repository
from tests.worlds.serving import wait_until

CHECK = '[merge]\ncheck = "test ! -e bad"\n'


def hand_in(line: Line, tips: dict[str, str]) -> None:
    """Hand commits in, each on a branch with a name, while the queue is paused; then let it go on."""
    with line.client() as client:
        client.ask("POST", "/api/queue/pause", {}).good()
        for number, (name, tip) in enumerate(tips.items()):
            task = client.post("/api/board", {"title": name})["id"]
            client.ask("POST", f"/api/board/{task}/claim", {"session": "ann", "overlap": True}).good()
            handed = {"session": "ann", "branch": f"work/{number}", "commit": tip}
            client.ask("POST", f"/api/board/{task}/handin", handed).good()
        client.ask("POST", "/api/queue/resume", {}).good()


def _by_title(line: Line) -> dict[str, dict[str, Any]]:
    titles = {task["id"]: title for title, task in line.board().items()}
    return {titles[merge["task"]]: merge for merge in merges(line)}


def _states(line: Line, names: Sequence[str]) -> set[str]:
    found = _by_title(line)
    return {found[name]["state"] for name in names}


def _wait_until_through(line: Line) -> None:
    ended = {"landed", "rejected", "review"}
    wait_until(lambda: {merge["state"] for merge in merges(line)} <= ended, "the end of all merges")


def test_a_branch_whose_files_git_lacks_cannot_be_checked_out_and_others_can(tmp_path: Path) -> None:
    forge = Forge(make_repository(tmp_path / "project"))
    project = find(forge.path)
    for name in ("a missing file", "a missing folder"):
        assert not task_branches.can_be_checked_out(project, BROKEN[name](forge)), name
    for name, craft in HONEST.items():
        assert task_branches.can_be_checked_out(project, craft(forge)), name


@pytest.mark.parametrize("policy", ["squash", "merge", "ff"])
def test_crafted_commits_go_back_or_wait_by_name_and_honest_ones_land(made: Callable[..., Line], policy: str) -> None:
    line = made(f'{CHECK}policy = "{policy}"\n')
    line.up()
    forge = Forge(line.root)
    tips = {name: craft(forge) for crafts in (BROKEN, ODD, HONEST) for name, craft in crafts.items()}
    hand_in(line, tips)
    _wait_until_through(line)
    found = _by_title(line)
    assert {name: found[name]["state"] for name in BROKEN} == dict.fromkeys(BROKEN, "rejected")
    assert {name: found[name]["state"] for name in ODD} == dict.fromkeys(ODD, "review")
    assert {name: (found[name]["state"], found[name]["reason"]) for name in HONEST} == dict.fromkeys(
        HONEST, ("landed", None)
    )
    assert "'more/..'" in found["dot dot"]["reason"] and "'sub'" in found["a submodule"]["reason"]
    line.git(
        "clone", "-q", "--no-local", "--single-branch", "--branch", "main", str(line.root), str(line.mark("clone"))
    )
    line.git("fsck", "--no-dangling", at=line.mark("clone"))
    assert line.git("status", "--short") in ("", "?? covey.toml")
    line.ok("log", "verify")


def test_what_only_git_itself_fails_on_is_blocked_by_name_after_three_failures(made: Callable[..., Line]) -> None:
    line = made(CHECK, files={"shared": "a\n" * 50})
    line.up()
    forge = Forge(line.root)
    text = b"changed\n" + b"a\n" * 49
    bad = forge.adding((FILE, b"shared", forge.blob(text)))
    good = {f"good {number}": forge.adding((FILE, b"good-%d" % number, forge.blob())) for number in range(3)}
    line.commit("shared", "a\n" * 49 + "by the user\n")
    _spoil(line.root, forge.blob(text), text)
    hand_in(line, {"good before": forge.adding((FILE, b"before", forge.blob())), "bad": bad, **good})
    _wait_until_through(line)
    found = _by_title(line)
    assert {name: merge["state"] for name, merge in found.items() if name != "bad"} == dict.fromkeys(
        ["good before", *good], "landed"
    )
    assert found["bad"]["state"] == "rejected" and "3 times in a row" in found["bad"]["reason"]
    assert line.statuses()["bad"] == "blocked"
    named = [said for said in line.alerts() if found["bad"]["task"] in said]
    assert len(named) == 1 and "3 times in a row" in named[0]
    line.ok("log", "verify")


def _spoil(root: Path, blob: str, text: bytes) -> None:
    """Cut the file of an object off after its head: git knows what it is, and cannot read it."""
    place = root / ".git" / "objects" / blob[:2] / blob[2:]
    place.chmod(0o600)
    packer = zlib.compressobj(0)
    head = packer.compress(b"blob %d\0" % len(text) + text) + packer.flush(zlib.Z_SYNC_FLUSH)
    place.write_bytes(head[: 7 + len(b"blob %d\0" % len(text)) + 8])


def test_a_person_lets_odd_work_land_and_nobody_else_does(made: Callable[..., Line]) -> None:
    line = made(CHECK)
    line.up()
    forge = Forge(line.root)
    odd = ("a line end", "a submodule", "a time zone", "an encoding")
    hand_in(line, {name: ODD[name](forge) for name in odd})
    _wait_until_through(line)
    found = _by_title(line)
    assert {found[name]["state"] for name in odd} == {"review"}
    assert all(any(found[name]["id"] in said for said in line.alerts()) for name in odd)
    for name in odd:
        line.ok("merge", "approve", found[name]["id"])
    wait_until(lambda: _states(line, odd) == {"landed"}, "the landing of what a person let in")
    forge = Forge(line.root)
    good = {"good": forge.adding((FILE, b"good", forge.blob()))}
    hand_in(line, good)
    wait_until(lambda: _states(line, ["good"]) == {"landed"}, "the landing of what has nothing odd of its own")


@pytest.mark.parametrize("policy", ["squash", "ff"])
def test_a_check_that_floods_or_a_tree_that_git_cannot_check_out_is_the_changes_own_failure(
    made: Callable[..., Line], policy: str
) -> None:
    line = made(
        f'[merge]\ncheck = "sh check.sh"\nprotect_check = false\npolicy = "{policy}"\n', files={"check.sh": "true\n"}
    )
    for key in ("required", "smudge", "clean"):
        line.git("config", f"filter.gone.{key}", "true" if key == "required" else "false")
    line.up()
    forge = Forge(line.root)
    flood = forge.adding((FILE, b"check.sh", forge.blob(b"head -c 300000000 /dev/zero\n")))
    filtered = forge.adding(
        (FILE, b".gitattributes", forge.blob(b"*.txt filter=gone\n")), (FILE, b"a.txt", forge.blob())
    )
    hand_in(line, {"filter": filtered, "flood": flood, "good": forge.adding((FILE, b"good", forge.blob()))})
    wait_until(lambda: _states(line, ["filter"]) == {"review"}, "a person's turn")
    line.ok("merge", "approve", _by_title(line)["filter"]["id"])
    wait_until(lambda: _states(line, ["filter", "flood"]) == {"rejected"}, "the end of the bad ones")
    wait_until(lambda: _states(line, ["good"]) == {"landed"}, "the landing of the good one")
    assert "printed more than" in _by_title(line)["flood"]["reason"]
    assert not [said for said in line.alerts() if "fails its gate" in said or "cannot go on" in said]


def test_a_branch_that_cannot_land_is_refused_at_the_door(made: Callable[..., Line]) -> None:
    line = made(CHECK)
    forge = Forge(line.root)
    for name in ("dot dot", "a missing parent", "a short tree"):
        line.git("update-ref", "refs/heads/bad", HONEST["a plain file"](forge))
        (line.root / ".git" / "refs" / "heads" / "bad").write_text(BROKEN[name](forge) + "\n")
        assert "cannot land as it is" in line.ends(5, "merge", "queue", "bad")
    line.git("update-ref", "refs/heads/fine", HONEST["a plain file"](forge))
    line.up()
    line.ok("merge", "queue", "fine")
    wait_until(lambda: {merge["state"] for merge in merges(line)} == {"landed"}, "the landing of a branch from outside")


def test_a_main_that_moves_all_the_time_makes_no_events_for_each_merge_that_waits(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "sleep 600"\nslots = 1\n')  # none ends before main moves, however slow git is
    line.up()
    forge = Forge(line.root)
    names = {f"task {number}": forge.adding((FILE, b"f%d" % number, forge.blob())) for number in range(12)}
    hand_in(line, names)
    wait_until(lambda: bool(line.events("gate.started")), "the first gate")
    for number in range(6):
        begun = len(line.events("gate.started"))
        line.git_at_last("commit", "-q", "--allow-empty", "-m", f"By the user {number}")
        wait_until(lambda begun=begun: len(line.events("gate.started")) > begun, "the next train")  # type: ignore[misc]
    counted = {kind: len(line.events(f"merge.{kind}")) for kind in ("entered", "tested", "requeued")}
    assert counted["entered"] <= 2 * len(names), "it was one for each merge at each move of main"
    assert counted["tested"] + counted["requeued"] <= 3 * len(names), counted
    line.ok("log", "verify")
