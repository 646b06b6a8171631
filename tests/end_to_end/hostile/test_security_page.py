"""Every promise of the security page names a test, and that test is there."""

from __future__ import annotations

import re
from pathlib import Path

HOUSE = Path(__file__).parents[3]
PAGE = HOUSE / "docs" / "security.md"
_ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)(?:::(?P<name>\w+))?`")


def _rows() -> list[tuple[str, str]]:
    """Return each promise with what stands beside it."""
    found = [(row["promise"].strip(), row["tests"].strip()) for row in _ROW.finditer(PAGE.read_text(encoding="utf-8"))]
    return [(promise, tests) for promise, tests in found if promise != "promise" and not promise.startswith("---")]


def test_every_promise_names_a_test_that_exists() -> None:
    rows = _rows()
    assert len(rows) > 20
    for promise, told in rows:
        tests = list(_TEST.finditer(told))
        assert tests, f"no test is named for: {promise}"
        for test in tests:
            text = (HOUSE / test["file"]).read_text(encoding="utf-8")
            assert test["name"] is None or f"def {test['name']}(" in text, (promise, test[0])
