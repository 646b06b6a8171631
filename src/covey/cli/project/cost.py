"""covey cost: what the agents cost, and how that is said elsewhere."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from covey.cli.frame.client import Json
from covey.cli.frame.command import Command, asking, option, whole_number
from covey.cli.frame.output import plain, some, table
from covey.core.figures import money, one

BY = ("task", "session", "agent", "model", "day", "run")
MAX_MODELS_NAMED = 3
"""Models without a price that are named."""


def hint(unpriced: int, models: Sequence[str]) -> str:
    """Return what to do about tokens whose price is not known."""
    named = some([f'[prices."{plain(model)}"]' for model in models], MAX_MODELS_NAMED)
    return f"plus {one(unpriced, 'token')} without a price: set {named} in covey.toml"


def today(spent: Json) -> list[str]:
    """Return what was spent today, and of how much, in lines; none if there is nothing to say."""
    cost, tokens, unpriced = spent["cost"], spent["tokens"], spent["unpriced"]
    lines: list[str] = []
    if spent["budget"] is not None:
        lines.append(f"{money(cost)} of {money(spent['budget'])} today")
    elif cost:
        lines.append(f"{money(cost)} today")
    if spent["budget_tokens"] is not None:
        lines.append(f"{tokens:,} of {one(spent['budget_tokens'], 'token')} today")
    elif tokens:
        lines.append(one(tokens, "token") + ("" if lines else " today"))
    return [", ".join(lines)] * bool(lines) + [hint(unpriced, spent["without_price"])] * bool(unpriced)


def _shown(value: Json, args: Namespace) -> str:
    """Return what the agents cost, summed."""
    found = sorted(value["rows"], key=lambda row: row["key"]) if args.by == "day" else value["rows"]
    if not found:
        return "Nothing was spent."
    lines = [table([(args.by, "cost", "runs", "tokens", "input", "output", "cache read", "cache write"),
                 *(_cells(row) for row in found),
                 *([("all", *_cells(value["total"])[1:])] if len(found) > 1 or value["more"] else [])])]  # fmt: skip
    lines += [f"... and {value['more']:,} more"] if value["more"] else []
    lines += [hint(value["total"]["unpriced"], value["without_price"])] if value["total"]["unpriced"] else []
    return "\n".join(lines)


def _cells(row: Json) -> tuple[str, ...]:
    counts = (row[name] for name in ("runs", "tokens", "input", "output", "cache_read", "cache_write"))
    return (row["key"] or "(no name)", _dollars(row), *(f"{count:,}" for count in counts))


def _dollars(row: Json) -> str:
    if not row["unpriced"]:
        return money(row["cost"])
    if row["unpriced"] == row["tokens"] and not row["cost"]:
        return "no price"
    return f"{money(row['cost'])} + no price"


COMMAND = Command(
    "show what the agents cost: dollars and tokens by task, session, agent, model, day or run",
    (
        option("--by", choices=BY, default="task", help="group the costs by this (default: task)"),
        option("--since", metavar="DAY", help="from this day on, for example 2026-01-31"),
        option("--until", metavar="DAY", help="until the end of this day"),
        option("--task", metavar="ID", help="only this task's costs"),
        option("--session", metavar="NAME", help="only this session's costs"),
        option("--limit", type=whole_number(1, 1000), metavar="N", help="show at most N lines"),
    ),
    asking("cost.list", "by", "since", "until", "task", "session", "limit", show=_shown),
    example="covey cost --by model --since 2026-01-31\ncovey cost --by session",
)
