"""Reviewed by a person: an agent is told what is wrong with which line, mends it, and is seen to have heard."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.worlds.projects import Line
from tests.worlds.serving import wait_until

PROGRAM = """\
set -e
cp "$1" "$OUTSIDE/prompt-$COVEY_TASK-$COVEY_TRY"
if grep -q 'What if there is none?' "$1"; then echo 'user = users[0] if users else None' > login.py
else echo 'user = users[0]' > login.py; fi
git add -A
git commit -qm "$COVEY_TASK, try $COVEY_TRY" || true
"""
"""An agent that does what its prompt says; it reads mail as every agent does whose prompt covey writes."""


def _settings(line: Line) -> None:
    program = line.folder / "agent.sh"
    program.write_text(PROGRAM)
    command = json.dumps(["sh", str(program), "{prompt_file}"])
    line.settings(
        f'[agents.reader]\ncommand = {command}\nenv = ["OUTSIDE"]\n',
        '[merge]\ncheck = "test ! -e bad"\nreview = true\n',
    )


def test_work_in_review_goes_back_with_comments_and_lands_when_they_are_heeded(made: Callable[..., Line]) -> None:
    line = made()
    _settings(line)
    line.up()
    line.ok("session", "new", "ada", "--agent", "reader")
    line.ok("session", "start", "ada")
    line.ok("task", "add", "Let users in")
    line.wait_for("T-1", "review")

    shown = line.ok("task", "diff", "T-1")
    assert "login.py  (added, +1 -0)" in shown and "+user = users[0]" in shown
    assert "main: merges cleanly" in line.ok("task", "diff", "T-1", "--conflicts")
    line.ok("comment", "add", "T-1", "login.py:1", "What if there is none?")
    assert "draft" in line.ok("comment", "list", "T-1")
    assert "Sent T-1 back with 1 comment to ada." in line.ok("comment", "send", "T-1", "Almost.", "--back")

    told = line.mark("prompt-T-1-2")
    wait_until(told.exists, "the next try")
    line.wait_for("T-1", "review")
    prompt = told.read_text()
    assert "Almost." in prompt and "- login.py:1\n    user = users[0]\n  What if there is none?" in prompt
    assert "sent it back to you with 1 comment" in prompt, "the message with the receipt"
    (comment,) = line.json("comment", "list", "T-1")
    assert (comment["state"], comment["to"], comment["place"]) == ("delivered", "ada", "outdated")
    assert "if users else None" in line.ok("task", "diff", "T-1", "login.py")
    assert [event["data"]["session"] for event in line.events("run.begun")] == ["ada", "ada"]

    line.ok("merge", "approve", "T-1")
    line.wait_for("T-1", "done")
    assert "if users else None" in line.git("show", "main:login.py")
    assert "login.py" in line.ok("task", "diff", "T-1", "--stat"), "what landed can be looked at still"


def test_comments_wake_an_author_that_waits_for_the_review(made: Callable[..., Line]) -> None:
    line = made()
    _settings(line)
    line.up()
    line.ok("session", "new", "ada", "--agent", "reader")
    line.ok("session", "start", "ada")
    line.ok("task", "add", "Let users in")
    line.wait_for("T-1", "review")
    line.ok("comment", "add", "T-1", "login.py:1", "Which users are these?")
    assert line.ok("comment", "send", "T-1").strip() == "Sent 1 comment to ada."
    wait_until(lambda: line.json("comment", "list", "T-1")[0]["state"] == "delivered", "the receipt")
    woken = [each for each in line.outside.glob("prompt-*-1") if "Which users are these?" in each.read_text()]
    assert len(woken) == 1 and "> - login.py:1" in woken[0].read_text()
    assert line.task("T-1")["status"] == "review", "the work itself waits on"
