"""What is asked and answered about what was spent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from covey.app.shapes.forms import Answered, Asked, Limit, Name, TaskId, completed, fields_of, form
from covey.core.costs.spending import Used
from covey.core.fleet.signals import Usage

Day = Annotated[str, form(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "must be a day, such as 2026-01-31")]


class ListCosts(Asked, frozen=True, kw_only=True):
    """By what costs are summed, and which: from a day on, until a day, of a task, of a session."""

    by: Literal["task", "session", "agent", "model", "day", "run"] = "task"
    since: Day | None = None
    until: Day | None = None
    task: TaskId | None = None
    session: Name | None = None
    limit: Limit = 200


def spent(used: Used) -> dict[str, Any]:
    """Return what was used as the fields of an answer."""
    return {"cost": used.cost, "tokens": used.tokens, "unpriced": used.unpriced}


@completed(fields_of(Usage))
class CostRow(Answered, frozen=True, kw_only=True):
    """What the runs of one task, session, agent, model or day cost; `cost` is without that of `unpriced` tokens."""

    key: str
    runs: int
    cost: float
    tokens: int
    unpriced: int


class Costs(Struct, frozen=True):
    """Costs, the largest first, and their sum; `without_price`: the models that have none, `more`: rows left out."""

    rows: list[CostRow]
    total: CostRow
    without_price: list[str]
    more: int


class SpentToday(Answered, frozen=True, kw_only=True):
    """What was used today in all, and what may be, if there is a limit."""

    day: str
    cost: float
    tokens: int
    unpriced: int
    without_price: list[str]
    budget: float | None
    budget_tokens: int | None
