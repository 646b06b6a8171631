"""What runs cost: money and tokens, by model and day; the sums never count anything twice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from covey.core.fleet.signals import Spent, Total, Usage
from covey.values import dataclass

UNNAMED_MODEL = ""
"""The model of an agent that does not name one."""
MILLION = 1_000_000
DOLLAR_DECIMALS = 9
"""Digits behind the point of a dollar that are kept."""
MAX_TOKENS_OR_DOLLARS = 2**50
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
        return round(whole / MILLION, DOLLAR_DECIMALS)


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
    """Tokens whose price is unknown; they are not counted in `cost`."""
    calls: int = 0
    """Calls of the model, as far as single ones are known."""


@dataclass(frozen=True, kw_only=True)
class Spend(Counted):
    """What one run spent on one model on one day."""

    run: str
    session: str
    task: str
    agent: str


@dataclass
class Bill:
    """What a run has said of its spending so far; made again from its output whenever it is lost."""

    calls: dict[str, Spent] = field(default_factory=dict)
    totals: dict[str, Total] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    """Models that only totals name, and that answered no call of another name: all calls had totals of theirs."""
    _models: set[str] = field(default_factory=set)
    """What calls named."""

    def take(self, signal: Spent | Total) -> None:
        """Record one spending report: the newest total, the largest figure per call.

        An agent may say in two places what a call cost, and in one of them before it was over.
        """
        if isinstance(signal, Total):
            known = self.totals.get(signal.model or UNNAMED_MODEL)
            if known is None or known.usage.tokens <= signal.usage.tokens:  # in its other place it may be older
                self.totals[signal.model or UNNAMED_MODEL] = signal
            if self._models and self._models <= self.totals.keys():
                self.own |= self.totals.keys() - self._models
            return
        before = self.calls.get(signal.call)
        if before is not None:
            cost = max((each for each in (before.cost, signal.cost) if each is not None), default=None)
            usage = before.usage.or_more(signal.usage)
            signal = replace(signal, usage=usage, cost=cost, model=signal.model or before.model)
        self.calls[signal.call] = signal
        self._models.add(signal.model or UNNAMED_MODEL)

    def by_model(
        self,
        prices: Mapping[str, Price],
        before: Mapping[str, Used],
        agent_model: str,
        rates: Mapping[str, Used] | None = None,
    ) -> dict[str, Used]:
        """Return what the run used of each model; `before`: what earlier runs of the same conversation did.

        A model that the agent does not name is the one that it was told to use. `rates`: what others used of a model
        and what that cost: tokens without a price yet are priced by it; None leaves them unpriced.
        """
        used: dict[str, Used] = {}
        totals = self._totals(before, agent_model)
        for model in dict.fromkeys([*totals, *self._called()]):
            name = model or agent_model
            rate = None if rates is None else rates.get(name, Used())
            price = prices.get(name) or self._price_of_who_answered(model, prices, before)
            found = self._used(model, totals.get(model), price, before.get(name, Used()), rate)
            used[name] = used.get(name, Used()) + found
        return used

    def _totals(self, before: Mapping[str, Used], agent_model: str) -> dict[str, Total]:
        """Return the totals by the names that calls have, without what calls have that their names do not say.

        A call may have the name of the model that was asked, and the total that of the one that answered, as Gemini has
        it; or the other way round, as Claude behind a gateway.
        """
        if all(not total.whole and total.cost is None for total in self.totals.values()):
            return self._totals_beyond_calls()
        answered = self._answered(before)
        known = {model or agent_model for model in self.totals}
        asked = self._asked() if self.calls else [name for name in before if name not in known]
        if not asked or not answered:
            return self.totals
        named = {model: total for model, total in self.totals.items() if model not in answered}
        known = {model or agent_model for model in named}
        earlier = whole(used for name, used in before.items() if name not in known)
        each_before = {model: before.get(model or agent_model, Used()) for model in asked}
        return named | self._shares([*answered.values()], earlier, each_before)

    def _shares(self, answered: Sequence[Total], earlier: Used, before: Mapping[str, Used]) -> dict[str, Total]:
        """Return totals for the models that only calls name, of the dollars and tokens that only totals name.

        Each has the tokens of its calls, the first one what nobody saw a call of, and the dollars go by the tokens; so
        their sum stays what was said, however many names come up. `earlier`: what runs before this one used of them
        all; `before`: of each.
        """
        if all(total.cost is None for total in answered):
            return dict.fromkeys(before, Total(Usage(), whole=True))
        since_begun = any(total.whole for total in answered)
        said = whole(Used(total.usage, total.cost or 0.0) for total in answered) - (earlier if since_begun else Used())
        own = {model: self._usage(model) for model in before}
        weight = sum(map(_weight, own.values()))
        shares: dict[str, Total] = {}
        left = said.usage - sum(own.values(), Usage())
        for model, usage in own.items():
            part = Used(
                usage - (usage - said.usage) + left, said.cost * (_weight(usage) / weight if weight else not shares)
            )
            said, left = Used(said.usage - usage, said.cost), Usage()
            both = part + before[model] if since_begun else part
            shares[model] = Total(both.usage, cost=round(both.cost, DOLLAR_DECIMALS), whole=since_begun)
        return shares

    def _price_of_who_answered(
        self, model: str, prices: Mapping[str, Price], before: Mapping[str, Used]
    ) -> Price | None:
        """Return the price of a model that only calls name: that of who used most among those that only totals name."""
        if model not in self._asked():
            return None
        answered = sorted(self._answered(before).items(), key=lambda each: each[1].usage.tokens, reverse=True)
        return next((prices[name] for name, _ in answered if name in prices), None)

    def _asked(self) -> list[str]:
        """Return the models that calls name and no total does, in the order of their first calls."""
        return [model for model in self._called() if model not in self.totals]

    def _answered(self, before: Mapping[str, Used]) -> dict[str, Total]:
        """Return the totals of models that may have answered calls of other names: of no call, now or `before`."""
        known = {*self._called(), *self.own, *before}
        return {model: total for model, total in self.totals.items() if model not in known}

    def _totals_beyond_calls(self) -> dict[str, Total]:
        """Return the totals of one program without what calls under other names have more than totals of theirs."""
        own = {model: self._usage(model) for model in {**self.totals, **self._called()}}
        named = {model: total.usage for model, total in self.totals.items()}
        elsewhere = sum((usage - named.get(model, Usage()) for model, usage in own.items()), Usage())
        found: dict[str, Total] = {}
        for model, total in self.totals.items():
            more = total.usage - own[model]
            found[model] = replace(total, usage=total.usage - (more - (more - elsewhere)))
            elsewhere -= more
        return found

    def _called(self) -> dict[str, None]:
        return {call.model or UNNAMED_MODEL: None for call in self.calls.values()}

    def _used(self, model: str, total: Total | None, price: Price | None, before: Used, rate: Used | None) -> Used:
        """Return what the run used of one model: what its total names, and at least what its single calls did.

        A total may lack what came after it, and what a program used that was killed. One of a whole conversation that
        names no dollars says nothing that the single calls do not, and may have more runs in it than we know of.
        """
        calls = self._calls(model)
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
        return [call for call in self.calls.values() if (call.model or UNNAMED_MODEL) == model]

    def _usage(self, model: str) -> Usage:
        return sum((call.usage for call in self._calls(model)), Usage())

    def whole(self, before: Mapping[str, Used], agent_model: str) -> frozenset[str]:
        """Return the models whose cost it has told since the conversation began, earlier runs included."""
        named = ((model, model or agent_model, total) for model, total in self._totals(before, agent_model).items())
        return frozenset(
            name
            for model, name, total in named
            if total.whole and total.cost is not None
            if (Used(total.usage) - before.get(name, Used())).usage.covers(self._usage(model))
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
            round(self.cost + other.cost, DOLLAR_DECIMALS),
            self.unpriced + other.unpriced,
            self.calls + other.calls,
        )

    def __sub__(self, other: Used) -> Used:
        """Return what is more than the other, never less than nothing."""
        cost = max(round(self.cost - other.cost, DOLLAR_DECIMALS), 0.0)
        unpriced, calls = max(self.unpriced - other.unpriced, 0), max(self.calls - other.calls, 0)
        return Used(self.usage - other.usage, cost, unpriced, calls)

    @property
    def tokens(self) -> int:
        """Return all tokens together."""
        return self.usage.tokens


def priced(usage: Usage, cost: float | None, price: Price | None) -> Used:
    """Return tokens with their cost: the agent's own word first, then the price list, else unknown."""
    if cost is not None:
        return Used(usage, round(cost, DOLLAR_DECIMALS))
    if price is not None:
        return Used(usage, price.of(usage))
    return Used(usage, unpriced=usage.tokens)


