"""What a run came to, judged by its evidence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.judge import CACHES, TAIL, Again, Evidence, HandIn, is_cache, judge
from covey.core.tasks import Kind

HEAD, OLD = "a" * 40, "b" * 40
GOOD: dict[str, Any] = {"kind": Kind.CHANGE, "code": 0, "ahead": True, "head": HEAD}
REPORT: dict[str, Any] = {"kind": Kind.REPORT, "code": 0, "result": "All is well"}


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (GOOD, HandIn(HEAD, None)),
        (GOOD | {"result": "It works"}, HandIn(HEAD, "It works")),
        (GOOD | {"rejected": OLD}, HandIn(HEAD, None)),
        (REPORT, HandIn(None, "All is well")),
        (REPORT | {"head": HEAD}, HandIn(None, "All is well")),
        (REPORT | {"head": HEAD, "ahead": True}, HandIn(None, "All is well")),
        (REPORT | {"dirty": ("notes.txt",)}, HandIn(None, "All is well")),
    ],
)
def test_complete_work_is_handed_in(evidence: dict[str, Any], verdict: HandIn) -> None:
    assert judge(Evidence(**evidence)) == verdict


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (GOOD | {"stopped": "It took too long."}, "It took too long."),
        (GOOD | {"failed": "no credit"}, "The agent gave up: no credit"),
        (GOOD | {"code": None}, "The run was lost: nobody saw it end."),
        (GOOD | {"code": -9}, "The agent was ended by signal 9."),
        (GOOD | {"code": 3}, "The agent ended with exit code 3."),
        (GOOD | {"dirty": ("a", "b")}, "The run left changes that it did not commit: a, b."),
        (
            GOOD | {"dirty": tuple("abcdef")},
            "The run left changes that it did not commit: a, b, c, d, e and more.",
        ),
        (GOOD | {"ahead": False}, "The run ended without a commit."),
        (GOOD | {"rejected": HEAD}, "The run changed nothing since its work was rejected."),
        (REPORT | {"result": None}, "The run ended without a result."),
        (REPORT | {"result": " \n"}, "The run ended without a result."),
        (REPORT | {"code": 1}, "The agent ended with exit code 1."),
        (REPORT | {"failed": "no credit"}, "The agent gave up: no credit"),
    ],
)
def test_anything_else_is_tried_again_with_what_went_wrong(evidence: dict[str, Any], said: str) -> None:
    assert judge(Evidence(**evidence)) == Again(said)


def test_the_story_names_what_was_rescued_and_the_end_of_the_output() -> None:
    verdict = judge(Evidence(**GOOD | {"code": 1, "rescued": "refs/covey/rescue/ada/1", "tail": "\nboom\n"}))
    assert verdict == Again(
        "The agent ended with exit code 1.\n"
        "What it had not committed is kept: covey rescue show ada/1.\n"
        "The end of its output:\nboom"
    )


evidences = st.builds(
    Evidence,
    kind=st.sampled_from(Kind),
    code=st.none() | st.integers(-2, 2),
    stopped=st.none() | st.just("stopped"),
    failed=st.none() | st.just("failed"),
    result=st.none() | st.sampled_from(["", " ", "result"]),
    ahead=st.booleans(),
    head=st.none() | st.sampled_from([HEAD, OLD]),
    rejected=st.none() | st.sampled_from([HEAD, OLD]),
    dirty=st.lists(st.sampled_from("abcdefg"), max_size=7).map(tuple),
    rescued=st.none() | st.just("refs/covey/rescue/ada/1"),
    tail=st.text(max_size=3) | st.just("x" * 2 * TAIL),
)


@given(evidences)
def test_only_a_run_that_ended_well_and_left_everything_committed_is_handed_in(evidence: Evidence) -> None:
    verdict = judge(evidence)
    if isinstance(verdict, Again):
        assert verdict.what and len(verdict.what) < TAIL + 500
        return
    assert evidence.code == 0 and evidence.stopped is None and evidence.failed is None
    if evidence.kind is Kind.REPORT:
        assert verdict.result and verdict.result.strip()
    else:
        assert evidence.ahead and not evidence.dirty
        assert evidence.head is None or evidence.head != evidence.rejected


@pytest.mark.parametrize("name", sorted(CACHES))
def test_what_tools_leave_behind_is_no_work(name: str) -> None:
    for path in (name, f"{name}/", f"a/{name}", f"a/{name}/b/c.txt"):
        assert is_cache(path)


@pytest.mark.parametrize("path", ["a.pyc", "a/b.pyc", "covey.egg-info/", "src/covey.egg-info/PKG-INFO"])
def test_what_is_compiled_or_installed_is_no_work(path: str) -> None:
    assert is_cache(path)


@pytest.mark.parametrize(
    "path", ["a.py", "cache/a", "node_modules.txt", "my.venv/a", "a.pyc.txt", "pycache", ".env", ""]
)
def test_everything_else_is_work(path: str) -> None:
    assert not is_cache(path)
