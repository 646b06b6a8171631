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


@dataclass
class Bill:
    """What a run has said of its spending so far; made again from its output whenever it is lost."""

    calls: dict[str, Spent] = field(default_factory=dict)
    totals: dict[str, Total] = field(default_factory=dict)
    summed: dict[str, Spent] = field(default_factory=dict)
    """The calls that are in a total; how large one can be is known from them too."""

    def take(self, signal: Spent | Total) -> None:
        """Take one word about spending in; of the same call or model, the last one counts."""
        model = signal.model or UNKNOWN
        if isinstance(signal, Total):
            self.totals[model] = signal
            for name in [name for name, call in self.calls.items() if (call.model or UNKNOWN) == model]:
                self.summed[name] = self.calls.pop(name)
        else:
            self.calls[signal.call] = signal

    def by_model(self, prices: Mapping[str, Price], before: Mapping[str, Used], agent_model: str) -> dict[str, Used]:
        """Return what the run used of each model; `before`: what earlier runs of the same conversation did.

        A model that the agent does not name is the one that it was told to use.
        """
        used: dict[str, Used] = {}
        for model, total in self.totals.items():
            name = model or agent_model
            all_of_it = priced(total.usage, total.cost, prices.get(name))
            used[name] = self._since(model, all_of_it, before.get(name, Used())) if total.whole else all_of_it
        for call in self.calls.values():
            name = call.model or agent_model
            used[name] = used.get(name, Used()) + priced(call.usage, call.cost, prices.get(name))
        return used

    def _since(self, model: str, all_of_it: Used, before: Used) -> Used:
        """Return what a total has in it besides what earlier runs used: the run's own calls at least.

        A program that was killed may have forgotten what it used, and then the total of the next one lacks that.
        """
        rest, own = all_of_it - before, self._summed(model)
        if rest.usage.covers(own):
            return rest
        share = min(own.tokens / max(all_of_it.tokens, 1), 1.0)
        cost, unpriced = round(all_of_it.cost * share, DIGITS), round(all_of_it.unpriced * share)
        return Used(rest.usage.or_more(own), max(rest.cost, cost), max(rest.unpriced, unpriced))

    def _summed(self, model: str) -> Usage:
        """Return the tokens of the run's own calls of a model that its total has in it."""
        return sum((call.usage for call in self.summed.values() if (call.model or UNKNOWN) == model), Usage())

    def whole(self, before: Mapping[str, Used], agent_model: str) -> frozenset[str]:
        """Return the models of which it said what they cost since the conversation began, with all earlier runs."""
        named = ((model, model or agent_model, total) for model, total in self.totals.items())
        return frozenset(
            name
            for model, name, total in named
            if total.whole and total.cost is not None
            if (Used(total.usage) - before.get(name, Used())).usage.covers(self._summed(model))
        )

    def largest_call(self, prices: Mapping[str, Price], agent_model: str) -> Used:
        """Return the most dollars, and the most tokens, that one call took, as far as single calls are known."""
        calls = [
            priced(call.usage, call.cost, prices.get(call.model or agent_model))
            for call in (*self.summed.values(), *self.calls.values())
        ]
        longest = max((each.usage for each in calls), key=lambda usage: usage.tokens, default=Usage())
        return Used(longest, max((each.cost for each in calls), default=0.0))


@dataclass(frozen=True)
class Used:
    """Tokens, dollars, and tokens without a price."""

    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    unpriced: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(self.usage + other.usage, round(self.cost + other.cost, DIGITS), self.unpriced + other.unpriced)

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
        return Used(usage, cost, max(self.unpriced - other.unpriced, 0))

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


def whole(used: Iterable[Used]) -> Used:
    """Return the sum."""
    total = Used()
    for each in used:
        total += each
    return total


def used_in(spends: Iterable[Spend]) -> dict[str, Used]:
    """Return what rows say was used of each model."""
    found: dict[str, Used] = {}
    for row in spends:
        usage = Usage(row.input, row.output, row.cache_read, row.cache_write)
        found[row.model] = found.get(row.model, Used()) + Used(usage, row.cost, row.unpriced)
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
    )


def news(model: str, day: str, now: Used, rows: Sequence[Spend]) -> list[Counted]:
    """Return what makes the rows of a run and model say what is known now, none of them ever less than nothing.

    Who reads a run's output again knows less than the rows for a while, and changes nothing. Tokens only grow; dollars
    that were guessed too high, and tokens that have got a price since, are taken back from the days that have them.
    """
    said = used_in(rows).get(model, Used())
    new = now - said
    knows_all = said - Used(now.usage, said.cost, said.unpriced) == Used()
    if not (knows_all or new.tokens):
        return []
    unpriced, cost = min(new.unpriced, new.tokens), new.cost
    if knows_all and now.unpriced <= said.unpriced:
        unpriced, cost = now.unpriced - said.unpriced, round(now.cost - said.cost, DIGITS)
    more = Used(new.usage, max(cost, 0.0), max(unpriced, 0))
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
    return Used(usage, cost, min(max(used.unpriced, 0), usage.tokens))


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
    )
