"""What a run has let us know, put together signal by signal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.core.fleet import signals
from covey.core.fleet.run_state import MAX_SAID_CHARS, Call, RunState, digest
from covey.core.fleet.signals import (
    Asks,
    Called,
    Calls,
    Compacts,
    Context,
    Conversation,
    Failed,
    Limited,
    Result,
    Said,
    Signal,
    Spent,
    Total,
    Trouble,
    Usage,
    Waits,
    Works,
)

LIMIT = Limited(Trouble.OVERLOAD, "529")
any_signal: st.SearchStrategy[Signal] = st.sampled_from(
    [
        Said("Hello"),
        Said(" and", piece=True),
        Spent("", Usage(1, 2)),
        signals.Settled("toolu_1"),
        Asks("Which?"),
        Asks("May I?", "toolu_1"),
        Works(),
        Waits(),
        Calls("1", "shell", "make"),
        Calls("2", "shell", "make"),
        Calls("3", "read", "README"),
        Called("1"),
        Called("1", result="built"),
        Called("2", failed=True),
        Conversation("talk"),
        Spent("call", Usage(1, 2), "sonnet", 0.5),
        Total(Usage(3, 4), "sonnet", 0.75),
        LIMIT,
        Compacts(),
        Compacts(on=False),
        Context(50, 100),
        Context(50, 0),
        Result("It works"),
        Failed("No", Trouble.LIMIT, 9.0),
    ]
)


def heard(*told: Signal, at: float = 1.0) -> RunState:
    """Return what is known after some signals, each a second after the one before."""
    found = RunState()
    for number, signal in enumerate(told):
        found.take(signal, at + number)
    return found


def test_the_end_of_what_was_said_is_kept() -> None:
    assert heard(Said("Hello"), Said("world")).said == "Hello\nworld\n"
    assert len(heard(*[Said("x" * 1000)] * 100).said) == MAX_SAID_CHARS


def test_pieces_of_a_message_are_joined_and_another_message_is_not() -> None:
    told = heard(Said("Hel", piece=True), Said("lo ", piece=True), Spent("call", Usage(1, 1)), Said("you", piece=True))
    assert (told.said, told.last) == ("Hello you\n", "Hello you")
    told.take(Calls("1", "shell", "make"), 9.0)
    told.take(Said("Done", piece=True), 9.0)
    assert (told.said, told.last) == ("Hello you\nDone\n", "Done")
    told.take(Said("Really."), 9.0)
    told.take(Said("Really.", piece=True), 9.0)
    assert told.said == "Hello you\nDone\nReally.\nReally.\n"


def test_who_ends_without_words_ends_with_what_it_said_last() -> None:
    assert heard(Said("I begin."), Calls("1", "shell", "make"), Said("It is done."), Result("")).result == "It is done."
    assert heard(Said("I begin."), Result("Well")).result == "Well"
    assert heard(Result("")).result == ""


def test_calls_without_a_name_are_all_counted() -> None:
    same = Spent("", Usage(1, 2))
    assert [call.usage for call in heard(same, same).bill.calls.values()] == [Usage(1, 2)] * 2


def test_a_question_that_is_taken_back_needs_no_answer() -> None:
    first, second = Asks("May I?", '{"request": "7"}', handle="7"), Asks("And this?", "8")
    asked = heard(first, second, signals.Settled("7"))
    assert list(asked.asks.values()) == [second] and asked.answered == {digest(first.id)}
    asked.take(signals.Settled("8"), 9.0)
    asked.take(signals.Settled("9"), 9.0)
    assert asked.asks == {}
    asked.take(first, 9.0)
    assert asked.asks == {}, "read again, it is no new question"


def test_a_question_without_a_name_is_answered_by_whatever_comes_next() -> None:
    asked = heard(Asks("Which?"))
    assert [asks.question for asks in asked.asks.values()] == ["Which?"]
    asked.take(Spent("call", Usage(1, 1)), 2.0)
    asked.take(Context(1, 2), 2.0)
    assert asked.asks, "what it costs is no answer"
    asked.take(Works(), 3.0)
    assert (asked.asks, asked.answered) == ({}, {"#1"})
    asked.take(Asks("Which?"), 4.0)
    assert list(asked.asks) == ["#2"], "the same words later are another question"


def test_a_question_with_a_name_stays_open_until_it_is_closed_or_the_run_has_ended() -> None:
    asked = heard(Asks("May I?", "toolu_1"), Said("Meanwhile"), Calls("2", "read", "a"))
    assert list(asked.asks) == [digest("toolu_1")]
    asked.close(digest("toolu_1"))
    asked.take(Asks("May I?", "toolu_1"), 9.0)
    assert asked.asks == {}, "read again, it is no new question"
    ended = heard(Asks("May I?", "toolu_1"), Result("Done"))
    assert (ended.asks, ended.answered) == ({}, {digest("toolu_1")})


def test_a_question_means_that_no_request_is_under_way() -> None:
    assert heard(Waits()).waits == 1.0
    assert heard(Waits(), Asks("Which?")).waits is None


def test_a_call_is_under_way_until_it_has_ended() -> None:
    assert heard(Waits(), Calls("1", "shell", "make")).calls == {"1": Call("shell", "make", 2.0)}
    assert heard(Waits(), Calls("1", "shell", "make")).waits is None
    assert heard(Calls("1", "shell", "make"), Called("1", failed=True)).calls == {}
    assert heard(Calls("1", "shell", "make"), Result("Done")).calls == {}
    assert heard(Called("9")).calls == {}


def test_who_has_spoken_while_a_command_runs_on_does_not_wait_for_it() -> None:
    known = RunState()
    told: list[tuple[Signal, bool]] = [
        (Waits(), False),
        (Said("I begin it in the background."), True),
        (Calls("1", "shell", "sleep 45"), False),
        (Said("Done."), True),
        (Calls("2", "shell", "make test"), False),
        (Called("2", failed=False), True),
        (Waits(), False),
        (Said("Done again."), True),
    ]
    for number, (signal, is_between) in enumerate(told):
        known.take(signal, float(number))
        assert known.is_between is is_between, (number, signal)


def test_the_same_call_in_a_row_is_counted_and_another_begins_anew() -> None:
    same = [signal for number in range(4) for signal in (Calls(str(number), "shell", "make"), Called(str(number)))]
    assert heard(*same).repeats == 4
    assert heard(*same, Said("Hm"), Waits(), Calls("9", "shell", "make"), Called("9")).repeats == 5
    other = heard(*same, Calls("9", "shell", "make test"))
    assert (other.repeats, other.last_call) == (0, ("shell", "make test"))
    assert heard(*same, Calls("9", "shell", "ls"), Called("9"), *same).repeats == 4


def polls(*results: str | None) -> list[Signal]:
    """Return the same call as often as there are results."""
    told = enumerate(results)
    return [each for n, result in told for each in (Calls(str(n), "shell", "gh run"), Called(str(n), False, result))]


def test_the_same_call_with_another_result_is_no_repetition() -> None:
    assert heard(*polls("waiting", "1 of 3", "2 of 3", "done")).repeats == 1
    assert heard(*polls("waiting", "1 of 3", "1 of 3", "1 of 3")).repeats == 3
    failed = heard(*polls("x"), Calls("9", "shell", "gh run"), Called("9", True, "x"))
    assert failed.repeats == 1, "it failed, and did not before"
    assert heard(*polls(None, None, None)).repeats == 3, "of which nobody says what came of it"


@given(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=12))
def test_a_row_of_calls_is_as_long_as_the_row_of_its_last_result(results: list[str | None]) -> None:
    row = next((n for n, each in enumerate(reversed(results)) if each != results[-1]), len(results))
    assert heard(*polls(*results)).repeats == row


def test_who_was_put_off_goes_on_with_the_next_word() -> None:
    put_off = heard(Waits(), LIMIT, LIMIT)
    assert (put_off.limited, put_off.limits) == (LIMIT, 2)
    put_off.take(Waits(), 5.0)
    assert put_off.limited == LIMIT, "it only asks again"
    gone_on = heard(Waits(), LIMIT, LIMIT, Waits(), Said("Here I am"))
    assert (gone_on.limited, gone_on.limits) == (None, 2)


def test_a_conversation_that_was_made_shorter_is_counted() -> None:
    assert heard(Compacts()).compacts == 1.0
    after = heard(Compacts(), Compacts(on=False))
    assert (after.compacts, after.compacted) == (None, 1)


def test_how_full_a_context_is() -> None:
    assert heard(Context(50, 200)).context == 0.25
    assert heard(Context(50, 200), Context(50, 0)).context is None


def test_the_last_word_counts_until_it_is_told_more() -> None:
    failed = heard(Failed("No", Trouble.LIMIT, 9.0))
    assert (failed.is_over, failed.failed, failed.trouble, failed.until) == (True, "No", Trouble.LIMIT, 9.0)
    better = heard(Failed("No", Trouble.LIMIT, 9.0), Result("Yes"))
    assert (better.failed, better.trouble, better.until, better.result) == (None, None, None, "Yes")
    assert not heard(Result("Yes"), Waits()).is_over, "it was told more, and works on"
    assert heard(Result("Yes"), Said("Goodbye")).result == "Yes"


def test_what_it_costs_is_on_the_bill() -> None:
    bill = heard(Spent("a", Usage(1, 1), "sonnet"), Spent("a", Usage(2, 2), "sonnet"), Spent("b", Usage(1))).bill
    assert [call.usage.tokens for call in bill.calls.values()] == [4, 1]


@given(st.lists(any_signal, max_size=30))
def test_whatever_comes_in_any_order_makes_sense_together(told: list[Signal]) -> None:
    found = heard(*told)
    assert found.at == (float(len(told)) if told else None)
    assert not (found.result is not None and found.failed is not None)
    assert found.failed is not None or (found.trouble is None and found.until is None)
    assert not set(found.asks) & found.answered
    assert (found.repeats > 0) is (found.last_result is not None)
    ends = (signals.Result, signals.Failed)
    if told and isinstance(told[-1], ends):
        assert found.is_over and not found.calls and not found.asks and found.waits is None and found.limited is None


@given(st.lists(any_signal, max_size=30))
def test_who_reads_it_all_again_knows_the_same(told: list[Signal]) -> None:
    assert heard(*told) == heard(*told)


@given(st.text(), st.text())
def test_long_names_get_short_ones_that_differ(one: str, other: str) -> None:
    assert len(digest(one)) == 16
    assert (digest(one) == digest(other)) is (one == other)


def test_a_limit_keeps_the_end_that_was_named_before_it_ended_the_run() -> None:
    named = heard(Limited(Trouble.LIMIT, "five hour limit", until=9.0), Failed("You've hit your limit", Trouble.LIMIT))
    assert (named.trouble, named.until) == (Trouble.LIMIT, 9.0)
    other = heard(Limited(Trouble.LIMIT, "five hour limit", until=9.0), Failed("Overloaded", Trouble.OVERLOAD))
    assert other.until is None


def test_commands_that_led_out_are_remembered_unless_they_failed() -> None:
    heard = RunState()
    for number, (command, failed) in enumerate([("npm publish", False), ("gh pr merge 4", True), ("npm test", False)]):
        heard.take(Calls(str(number), "shell", command), 1.0)
        heard.take(Called(str(number), failed), 2.0)
    assert heard.sent == ["npm publish"]
