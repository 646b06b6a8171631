"""Budgets at work: what a run may spend is set aside in the transaction in which it begins."""

from __future__ import annotations

from covey.app.context import Call
from covey.app.costs import costs
from covey.core import figures
from covey.core.board.tasks import Task
from covey.core.costs import budgets
from covey.core.costs.budgets import Books, Limits, LimitUsedUp, Scope
from covey.core.costs.spending import one_call
from covey.core.fleet.sessions import Session
from covey.values import dataclass


@dataclass(frozen=True)
class Day:
    """A day of the person in charge: its name, and when it ends in seconds since 1970."""

    name: str
    ends: float


def day_at(moment: float) -> Day:
    """Return the day of a moment, where the person in charge is."""
    from datetime import datetime, timedelta  # few commands ask when a day ends, and all start with this module

    now = datetime.fromtimestamp(moment).astimezone()
    ends = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return Day(now.date().isoformat(), ends.timestamp())


@dataclass(frozen=True)
class Reserved:
    """What a run may spend, None for each that has no limit."""

    money: float | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class Refusal:
    """The limit that keeps a run from starting, in words too."""

    spent: LimitUsedUp
    what: str


def reserve(call: Call, session: Session, task: Task, day: Day) -> Reserved | Refusal:
    """Return what a run on a task may spend, or which limit is used up."""
    set_money, set_tokens = call.context.config.budget, call.context.config.budget.tokens
    own = min((each for each in (task.budget or 0.0, set_money.task) if each > 0), default=0.0)
    money = Limits(run=set_money.run, task=own, session=set_money.session, day=set_money.day)
    tokens = Limits(run=set_tokens.run, task=set_tokens.task, session=set_tokens.session, day=set_tokens.day)
    if money == tokens == Limits():
        return Reserved()
    of_task = call.tx.used(task=task.id)
    of_session = call.tx.used(session=session.name, day=day.name)
    of_day = call.tx.used(day=day.name)
    open_money, open_tokens = _aside(call)
    # What calls for this very task have cost says more, if they cost more.
    usual, for_it = costs.usual_call(call, session.agent or ""), one_call(of_task)
    guessed = {
        Scope.TASK: call.tx.reserved_without_price(task=task.id),
        Scope.SESSION: call.tx.reserved_without_price(session=session.name, day=day.name),
        Scope.DAY: call.tx.reserved_without_price(day=day.name),
    }
    books = Books(
        task=of_task.cost + guessed[Scope.TASK],
        session=of_session.cost + guessed[Scope.SESSION],
        day=of_day.cost + guessed[Scope.DAY],
        aside=open_money,
        usual=call.tx.most_of_last_runs("cost", costs.LAST),
        call=max(usual.cost, for_it.cost),
    )
    granted = budgets.grant(money, books)
    if isinstance(granted, LimitUsedUp):
        return Refusal(granted, _words(granted, task, session, "dollars", guessed[granted.scope]))
    books = Books(
        task=of_task.tokens,
        session=of_session.tokens,
        day=of_day.tokens,
        aside=open_tokens,
        usual=call.tx.most_of_last_runs("tokens", costs.LAST),
        call=max(usual.tokens, for_it.tokens),
    )
    in_tokens = budgets.grant(tokens, books)
    if isinstance(in_tokens, LimitUsedUp):
        return Refusal(in_tokens, _words(in_tokens, task, session, "tokens"))
    return Reserved(granted.amount, None if in_tokens.amount is None else int(in_tokens.amount))


def _aside(call: Call) -> tuple[float, float]:
    """Return what open runs have set aside and not spent."""
    money = tokens = 0.0
    for run in call.tx.open_runs():
        if run.money is None and run.tokens is None:
            continue
        cost, used, _ = call.tx.spent("run", run.id)
        money += max((run.money or 0.0) - cost, 0.0)
        tokens += max((run.tokens or 0) - used, 0.0)
    return money, tokens


def _words(spent: LimitUsedUp, task: Task, session: Session, unit: str, guessed: float = 0.0) -> str:
    whose = {Scope.TASK: task.id, Scope.SESSION: f"{session.name} today", Scope.DAY: "today"}[spent.scope]
    figure = figures.money if unit == "dollars" else lambda number: figures.count(round(number))
    left, limit, call = figure(spent.left), figure(spent.limit), figure(spent.call)
    limit += "" if unit == "dollars" else f" {unit}"
    if spent.waits:
        return f"What is left of the {limit} of {whose} is set aside for runs at work."
    own = unit == "dollars" and task.budget == spent.limit
    how = f"covey task edit {task.id} --budget gives it more" if own else "[budget] in covey.toml says how much"
    are = "is" if unit == "dollars" else "are"
    more = f" {how}." if spent.scope is Scope.TASK else ""
    short = f": less than the {call} that a call of {session.agent} usually costs" if spent.call else ""
    unknown = f" {figure(guessed)} of it counts for ended runs of which nobody knows the price." if guessed else ""
    return f"Of the {limit} of {whose}, {left} {are} left{short}.{unknown}{more}"
