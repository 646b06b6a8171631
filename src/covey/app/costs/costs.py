"""What runs cost: counted once, and summed by task, session, agent, model, day and run."""

from __future__ import annotations

from collections.abc import Container, Mapping

from covey.app.context import Call
from covey.app.shapes.costs import CostRow, Costs, ListCosts, SpentToday, spent
from covey.app.verbs import verb
from covey.core.costs import spending
from covey.core.costs.spending import Counted, Used
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import COVEY
from covey.core.nouns import spend_row
from covey.core.people.rights import OWNER_ONLY
from covey.moments import calendar

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
