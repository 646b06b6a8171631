"""What goes and what stays, whatever there is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.core.history import retention
from covey.core.history.retention import DAY_S, MIB, RULES, Kept, RetainedKind, branch_is_past, rescue_is_past
from covey.core.settings import MEANINGS

NOW = 1_000 * DAY_S
things = st.lists(
    st.builds(
        Kept,
        st.uuids().map(str),
        st.floats(0, NOW),
        st.integers(0, 4 * MIB),
        is_known=st.booleans(),
        is_open=st.booleans(),
    ),
    max_size=20,
    unique_by=lambda each: each.name,
)
days, megabytes = st.floats(0, 1_000), st.floats(0, 20)


def test_every_kind_has_a_rule_and_every_setting_in_it_a_meaning() -> None:
    assert RULES.keys() == set(RetainedKind)
    assert {setting for rule in RULES.values() for setting in rule.settings} <= MEANINGS.keys()


@given(things, days, megabytes)
def test_what_stays_of_output_is_young_and_fits_and_nothing_older_stays_while_younger_goes(
    found: list[Kept], keep_days: float, keep_megabytes: float
) -> None:
    past = retention.past_age_or_size(found, keep_days=keep_days, keep_megabytes=keep_megabytes, now=NOW)
    stays = [each for each in found if each not in past]
    assert len(past) + len(stays) == len(found)
    assert all(NOW - each.at <= keep_days * DAY_S for each in stays)
    assert sum(each.size for each in stays) <= keep_megabytes * MIB
    assert all(gone.at <= each.at for gone in past for each in stays)


@given(things, days, megabytes)
def test_transcripts_fit_and_none_of_an_open_task_goes_before_those_of_ended_ones(
    found: list[Kept], keep_days: float, keep_megabytes: float
) -> None:
    past = retention.transcripts_past(found, keep_days=keep_days, keep_megabytes=keep_megabytes, now=NOW)
    stays = [each for each in found if each not in past]
    assert sum(each.size for each in stays) <= keep_megabytes * MIB
    known = [each for each in stays if each.is_known]
    for gone in (each for each in past if each.is_known):
        assert all((gone.is_open, gone.at) <= (each.is_open, each.at) for each in known)


@given(things, days)
def test_a_transcript_of_a_known_task_stays_however_old_it_is_while_all_of_them_fit(
    found: list[Kept], keep_days: float
) -> None:
    past = retention.transcripts_past(found, keep_days=keep_days, keep_megabytes=1_000, now=NOW)
    assert not any(each.is_known for each in past)
    assert all(NOW - each.at > keep_days * DAY_S for each in past)


@given(st.floats(0, NOW), st.none() | st.floats(0, NOW), st.floats(0, NOW))
def test_a_rescue_stays_two_weeks_after_it_was_made_and_its_session_ended(
    made: float, ended: float | None, now: float
) -> None:
    is_past = rescue_is_past(made=made, session_ended=ended, now=now)
    assert is_past == (ended is not None and now - made > 14 * DAY_S and now - ended > 14 * DAY_S)


@given(st.booleans(), st.booleans(), st.booleans())
def test_a_branch_goes_only_if_its_task_has_ended_and_its_work_is_on_main(
    ended: bool, has_landed: bool, in_main: bool
) -> None:
    is_past = branch_is_past(task_ended=ended, has_landed=has_landed, in_main=in_main)
    assert is_past == (ended and (has_landed or in_main))
