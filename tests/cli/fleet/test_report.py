"""The report with which covey run ends: of a task that is blocked it tells why, not what its author was told to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from covey.cli.fleet.report import MAX_STORY_LINES, Report
from covey.config import Config
from covey.core.fleet.outcomes import OUTPUT, in_short
from covey.core.merging import rejection
from covey.core.merging.failures import summary, tell
from tests.core.merging.test_rejection import RED

WISH = "Not so, please."
"""What a person says who sends work back."""


def blocked(*what: str, tasks: int = 1) -> str:
    """Return the report of blocked tasks whose tries were told so."""
    found = [{**_task(*what), "id": f"T-{number}"} for number in range(1, tasks + 1)]
    return Report(found, {}).as_text(Config(), 1.0)


def _task(*what: str) -> dict[str, Any]:
    return {
        "id": "T-1",
        "title": "Mend it",
        "status": "blocked",
        "commit": None,
        "merge": None,
        "reason": "It failed 3 times",
        "tries": [{"session": "ada", "what": each, "by": "owner" if each == WISH else ""} for each in what],
        "cost": 0.0,
        "tokens": 0,
        "unpriced": 0,
    }


def test_work_that_the_queue_rejected_is_told_with_what_failed_and_without_what_to_do() -> None:
    told = blocked(rejection.story(RED))
    assert "## What failed" in told and "> tests/test_area.py::test_a_square" in told
    assert "> ERROR: no function area" in told
    assert "What to do" not in told and "git merge" not in told


def test_the_line_that_says_what_went_wrong_is_told_however_many_tests_failed() -> None:
    names = tuple(f"tests/test_{number}.py" for number in range(7))
    text = tell("The gate failed.", (), summary(b"starts\n" * 9 + b"E   RuntimeError: oops\n" + b"ends\n" * 9))
    red = replace(RED, gates=tuple(replace(gate, failures=names, summary=text) for gate in RED.gates))
    told = blocked(rejection.story(red)).splitlines()
    assert told.index("    [...]") < next(n for n, line in enumerate(told) if "RuntimeError: oops" in line)


def test_a_long_story_of_an_agent_is_told_by_its_beginning_and_its_end() -> None:
    told = blocked("\n".join(f"line {number}" for number in range(50)))
    assert "line 0" in told and "[...]" in told and "line 49" in told
    assert told.count("    line") == MAX_STORY_LINES - 1


def test_what_is_the_same_of_several_tries_and_tasks_is_told_once() -> None:
    told = blocked("The model says no.", "The model says no.", "It crashed.", tasks=3)
    assert told.count("The model says no.") == 1 and told.count("It failed 3 times") == 1
    assert "T-1, T-2, T-3 are blocked: It failed 3 times" in told
    assert "try 1, ada; try 2, ada (of T-1):" in told and "covey task reopen T-1 T-2 T-3 " in told


def test_what_is_in_the_way_of_several_tasks_is_told_once_with_all_of_them() -> None:
    reasons = ("app.py is in the way.", "app.py is in the way.", "main is halted.")
    merges = [{"id": "merge-7", "reason": reason, "state": "passed"} for reason in reasons]
    found = [
        {**_task(), "id": f"T-{number}", "status": "merging", "merge": merge} for number, merge in enumerate(merges)
    ]
    told = Report(found, {}).as_text(Config(), 1.0)
    assert "T-0, T-1 wait: app.py is in the way.\n  They land by themselves" in told
    assert "T-2 waits: main is halted.\n  It lands by itself" in told and told.count("app.py") == 1


def test_tasks_without_a_body_are_told_where_the_agent_runs_bodies() -> None:
    found = [
        {**_task(), "id": f"T-{number}", "status": "todo", "body": body} for number, body in enumerate(("", "x", " "))
    ]
    told = Report(found, {}, runs_bodies="sh").as_text(Config(), 1.0)
    assert "T-0, T-2 have no body, and sh runs bodies:\n  covey task edit T-0 --body TEXT " in told
    assert "no body" not in Report(found, {}).as_text(Config(), 1.0)


def test_what_a_person_sent_back_is_not_told_as_a_try() -> None:
    told = blocked("It crashed.", WISH, "It hung.")
    assert "try 1, ada:" in told and "sent back to ada:" in told and "try 2, ada:" in told
    assert "try 3" not in told


def test_a_story_in_one_line_says_what_went_wrong_and_the_last_line_of_output() -> None:
    story = f"The agent ended with code 1.\nIt is kept.\n{OUTPUT}\nTraceback\n  ModuleNotFoundError: no shop\n\n"
    assert in_short(story) == "The agent ended with code 1. Its last line was: ModuleNotFoundError: no shop"
    assert in_short(f"It hung: git status\n{OUTPUT}\nno") == "It hung: git status. Its last line was: no"
    assert (
        in_short(f"It gave up: spent ($0.5)\n{OUTPUT}\n! gave up (budget): spent ($0.5)") == "It gave up: spent ($0.5)"
    )
    assert (in_short("Only this.\nAnd more."), in_short("")) == ("Only this.", "")


def test_how_long_a_run_took_is_told_to_the_second() -> None:
    assert "in 1 min 45 s." in Report([_task()], {}).as_text(Config(), 105)


def test_work_that_waits_for_a_halted_queue_is_told_with_what_lets_that_go_on() -> None:
    merge = {"id": "merge-1", "state": "queued", "reason": "It has never passed.", "cause": "halted"}
    waiting = {**_task(), "status": "merging", "merge": merge}
    told = Report([waiting], {}, halted=True).as_text(Config(), 1.0)
    assert "T-1 waits: It has never passed." in told and "covey merge resume" in told and "by itself" not in told
    told = Report([waiting], {}).as_text(Config(), 1.0)
    assert "covey merge resume" not in told and "It lands by itself" in told
