from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as some

from covey.core.merging.failures import (
    MAX_ERRORS,
    MAX_FAILURES,
    MAX_LINE_CHARS,
    MAX_TAIL_CHARS,
    Summary,
    clean,
    mark,
    same,
    summary,
)


def found(text: str) -> Summary:
    return summary(text.encode())


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("FAILED tests/test_a.py::test_b - assert 1 == 2", "tests/test_a.py::test_b"),
        ("FAILED tests/test_a.py::TestC::test_b[x y] - AssertionError: no", "tests/test_a.py::TestC::test_b[x y]"),
        ("ERROR tests/test_a.py - ImportError: no module", "tests/test_a.py"),
        ("ERROR tests/test_a.py::test_b - fixture", "tests/test_a.py::test_b"),
        ("tests/test_a.py::test_b FAILED                    [ 50%]", "tests/test_a.py::test_b"),
        ("[gw1] [ 50%] FAILED tests/test_a.py::test_b ", "tests/test_a.py::test_b"),
        ("FAIL: test_b (tests.test_a.TestC)", "tests.test_a.TestC.test_b"),
        ("FAIL: test_b (tests.test_a.TestC.test_b)", "tests.test_a.TestC.test_b"),
        ("ERROR: test_b (tests.test_a.TestC.test_b)", "tests.test_a.TestC.test_b"),
        ("--- FAIL: TestName (0.01s)", "TestName"),
        ("    --- FAIL: TestName/case_1 (0.00s)", "TestName/case_1"),
        ("FAIL\texample.org/shop/cart\t0.012s", "example.org/shop/cart"),
        ("FAIL\texample.org/shop/cart [build failed]", "example.org/shop/cart"),
        ("test cart::tests::adds ... FAILED", "cart::tests::adds"),
        ("  ✕ adds two numbers (5 ms)", "adds two numbers"),
        ("   × adds two numbers 5ms", "adds two numbers"),
        ("FAIL src/cart.test.ts (5.123 s)", "src/cart.test.ts"),
        (" FAIL  src/cart.test.ts > cart > adds", "src/cart.test.ts > cart > adds"),
        ("  ● cart › adds", "cart › adds"),
        ("not ok 3 - adds two numbers", "adds two numbers"),
        ("    not ok 3 adds", "adds"),
        ('<testcase classname="cart.Adds" name="two" time="0.1"><failure message="no">', "cart.Adds.two"),
        ('<testcase name="two" classname="cart.Adds">\n  <failure message="no">', "cart.Adds.two"),
        ("make[1]: *** [Makefile:3: test] Error 1", "test"),
        ("make: *** [test] Error 2", "test"),
        ("src/a.py:3: error: Incompatible types  [assignment]", "src/a.py"),
        ("src/a.ts(3,5): error TS2322: Type 'string' is not", "src/a.ts"),
        ("src/a.ts:3:5 - error TS2322: Type 'string' is not", "src/a.ts"),
        ("src/a.py:1:8: F401 [*] `os` imported but unused", "src/a.py"),
        ("main.c:3:5: fatal error: x.h: No such file or directory", "main.c"),
        ("\x1b[31mFAILED\x1b[0m tests/test_a.py::\x1b[1mtest_b\x1b[0m - assert", "tests/test_a.py::test_b"),
        ("50%\r100%\rFAILED tests/test_a.py::test_b", "tests/test_a.py::test_b"),
    ],
)
def test_a_failed_test_is_named_as_its_tool_names_it(line: str, test: str) -> None:
    assert found(f"collecting\n{line}\nall done\n").failures == (test,)
    assert found(line).failures == (test,)


@pytest.mark.parametrize(
    "line",
    [
        "test result: FAILED. 3 passed; 1 failed",
        "FAILED (failures=1)",
        "FAIL",
        "ok 3 - adds",
        "not ok 3 - adds # TODO later",
        "tests/test_a.py::test_b PASSED",
        "=== 1 failed, 2 passed in 0.12s ===",
        "0 errors, 0 warnings",
        "--- PASS: TestName (0.01s)",
    ],
)
def test_what_names_no_failed_test_is_not_taken_for_one(line: str) -> None:
    assert found(f"{line}\n").failures == ()


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: no such table",
        "error: could not compile",
        "E       assert 3 == 4",
        "error[E0308]: mismatched types",
        "ValueError: not a number",
        "shop.errors.Refused.OwnException: no",
        "fatal: not a git repository",
        "panic: runtime error: index out of range",
        "thread 'main' panicked at src/a.rs:3:5:",
        "  3:5  error  'a' is not defined  no-undef",
        "npm ERR! error: nothing",
    ],
)
def test_a_line_that_says_why_is_an_error(line: str) -> None:
    assert found(f"one\n{line}\ntwo\n").errors == (line.strip(),)


def test_tests_come_before_files_and_files_before_targets() -> None:
    target, file, test = "make: *** [test] Error 1\n", "a.py:3: error: no\n", "--- FAIL: TestA\n"
    assert found(target).failures == ("test",)
    assert found(target + file).failures == ("a.py",)
    assert found(target + file + test).failures == ("TestA",)


def test_each_is_named_once_and_in_its_order() -> None:
    text = "FAILED b.py::two - x\nFAILED a.py::one - y\nFAILED b.py::two - x\n"
    assert found(text).failures == ("b.py::two", "a.py::one")


# The fingerprint

