"""The watchdog: one verdict with its evidence, and nothing is ended for silence alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from covey.core.fleet import watchdog
from covey.core.fleet.launches import Activity
from covey.core.fleet.run_state import Call, RunState
from covey.core.fleet.sessions import SessionState
from covey.core.fleet.signals import Limited, Trouble
from covey.core.fleet.watchdog import (
    END_WITHIN_S,
    FULL_CONTEXT_SHARE,
    Clue,
    Patience,
    Remedy,
    Verdict,
)


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What is seen of a run, in one row."""

    at: float
    started: float
    wall: float = 0.0
    speaks: bool = False
    said: float | None = None
    printed: float | None = None
    worked: float | None = None
    processes: int = 1
    connections: int = 0
    waits: float | None = None
    calls: tuple[Call, ...] = ()
    repeats: int = 0
    repeated: str = ""
    asks: str | None = None
    asked: float = 0.0
    limited: Limited | None = None
    limited_at: float = 0.0
    put_off: float | None = None
    compacts: float | None = None
    context: float | None = None
    over: bool = False
    held: bool = False
    kept: float | None = None
    excused: float | None = None
    nudged: int = 0
    told: bool = False
    squeezed: bool = False


def judge(signs: Signs, patience: Patience) -> Verdict:
    """Judge a run of which this is seen."""
    heard = RunState(
        at=signs.said,
        waits=signs.waits,
        calls={str(number): call for number, call in enumerate(signs.calls)},
        repeats=signs.repeats,
        last_call=("shell", "make") if signs.repeated else None,
        limited=signs.limited,
        put_off=signs.put_off,
        compacts=signs.compacts,
        context=signs.context,
        result="Done." if signs.over else None,
    )
    activity = Activity(cpu=0.0, processes=signs.processes, memory=0, connections=signs.connections)
    seen = watchdog.Signs(
        at=signs.at,
        started=signs.started,
        wall=signs.wall,
        speaks=signs.speaks,
        heard=heard,
        printed=signs.printed,
        activity=activity,
        worked=signs.worked,
        asks=signs.asks,
        asked=signs.asked,
        limited_at=signs.limited_at,
        held=signs.held,
        kept=signs.kept,
        excused=signs.excused,
        nudged=signs.nudged,
        told=signs.told,
        squeezed=signs.squeezed,
    )
    return watchdog.judge(seen, patience)


NOW = 10_000.0
PATIENCE = Patience(stalled=300.0, request=900.0, repeats=5)
FATAL = (Remedy.RESTART, Remedy.END)
LIMIT = Limited(Trouble.LIMIT, "429: too many requests")
QUIET = Signs(at=NOW, started=0.0, speaks=True, said=1_000.0, printed=1_000.0, worked=1_000.0)
"""A run of an agent that speaks, of which nothing has been seen for hours."""


def seconds(most: float = NOW) -> st.SearchStrategy[float]:
    """Return times on the watcher's clock, often near the borders that matter."""
    borders = [NOW - PATIENCE.stalled, NOW - PATIENCE.stalled + 0.5, NOW - PATIENCE.request, NOW - PATIENCE.request + 1]
    return st.sampled_from([0.0, *borders, NOW]) | st.floats(0.0, most)


maybe = st.none() | seconds()
calls = st.lists(st.builds(Call, st.just("shell"), st.sampled_from(["make", "npm test"]), seconds()), max_size=3)
any_signs = st.builds(
    Signs,
    at=st.just(NOW),
    started=seconds(),
    wall=st.just(2_000_000.0),
    speaks=st.booleans(),
    said=maybe,
    printed=maybe,
    worked=maybe,
    kept=maybe,
    processes=st.integers(0, 4),
    connections=st.integers(0, 2),
    waits=maybe,
    calls=calls.map(tuple),
    repeats=st.integers(0, 12),
    repeated=st.just("shell make"),
    asks=st.none() | st.just("Which colour?"),
    asked=seconds(),
    limited=st.none() | st.builds(Limited, st.just(Trouble.LIMIT), st.just("429"), st.none() | st.floats(0, 4_000_000)),
    limited_at=seconds(),
    compacts=maybe,
    context=st.none() | st.floats(0.0, 1.1),
    over=st.booleans(),
    held=st.booleans(),
    nudged=st.integers(0, 12),
    squeezed=st.booleans(),
)


