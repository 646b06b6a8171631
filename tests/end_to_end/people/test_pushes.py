"""From a session nothing is pushed that nobody has allowed; what left all the same is noticed and told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.merging.test_queue import _remote
from tests.worlds.projects import GOOD, SCRIPTED, Line
from tests.worlds.serving import wait_until

SOON = "[watch]\nanswer_minutes = 0.02\n"
"""Nobody answers: a question is denied after a second."""
PUSH = "write a.txt\n    a\ncommit A\nrun git push -q origin HEAD:main\n"
TRIED = "write a.txt\n    a\ncommit A\nrun git push -q {words} 2>/dev/null; true\n"

Made = Callable[..., Line]


def _begun(made: Made, *settings: str) -> Line:
    """Return a project with a remote, and its daemon up."""
    line = made(SCRIPTED, GOOD, *settings)
    _remote(line)
    line.up()
    return line


def _at(line: Line, ref: str = "main") -> str:
    return line.git("rev-parse", ref, at=line.folder / "remote.git")


def _said(line: Line) -> str:
    return (line.outside / "said").read_text()


def _questions(line: Line) -> list[dict[str, Any]]:
    with line.client() as client:
        found: list[dict[str, Any]] = client.get("/api/questions?limit=100")
        return found


def _open(line: Line) -> dict[str, Any]:
    wait_until(lambda: any(each["state"] == "open" for each in _questions(line)), "a question")
    return next(each for each in _questions(line) if each["state"] == "open")


def test_a_session_does_not_push_to_the_remotes_main_unasked(made: Made) -> None:
    line = _begun(made, SOON, "[board]\ntries = 1\n")
    before = _at(line)
    line.ends(1, "run", line.tasks({"title": "One", "body": PUSH}))
    assert _at(line) == before
    (asked,) = _questions(line)
    assert (asked["tool"], asked["about"], asked["state"]) == ("push", "origin main", "expired")
    assert any("wants to push to origin main" in alert for alert in line.alerts())


def test_a_push_waits_for_the_answer_and_goes_on_with_it(made: Made) -> None:
    line = _begun(made)
    running = line.begin("run", line.tasks({"title": "One", "body": TRIED.format(words="origin HEAD:shared")}))
    question = _open(line)
    (listed,) = (each for each in line.json("inbox") if each["kind"] == "question")
    assert (listed["title"], listed["about"]) == ("wants to push to", "origin shared")
    line.ok("answer", question["id"], "--always", "--about", "origin sha*")
    running.communicate(timeout=60)
    assert running.returncode == 0
    assert _at(line, "shared")
    (permit,) = line.json("permit", "list")
    assert (permit["tool"], permit["about"]) == ("push", "origin sha*")
    assert not [alert for alert in line.alerts() if "without asking" in alert]


@pytest.mark.parametrize(
    ("rules", "words", "goes"),
    [
        ('origin = ["feature/*"]', "origin HEAD:feature/x", True),
        ('origin = ["feature/*"]', "origin HEAD:main", False),
        ('origin = ["+feature/*"]', "--force origin HEAD~1:refs/heads/feature/x", True),
    ],
)
def test_the_settings_name_what_may_be_pushed(made: Made, rules: str, words: str, goes: bool) -> None:
    line = _begun(made, SOON, f"[sessions.push]\n{rules}\n")
    line.ok("run", line.tasks({"title": "One", "body": TRIED.format(words=words)}))
    refs = line.git("for-each-ref", "--format=%(refname)", at=line.folder / "remote.git").splitlines()
    assert ("refs/heads/feature/x" in refs) == goes
    assert bool(_questions(line)) != goes


def test_a_name_given_to_another_address_is_no_remote_that_is_allowed(made: Made, tmp_path: Path) -> None:
    line = _begun(made, SOON, '[sessions.push]\norigin = ["**"]\n')
    other = tmp_path / "other.git"
    line.git("init", "-q", "--bare", str(other))
    words = f"-u origin HEAD:x; git -c remote.origin.url={other} push -q origin HEAD:y"
    line.ok("run", line.tasks({"title": "One", "body": TRIED.format(words=words)}))
    assert line.git("for-each-ref", at=other) == ""
    assert [each["about"] for each in _questions(line)] == [f"{other} y"]


def test_a_remote_added_by_hand_is_asked_about_by_its_address(made: Made, tmp_path: Path) -> None:
    line = _begun(made, SOON)
    other = tmp_path / "other.git"
    line.git("init", "-q", "--bare", str(other))
    words = f"https://me:secret@example.invalid/x HEAD:y; git remote add mine {other}; git push -q mine HEAD:x"
    line.ok("run", line.tasks({"title": "One", "body": TRIED.format(words=words)}))
    assert [each["about"] for each in _questions(line)] == ["mine x"]
    assert line.git("for-each-ref", at=other) == ""


def test_what_passes_by_the_hook_is_noticed_told_and_waits_in_the_inbox(made: Made) -> None:
    line = _begun(made)
    words = "--no-verify origin HEAD:main"
    line.ok("run", line.tasks({"title": "One", "body": TRIED.format(words=words)}))
    (told,) = [alert for alert in line.alerts() if "without asking" in alert]
    assert "origin main" in told
    assert [event["data"]["type"] for event in line.events("alert.raised")].count("pushed_unasked") == 1
    (listed,) = (each for each in line.json("inbox") if each["kind"] == "mail")
    assert "origin main" in listed["title"]


def test_a_push_that_leaves_no_trace_here_is_found_at_the_remote(made: Made) -> None:
    line = made(SCRIPTED, GOOD)
    _remote(line)
    words = "x 2>/dev/null; git send-pack $(git config remote.origin.url) HEAD:refs/heads/taken"
    line.ok("run", line.tasks({"title": "One", "body": TRIED.format(words=words)}))  # its daemon ends with it
    assert _at(line, "taken")
    assert any("origin taken" in alert for alert in line.alerts())
