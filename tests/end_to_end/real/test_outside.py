"""Real agents that people start themselves in a checkout with covey's hooks: known, warned, told their mail, let go."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.real.test_coordination import DONE, PATIENCE, Place, made
from tests.model.environment import CODEX_MODEL, program
from tests.model.script import Shell, Step, Tool, Write
from tests.worlds.serving import wait_until

BOTH = pytest.mark.parametrize("agent", ["claude", "codex"])
THEIRS = {
    "permissions": {"deny": ["WebFetch"]},
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
}


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Yield a place where a tool is refused what another holds."""
    with made(tmp_path_factory.mktemp("street"), '[leases]\ntool = "deny"\n') as place:
        yield place


def checkout(place: Place, name: str) -> Path:
    """Return a worktree that a person has made, with settings of their own in it."""
    path = place.line.folder / name
    place.line.git("worktree", "add", "-q", "-b", name, str(path))
    return path


def covey(place: Place, at: Path, *words: str) -> Any:
    """Run a command of covey in a checkout, which must succeed, and return what it says."""
    done = place.line.run(*words, "--json", at=at)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def start(place: Place, agent: str, at: Path, prompt: str) -> subprocess.Popen[str]:
    """Start an agent by hand, as its user does who lets it do anything."""
    env = {name: value for name, value in place.world.environment.items() if not name.startswith("COVEY_")}
    trust = ["--dangerously-bypass-hook-trust", "-m", CODEX_MODEL]
    words: dict[str, list[str | Path]] = {
        "claude": [program("claude"), "-p", prompt, "--dangerously-skip-permissions"],
        "codex": [program("codex"), "exec", "--json", *trust, prompt],
    }
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(words[agent], cwd=at, env=env, text=True, **pipes)


@BOTH
def test_an_agent_that_a_person_starts_is_known_refused_what_another_holds_and_told_its_mail(
    street: Place, agent: str
) -> None:
    name = f"annex-{agent}"
    at = checkout(street, name)
    covey(street, at, "hooks", "install", "--agent", agent)
    street.holds("bob", f"{name}-held.txt", reason="the big move")
    steps = [
        Step(do=(Write(f"{name}-held.txt", "x\n"),)),
        Step(text="Nobody told me.", told={"is held by bob": Step(do=(Write(f"{name}-free.txt", "x\n"),))}),
        Step(do=(Shell("true"),), hold=name),
        Step(text="Nobody wrote to me.", told={"Please call it green.": Step(do=(Shell("echo green > colour"),))}),
        DONE,
    ]
    prompt = street.world.model.add(name, steps)
    with start(street, agent, at, prompt) as process:
        try:
            street.asked(name, 2)
            session = street.line.sessions()[name]
            assert (session["kind"], session["state"]) == ("outside", "working")
            (lease,) = street.leases(name)
            assert (lease["origin"], lease["resources"]) == ("edit", [f"{name}-free.txt"])
            mail = street.mails("bob", name, "Please call it green.")
            street.world.model.open(name)
            said, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert not (at / f"{name}-held.txt").exists() and (at / "colour").read_text() == "green\n", said
    assert f'{name}-held.txt is held by bob ("the big move"): ' in street.told(name, 1)
    assert f"[{mail}] From bob (information from a colleague, not an order):" in street.told(name, 3)
    (arrived,) = [event for event in street.line.events("mail.delivered") if event["subject"] == mail]
    assert arrived["data"] == {"reader": name, "run": "outside", "how": "transcript"}
    wait_until(lambda: street.line.sessions()[name]["state"] == "idle", "a session that is idle")
    covey(street, at, "hooks", "remove", "--agent", agent)
    if agent == "claude":
        assert street.line.git("status", "--porcelain", at=at).split() == ["??", f"{name}-free.txt", "??", "colour"]


def test_hooks_are_put_beside_what_a_person_has_and_leave_it_as_it_was(street: Place) -> None:
    at = checkout(street, "kept")
    file = at / ".claude" / "settings.local.json"
    file.parent.mkdir()
    file.write_text(json.dumps(THEIRS, indent=2) + "\n")
    before = file.read_bytes()
    assert covey(street, at, "hooks", "install")["installed"] is True
    assert json.loads(file.read_text())["permissions"] == THEIRS["permissions"]
    street.world.model.add("kept", [Step(do=(Tool("Write", {"file_path": "kept.txt", "content": "x\n"}),)), DONE])
    with start(street, "claude", at, "[[script kept]]") as process:
        process.communicate(timeout=PATIENCE)
    wait_until(lambda: street.line.sessions()["kept"]["state"] == "idle", "a session that is idle")
    assert covey(street, at, "hooks", "remove")["installed"] is False
    assert file.read_bytes() == before
    seen = len(street.line.events("session.changed"))
    street.world.model.add("quiet", [Step(do=(Write("quiet.txt", "x\n"),)), DONE])
    with start(street, "claude", at, "[[script quiet]]") as process:
        process.communicate(timeout=PATIENCE)
    assert (at / "quiet.txt").exists() and len(street.line.events("session.changed")) == seen
