"""What a gate on main shows: how many tests it ran, whether it works at all, and the line that says why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from covey.core import failures, hints, test_counts
from covey.core.gate_trials import Verdict, judge, never_passed
from covey.core.gates import Gate, State

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


def _failed(output: str, code: int = 1, *, hint: str = "") -> Gate:
    found = failures.summary(output.encode())
    text = failures.tell("The check failed (exit code 1): make test", [hint] if hint else [], found)
    return replace(GATE, state=State.FAILED, code=code, step="check", failures=found.failures, summary=text)


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
        ("make: *** No rule to make target 'test'.  Stop.\n", "make: *** No rule to make target 'test'.  Stop."),
        ('npm error Missing script: "test"\nnpm error\nnpm error A complete log of this run is in: /x\n',
         'npm error Missing script: "test"'),
    ],
)  # fmt: skip
def test_a_gate_that_lacks_something_does_not_work(output: str, error: str) -> None:
    trial = judge(_failed(output))
    assert trial is not None
    assert (trial.verdict, trial.error) == (Verdict.BROKEN, error)
    assert trial.told == f"The gate does not work here: {error}" and "covey init --check" in trial.advice


def test_a_gate_whose_tests_fail_names_the_last_error_and_what_may_explain_it() -> None:
    output = "FAILED tests/test_a.py::test_a\nE   assert 1 == 2\nmake: *** [Makefile:2: test] Error 1\n"
    trial = judge(_failed(output, hint=hints.NO_NETWORK))
    assert trial is not None
    assert (trial.verdict, trial.error) == (Verdict.FAILS, "E   assert 1 == 2")
    assert trial.advice.endswith(hints.NO_NETWORK)


def test_a_gate_that_wants_the_network_does_not_work_and_is_told_how_it_gets_it() -> None:
    output = (
        "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\nnpm error errno EAI_AGAIN\n"
        "npm error request to https://packages.example/jest failed, reason: getaddrinfo EAI_AGAIN\n"
        "npm error A complete log of this run can be found in: /x\n"
    )
    trial = judge(_failed(output, hint=hints.NO_NETWORK))
    assert trial is not None and trial.verdict is Verdict.BROKEN
    assert trial.error.startswith("npm error request to https://packages.example/jest failed")
    assert trial.advice.startswith(hints.NO_NETWORK) and trial.advice.endswith("covey init --check tries it again.")


def test_a_gate_that_never_passed_is_told_with_its_error_and_blames_no_commit() -> None:
    told = never_passed(_failed("E   ModuleNotFoundError: No module named 'requests'\n"))
    assert told == (
        "The gate does not work here: E   ModuleNotFoundError: No module named 'requests'. "
        "It has never passed, so no commit is to blame (gate-1)."
    )


@pytest.mark.parametrize(
    ("gate", "verdict", "told"),
    [
        (replace(GATE, state=State.PASSED, summary="34 tests."), Verdict.WORKS,
         "The gate works: main passed it in 12 s, 34 tests."),
        (replace(GATE, state=State.PASSED, seconds=0.42), Verdict.WORKS, "The gate works: main passed it in 0.4 s."),
        (replace(GATE, state=State.PASSED, summary=test_counts.NO_TEST), Verdict.EMPTY,
         "The gate passed on main in 12 s and ran no test, so it would let anything land."),
        (replace(GATE, state=State.LOST, why="it was called off"), Verdict.LOST,
         "The try was ended before it had a result: it was called off."),
        (replace(GATE, state=State.FAILED, summary="The check took longer than 30 minutes and was ended: make\n"),
         Verdict.BROKEN, "The gate does not work here: The check took longer than 30 minutes and was ended: make"),
    ],
)  # fmt: skip
def test_what_came_of_a_try_in_a_sentence(gate: Gate, verdict: Verdict, told: str) -> None:
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
