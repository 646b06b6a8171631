"""What runs cost, counted once and summed, and what one may spend, set aside in the transaction in which it begins."""

from __future__ import annotations

from collections.abc import Container, Mapping

from covey.app.context import Call
from covey.app.shapes.costs import CostRow, Costs, ListCosts, SpentToday, spent
from covey.app.verbs import verb
from covey.core import figures
from covey.core.board.tasks import Task
from covey.core.costs import budgets, spending
from covey.core.costs.budgets import Books, Limits, LimitUsedUp, Scope
from covey.core.costs.spending import Counted, Used
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import COVEY, Session
from covey.core.nouns import spend_row
from covey.core.people.rights import OWNER_ONLY
from covey.moments import calendar
from covey.values import dataclass

MODEL = 200
"""Characters of the name of a model."""
LAST = 20
"""The last runs that say what is usual."""


def count(call: Call, run: Run, used: Mapping[str, Used], day: str, *, whole: Container[str] = ()) -> None:
    """Let the rows of a run say what it has used of each model in all so far; what they say already is left alone.

    `whole`: the models of which it named what the whole conversation cost, and with that what an earlier run of it
    used that was ended before it could say what that cost.
    """
    known = call.tx.spends_of(run.id)
    told: dict[str, Used] = {}
    for name, each in used.items():
        model = "".join(letter for letter in name[:MODEL] if letter.isprintable())  # whatever an agent calls it
        told[model] = told.get(model, Used()) + spending.sane(each)
    for model, now in told.items():
        for event in spending.news(model, day, now, [row for row in known if row.model == model]):
            _put(call, run, event)
        if model in whole:
            _settle(call, run, model)


def _settle(call: Call, run: Run, model: str) -> None:
    """Note that tokens of earlier runs of the same conversation have a price: it was counted with this run."""
    now = call.tx.run(run.id)
    if now is None or not now.conversation:
        return
    for row in call.tx.earlier_unpriced(model, now.conversation, now.ordinal):
        before = call.tx.run(row.run)
        if before is not None:
            _put(call, before, Counted(model=model, day=row.day, unpriced=-row.unpriced))


def _put(call: Call, run: Run, event: Counted) -> None:
    before = call.tx.get(spending.Spend, run.id, event.model, event.day)
    call.tx.record(COVEY, run.id, event, before, spending.add(before or spend_row(run, event), event))


def before(call: Call, run: Run, conversation: str | None) -> dict[str, Used]:
    """Return what earlier runs of the same conversation used of each model."""
    if conversation is None:
        return {}
    return spending.used_in(call.tx.earlier_spends(conversation, run.ordinal))


def usual_call(call: Call, agent: str) -> Used:
    """Return what one call of a model usually costs an agent, nothing if that is not known."""
    return spending.one_call(call.tx.used_in_calls(agent, LAST))


def day_of(moment: float) -> str:
    """Return the day of a moment, as the calendar on the wall here shows it."""
    return calendar("%Y-%m-%d", moment)


def today(call: Call) -> SpentToday:
    """Return what was used today, and what may be."""
    day = day_of(call.tx.now)
    used, budget = call.tx.used(day=day), call.context.config.budget
    return SpentToday(
        day=day,
        **spent(used),
        without_price=call.tx.unpriced_models(since=day, until=day) if used.unpriced else [],
        budget=budget.day or None,
        budget_tokens=budget.tokens.day or None,
    )


def nothing_spent(call: Call) -> SpentToday:
    """Return what a session is told of today's cost, which is the owner's business."""
    day = day_of(call.tx.now)
    return SpentToday(day=day, **spent(Used()), without_price=[], budget=None, budget_tokens=None)


@verb("cost.list", "GET /api/costs", ListCosts, Costs, may=OWNER_ONLY)
def list_costs(call: Call, asked: ListCosts) -> Costs:
    """Sum what runs cost by task, session, agent, model, day or run, the most expensive first."""
    wanted = {"since": asked.since, "until": asked.until, "task": asked.task, "session": asked.session}
    found, (runs, used) = call.tx.sums_by(asked.by, **wanted)
    rows = sorted((_row(*each) for each in found), key=lambda row: (-row.cost, -row.tokens, row.key))
    total = _row("", runs, used)
    without = call.tx.unpriced_models(**wanted) if total.unpriced else []
    return Costs(rows[: asked.limit], total, without, len(rows) - len(rows[: asked.limit]))


def _row(key: str, runs: int, used: Used) -> CostRow:
    return CostRow.of(used.usage, key=key, runs=runs, **spent(used))


# What a run may spend


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
    usual, for_it = usual_call(call, session.agent or ""), spending.one_call(of_task)
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
        usual=call.tx.most_of_last_runs("cost", LAST),
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
        usual=call.tx.most_of_last_runs("tokens", LAST),
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