def repeats(signs: Signs) -> bool:
    """Say whether a run does the same on and on after it was told so: the only reason besides standing still."""
    return signs.nudged > 0 and signs.repeats >= signs.nudged + PATIENCE.repeats


# Nothing is ended for silence alone


@given(any_signs)
def test_what_showed_a_sign_of_life_lately_is_never_ended(signs: Signs) -> None:
    known = (signs.said, signs.printed, signs.worked, signs.kept, signs.started)
    seen = [each for each in known if each is not None]
    assume(NOW - max(seen) < PATIENCE.stalled)
    assert judge(signs, PATIENCE).action not in FATAL or repeats(signs)


@given(any_signs)
def test_what_runs_a_tool_is_never_ended(signs: Signs) -> None:
    assume(signs.processes > 1 and (signs.calls or not signs.speaks))
    assert judge(signs, PATIENCE).action not in FATAL or repeats(signs)


@given(any_signs, st.floats(0.0, PATIENCE.request, exclude_max=True))
def test_what_waits_for_its_model_is_not_ended_before_that_has_had_its_time(signs: Signs, ago: float) -> None:
    waits = replace(signs, waits=NOW - ago)
    assert judge(waits, PATIENCE).action not in FATAL or repeats(signs)


@given(any_signs)
def test_what_waits_for_a_person_or_for_its_provider_or_has_ended_is_never_ended(signs: Signs) -> None:
    assume(signs.held or signs.asks or signs.limited or (signs.over and not repeats(signs)))
    assert judge(signs, PATIENCE).action not in FATAL


@given(any_signs)
def test_to_be_ended_for_silence_takes_all_the_signs_together(signs: Signs) -> None:
    verdict = judge(signs, PATIENCE)
    if verdict.action not in FATAL or repeats(signs):
        return
    seen = [each for each in (signs.said, signs.printed, signs.worked, signs.waits, signs.kept) if each is not None]
    assert all(NOW - each >= PATIENCE.stalled for each in seen)
    assert not (signs.processes > 1 and (signs.calls or not signs.speaks))
    assert verdict.state is SessionState.STALLED


# Verdicts


@given(any_signs)
def test_there_is_one_verdict_for_whatever_is_seen_and_always_the_same(signs: Signs) -> None:
    verdict = judge(signs, PATIENCE)
    assert verdict == judge(signs, PATIENCE)
    assert verdict.rule and verdict.evidence and verdict.clues
    assert all(clue.text and 0.0 <= clue.age <= NOW for clue in verdict.clues)
    assert (verdict.action in FATAL) is (verdict.state is SessionState.STALLED)
    assert verdict.until is None or (verdict.state is SessionState.LIMITED and verdict.until > signs.wall)


@given(any_signs)
def test_what_stands_still_waits_for_nobody_and_who_asks_waits_for_a_person(signs: Signs) -> None:
    state = judge(signs, PATIENCE).state
    if signs.held:
        assert state is SessionState.PAUSED
    elif signs.asks is not None:
        assert state is SessionState.NEEDS_YOU
    elif signs.limited is not None:
        assert state is SessionState.LIMITED
    else:
        assert state in (SessionState.WORKING, SessionState.COMPACTING, SessionState.STALLED)


