"""Budgets at work: what a run may spend is set aside in the transaction in which it begins."""

from __future__ import annotations

from covey.app import costs
from covey.app.verbs import Call
from covey.core import budgets, figures
from covey.core.budgets import Books, Limits, Scope, Spent
from covey.core.sessions import Session
from covey.core.spending import one_call
from covey.core.tasks import Task
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

    spent: Spent
    what: str


def reserve(call: Call, session: Session, task: Task, day: Day) -> Reserved | Refusal:
    """Return what a run on a task may spend, or which limit is used up."""
    set_money, set_tokens = call.house.config.budget, call.house.config.budget.tokens
    own = min((each for each in (task.budget or 0.0, set_money.task) if each > 0), default=0.0)
    money = Limits(run=set_money.run, task=own, session=set_money.session, day=set_money.day)
    tokens = Limits(run=set_tokens.run, task=set_tokens.task, session=set_tokens.session, day=set_tokens.day)
    if money == tokens == Limits():
        return Reserved()
    of_task = costs.spent(call, task=task.id)
    of_session = costs.spent(call, session=session.name, day=day.name)
    of_day = costs.spent(call, day=day.name)
    open_money, open_tokens = _aside(call)
    # What calls for this very task have cost says more, if they cost more.
    usual, for_it = costs.usual_call(call, session.agent or ""), one_call(of_task)
    books = Books(
        task=of_task.cost + _unknown(call, task=task.id),
        session=of_session.cost + _unknown(call, session=session.name, day=day.name),
        day=of_day.cost + _unknown(call, day=day.name),
        aside=open_money,
        usual=_usual(call, "cost"),
        call=max(usual.cost, for_it.cost),
    )
    granted = budgets.grant(money, books)
    if isinstance(granted, Spent):
        return Refusal(granted, _words(granted, task, session, "dollars"))
    books = Books(
        task=of_task.tokens,
        session=of_session.tokens,
        day=of_day.tokens,
        aside=open_tokens,
        usual=_usual(call, "input + output + cache_read + cache_write"),
        call=max(usual.tokens, for_it.tokens),
    )
    in_tokens = budgets.grant(tokens, books)
    if isinstance(in_tokens, Spent):
        return Refusal(in_tokens, _words(in_tokens, task, session, "tokens"))
    return Reserved(granted.amount, None if in_tokens.amount is None else int(in_tokens.amount))


def _aside(call: Call) -> tuple[float, float]:
    """Return what open runs have set aside and not spent."""
    money = tokens = 0.0
    for run in call.tx.open_runs():
        if run.money is None and run.tokens is None:
            continue
        used = call.tx.db.rows(
            "SELECT sum(cost), sum(input + output + cache_read + cache_write) FROM spends WHERE run = ?", (run.id,)
        )[0]
        money += max((run.money or 0.0) - (used[0] or 0.0), 0.0)
        tokens += max((run.tokens or 0) - (used[1] or 0), 0.0)
    return money, tokens


def _unknown(call: Call, **of: str) -> float:
    """Return what was set aside for ended runs of which nobody knows the cost: all of it counts as spent."""
    where = " AND ".join(f"{name} = ?" for name in of)
    sql = (
        "SELECT sum(money) FROM runs WHERE outcome IS NOT NULL AND money IS NOT NULL"
        f" AND id IN (SELECT run FROM spends WHERE unpriced > 0 AND {where})"
    )
    return float(call.tx.db.rows(sql, tuple(of.values()))[0][0] or 0.0)


def _usual(call: Call, column: str) -> float:
    sql = (
        f"SELECT sum({column}) FROM (SELECT id FROM runs WHERE outcome IS NOT NULL ORDER BY ordinal DESC LIMIT ?) AS r"
        " JOIN spends ON spends.run = r.id GROUP BY r.id"
    )
    return max((float(total or 0.0) for (total,) in call.tx.db.rows(sql, (costs.LAST,))), default=0.0)


def _words(spent: Spent, task: Task, session: Session, unit: str) -> str:
    whose = {Scope.TASK: task.id, Scope.SESSION: f"{session.name} today", Scope.DAY: "today"}[spent.scope]
    figure = figures.money if unit == "dollars" else _whole
    left, limit, call = figure(spent.left), figure(spent.limit), figure(spent.call)
    limit += "" if unit == "dollars" else f" {unit}"
    if spent.waits:
        return f"What is left of the {limit} of {whose} is set aside for runs at work."
    own = unit == "dollars" and task.budget == spent.limit
    how = f"covey task edit {task.id} --budget gives it more" if own else "[budget] in covey.toml says how much"
    are = "is" if unit == "dollars" else "are"
    more = f" {how}." if spent.scope is Scope.TASK else ""
    short = f": less than the {call} that a call of {session.agent} usually costs" if spent.call else ""
    return f"Of the {limit} of {whose}, {left} {are} left{short}.{more}"


def _whole(number: float) -> str:
    return figures.count(round(number))
