"""One bad change halts nobody: it goes back, waits or is blocked by name, and the good one behind it lands."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.git.crafted import BROKEN, FILE, HONEST, ODD, Forge
from tests.line.lines import Line
from tests.line.queues import merges
from tests.serving import wait_until

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
