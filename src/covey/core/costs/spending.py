"""What runs cost: money and tokens, by model and day; the sums never count anything twice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from covey.core.signals import Spent, Total, Usage
from covey.values import dataclass

UNKNOWN = ""
"""The model of an agent that does not name one."""
MILLION = 1_000_000
DIGITS = 9
"""Digits behind the point of a dollar that are kept."""
MOST = 2**50
"""More tokens, or dollars, than anybody can mean."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """Dollars for a million tokens of a model."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0

    def of(self, usage: Usage) -> float:
        """Return the dollars that these tokens cost."""
        whole = (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        )
        return round(whole / MILLION, DIGITS)


@dataclass(frozen=True, kw_only=True)
class Spend:
    """What one run spent on one model on one day."""

    run: str
    model: str
    day: str
    session: str
    task: str
    agent: str
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Tokens of which nobody knows what they cost; their cost is not in `cost`."""
    calls: int = 0
    """Calls of the model, as far as single ones are known."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """This much of a model a run has used since it was last counted, on this day."""

    model: str
    day: str
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0
    unpriced: int = 0
    calls: int = 0


@dataclass
class Bill:
    """What a run has said of its spending so far; made again from its output whenever it is lost."""

    calls: dict[str, Spent] = field(default_factory=dict)
    totals: dict[str, Total] = field(default_factory=dict)

    def take(self, signal: Spent | Total) -> None:
        """Take one word about spending in: of a total the last counts, of a call what is most.

        An agent may say in two places what a call cost, and in one of them before it was over.
        """
        if isinstance(signal, Total):
            known = self.totals.get(signal.model or UNKNOWN)
            if known is None or known.usage.tokens <= signal.usage.tokens:  # in its other place it may be older
                self.totals[signal.model or UNKNOWN] = signal
            return
        before = self.calls.get(signal.call)
        if before is not None:
            cost = max((each for each in (before.cost, signal.cost) if each is not None), default=None)
            usage = before.usage.or_more(signal.usage)
            signal = replace(signal, usage=usage, cost=cost, model=signal.model or before.model)
        self.calls[signal.call] = signal

    def by_model(
        self,
        prices: Mapping[str, Price],
        before: Mapping[str, Used],
        agent_model: str,
        rates: Mapping[str, Used] | None = None,
    ) -> dict[str, Used]:
        """Return what the run used of each model; `before`: what earlier runs of the same conversation did.

        A model that the agent does not name is the one that it was told to use. `rates`: what others used of a model
        and what that cost, by which tokens are priced of which nobody has said it yet; None leaves them without one.
        """
        used: dict[str, Used] = {}
        for model in dict.fromkeys([*self.totals, *(call.model or UNKNOWN for call in self.calls.values())]):
            name = model or agent_model
            rate = None if rates is None else rates.get(name, Used())
            found = self._used(model, prices.get(name), before.get(name, Used()), rate)
            used[name] = used.get(name, Used()) + found
        return used

    def _used(self, model: str, price: Price | None, before: Used, rate: Used | None) -> Used:
        """Return what the run used of one model: what its total names, and at least what its single calls did.

        A total may lack what came after it, and what a program used that was killed. One of a whole conversation that
        names no dollars says nothing that the single calls do not, and may have more runs in it than we know of.
        """
        calls, total = self._calls(model), self.totals.get(model)
        own = whole(priced(call.usage, call.cost, price) for call in calls)
        if total is None or (total.whole and total.cost is None and calls):
            return replace(by_rate(own, rate or Used()), calls=len(calls))
        all_of_it = priced(total.usage, total.cost, price)
        named = all_of_it - before if total.whole else all_of_it
        more = priced((own - named).usage, None, price)
        if rate is not None:
            more = by_rate(more, all_of_it if all_of_it.cost else rate)
        if not named.tokens:  # its dollars are those of calls that it took for earlier ones
            named = Used(cost=max(named.cost - more.cost, 0.0))
        return replace(named + more, calls=len(calls))

    def _calls(self, model: str) -> list[Spent]:
        return [call for call in self.calls.values() if (call.model or UNKNOWN) == model]

    def whole(self, before: Mapping[str, Used], agent_model: str) -> frozenset[str]:
        """Return the models of which it said what they cost since the conversation began, with all earlier runs."""
        named = ((model, model or agent_model, total) for model, total in self.totals.items())
        return frozenset(
            name
            for model, name, total in named
            if total.whole and total.cost is not None
            if (Used(total.usage) - before.get(name, Used())).usage.covers(
                sum((call.usage for call in self._calls(model)), Usage())
            )
        )

    def largest_call(self, prices: Mapping[str, Price], agent_model: str, used: Mapping[str, Used]) -> Used:
        """Return the most dollars, and the most tokens, that one call took; `used`: what the run used of each model."""
        calls = []
        for call in self.calls.values():
            name = call.model or agent_model
            calls.append(by_rate(priced(call.usage, call.cost, prices.get(name)), used.get(name, Used())))
        longest = max((each.usage for each in calls), key=lambda usage: usage.tokens, default=Usage())
        return Used(longest, max((each.cost for each in calls), default=0.0))


@dataclass(frozen=True)
class Used:
    """Tokens, dollars, tokens without a price, and how many calls of a model that were, if it is known."""

    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    unpriced: int = 0
    calls: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(
            self.usage + other.usage,
            round(self.cost + other.cost, DIGITS),
            self.unpriced + other.unpriced,
            self.calls + other.calls,
        )

    def __sub__(self, other: Used) -> Used:
        """Return what is more than the other, never less than nothing."""
        mine, theirs = self.usage, other.usage
        usage = Usage(
            max(mine.input - theirs.input, 0),
            max(mine.output - theirs.output, 0),
            max(mine.cache_read - theirs.cache_read, 0),
            max(mine.cache_write - theirs.cache_write, 0),
        )
        cost = max(round(self.cost - other.cost, DIGITS), 0.0)
        return Used(usage, cost, max(self.unpriced - other.unpriced, 0), max(self.calls - other.calls, 0))

    @property
    def tokens(self) -> int:
        """Return all tokens together."""
        return self.usage.tokens


def priced(usage: Usage, cost: float | None, price: Price | None) -> Used:
    """Return tokens with their cost: the agent's own word first, then the price list, else unknown."""
    if cost is not None:
        return Used(usage, round(cost, DIGITS))
    if price is not None:
        return Used(usage, price.of(usage))
    return Used(usage, unpriced=usage.tokens)


