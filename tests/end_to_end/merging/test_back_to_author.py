"""Back to the author: what did not land is mended by whoever wrote it, from nothing but what it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.worlds.projects import Line
from tests.worlds.serving import wait_until

AGENT = '[agents.sh]\ncommand = ["sh", "{body_file}", "{prompt_file}"]\n'
"""An agent that gets the prompt as its first word."""
GATE = '[merge]\ncheck = "sh gate.sh"\n'
BRING_MAIN_IN = "bring() { $(sed -n 's/^1\\. \\(git merge [0-9a-f]*\\) .*/\\1/p' \"$prompt\"); }\n"
"""Do what the story says: merge the commit that it names."""
COMMIT = 'git add -A && git commit -qm "$COVEY_TASK, try $COVEY_TRY"\n'


def _head(line: Line) -> str:
    """Return how every body begins: it keeps its prompt outside."""
    return f'set -e\nprompt=$1\ncp "$prompt" {line.outside}/$COVEY_TASK.$COVEY_TRY\n{BRING_MAIN_IN}'


def _together(line: Line, name: str, other: str) -> str:
    """Return the words by which two agents wait for each other, so that both begin before one has landed."""
    there = f"while [ ! -e {line.mark(other)} ]; do sleep 0.05; done"
    return f"touch {line.mark(name)}; {there}\n"


def _run(line: Line, *tasks: dict[str, Any], code: int = 0, sessions: int = 2) -> str:
    return line.ends(code, "run", "-n", str(sessions), line.tasks(*tasks))


def _story(line: Line, title: str, number: int = 2) -> str:
    """Return the prompt of a try."""
    return line.mark(f"{line.board()[title]['id']}.{number}").read_text()


def _runs(line: Line) -> list[tuple[str, str]]:
    """Return who ran on what, the oldest first."""
    return [(event["data"]["session"], event["data"]["task"]) for event in line.events("run.begun")]


def test_work_from_an_old_main_lands_without_another_run(made: Callable[..., Line]) -> None:
    line = made(AGENT, GATE, files={"gate.sh": "true\n", "shared.txt": "".join(f"{n}\n" for n in range(20))})
    first = _head(line) + _together(line, "one", "two") + "sed -i s/^0$/first/ shared.txt\n" + COMMIT
    second = _head(line) + _together(line, "two", "one") + "sed -i s/^19$/last/ shared.txt\n" + COMMIT
    _run(line, {"title": "First", "body": first}, {"title": "Last", "body": second})
    shared = line.git("show", "main:shared.txt").split()
    assert (shared[0], shared[-1]) == ("first", "last")
    assert len(_runs(line)) == 2 and line.events("merge.rejected") == []


def test_a_conflict_is_resolved_by_its_author_from_what_it_is_told(made: Callable[..., Line]) -> None:
    line = made(AGENT, GATE, files={"gate.sh": "! grep -r '<<<<' shared.txt\n", "shared.txt": "nobody\n"})
    names = ("left", "right")
    bodies = [
        _head(line)
        + f"if [ $COVEY_TRY = 1 ]; then {_together(line, name, names[1 - at])}echo {name} > shared.txt\n"
        + "else bring || true; sed -i '/^[<=>]/d' shared.txt; fi\n"
        + COMMIT
        for at, name in enumerate(names)
    ]
    _run(line, *({"title": name, "body": body} for name, body in zip(names, bodies, strict=True)))
    assert [event["data"]["cause"] for event in line.events("merge.rejected")] == ["text"]
    assert sorted(line.git("show", "main:shared.txt").split()) == ["left", "right"]
    last, first = line.landed()[:2]
    told = _story(line, last)
    other = line.board()[first]
    assert f"It conflicts with main in shared.txt, changed meanwhile by {other['id']} (merge-" in told
    assert "> CONFLICT (content)" in told
    assert f'- {other["id"]}: "{first}" by ' in told and "(it changed shared.txt too)" in told
    assert "  > prompt=$1" in told, "the other's text"
    runs = [session for session, task in _runs(line) if task == line.board()[last]["id"]]
    assert len(runs) == 2 and len(set(runs)) == 1, "the author itself mends it"


CALLS = 'for each in calls/*; do (. ./lib.sh; . ./$each) || { echo "FAILED $each"; exit 1; }; done\n'


def test_what_is_green_alone_and_red_together_is_mended_by_whoever_came_second(made: Callable[..., Line]) -> None:
    files = {"gate.sh": CALLS, "lib.sh": "area() { true; }\n", "calls/one.sh": "area 1\n"}
    line = made(AGENT, GATE, files=files)
    mend = "else bring; sed -i s/area/surface/ calls/*; fi\n"
    renames = (
        f"if [ $COVEY_TRY = 1 ]; then {_together(line, 'renames', 'calls')}sed -i s/area/surface/ lib.sh calls/*\n"
    )
    calls = f"if [ $COVEY_TRY = 1 ]; then {_together(line, 'calls', 'renames')}echo area 2 > calls/two.sh\n"
    _run(line, {"title": "Rename", "body": _head(line) + renames + mend + COMMIT},
         {"title": "Call", "body": _head(line) + calls + mend + COMMIT})  # fmt: skip
    assert line.git("show", "main:calls/two.sh") == "surface 2"
    assert [event["data"]["cause"] for event in line.events("merge.rejected")] == ["fails"]
    last, first = line.landed()[:2]
    told = _story(line, last)
    assert '"sh gate.sh" ended with exit code 1, 2 times' in told and "FAILED calls/two.sh" in told
    assert f'- {line.board()[first]["id"]}: "{first}" by ' in told
    assert "covey merge log merge-" in told
    line.assert_green("sh gate.sh")


def test_the_same_failure_again_goes_to_a_person_with_the_story_and_one_alert(made: Callable[..., Line]) -> None:
    line = made(AGENT, GATE, files={"gate.sh": "test ! -e bad || { echo 'FAILED bad'; exit 3; }\n"})
    body = _head(line) + "echo $COVEY_TRY >> bad\n" + COMMIT
    _run(line, {"title": "Bad", "body": body}, code=1, sessions=1)
    task = line.json("task", "show", line.board()["Bad"]["id"])
    assert task["status"] == "blocked" and "in the same way twice" in task["reason"]
    assert len(task["tries"]) == 2 and "FAILED bad" in task["tries"][-1]["what"]
    assert len(_runs(line)) == 2 and len(line.alerts()) == 1
    assert line.landed() == []


def test_what_is_handed_in_again_without_a_new_commit_goes_to_a_person_at_once(made: Callable[..., Line]) -> None:
    line = made(AGENT, GATE, files={"gate.sh": "test ! -e bad\n"})
    body = _head(line) + "[ $COVEY_TRY = 1 ] || exit 0\necho x > bad\n" + COMMIT
    _run(line, {"title": "Bad", "body": body}, code=1, sessions=1)
    task = line.json("task", "show", line.board()["Bad"]["id"])
    assert task["status"] == "blocked", task
    assert len(line.alerts()) == 1


MENDS = '[agents.sh]\ncommand = ["sh", "-c", "git rm -q bad && git commit -qm Mend"]\n'


@pytest.mark.parametrize("anyone", [True, False])
def test_a_branch_from_outside_that_fails_is_mended_by_any_session_or_waits_for_its_person(
    made: Callable[..., Line], anyone: bool
) -> None:
    line = made(MENDS, GATE, files={"gate.sh": "test ! -e bad\n"})
    line.git("checkout", "-q", "-b", "mine")
    line.commit("bad", "x\n")
    line.commit("good", "x\n")
    line.git("checkout", "-q", "main")
    line.up()
    if anyone:
        line.start_session("ada", "sh")
    line.ok("merge", "queue", "mine")
    (task,) = line.board().values()
    ended = line.wait_for(task["id"], "done", "blocked")
    if anyone:
        assert ended["status"] == "done", ended
        assert line.git("ls-tree", "--name-only", "main", "bad", "good") == "good"
    else:
        assert ended["status"] == "blocked" and ended["reason"].startswith("No session is at work")
        assert task["id"] in line.ok("inbox")
    wait_until(lambda: len(line.events("merge.rejected")) == 1, "one rejection")
