"""How many tests a check ran, by what it printed when it passed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from covey.core.figures import one

NO_TEST = "It ran no test."


def _rules(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns)


_COUNTS = _rules(
    r"^(?:=+ )?(?:\d+ \w+, )*(\d+) passed(?:, \d+ \w+)* in [\d.]+",  # pytest
    r"^(?:=+ )?(?:\d+ deselected, )?no tests ran(?=(0?)) in ",
    r"^Ran (\d+) tests? in ",  # unittest
    r"^test result: ok\. (\d+) passed",  # cargo
    r"^ *Tests:? +(?:\d+ \w+(?:,| \|) )*(\d+) passed",  # jest, vitest
    r"^(?:#|ℹ) tests (\d+)$",  # node
    r"^ +(\d+) passing\b",  # mocha
    r"^(\d+) examples?, \d+ failures?",  # rspec
    r"^(\d+) (?:runs|tests), \d+ assertions",  # minitest
    r"^(\d+) tests?, \d+ failures?",  # ExUnit
    r"Tests run: (\d+), Failures: \d+, Errors: \d+, Skipped: \d+$",  # Maven
    r"^OK \((\d+) tests?,",  # PHPUnit
    r"Passed!\s+- Failed:\s+\d+, Passed:\s+(\d+)",  # .NET
    r"tests passed, \d+ tests failed out of (\d+)$",  # CTest
    r"^ok \| (\d+) passed",  # Deno
)
_PLAN = re.compile(r"^1\.\.(\d+)$", re.MULTILINE)
_GO = re.compile(r"^(ok|\?)[ \t]+\S+[ \t]+(?:\[no test files\]|[\d.]+s|\(cached\))", re.MULTILINE)


def count(output: str) -> int | None:
    """Return how many tests were run, None if the output does not say."""
    found = [int(number or 0) for rule in _COUNTS for number in rule.findall(output)]
    if not found:
        found = [int(number) for number in _PLAN.findall(output)]
    if found:
        return sum(found)
    packages = _GO.findall(output)
    return 0 if packages and "ok" not in packages else None  # Go tells packages, and not how many tests are in them


def said(counts: Iterable[int | None]) -> str:
    """Return in a sentence how many tests the checks of a gate ran together; nothing if none of them says."""
    known = [each for each in counts if each is not None]
    if not known:
        return ""
    return f"{one(sum(known), 'test')}." if sum(known) else NO_TEST
