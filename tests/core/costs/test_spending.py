"""What runs cost: whatever is repeated or read again, the rows add up to what was truly used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.costs.spending import Bill, Price, Spend, Used, add, by_rate, news, priced, sane, used_in, whole
from covey.core.fleet.signals import Spent, Total, Usage

OPUS, HAIKU = "opus", "haiku"
PRICES = {HAIKU: Price(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25)}
usages = st.builds(Usage, *[st.integers(0, 5000)] * 4)


@dataclass
class Rows:
    """The rows of one run, written as the App writes them."""

    run: str = "run-1"
    rows: dict[tuple[str, str], Spend] = field(default_factory=dict)
    events: int = 0

    def count(self, used: dict[str, Used], day: str) -> None:
        """Write what is new."""
        for model, now in used.items():
            for event in news(model, day, now, [row for row in self.rows.values() if row.model == model]):
                self.events += 1
                key = (model, event.day)
                blank = Spend(run=self.run, model=model, day=event.day, session="ada", task="T-1", agent="claude")
                self.rows[key] = row = add(self.rows.get(key, blank), event)
                values = (row.input, row.output, row.cache_read, row.cache_write, row.cost, row.unpriced)
                assert min(values) >= 0, "a row says less than nothing"

    def used(self) -> dict[str, Used]:
        """Return what the rows say, without models of which they say nothing."""
        return {model: used for model, used in used_in(self.rows.values()).items() if used != Used()}


@dataclass(frozen=True)
class Story:
    """What a run says of its spending, and what it truly spent."""

    words: list[Spent | Total]
    truth: dict[str, Used]


def own(usage: Usage) -> float:
    """Return what the agent says that tokens cost: less than the price list does, so that guesses are too high."""
    return round(usage.tokens * 1e-7, 9)


@st.composite
def stories(draw: st.DrawFn, *, before: dict[str, Usage] | None = None, through: bool = False) -> Story:
    """Draw calls of two models, partial words about them, and totals now and then; `through`: also at the end."""
    words: list[Spent | Total] = []
    calls: dict[str, dict[str, Usage]] = {OPUS: {}, HAIKU: {}}
    told: dict[str, Usage] = {}
    knows = draw(st.booleans())

    def total(model: str) -> Total:
        told[model] = whole(Used(each) for each in calls[model].values()).usage
        all_of_it = told[model] + (before or {}).get(model, Usage())
        return Total(all_of_it, model, own(all_of_it) if knows else None, whole=before is not None)

    for number in range(draw(st.integers(0, 8))):
        model = draw(st.sampled_from([OPUS, HAIKU]))
        if calls[model] and draw(st.integers(0, 3)) == 0:
            words.append(total(model))
            continue
        usage = draw(usages)
        if draw(st.booleans()):
            words.append(Spent(f"call-{number}", replace(usage, output=usage.output // 2), model))
        words += [Spent(f"call-{number}", usage, model)] * draw(st.integers(1, 2))
        calls[model][f"call-{number}"] = usage
    if through:
        words += [total(model) for model in calls if calls[model]]
    return Story(words, _truth(calls, told, knows=knows, before=before or {}))


def _truth(
    calls: dict[str, dict[str, Usage]], told: dict[str, Usage], *, knows: bool, before: dict[str, Usage]
) -> dict[str, Used]:
    truth: dict[str, Used] = {}
    for model, each in calls.items():
        usage = whole(Used(one) for one in each.values()).usage
        first = told.get(model, Usage())
        then = (Used(usage) - Used(first)).usage
        earlier = before.get(model, Usage())
        cost = round(own(first + earlier) - own(earlier), 9) if knows and model in told else None
        later = whole(priced(one, None, PRICES.get(model)) for one in _after(each, first))
        assert later.usage == then
        like = Used(first + earlier, own(first + earlier)) if cost is not None else Used()
        now = priced(first, cost, PRICES.get(model)) + by_rate(later, like)
        truth[model] = replace(now, calls=len(each))
    return {model: used for model, used in truth.items() if used != Used()}


def _after(calls: dict[str, Usage], first: Usage) -> list[Usage]:
    """Return the calls that are not among the first ones, which together used this much."""
    rest, seen = list(calls.values()), Usage()
    while seen != first:
        seen += rest.pop(0)
    return rest


def tell(rows: Rows, story: Story, often: list[bool], before: dict[str, Used], day: str = "2026-01-01") -> None:
    """Take a story in, counting in between as often as it is told to, and once at the end."""
    bill = Bill()
    for word, now in zip(story.words, often, strict=False):
        bill.take(word)
        if now:
            rows.count(bill.by_model(PRICES, before, OPUS, {}), day)
    for word in story.words[len(often) :]:
        bill.take(word)
    rows.count(bill.by_model(PRICES, before, OPUS, {}), day)


looks = st.lists(st.booleans(), max_size=30)


@given(stories(), st.lists(looks, min_size=1, max_size=4))
def test_the_rows_add_up_however_often_the_output_is_read_again_and_counted_in_between(
    story: Story, readings: list[list[bool]]
) -> None:
    rows = Rows()
    for number, often in enumerate(readings, 1):
        tell(rows, story, often, {}, f"2026-01-{number:02}")
        assert rows.used() == story.truth
    events = rows.events
    tell(rows, story, [], {}, "2026-02-01")
    assert rows.events == events, "something was counted twice"


@given(st.data())
def test_totals_of_a_whole_conversation_add_up_over_its_runs(data: st.DataObject) -> None:
    before: dict[str, Usage] = {}
    rows: list[Rows] = []
    for number in range(data.draw(st.integers(1, 4))):
        story = data.draw(stories(before=before, through=True))
        rows.append(Rows(f"run-{number}"))
        earlier = whole_of([used_in(each.rows.values()) for each in rows[:-1]])
        tell(rows[-1], story, data.draw(looks), earlier)
        for model, used in story.truth.items():
            before[model] = before.get(model, Usage()) + used.usage
        assert {model: used.usage for model, used in rows[-1].used().items() if used.tokens} == {
            model: used.usage for model, used in story.truth.items() if used.tokens
        }
    spent = whole_of([each.used() for each in rows])
    assert {model: used.usage for model, used in spent.items() if used.tokens} == {
        model: usage for model, usage in before.items() if usage.tokens
    }


def whole_of(parts: list[dict[str, Used]]) -> dict[str, Used]:
    """Return what several runs used together."""
    found: dict[str, Used] = {}
    for part in parts:
        for model, used in part.items():
            found[model] = found.get(model, Used()) + used
    return found


def test_a_resumed_conversation_costs_what_its_last_total_says() -> None:
    """As Claude Code says it: 0.005, 0.010, 0.015 over three runs, the total of all that came before in each."""
    runs: list[Rows] = []
    for number in (1, 2, 3):
        rows = Rows(f"run-{number}")
        earlier = whole_of([each.used() for each in runs])
        total = Total(Usage(1000 * number, 50 * number), OPUS, 0.005 * number, whole=True)
        tell(rows, Story([Spent("call", Usage(1000, 50), OPUS), total], {}), [True, True], earlier)
        runs.append(rows)
    assert [each.used()[OPUS] for each in runs] == [Used(Usage(1000, 50), 0.005, calls=1)] * 3


def test_tokens_without_a_price_are_no_longer_so_when_the_agent_says_what_they_cost() -> None:
    rows = Rows()
    rows.count({OPUS: Used(Usage(100, 10), 0.0, 110)}, "2026-01-01")
    rows.count({OPUS: Used(Usage(200, 20), 0.0, 220)}, "2026-01-02")
    assert rows.used()[OPUS].unpriced == 220
    rows.count({OPUS: Used(Usage(200, 20), 0.5)}, "2026-01-03")
    assert rows.used() == {OPUS: Used(Usage(200, 20), 0.5)}
    assert {row.day: row.cost for row in rows.rows.values() if row.cost} == {"2026-01-03": 0.5}


def test_a_guess_that_was_too_high_is_taken_back_from_the_days_that_have_it() -> None:
    rows = Rows()
    rows.count({HAIKU: Used(Usage(100), 0.3)}, "2026-01-01")
    rows.count({HAIKU: Used(Usage(200), 0.6)}, "2026-01-02")
    rows.count({HAIKU: Used(Usage(200), 0.2)}, "2026-01-02")
    assert {row.day: row.cost for row in rows.rows.values()} == {"2026-01-01": 0.2, "2026-01-02": 0.0}


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (Used(Usage(-5, 10), -1.0), Used(Usage(0, 10))),
        (Used(Usage(1), float("nan")), Used(Usage(1))),
        (Used(Usage(1), float("inf"), 99), Used(Usage(1), 0.0, 1)),
        (Used(Usage(3, 4), 0.5, 7), Used(Usage(3, 4), 0.5, 7)),
    ],
)
def test_what_no_agent_can_have_used_is_not_taken(said: Used, taken: Used) -> None:
    assert sane(said) == taken


def test_a_total_that_lacks_what_a_killed_run_used_still_has_the_runs_own_calls_in_it() -> None:
    bill = Bill()
    bill.take(Spent("call-2", Usage(1000, 50), "opus"))
    bill.take(Total(Usage(1000, 50), "opus", 0.005, whole=True))
    killed = {"opus": Used(Usage(1000, 50), 0.0, 1050)}
    assert bill.by_model({}, {}, "", {}) == {"opus": Used(Usage(1000, 50), 0.005, calls=1)}
    assert bill.by_model({}, killed, "", {}) == {"opus": Used(Usage(1000, 50), 0.005, calls=1)}
    assert bill.whole({}, "") == {"opus"} and bill.whole(killed, "") == frozenset()
    bill.take(Total(Usage(2000, 100), "opus", 0.01, whole=True))
    assert bill.by_model({}, killed, "", {}) == {"opus": Used(Usage(1000, 50), 0.01, calls=1)}
    assert bill.whole(killed, "") == {"opus"}


def test_a_call_that_is_told_of_in_two_places_is_one_and_what_is_most_counts() -> None:
    """As Claude Code does: its stream names a call when it begins, its journal when it is over."""
    begun, over = Spent("msg-1", Usage(1000, 1, 10), "opus"), Spent("msg-1", Usage(1000, 50, 10), "opus")
    ways: list[list[Spent | Total]] = [[begun, over], [over, begun], [begun, Total(over.usage, "opus"), over]]
    for words in ways:
        bill = Bill()
        for word in words:
            bill.take(word)
        assert bill.by_model({}, {}, "")["opus"].usage == over.usage


def test_a_total_without_dollars_adds_nothing_to_calls_that_are_known() -> None:
    """As Codex says it: the total has an earlier run in it that was killed, and was counted by its own calls."""
    bill = Bill()
    bill.take(Total(Usage(9000, 90), whole=True))
    assert bill.by_model({}, {}, "gpt")["gpt"].usage == Usage(9000, 90)
    bill.take(Spent("resp-1", Usage(1000, 10)))
    assert bill.by_model({}, {}, "gpt")["gpt"] == Used(Usage(1000, 10), 0.0, 1010, 1)


def test_what_nobody_has_priced_yet_costs_what_it_cost_before() -> None:
    bill = Bill()
    bill.take(Spent("msg-1", Usage(1000, 100), "opus"))
    earlier = {"opus": Used(Usage(2000, 200), 0.012)}
    assert bill.by_model({}, {}, "", {}) == {"opus": Used(Usage(1000, 100), 0.0, 1100, 1)}
    assert bill.by_model({}, {}, "", earlier) == {"opus": Used(Usage(1000, 100), 0.006, 0, 1)}
    bill.take(Total(Usage(1000, 100), "opus", 0.01))
    bill.take(Spent("msg-2", Usage(2000, 200), "opus"))
    used = bill.by_model({}, {}, "", earlier)
    assert used == {"opus": Used(Usage(3000, 300), 0.03, 0, 2)}, "its own word comes first"
    assert bill.by_model({}, {}, "") == {"opus": Used(Usage(3000, 300), 0.01, 2200, 2)}, "that is all it has said"
    assert bill.largest_call({}, "", used) == Used(Usage(2000, 200), 0.02)


@given(st.lists(st.tuples(usages, st.sampled_from("abc"), st.sampled_from("abcd")), max_size=6), usages, st.data())
def test_a_call_is_counted_once_whatever_name_the_total_at_the_end_has_for_its_model(
    calls: list[tuple[Usage, str, str]], hidden: Usage, data: st.DataObject
) -> None:
    """As Gemini has it: a call has the name of the model that was asked, the total that of the one that answered."""
    bill, answered = Bill(), {"d": hidden}
    for number, (usage, asked, by) in enumerate(calls):
        bill.take(Spent(f"call-{number}", usage, asked))
        answered[by] = answered.get(by, Usage()) + usage
    live = bill.by_model({}, {}, "")
    for by in data.draw(st.permutations(sorted(answered))):
        bill.take(Total(answered[by], by))
    used = bill.by_model({}, {}, "")
    assert whole(used.values()).usage == sum((usage for usage, *_ in calls), hidden)
    assert all(used[model].usage.covers(one.usage) for model, one in live.items()), "what was counted live stays"
    if all(asked == by for _, asked, by in calls):
        assert {model: one.usage for model, one in used.items()} == answered


def test_dollars_and_tokens_are_those_of_the_calls_whatever_name_the_totals_have() -> None:
    """As with Claude behind a gateway, whose answers have a name of their own, in two runs of one conversation."""
    bill, earlier = Bill(), {"glm": Used(Usage(1000, 50), 0.01)}
    bill.take(Spent("msg-1", Usage(2000, 100), "glm"))
    bill.take(Total(Usage(2900, 140), "opus", 0.03, whole=True))
    bill.take(Total(Usage(100, 10), "haiku", 0.001, whole=True))
    assert bill.by_model({}, earlier, "opus", {}) == {"glm": Used(Usage(2000, 100), 0.021, calls=1)}
    assert bill.whole(earlier, "opus") == {"glm"}
    bill.take(Spent("msg-2", Usage(10, 1), "opus"))
    assert bill.whole({}, "opus") == {"opus"}, "a name that agrees is that of the model; glm used more than is left"


turns = st.lists(
    st.lists(st.tuples(usages, st.sampled_from(["gw-opus", "gw-haiku", "gw-fable"])), max_size=3), max_size=5
)


@given(turns, usages, st.integers(0, 4), st.lists(st.booleans(), min_size=5, max_size=5))
def test_behind_a_gateway_all_that_totals_say_is_counted_once_however_many_names_come_up(
    turns: list[list[tuple[Usage, str]]], unseen: Usage, resumed: int, looked: list[bool]
) -> None:
    """A conversation in two runs, whose calls have other names than its totals, is looked at now and then."""
    bill, said, number = Bill(), Usage(), 0
    runs, earlier = [Rows("run-1")], dict[str, Used]()
    for turn, calls in enumerate(turns):
        if turn == resumed:
            bill, earlier = Bill(), runs[0].used()
            runs.append(Rows("run-2"))
        for usage, name in calls:
            number += 1
            bill.take(Spent(f"msg-{number}", usage, name))
            said += usage
            if looked[turn]:
                runs[-1].count(bill.by_model({}, earlier, "gw-opus", {}), "today")
        if number:  # a call is told of before what it cost
            bill.take(Total(said, "opus", said.tokens / 1000, whole=True))
            bill.take(Total(unseen, "haiku", 1.0, whole=True))
            runs[-1].count(bill.by_model({}, earlier, "gw-opus", {}), "today")
    told = whole(used for rows in runs for used in rows.used().values())
    if number:
        assert told.cost == pytest.approx(said.tokens / 1000 + 1.0)
        assert (told.usage, told.unpriced) == (said + unseen, 0)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_model_that_comes_in_later_does_not_get_what_another_has_spent_unseen(resumed: bool) -> None:
    """As Claude has it: it names what it spends itself in totals alone, and a sub-agent has a model of its own."""
    bill, rows = Bill(), Rows()
    rates = {"sonnet": Used(Usage(1000), 0.01)}
    mine = [Total(Usage(1000, 100), "opus", 0.05, whole=True), Total(Usage(500, 5), "haiku", 0.1, whole=True)]
    earlier: dict[str, Used] = (
        {"opus": Used(Usage(1000, 100), 0.05), "haiku": Used(Usage(500, 5), 0.1)} if resumed else {}
    )
    first: list[Spent | Total] = [] if resumed else [Spent("1", Usage(1000, 100), "opus")]
    for word in (*first, *mine, Spent("2", Usage(50_000), "sonnet")):
        bill.take(word)
        rows.count(bill.by_model({"haiku": Price(input=1e6)}, earlier, "opus", rates), "today")
    assert rows.used()["sonnet"] == Used(Usage(50_000), 0.5, 0, 1)
    for word in (*mine, Total(Usage(50_000), "sonnet", 0.6, whole=True)):
        bill.take(word)
    rows.count(bill.by_model({}, earlier, "opus", rates), "today")
    assert whole(rows.used().values()).cost == pytest.approx(0.6 if resumed else 0.75)


def test_a_model_that_was_asked_costs_what_the_one_that_answered_does() -> None:
    bill = Bill()
    bill.take(Spent("1", Usage(100), "auto"))
    assert bill.by_model({"pro": Price(input=1e6)}, {}, "auto")["auto"] == Used(Usage(100), 0.0, 100, 1)
    bill.take(Total(Usage(150), "pro"))
    used = bill.by_model({"pro": Price(input=1e6)}, {}, "auto")
    assert used == {"auto": Used(Usage(100), 100.0, 0, 1), "pro": Used(Usage(50), 50.0)}
    assert bill.by_model({"pro": Price(input=1e6), "auto": Price(input=2e6)}, {}, "auto")["auto"].cost == 200.0
