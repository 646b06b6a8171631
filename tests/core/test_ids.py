"""Readable ids."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core import ids

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True)


@pytest.mark.parametrize(
    ("assignee", "role", "prefix"),
    [
        ("auth-fix", None, "AF"),
        ("data-pipeline-worker", None, "DPW"),
        ("auth", None, "AUTH"),
        (None, None, "T"),
        (None, "quality", "QUALI"),
        ("auth-fix", "quality", "AF"),
        ("authentication", None, "AUTHE"),
        ("a-b-c-d-e-f-g", None, "ABCDE"),
        ("worker-2", None, "W2"),
        ("2nd-try", None, "2T"),
        ("42", None, "42"),
        ("data_pipeline", None, "DP"),
        ("a__b--c", None, "ABC"),
        ("Ada", None, "ADA"),
        ("x", None, "X"),
        ("-", "-", "T"),
    ],
)
def test_the_prefix_comes_from_the_assignee_else_the_role_else_t(
    assignee: str | None, role: str | None, prefix: str
) -> None:
    assert ids.prefix(assignee, role) == prefix


@given(st.none() | names, st.none() | names, st.integers(1, 2**31))
def test_every_id_that_we_make_is_one_and_comes_apart_again(
    assignee: str | None, role: str | None, number: int
) -> None:
    prefix = ids.prefix(assignee, role)
    made = ids.task_id(prefix, number)
    assert re.fullmatch(r"[A-Z0-9]{1,5}", prefix)
    assert ids.is_task_id(made)
    assert ids.split(made) == (prefix, number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "T",
        "T-",
        "-1",
        "T-0",
        "T-01",
        "t-1",
        "TOOLONG-1",
        "T-1\n",
        "T-1 ",
        "T--1",
        "T-1-2",
        "../T-1",
        "T-1;--",
        "T-١",
    ],
)
def test_this_is_no_id(text: str) -> None:
    assert not ids.is_task_id(text)