EXAMPLES: list[tuple[str, Signs, SessionState, Remedy, str]] = [
    ("held", replace(QUIET, held=True, asks="Which?"), SessionState.PAUSED, Remedy.NONE, "held (2 h 46 min ago)"),
    ("asks", replace(QUIET, asks="Which?", asked=NOW - 30, limited=LIMIT), SessionState.NEEDS_YOU, Remedy.NONE,
     "Which? (30 s ago)"),
    ("limited", replace(QUIET, limited=LIMIT, limited_at=NOW - 60), SessionState.LIMITED, Remedy.NONE,
     "429: too many requests (1 min ago)"),
    ("compacts", replace(QUIET, said=NOW - 400, compacts=NOW - 400), SessionState.COMPACTING, Remedy.NONE,
     "it makes its conversation shorter (6 min ago)"),
    ("repeats", replace(QUIET, said=NOW, repeats=5, repeated="shell make"), SessionState.WORKING, Remedy.NUDGE,
     "5 times in a row the same: shell make (0 s ago)"),
    ("was nudged", replace(QUIET, said=NOW, repeats=7, nudged=5), SessionState.WORKING, Remedy.NONE,
     "it last said something (0 s ago)"),
    ("repeats on", replace(QUIET, said=NOW, repeats=10, nudged=5, repeated="shell make"), SessionState.STALLED,
     Remedy.END, "10 times in a row the same: shell make (0 s ago)"),
    ("a build", replace(QUIET, calls=(Call("shell", "make", NOW - 3000),), processes=3), SessionState.WORKING,
     Remedy.NONE, "its tool runs: shell make (50 min ago); it last said something (2 h 30 min ago)"),
    ("a child", replace(QUIET, speaks=False, said=None, processes=2), SessionState.WORKING, Remedy.NONE,
     "2 processes of it live (2 h 46 min ago); it last printed something (2 h 30 min ago)"),
    ("a request", replace(QUIET, said=NOW - 600, printed=None, worked=NOW - 600, waits=NOW - 600), SessionState.WORKING,
     Remedy.NONE,
     "it waits for its model (10 min ago); it last said something (10 min ago);"
     " no processor time was used (10 min ago)"),
    ("no answer", replace(QUIET, waits=1_000.0), SessionState.STALLED, Remedy.RESTART,
     "its model does not answer (2 h 30 min ago); it last said something (2 h 30 min ago);"
     " no processor time was used (2 h 30 min ago)"),
    ("hangs", QUIET, SessionState.STALLED, Remedy.END,
     "it last said something (2 h 30 min ago); no processor time was used (2 h 30 min ago);"
     " no request is under way and no tool runs (2 h 46 min ago)"),
    ("is over", replace(QUIET, over=True), SessionState.WORKING, Remedy.FINISH,
     "it has said its last word, and does not end (2 h 30 min ago)"),
    ("is just over", replace(QUIET, over=True, said=NOW - END_WITHIN_S + 1), SessionState.WORKING, Remedy.NONE,
     "it last said something (59 s ago)"),
    ("is over in plain words", replace(QUIET, over=True, speaks=False), SessionState.WORKING, Remedy.NONE,
     "it last said something (2 h 30 min ago)"),
    ("full", replace(QUIET, said=NOW, context=FULL_CONTEXT_SHARE), SessionState.WORKING, Remedy.COMPACT,
     "its context is 92% full (0 s ago)"),
    ("is squeezed", replace(QUIET, said=NOW, context=FULL_CONTEXT_SHARE, squeezed=True), SessionState.WORKING,
     Remedy.NONE, "it last said something (0 s ago)"),
    ("just began", Signs(at=NOW, started=NOW - 5), SessionState.WORKING, Remedy.NONE, "it was started (5 s ago)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("signs", "state", "action", "evidence"), [each[1:] for each in EXAMPLES], ids=[each[0] for each in EXAMPLES]
)
def test_each_rule_has_its_case(signs: Signs, state: SessionState, action: Remedy, evidence: str) -> None:
    verdict = judge(signs, PATIENCE)
    assert (verdict.state, verdict.action, verdict.evidence) == (state, action, evidence)


@given(any_signs)
def test_nobody_is_ended_as_stuck_who_was_not_told(signs: Signs) -> None:
    verdict = judge(replace(signs, said=NOW, nudged=0), PATIENCE)
    assert verdict.action not in FATAL, "however often it did the same between two looks"


@pytest.mark.parametrize(("nudged", "ends"), [(5, 10), (9, 14), (23, 28)])
def test_who_was_told_has_as_many_repetitions_left_as_led_to_it(nudged: int, ends: int) -> None:
    signs = replace(QUIET, said=NOW, repeats=ends - 1, nudged=nudged)
    assert judge(signs, PATIENCE).action is Remedy.NONE
    assert judge(replace(signs, repeats=ends), PATIENCE).action is Remedy.END


def test_who_has_said_its_last_word_and_works_on_it_is_left_alone() -> None:
    signs = replace(QUIET, over=True)
    for alive in (replace(signs, worked=NOW - 1), replace(signs, printed=NOW - 1), replace(signs, held=True)):
        assert judge(alive, PATIENCE).action is Remedy.NONE


def test_the_reset_that_a_provider_named_is_told_until_it_is_over() -> None:
    signs = replace(QUIET, limited=replace(LIMIT, until=5_000.0), wall=4_000.0)
    assert judge(signs, PATIENCE).until == 5_000.0
    assert judge(replace(signs, wall=5_000.0), PATIENCE).until is None


def test_who_names_a_reset_that_makes_no_sense_is_not_waited_for_any_longer_than_others() -> None:
    signs = replace(QUIET, limited=replace(LIMIT, until=1.75e12), wall=1.75e9, put_off=NOW - 901, limited_at=NOW - 901)
    assert judge(signs, PATIENCE).action is Remedy.RESTART
    assert judge(replace(signs, put_off=NOW - 899), PATIENCE).until is None


def test_who_was_kept_from_going_on_has_all_its_time_after_that() -> None:
    assert judge(replace(QUIET, kept=NOW - 299), PATIENCE).action is Remedy.NONE
    assert judge(replace(QUIET, kept=NOW - 300), PATIENCE).action is Remedy.END


def test_a_tool_whose_processes_are_all_gone_keeps_nobody_alive() -> None:
    signs = replace(QUIET, calls=(Call("shell", "make", 1_000.0),), processes=1)
    assert judge(signs, PATIENCE).action is Remedy.END


def test_an_agent_that_says_nothing_structured_has_a_request_under_way_while_a_connection_is_open() -> None:
    signs = replace(QUIET, speaks=False, printed=NOW - 600, worked=NOW - 600, said=None, connections=1)
    assert judge(signs, PATIENCE).action is Remedy.NONE
    assert judge(replace(signs, connections=0), PATIENCE).action is Remedy.END
    assert judge(replace(signs, printed=1_000.0, worked=1_000.0), PATIENCE).action is Remedy.RESTART


def test_a_conversation_that_never_gets_shorter_is_stalled_in_the_end() -> None:
    signs = replace(QUIET, said=NOW - 901, printed=None, worked=NOW - 901, compacts=NOW - 901)
    assert judge(signs, PATIENCE).state is SessionState.STALLED


def test_a_verdict_without_clues_says_its_rule() -> None:
    assert Verdict(state=SessionState.WORKING, rule="it works").evidence == "it works"
    clue = Clue("stream", "it spoke", 2.0)
    assert Verdict(state=SessionState.WORKING, rule="it works", clues=(clue,)).evidence == "it spoke (2 s ago)"
    assert Verdict(state=SessionState.WORKING, rule="it works", clues=(clue, clue)).grounds == "it spoke; it spoke"
    assert Verdict(state=SessionState.WORKING, rule="it works").grounds == "it works"


def test_only_who_heard_that_it_repeats_itself_is_said_to_have_been_told() -> None:
    signs = replace(QUIET, said=NOW, repeats=10, nudged=5)
    assert judge(signs, PATIENCE).rule == "it does the same again and again"
    assert judge(replace(signs, told=True), PATIENCE).rule.endswith(", and was told so")
