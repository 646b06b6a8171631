"""The report with which covey run ends: of a task that is blocked it tells why, not what its author was told to do."""

from __future__ import annotations

from covey.cli.report import LINES, Report
from covey.config import Config
from covey.core import sent_back
from tests.core.test_sent_back import RED


def blocked(what: str) -> str:
    """Return the report of one blocked task whose last try was told so."""
    task = {
        "id": "T-1",
        "title": "Mend it",
        "status": "blocked",
        "commit": None,
        "merge": None,
        "reason": "It failed 3 times",
        "tries": [{"session": "ada", "what": what}],
        "cost": 0.0,
        "tokens": 0,
        "unpriced": 0,
    }
    return Report([task], {}).as_text(Config(), 1.0)


def test_work_that_the_queue_rejected_is_told_with_what_failed_and_without_what_to_do() -> None:
    told = blocked(sent_back.story(RED))
    assert "## What failed" in told and "> tests/test_area.py::test_a_square" in told
    assert "> ERROR: no function area" in told
    assert "What to do" not in told and "git merge" not in told


def test_a_long_story_of_an_agent_is_told_by_its_beginning_and_its_end() -> None:
    told = blocked("\n".join(f"line {number}" for number in range(50)))
    assert "line 0" in told and "[...]" in told and "line 49" in told
    assert told.count("    line") == LINES - 1
