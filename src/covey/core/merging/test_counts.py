"""How many tests a check ran, by what it printed when it passed, or by what it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from covey.core.figures import one

NO_TEST_STEP = "no test"
"""The step of a gate that failed because all that it ran passed, and no test was among it."""
NO_TEST = "It ran no test."
ONLY_LOOKED = "It ran no test: it only looks at the code."


_COUNTS = (
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
_PLAN = r"^1\.\.(\d+)$"
_LINTERS = (
    "actionlint|bandit|basedpyright|biome|black|clang-format|clang-tidy|codespell|eslint|flake8|gofmt|golangci-lint"
    "|hadolint|isort|ktlint|markdownlint|mypy|phpcs|phpstan|prettier|pycodestyle|pydocstyle|pylint|pyright"
    "|rubocop|ruff|shellcheck|shfmt|standardrb|staticcheck|stylelint|swiftlint|tsc|typos|yamllint"
)
_RECIPES = (
    r"(?:lint|format|fmt|style|types|typecheck|type-check|mypy|ruff)"
    r"(?:[:_-](?:check|ci|code|css|docs|fix|fmt|format|js|lint|md|mypy|prettier|py|python|ruff|scss|src|ts|types))*"
)
"""Targets and scripts that look; of one with any other word in its name, such as lint-and-test, nobody knows."""
_LOOKS = (
    r"^(?:\w+=(?:\"[^\"]*\"|\S*) +)*"
    r"(?:(?:uv|poetry|pdm|pipenv|hatch) run +(?:-\S+ +)*|(?:npx|bunx|pnpm exec|yarn) +(?:-\S+ +)*|bundle exec +)?"
    rf"(?:(?:python[\d.]* -m +)?(?:{_LINTERS})(?=\s|$)|cargo (?:clippy|fmt)(?=\s|$)|go vet(?=\s|$)"
    rf"|(?:make|just|task|tox -e|nox -s|(?:npm|pnpm|yarn|bun) run)(?: +{_RECIPES})+$)"
)
"""A command that reads the code and runs none of it."""
_PREPARES = (
    r"^(?:cd|(?:npm|yarn|pnpm|bun|poetry|pdm|composer|bundle) (?:ci|install|i)|(?:python[\d.]* -m )?pip3? install"
    r"|uv sync|pipenv sync)(?=\s|$)"
)
"""A command that makes ready; `npm install-test` runs the tests as well."""
_HIDES = r"[$<>]\(|`"
"""What begins a command within another."""
_GO = r"^(ok|\?)[ \t]+\S+[ \t]+(?:\[no test files\]|[\d.]+s|\(cached\))"


def count(output: str) -> int | None:
    """Return how many tests were run, None if the output does not say."""
    found = [int(number or 0) for rule in _COUNTS for number in re.findall(rule, output, re.MULTILINE)]
    if not found:
        found = [int(number) for number in re.findall(_PLAN, output, re.MULTILINE)]
    if found:
        return sum(found)
    packages = re.findall(_GO, output, re.MULTILINE)
    return 0 if packages and "ok" not in packages else None  # Go tells packages, and not how many tests are in them


def only_looks(command: str) -> bool:
    """Say whether a command is a linter, a formatter or a type checker, and so runs no test whatever it prints."""
    if re.search(_HIDES, command):
        return False
    parts = [part.strip() for part in re.split(r"(?<![<>])&+|[;|\n]", command)]
    does = [part for part in parts if part and not re.search(_PREPARES, part)]
    return bool(does) and all(re.search(_LOOKS, part) for part in does)


def total(counts: Iterable[int | None]) -> int | None:
    """Return how many tests the checks of a gate ran together; None if none of them says."""
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


def is_untested(ran: int | None, on_main: int | None) -> bool:
    """Say whether checks that passed have not tested a change: they ran no test, and on main the same checks run some.

    Of checks that do not say how many they run nothing is believed, and where main has no test, none can be asked for.
    """
    return ran == 0 and on_main is not None and on_main > 0


def untested(on_main: int) -> str:
    """Return what is told of work that was not tested, and how it lands all the same if that is meant."""
    return (
        f"The check passed, but ran no test; on main it ran {on_main}. So nothing was tested: bring the tests back, or "
        "see to it that the check finds them. If none is to be left, a person lets it land: covey merge retry, then "
        "hold, then approve."
    )


def said(counts: Iterable[int | None], commands: Collection[str] = ()) -> str:
    """Return in a sentence how many tests the checks of a gate ran together; nothing if that cannot be known."""
    tests = total(counts)
    if tests:
        return f"{one(tests, 'test')}."
    if commands and all(only_looks(each) for each in commands):
        return ONLY_LOOKED
    return "" if tests is None else NO_TEST
