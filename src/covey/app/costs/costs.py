"""What runs cost: counted once, and summed by task, session, agent, model, day and run."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from covey.app.shapes.costs import CostRow, Costs, ListCosts, SpentToday
from covey.app.verbs import Call, verb
from covey.core import fold, spending
from covey.core.rights import OWNER_ONLY
from covey.core.runs import Run
from covey.core.sessions import COVEY
from covey.core.signals import Usage
from covey.core.spending import Counted, Used
from covey.moments import calendar
from covey.store import rows

MODEL = 200
"""Characters of the name of a model."""
LAST = 20
"""The last runs that say what is usual."""
FEW = 500
"""Keys that fit into one statement."""
_SUMS = "sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost), sum(unpriced), sum(calls)"


_EARLIER = (
    "SELECT id FROM runs WHERE conversation = ? AND ordinal < ? AND NOT coalesce(code = -9 OR outcome = 'lost', 0)"
)
"""Earlier runs of a conversation, whose share its total holds; of one that was killed, no agent knows it any more."""


def count(call: Call, run: Run, used: Mapping[str, Used], day: str, *, whole: Container[str] = ()) -> None:
    """Let the rows of a run say what it has used of each model in all so far; what they say already is left alone.

    `whole`: the models of which it named what the whole conversation cost, and with that what an earlier run of it
    used that was ended before it could say what that cost.
    """
    known = call.tx.find(rows.SPENDS, "WHERE run = ?", (run.id,))
    told: dict[str, Used] = {}
    for name, each in used.items():
        model = _plain(name)
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
    where = f"WHERE model = ? AND unpriced > 0 AND run IN ({_EARLIER})"
    for row in call.tx.find(rows.SPENDS, where, (model, now.conversation, now.ordinal)):
        before = call.tx.run(row.run)
        if before is not None:
            _put(call, before, Counted(model=model, day=row.day, unpriced=-row.unpriced))


def _plain(model: str) -> str:
    """Return the name of a model as it is kept, whatever an agent calls it."""
    return "".join(letter for letter in model[:MODEL] if letter.isprintable())


def _put(call: Call, run: Run, event: Counted) -> None:
    before = call.tx.get(rows.SPENDS, run.id, event.model, event.day)
    after = spending.add(before or fold.spend_row(run, event), event)
    if before is None:
        call.tx.insert(rows.SPENDS, after)
    else:
        call.tx.update(rows.SPENDS, before, after)
    call.tx.append(COVEY, run.id, event, after)


def before(call: Call, run: Run, conversation: str | None) -> dict[str, Used]:
    """Return what earlier runs of the same conversation used of each model."""
    if conversation is None:
        return {}
    return spending.used_in(call.tx.find(rows.SPENDS, f"WHERE run IN ({_EARLIER})", (conversation, run.ordinal)))


def of_last_runs(call: Call, agent: str) -> dict[str, Used]:
    """Return what the last runs of an agent used of each model of which the price is known."""
    sql = (
        f"SELECT model, {_SUMS} FROM spends WHERE unpriced = 0 AND cost > 0 AND run IN"
        " (SELECT id FROM runs WHERE agent = ? AND outcome IS NOT NULL ORDER BY ordinal DESC LIMIT ?) GROUP BY model"
    )
    return {model: _used(sums) for model, *sums in call.tx.db.rows(sql, (agent, LAST))}


def usual_call(call: Call, agent: str) -> Used:
    """Return what one call of a model usually costs an agent, nothing if that is not known."""
    sql = (
        f"SELECT {_SUMS} FROM spends WHERE calls > 0 AND run IN"
        " (SELECT id FROM runs WHERE agent = ? AND outcome IS NOT NULL ORDER BY ordinal DESC LIMIT ?)"
    )
    return spending.one_call(_used(call.tx.db.rows(sql, (agent, LAST))[0]))


def spent(call: Call, *, task: str | None = None, session: str | None = None, day: str | None = None) -> Used:
    """Return what was used in all, for a task, by a session, on a day, or of what several of these have in common."""
    where, values = _where(task=task, session=session, day=day)
    return _used(call.tx.db.rows(f"SELECT {_SUMS} FROM spends {where}", values)[0])


def spent_by(call: Call, column: str, keys: Iterable[str], *, day: str | None = None) -> dict[str, Used]:
    """Return what was used by each of some tasks, sessions or runs; one that used nothing is not in it."""
    found: dict[str, Used] = {}
    wanted = list(keys)
    for start in range(0, len(wanted), FEW):
        part = wanted[start : start + FEW]
        where = f"{column} IN ({', '.join('?' * len(part))})" + ("" if day is None else " AND day = ?")
        sql = f"SELECT {column}, {_SUMS} FROM spends WHERE {where} GROUP BY {column}"
        values = part if day is None else [*part, day]
        found |= {key: _used(sums) for key, *sums in call.tx.db.rows(sql, values)}
    return found


def spent_by_sessions(call: Call, day: str) -> dict[str, Used]:
    """Return what each session used on a day."""
    sql = f"SELECT session, {_SUMS} FROM spends WHERE day = ? GROUP BY session"
    return {session: _used(sums) for session, *sums in call.tx.db.rows(sql, (day,))}


def day_of(moment: float) -> str:
    """Return the day of a moment, as the calendar on the wall here shows it."""
    return calendar("%Y-%m-%d", moment)


def today(call: Call) -> SpentToday:
    """Return what was used today, and what may be."""
    day = day_of(call.tx.now)
    used, budget = spent(call, day=day), call.house.config.budget
    return SpentToday(
        day=day,
        cost=used.cost,
        tokens=used.tokens,
        unpriced=used.unpriced,
        without_price=_without_price(call, ["day = ?"], [day]) if used.unpriced else [],
        budget=budget.day or None,
        budget_tokens=budget.tokens.day or None,
    )


def nothing_spent(call: Call) -> SpentToday:
    """Return what a session is told of today's cost, which is the owner's business."""
    day = day_of(call.tx.now)
    return SpentToday(day=day, cost=0.0, tokens=0, unpriced=0, without_price=[], budget=None, budget_tokens=None)


@verb("cost.list", "GET /api/costs", ListCosts, Costs, may=OWNER_ONLY)
def list_costs(call: Call, asked: ListCosts) -> Costs:
    """Sum what runs cost by task, session, agent, model, day or run, the most expensive first."""
    wanted = (
        ("day >= ?", asked.since),
        ("day <= ?", asked.until),
        ("task = ?", asked.task),
        ("session = ?", asked.session),
    )
    terms, values = [term for term, value in wanted if value], [value for _, value in wanted if value]
    where = f"WHERE {' AND '.join(terms)}" if terms else ""
    sql = f"SELECT {asked.by}, count(DISTINCT run), {_SUMS} FROM spends {where} GROUP BY {asked.by}"
    found = [_row(key, runs, _used(sums)) for key, runs, *sums in call.tx.db.rows(sql, values)]
    found.sort(key=lambda row: (-row.cost, -row.tokens, row.key))
    runs, *sums = call.tx.db.rows(f"SELECT count(DISTINCT run), {_SUMS} FROM spends {where}", values)[0]
    total = _row("", runs, _used(sums))
    without = _without_price(call, terms, values) if total.unpriced else []
    return Costs(found[: asked.limit], total, without, len(found) - len(found[: asked.limit]))


def _without_price(call: Call, terms: list[str], values: Sequence[Any]) -> list[str]:
    """Return the models of which nobody knows what they cost."""
    where = " AND ".join([*terms, "unpriced > 0"])
    return [
        model for (model,) in call.tx.db.rows(f"SELECT DISTINCT model FROM spends WHERE {where} ORDER BY 1", values)
    ]


def _row(key: str, runs: int, used: Used) -> CostRow:
    return CostRow(
        key=key,
        runs=runs,
        input=used.usage.input,
        output=used.usage.output,
        cache_read=used.usage.cache_read,
        cache_write=used.usage.cache_write,
        tokens=used.tokens,
        cost=used.cost,
        unpriced=used.unpriced,
    )


def _where(**wanted: str | None) -> tuple[str, list[Any]]:
    terms = {name: value for name, value in wanted.items() if value is not None}
    where = f"WHERE {' AND '.join(f'{name} = ?' for name in terms)}" if terms else ""
    return where, list(terms.values())


def _used(sums: Sequence[Any]) -> Used:
    """Return the sums of a query, which are null if there was nothing to sum."""
    if sums[0] is None:
        return Used()
    return Used(Usage(*sums[:4]), round(sums[4], spending.DIGITS), sums[5], sums[6])
