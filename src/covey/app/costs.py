"""What runs cost: counted once, and summed by task, session, agent, model, day and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from covey.app.verbs import Call
from covey.core import fold, spending
from covey.core.runs import Run
from covey.core.sessions import COVEY
from covey.core.signals import Usage
from covey.core.spending import Counted, Used
from covey.store import rows

MODEL = 200
"""Characters of the name of a model."""
SUMS = "sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost), sum(unpriced)"


def count(call: Call, run: Run, used: Mapping[str, Used], day: str) -> None:
    """Let the rows of a run say what it has used of each model in all so far; what they say already is left alone."""
    known = call.tx.find(rows.SPENDS, "WHERE run = ?", (run.id,))
    told: dict[str, Used] = {}
    for name, each in used.items():
        model = _plain(name)
        told[model] = told.get(model, Used()) + spending.sane(each)
    for model, now in told.items():
        for event in spending.news(model, day, now, [row for row in known if row.model == model]):
            _put(call, run, event)


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
    earlier = "SELECT id FROM runs WHERE conversation = ? AND ordinal < ?"
    return spending.used_in(call.tx.find(rows.SPENDS, f"WHERE run IN ({earlier})", (conversation, run.ordinal)))


def spent(call: Call, *, task: str | None = None, session: str | None = None, day: str | None = None) -> Used:
    """Return what was used in all, for a task, by a session, on a day, or of what several of these have in common."""
    where, values = _where(task=task, session=session, day=day)
    return _used(call.tx.db.rows(f"SELECT {SUMS} FROM spends {where}", values)[0])


def _where(**wanted: str | None) -> tuple[str, list[Any]]:
    terms = {name: value for name, value in wanted.items() if value is not None}
    where = f"WHERE {' AND '.join(f'{name} = ?' for name in terms)}" if terms else ""
    return where, list(terms.values())


def _used(sums: Sequence[Any]) -> Used:
    """Return the sums of a query, which are null if there was nothing to sum."""
    if sums[0] is None:
        return Used()
    return Used(Usage(*sums[:4]), round(sums[4], spending.DIGITS), sums[5])