RUN = """
tests/test_a.py::test_b FAILED [ 50%]
E   AssertionError: <Cart object at {address}> != 4
/home/ada/shop.worktrees/.gate-{slot}/tests/test_a.py:{line}: AssertionError
E   OSError: /tmp/pytest-of-ada/pytest-{number}/test_b0/x is busy (pid {pid})
ERROR: {time} cannot connect to 127.0.0.1:{port} for commit {hash} ({duration})
ERROR: request {uuid} took {duration}
FAILED tests/test_a.py::test_b - AssertionError
=== 1 failed in {duration} ===
"""

varying = some.fixed_dictionaries(
    {
        "address": some.integers(2**32, 2**48).map(hex),
        "slot": some.integers(1, 8),
        "line": some.integers(1, 999),
        "number": some.integers(0, 999),
        "pid": some.integers(2, 4_000_000),
        # 2024 had a 29th of February.
        "time": some.datetimes().map(lambda at: at.replace(year=2024).isoformat(sep=" ")),
        "port": some.integers(1024, 65535),
        "hash": some.text("0123456789abcdef", min_size=38, max_size=38).map(lambda text: f"a1{text}"),
        "duration": some.floats(0.001, 900).map(lambda seconds: f"{seconds:.2f}s"),
        "uuid": some.uuids().map(str),
    }
)


@given(varying, varying)
def test_the_same_failure_has_the_same_fingerprint_whatever_varies(one: dict[str, str], other: dict[str, str]) -> None:
    assert found(RUN.format(**one)).fingerprint == found(RUN.format(**other)).fingerprint


@given(some.permutations(["FAILED a.py::one - x", "FAILED a.py::two - y", "E   assert 1 == 2", "noise"]))
def test_the_order_of_what_failed_does_not_matter(lines: list[str]) -> None:
    first = found("FAILED a.py::one - x\nFAILED a.py::two - y\nE   assert 1 == 2\n")
    assert found("\n".join(lines)).fingerprint == first.fingerprint


words = some.text(string.ascii_lowercase, min_size=1, max_size=12)


@given(some.sets(words, min_size=1, max_size=8), some.sets(words, min_size=1, max_size=8))
def test_other_tests_have_another_fingerprint(one: set[str], other: set[str]) -> None:
    prints = [found("".join(f"--- FAIL: Test{name}\n" for name in names)).fingerprint for names in (one, other)]
    assert (prints[0] == prints[1]) is (one == other)


@given(words, words)
def test_another_error_has_another_fingerprint(one: str, other: str) -> None:
    prints = [found(f"building\nerror: no {name}x\nmake: *** [all] Error 1\n").fingerprint for name in (one, other)]
    assert (prints[0] == prints[1]) is (one == other)


@given(words, words)
def test_without_any_known_form_the_end_of_the_output_counts(one: str, other: str) -> None:
    prints = [found(f"it is {name}z\n").fingerprint for name in (one, other)]
    assert (prints[0] == prints[1]) is (one == other)


def test_a_failure_of_another_step_is_another_and_what_a_step_that_was_ended_said_does_not_count() -> None:
    one, other = found("error: a\n"), found("error: b\n")
    assert mark("check", False, one) != mark("quick", False, one)
    assert mark("check", False, one) != mark("check", False, other)
    assert mark("check", True, one) == mark("check", True, other) != mark("check", False, one)


def test_numbers_that_mean_something_stay() -> None:
    assert same("assert 3 == 4") != same("assert 5 == 4")


# Whatever comes

noise = some.lists(some.binary(max_size=200) | some.sampled_from([b"FAIL: a (b)", b"\x1b[3", b"E  x", b"\r", b"\n"]))


@given(noise.map(b"\n".join), some.integers(1, 50))
def test_whatever_is_printed_it_is_summed_up_within_bounds_and_in_parts_as_whole(output: bytes, size: int) -> None:
    whole = summary(output)
    assert summary([output[at : at + size] for at in range(0, len(output), size)]) == whole
    assert len(whole.failures) <= MAX_FAILURES and len(whole.errors) <= MAX_ERRORS
    assert all(0 < len(each) <= MAX_LINE_CHARS for each in (*whole.failures, *whole.errors))
    assert len(whole.tail) <= MAX_TAIL_CHARS
    assert re.fullmatch(r"[0-9a-f]{16}", whole.fingerprint)
    assert "\x1b" not in whole.tail + "".join(whole.failures + whole.errors)


@given(some.binary(max_size=500))
def test_a_cleaned_line_has_nothing_that_moves_a_cursor(raw: bytes) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b]", clean(raw.replace(b"\n", b" ")))


def test_a_failure_in_the_middle_of_much_output_is_found_and_the_rest_bounded() -> None:
    filler = b"all is well here and nothing to see\n" * 30_000
    parts = [filler] * 8 + [b"--- FAIL: TestDeep (0.1s)\n"] + [filler] * 8
    deep = summary(iter(parts))
    assert deep.failures == ("TestDeep",)
    flood = summary(b"ERROR: number %d\n" * 1_000_000)
    assert flood.errors == ("ERROR: number %d",)
    many = summary(b"".join(b"--- FAIL: Test%d\n" % number for number in range(20_000)))
    assert many.failures[:2] == ("Test0", "Test1")
    assert len(many.failures) == MAX_FAILURES


def test_one_endless_line_is_no_trouble() -> None:
    assert summary(b"x" * 20_000_000).failures == ()
    assert summary([b"x" * 1_000_000] * 20).tail == "x" * MAX_TAIL_CHARS


@pytest.mark.parametrize(
    "line", ["FAIL " + "." * 1990 + " x", "FAIL a.b > " + " " * 1980 + "x", "✕ " + " " * 1980 + "x"]
)
def test_long_odd_lines_take_no_time_that_grows_with_the_square_of_their_length(line: str) -> None:
    assert len(summary(f"{line}\n".encode() * 1000).failures) <= 1
