"""What a run came to, judged by its evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.board.tasks import Kind
from covey.core.fleet.outcomes import (
    CACHES,
    STORY_TAIL_CHARS,
    Again,
    Crashed,
    Evidence,
    HandIn,
    PutOff,
    is_cache,
    judge,
)
from covey.core.fleet.signals import Trouble

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
        (GOOD | {"failed": "no idea"}, "The agent gave up: no idea"),
        (GOOD | {"failed": "no idea", "code": -15}, "The agent gave up: no idea"),
        (GOOD | {"failed": "no idea", "trouble": Trouble.OTHER}, "The agent gave up: no idea"),
        (
            GOOD | {"failed": "all is spent", "trouble": Trouble.BUDGET},
            "The run spent all that it was allowed: all is spent",
        ),
        (GOOD | {"stopped": "It took too long.", "failed": "429", "trouble": Trouble.LIMIT}, "It took too long."),
        (GOOD | {"stopped": "It took too long.", "code": -15}, "It took too long."),
        (GOOD | {"dirty": ("a", "b")}, "The run left changes that it did not commit: a, b."),
        (
            GOOD | {"dirty": tuple("abcdef")},
            "The run left changes that it did not commit: a, b, c, d, e and more.",
        ),
        (GOOD | {"ahead": False}, "The run ended without a commit."),
        (GOOD | {"rejected": HEAD}, "The run changed nothing since its work was rejected."),
        (REPORT | {"result": None}, "The run ended without a result."),
        (REPORT | {"result": " \n"}, "The run ended without a result."),
        (REPORT | {"failed": "no credit"}, "The agent gave up: no credit"),
    ],
)
def test_anything_else_is_tried_again_with_what_went_wrong(evidence: dict[str, Any], said: str) -> None:
    assert judge(Evidence(**evidence)) == Again(said)


@pytest.mark.parametrize(
    "evidence", [GOOD, GOOD | {"at_once": True}, REPORT, GOOD | {"at_once": True, "ahead": False, "script": True}]
)
def test_a_bad_exit_code_is_a_try_before_which_its_session_waits(evidence: dict[str, Any]) -> None:
    assert judge(Evidence(**evidence | {"code": 3})) == Again("The agent ended with exit code 3.", gave_up=True)


def test_a_program_that_cannot_even_begin_is_started_again_and_that_is_no_try() -> None:
    nothing = GOOD | {"at_once": True, "ahead": False, "code": 3, "tail": "no network"}
    ended = Crashed("The agent ended at once, with exit code 3.\nThe end of its output:\nno network")
    assert judge(Evidence(**nothing)) == ended
    assert isinstance(judge(Evidence(**nothing | {"dirty": ("a",)})), Again)


SPEAKS: dict[str, Any] = GOOD | {"speaks": True, "result": "It works"}


@pytest.mark.parametrize("code", [0, 1, 143, -2, -15, None])
def test_who_has_said_the_last_word_is_judged_by_the_work_and_not_by_the_end(code: int | None) -> None:
    assert judge(Evidence(**SPEAKS | {"code": code})) == HandIn(HEAD, "It works")
    assert judge(Evidence(**SPEAKS | {"code": code, "ahead": False})) == Again("The run ended without a commit.")
    assert isinstance(judge(Evidence(**SPEAKS | {"code": code, "dirty": ("a",)})), Again)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (GOOD | {"code": None}, "The run was lost: nobody saw it end."),
        (GOOD | {"code": -9}, "The agent was ended by signal 9."),
        (REPORT | {"code": -11}, "The agent was ended by signal 11."),
        # Claude Code that is sent SIGINT ends with 0 and says nothing.
        (SPEAKS | {"result": None}, "The agent ended without a word of its own, with exit code 0."),
        (SPEAKS | {"result": None, "code": 143}, "The agent ended without a word of its own, with exit code 143."),
        (SPEAKS | {"result": None, "code": -15}, "The agent was ended by signal 15."),
    ],
)
def test_a_program_that_did_not_end_by_itself_crashed_whatever_it_left(evidence: dict[str, Any], said: str) -> None:
    assert judge(Evidence(**evidence)) == Crashed(said)


ELSEWHERE = {
    Trouble.LIMIT: True,
    Trouble.OVERLOAD: True,
    Trouble.CONNECTION: True,
    Trouble.KEY: True,
    Trouble.CREDIT: True,
    Trouble.CORRUPT: True,
    Trouble.CONTEXT: False,
    Trouble.BUDGET: False,
    Trouble.OTHER: False,
}
"""Every trouble, and whether it is no fault of the task."""


@pytest.mark.parametrize("trouble", Trouble)
@pytest.mark.parametrize("code", [0, 1, -15, None])
def test_every_trouble_is_either_put_off_or_a_try(trouble: Trouble, code: int | None) -> None:
    verdict = judge(
        Evidence(**SPEAKS | {"result": None, "failed": "no", "trouble": trouble, "until": 9.0, "code": code})
    )
    fresh = trouble in (Trouble.CORRUPT, Trouble.CONTEXT)
    if ELSEWHERE[trouble]:
        assert verdict == PutOff("no", trouble, 9.0, fresh)
    else:
        gave_up = trouble is Trouble.OTHER  # the other two are of one task alone
        wrong = "The run spent all that it was allowed" if trouble is Trouble.BUDGET else "The agent gave up"
        assert verdict == Again(f"{wrong}: no", gave_up=gave_up, fresh=fresh)


@pytest.mark.parametrize("code", [0, 1, -15, None])
def test_who_has_spent_a_share_of_what_all_may_spend_goes_on_later(code: int | None) -> None:
    spent = SPEAKS | {"result": None, "failed": "all is spent", "trouble": Trouble.BUDGET, "code": code}
    assert judge(Evidence(**spent, share=True)) == PutOff("all is spent", Trouble.BUDGET)
    assert judge(Evidence(**spent)) == Again("The run spent all that it was allowed: all is spent")
    assert isinstance(judge(Evidence(**spent, share=True, stopped="It took too long.")), Again)
    other = spent | {"trouble": Trouble.OTHER}
    assert isinstance(judge(Evidence(**other, share=True)), Again), "its share says nothing of other troubles"


def test_the_story_names_what_was_rescued_and_the_end_of_the_output() -> None:
    verdict = judge(Evidence(**GOOD | {"code": 1, "rescued": "refs/covey/rescue/ada/1", "tail": "\nboom\n"}))
    assert verdict == Again(
        "The agent ended with exit code 1.\n"
        "What it had not committed is kept: covey rescue show ada/1.\n"
        "The end of its output:\nboom",
        gave_up=True,
    )


evidences = st.builds(
    Evidence,
    kind=st.sampled_from(Kind),
    code=st.none() | st.integers(-2, 2),
    stopped=st.none() | st.just("stopped"),
    failed=st.none() | st.just("failed"),
    trouble=st.none() | st.sampled_from(Trouble),
    until=st.none() | st.just(9.0),
    share=st.booleans(),
    speaks=st.booleans(),
    result=st.none() | st.sampled_from(["", " ", "result"]),
    ahead=st.booleans(),
    head=st.none() | st.sampled_from([HEAD, OLD]),
    rejected=st.none() | st.sampled_from([HEAD, OLD]),
    dirty=st.lists(st.sampled_from("abcdefg"), max_size=7).map(tuple),
    rescued=st.none() | st.just("refs/covey/rescue/ada/1"),
    tail=st.text(max_size=3) | st.just("x" * 2 * STORY_TAIL_CHARS),
)


@given(evidences)
def test_only_a_run_that_ended_well_and_left_everything_committed_is_handed_in(evidence: Evidence) -> None:
    verdict = judge(evidence)
    if not isinstance(verdict, HandIn):
        assert verdict.what and len(verdict.what) < STORY_TAIL_CHARS + 500
        return
    assert evidence.stopped is None and evidence.failed is None
    assert evidence.result is not None if evidence.speaks else evidence.code == 0
    if evidence.kind is Kind.REPORT:
        assert verdict.result and verdict.result.strip()
    else:
        assert evidence.ahead and not evidence.dirty
        assert evidence.head is None or evidence.head != evidence.rejected


@given(evidences)
def test_what_covey_ended_is_never_put_off_or_taken_for_a_crash(evidence: Evidence) -> None:
    verdict = judge(replace(evidence, stopped="It took too long."))
    assert isinstance(verdict, Again) and verdict.what.startswith("It took too long.")


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


def test_a_commit_that_was_refused_is_named_where_a_person_reads_of_what_was_not_committed() -> None:
    evidence = Evidence(kind=Kind.CHANGE, code=0, dirty=("a.py",), refused="a.py is held by bob for T-2.")
    verdict = judge(evidence)
    assert isinstance(verdict, Again)
    first = verdict.what.splitlines()[0]
    assert first.endswith("did not commit: a.py. Its commit was refused: a.py is held by bob for T-2.")
