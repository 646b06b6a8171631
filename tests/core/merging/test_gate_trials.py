"""What a gate on main shows: how many tests it ran, whether it works at all, and the line that says why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from covey.core.merging import failures, test_counts
from covey.core.merging.gate_trials import TrialVerdict, distance, judge, never_passed
from covey.core.merging.gates import Gate, GateState

GATE = Gate(id="gate-1", ordinal=1, test=0, base="a", commit="a", seconds=12.4)


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("all is well\n", None),
        ("..\n2 passed in 0.02s\n", 2),
        ("===== 1 skipped, 34 passed, 2 warnings in 61.20s (0:01:01) =====\n", 34),
        ("Ran 3 tests in 0.001s\n\nOK\n", 3),
        ("Ran 0 tests in 0.000s\n\nOK\n", 0),
        ("test result: ok. 5 passed; 0 failed; finished in 0.00s\ntest result: ok. 2 passed; 0 failed\n", 7),
        ("Tests:       1 skipped, 5 passed, 6 total\n", 5),
        ("      Tests  12 passed (12)\n", 12),
        ("TAP version 13\n1..4\n# tests 4\n# pass 4\n", 4),
        ("1..4\nok 1\n", 4),
        ("  7 passing (12ms)\n", 7),
        ("12 examples, 0 failures\n", 12),
        ("5 runs, 7 assertions, 0 failures, 0 errors, 0 skips\n", 5),
        ("[INFO] Tests run: 9, Failures: 0, Errors: 0, Skipped: 0\n", 9),
        ("ok  \tshop\t0.002s\n?   \tshop/cmd\t[no test files]\n", None),
        ("?   \tshop/cmd\t[no test files]\n", 0),
        ("100% tests passed, 0 tests failed out of 8\n", 8),
    ],
)
def test_how_many_tests_were_run(output: str, count: int | None) -> None:
    assert test_counts.count(output) == count


@pytest.mark.parametrize(
    "command",
    [
        "ruff check", "python3 -m mypy src", "uv run --frozen ruff check .", "npx --no-install eslint .", "make lint",
        "npm ci --prefer-offline --no-audit --no-fund && npm run lint", "cargo clippy -- -D warnings", "tox -e lint",
        "ruff check . && ruff format --check .", "ruff check . 2>&1", "cd web && npm run lint:css",
        "npm run format:check", 'PYTHONPATH="$PWD/src" pylint shop', "make lint typecheck", "make lint-fix",
        "npm run lint:js:fix",
    ],
)  # fmt: skip
def test_a_linter_runs_no_test(command: str) -> None:
    assert test_counts.only_looks(command)
    assert test_counts.said([None], [command]) == test_counts.ONLY_LOOKED
    assert test_counts.said([None, 3], [command, "make test"]) == "3 tests."
    assert test_counts.said([None, None], [command, "make test"]) == ""
    assert test_counts.said([12], [command]) == "12 tests.", "what was counted is known better than what is guessed"
    assert test_counts.said([0], [command]) == test_counts.ONLY_LOOKED


@pytest.mark.parametrize(
    "command",
    ["make test", "make lint test", "ruff check && pytest -q", "make check", "python3 -m pytest -q", "sh lint.sh",
     "cd web", "", "npm test", "tox -e py", "cargo test", "make lint-and-test", "npm run lint-and-test",
     "make lint_test", "make lint-unit-tests", "npm run lint:unit", "just fmt-and-test", "make types:test",
     "make lint-all", "tox -e lint-py311", "pre-commit run pytest --all-files", "pre-commit run --all-files",
     "black --check . & python3 -m pytest -q", "prettier --check $(pytest -q)", "prettier --check `pytest -q`",
     "ruff check <(pytest -q)", "npm install-test && npm run lint", "npm ci-test; eslint .", "go vet-test ./..."],
)  # fmt: skip
def test_what_may_run_tests_is_no_linter(command: str) -> None:
    assert not test_counts.only_looks(command)


def test_a_gate_whose_tests_fail_is_nearer_than_one_whose_program_is_missing() -> None:
    tried = [
        (TrialVerdict.LOST, ""),
        (TrialVerdict.BROKEN, "make: uv: No such file or directory"),
        (TrialVerdict.BROKEN, "E   ModuleNotFoundError: No module named 'shop'"),
        (TrialVerdict.EMPTY, ""),
        (TrialVerdict.FAILS, "E   assert 1 == 2"),
        (TrialVerdict.WORKS, ""),
    ]
    assert sorted(tried, key=lambda each: distance(*each)) == tried[::-1]


def _failed(output: str, code: int = 1, *, hint: str = "") -> Gate:
    found = failures.summary(output.encode())
    text = failures.tell("The check failed (exit code 1): make test", [hint] if hint else [], found)
    return replace(GATE, state=GateState.FAILED, code=code, step="check", failures=found.failures, summary=text)


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("sh: 1: pytest: not found\n", "sh: 1: pytest: not found"),
        ("/bin/sh: line 1: tox: command not found\n", "/bin/sh: line 1: tox: command not found"),
        ("make: pytest: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n",
         "make: pytest: No such file or directory"),
        ("/usr/bin/python3: No module named pytest\n", "/usr/bin/python3: No module named pytest"),
        ("ERROR tests/test_a.py\nE   ModuleNotFoundError: No module named 'requests'\n1 error in 0.1s\n",
         "E   ModuleNotFoundError: No module named 'requests'"),
        ("\nno tests ran in 0.01s\n", "no tests ran in 0.01s"),
        ("collected 0 items\n\n=== no tests ran in 0.00s ===\nERROR: file or directory not found: tests/missing.py\n\n",
         "ERROR: file or directory not found: tests/missing.py"),
        ("\nno tests ran in 0.00s\nERROR: not found: /x/test_a.py::test_b\n(no match in any of [<Module a>])\n",
         "ERROR: not found: /x/test_a.py::test_b"),
        ("make: *** No rule to make target 'test'.  Stop.\n", "make: *** No rule to make target 'test'.  Stop."),
        ('npm error Missing script: "test"\nnpm error\nnpm error A complete log of this run is in: /x\n',
         'npm error Missing script: "test"'),
    ],
)  # fmt: skip
def test_a_gate_that_lacks_something_does_not_work(output: str, error: str) -> None:
    trial = judge(_failed(output))
    assert trial is not None
    assert (trial.verdict, trial.error) == (TrialVerdict.BROKEN, error)
    assert trial.told == f"The gate does not work here: {error}" and "covey init --check" in trial.advice


def test_a_gate_whose_tests_fail_names_the_last_error_and_what_may_explain_it() -> None:
    output = "FAILED tests/test_a.py::test_a\nE   assert 1 == 2\nmake: *** [Makefile:2: test] Error 1\n"
    trial = judge(_failed(output, hint=failures.NO_NETWORK))
    assert trial is not None
    assert (trial.verdict, trial.error) == (TrialVerdict.FAILS, "E   assert 1 == 2")
    assert trial.advice.endswith(failures.NO_NETWORK)


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("FAILED tests/test_a.py::test_a - assert 1 == 2\n1 failed in 0.02s\n",
         "FAILED tests/test_a.py::test_a - assert 1 == 2"),
        ("=== short test summary info ===\nFAILED tests/test_a.py::test_a\n=== 1 failed, 2 passed in 0.02s ===\n"
         "make: *** [Makefile:2: test] Error 1\n", "FAILED tests/test_a.py::test_a"),
        ("ValueError: bad option\nno tests ran in 0.01s\n", "ValueError: bad option"),
        ("....F\n1 failed, 4 passed in 0.1s\n", "1 failed, 4 passed in 0.1s"),
        ("1 failed in 0.1s\n", "1 failed in 0.1s"),
    ],
)  # fmt: skip
def test_a_line_that_tells_of_an_error_is_named_before_one_that_sums_up(output: str, error: str) -> None:
    assert failures.error_line(_failed(output).summary) == error


def test_a_gate_that_wants_the_network_does_not_work_and_is_told_how_it_gets_it() -> None:
    output = (
        "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\nnpm error errno EAI_AGAIN\n"
        "npm error request to https://packages.example/jest failed, reason: getaddrinfo EAI_AGAIN\n"
        "npm error A complete log of this run can be found in: /x\n"
    )
    trial = judge(_failed(output, hint=failures.NO_NETWORK))
    assert trial is not None and trial.verdict is TrialVerdict.BROKEN
    assert trial.error.startswith("npm error request to https://packages.example/jest failed")
    assert trial.advice.startswith(failures.NO_NETWORK) and trial.advice.endswith("covey init --check tries it again.")


def test_a_gate_that_never_passed_is_told_with_its_error_and_blames_no_commit() -> None:
    told = never_passed(_failed("E   ModuleNotFoundError: No module named 'requests'\n"))
    assert told == (
        "The gate does not work here: E   ModuleNotFoundError: No module named 'requests'. "
        "It has never passed, so no commit is to blame (gate-1)."
    )


@pytest.mark.parametrize(
    ("gate", "verdict", "told"),
    [
        (replace(GATE, state=GateState.PASSED, summary="34 tests."), TrialVerdict.WORKS,
         "The gate works: main passed it in 12 s, 34 tests."),
        (replace(GATE, state=GateState.PASSED, seconds=0.42), TrialVerdict.WORKS,
         "The gate works: main passed it in 0.4 s. It does not say how many tests it ran."),
        (replace(GATE, state=GateState.PASSED, summary=test_counts.NO_TEST), TrialVerdict.EMPTY,
         "The gate passed on main in 12 s and ran no test, so it would let anything land."),
        (replace(GATE, state=GateState.PASSED, summary=test_counts.ONLY_LOOKED), TrialVerdict.EMPTY,
         "The gate passed on main in 12 s and ran no test: it only looks at the code, so what does not work "
         "would land."),
        (replace(GATE, state=GateState.LOST, why="it was called off"), TrialVerdict.LOST,
         "The try was ended before it had a result: it was called off."),
        (replace(GATE, state=GateState.FAILED, summary="The check took longer than 30 minutes and was ended: make\n"),
         TrialVerdict.BROKEN, "The gate does not work here: The check took longer than 30 minutes and was ended: make"),
    ],
)  # fmt: skip
def test_what_came_of_a_try_in_a_sentence(gate: Gate, verdict: TrialVerdict, told: str) -> None:
    trial = judge(gate)
    assert trial is not None
    assert (trial.verdict, trial.told) == (verdict, told)


def test_a_gate_that_runs_shows_nothing_yet() -> None:
    assert judge(GATE) is None


def test_a_summary_is_read_as_it_was_written() -> None:
    found = failures.summary(b"E   assert 1\nThe errors:\nof my own\n")
    told = failures.told(failures.tell("It failed.", ["A hint."], found))
    assert told.first == ("It failed.", "A hint.") and told.errors == found.errors
    assert told.tail == tuple(found.tail.splitlines())


@pytest.mark.parametrize(
    ("ran", "on_main", "untested"),
    [
        (0, 12, True),
        (0, 1, True),
        (0, 0, False),
        (0, None, False),
        (None, 12, False),
        (None, None, False),
        (1, 12, False),
        (12, 0, False),
    ],
)
def test_checks_that_run_no_test_have_not_tested_what_they_test_on_main(
    ran: int | None, on_main: int | None, untested: bool
) -> None:
    assert test_counts.is_untested(ran, on_main) is untested


@pytest.mark.parametrize(
    ("counts", "together"), [([], None), ([None, None], None), ([None, 0], 0), ([0, 0], 0), ([None, 3, 2], 5)]
)
def test_the_tests_of_several_checks_are_counted_together(counts: list[int | None], together: int | None) -> None:
    assert test_counts.total(counts) == together