def by_rate(used: Used, rate: Used) -> Used:
    """Return tokens without a price at the price of others, if somebody has said what all of those cost."""
    weight = _weight(rate.usage)
    if not used.unpriced or rate.unpriced or not rate.cost or not weight:
        return used
    # What has a price and what has none is not told apart: of one model it is all the one or all the other.
    return replace(used, cost=round(used.cost + rate.cost * _weight(used.usage) / weight, DIGITS), unpriced=0)


def _weight(usage: Usage) -> float:
    """Return how much tokens cost beside each other, as most providers have it."""
    return usage.input + 5 * usage.output + 0.1 * usage.cache_read + 1.25 * usage.cache_write


def whole(used: Iterable[Used]) -> Used:
    """Return the sum."""
    total = Used()
    for each in used:
        total += each
    return total


def one_call(used: Used) -> Used:
    """Return what one of several calls took on average, nothing if nobody counted them."""
    if not used.calls:
        return Used()
    usage, number = used.usage, used.calls
    each = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    return Used(Usage(*(count // number for count in each)), round(used.cost / number, DIGITS), calls=1)


def times(used: Used, number: int) -> Used:
    """Return what so many of one would take."""
    return whole([used] * number)


def used_in(spends: Iterable[Spend]) -> dict[str, Used]:
    """Return what rows say was used of each model."""
    found: dict[str, Used] = {}
    for row in spends:
        usage = Usage(row.input, row.output, row.cache_read, row.cache_write)
        found[row.model] = found.get(row.model, Used()) + Used(usage, row.cost, row.unpriced, row.calls)
    return found


def counted(model: str, day: str, now: Used, before: Used) -> Counted | None:
    """Return what is new since it was last counted, None if nothing is."""
    new = now - before
    if new == Used():
        return None
    return Counted(
        model=model,
        day=day,
        input=new.usage.input,
        output=new.usage.output,
        cache_read=new.usage.cache_read,
        cache_write=new.usage.cache_write,
        cost=new.cost,
        unpriced=new.unpriced,
        calls=new.calls,
    )


def news(model: str, day: str, now: Used, rows: Sequence[Spend]) -> list[Counted]:
    """Return what makes the rows of a run and model say what is known now, none of them ever less than nothing.

    Who reads a run's output again knows less than the rows for a while, and changes nothing. Tokens only grow; dollars
    that were guessed too high, and tokens that have got a price since, are taken back from the days that have them.
    """
    said = used_in(rows).get(model, Used())
    new = now - said
    knows_all = (said - now).tokens == 0
    if not (knows_all or new.tokens):
        return []
    unpriced, cost = min(new.unpriced, new.tokens), new.cost
    if knows_all and now.unpriced <= said.unpriced:
        unpriced, cost = now.unpriced - said.unpriced, round(now.cost - said.cost, DIGITS)
    more = Used(new.usage, max(cost, 0.0), max(unpriced, 0), new.calls)
    event = counted(model, day, more, Used())
    return [*([] if event is None else [event]), *_taken_back(rows, -min(cost, 0.0), -min(unpriced, 0))]


def _taken_back(rows: Sequence[Spend], cost: float, unpriced: int) -> list[Counted]:
    """Return the events that take dollars and tokens without a price back, from the newest day on."""
    events: list[Counted] = []
    for row in sorted(rows, key=lambda row: row.day, reverse=True):
        dollars, tokens = min(row.cost, cost), min(row.unpriced, unpriced)
        if dollars or tokens:
            events.append(Counted(model=row.model, day=row.day, cost=-dollars, unpriced=-tokens))
        cost, unpriced = round(cost - dollars, DIGITS), unpriced - tokens
    return events


def sane(used: Used) -> Used:
    """Return what an agent says that it used, without what no agent can have used."""
    usage = Usage(*(min(max(count, 0), MOST) for count in (
        used.usage.input, used.usage.output, used.usage.cache_read, used.usage.cache_write
    )))  # fmt: skip
    cost = min(max(used.cost, 0.0), float(MOST)) if math.isfinite(used.cost) else 0.0
    return Used(usage, cost, min(max(used.unpriced, 0), usage.tokens), used.calls)


def add(row: Spend, event: Counted) -> Spend:
    """Return a row with what an event counted besides."""
    return replace(
        row,
        input=row.input + event.input,
        output=row.output + event.output,
        cache_read=row.cache_read + event.cache_read,
        cache_write=row.cache_write + event.cache_write,
        cost=round(row.cost + event.cost, DIGITS),
        unpriced=row.unpriced + event.unpriced,
        calls=row.calls + event.calls,
    )