def by_rate(used: Used, rate: Used) -> Used:
    """Return tokens without a price at the price of others, if somebody has said what all of those cost."""
    weight = _weight(rate.usage)
    if not used.unpriced or rate.unpriced or not rate.cost or not weight:
        return used
    # What has a price and what has none is not told apart: of one model it is all the one or all the other.
    return replace(used, cost=round(used.cost + rate.cost * _weight(used.usage) / weight, DOLLAR_DECIMALS), unpriced=0)


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
    usage = Usage(*(count // used.calls for count in used.usage.counts))
    return Used(usage, round(used.cost / used.calls, DOLLAR_DECIMALS), calls=1)


def used_in(spends: Iterable[Spend]) -> dict[str, Used]:
    """Return what rows say was used of each model."""
    found: dict[str, Used] = {}
    for row in spends:
        usage = Usage(row.input, row.output, row.cache_read, row.cache_write)
        found[row.model] = found.get(row.model, Used()) + Used(usage, row.cost, row.unpriced, row.calls)
    return found


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
        unpriced, cost = now.unpriced - said.unpriced, round(now.cost - said.cost, DOLLAR_DECIMALS)
    more = Used(new.usage, max(cost, 0.0), max(unpriced, 0), new.calls)
    counts = Counted(model=model, day=day, cost=more.cost, unpriced=more.unpriced, calls=more.calls, **vars(more.usage))
    return [*([] if more == Used() else [counts]), *_taken_back(rows, -min(cost, 0.0), -min(unpriced, 0))]


def _taken_back(rows: Sequence[Spend], cost: float, unpriced: int) -> list[Counted]:
    """Return the events that take dollars and tokens without a price back, from the newest day on."""
    events: list[Counted] = []
    for row in sorted(rows, key=lambda row: row.day, reverse=True):
        dollars, tokens = min(row.cost, cost), min(row.unpriced, unpriced)
        if dollars or tokens:
            events.append(Counted(model=row.model, day=row.day, cost=-dollars, unpriced=-tokens))
        cost, unpriced = round(cost - dollars, DOLLAR_DECIMALS), unpriced - tokens
    return events


def sane(used: Used) -> Used:
    """Return what an agent says that it used, without what no agent can have used."""
    usage = Usage(*(min(max(count, 0), MAX_TOKENS_OR_DOLLARS) for count in used.usage.counts))
    cost = min(max(used.cost, 0.0), float(MAX_TOKENS_OR_DOLLARS)) if math.isfinite(used.cost) else 0.0
    return Used(usage, cost, min(max(used.unpriced, 0), usage.tokens), used.calls)


def add(row: Spend, event: Counted) -> Spend:
    """Return a row with what an event counted besides."""
    counted = ("input", "output", "cache_read", "cache_write", "unpriced", "calls")
    sums = {name: getattr(row, name) + getattr(event, name) for name in counted}
    return replace(row, cost=round(row.cost + event.cost, DOLLAR_DECIMALS), **sums)
