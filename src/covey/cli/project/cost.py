"""covey cost: what the agents cost, and how that is said elsewhere."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, whole_number
from covey.cli.show import as_json, plain, table
from covey.core.figures import money, one

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

BY = ("task", "session", "agent", "model", "day", "run")
MODELS = 3
"""Models without a price that are named."""


def hint(unpriced: int, models: Sequence[str]) -> str:
    """Return what to do about tokens of which nobody knows what they cost."""
    named = ", ".join(f'[prices."{plain(model)}"]' for model in models[:MODELS])
    more = f" and {len(models) - MODELS} more" if len(models) > MODELS else ""
    return f"plus {one(unpriced, 'token')} without a price: set {named}{more} in covey.toml"


def today(spent: dict[str, Any]) -> list[str]:
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


def _arguments(parser: Parser) -> None:
    parser.add_argument("--by", choices=BY, default="task", help="what is summed (default: task)")
    parser.add_argument("--since", metavar="DAY", help="from this day on, for example 2026-01-31")
    parser.add_argument("--until", metavar="DAY", help="until the end of this day")
    parser.add_argument("--task", metavar="ID", help="only of this task")
    parser.add_argument("--session", metavar="NAME", help="only of this session")
    parser.add_argument("--limit", type=whole_number(1, 1000), metavar="N", help="at most this many lines")


def cost(args: Namespace, client: Client) -> None:
    """Show what the agents cost, summed."""
    answer = client.ask("cost.list", fields=body_of(args, "by", "since", "until", "task", "session", "limit"))
    if args.json:
        as_json(answer)
        return
    value = answer.value
    found = sorted(value["rows"], key=lambda row: row["key"]) if args.by == "day" else value["rows"]
    if not found:
        print("Nothing was spent.")
        return
    print(table([(args.by, "cost", "runs", "tokens", "input", "output", "cache read", "cache write"),
                 *(_cells(row) for row in found),
                 *([("all", *_cells(value["total"])[1:])] if len(found) > 1 or value["more"] else [])]))  # fmt: skip
    if value["more"]:
        print(f"... and {value['more']:,} more")
    if value["total"]["unpriced"]:
        print(hint(value["total"]["unpriced"], value["without_price"]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    unpriced = row["unpriced"] and row["unpriced"] == row["tokens"] and not row["cost"]
    cost = "no price" if unpriced else money(row["cost"]) + (" + no price" if row["unpriced"] else "")
    counts = (row[name] for name in ("runs", "tokens", "input", "output", "cache_read", "cache_write"))
    return (row["key"] or "(no name)", cost, *(f"{count:,}" for count in counts))


COMMAND = Command(
    "show what the agents cost: dollars and tokens by task, session, agent, model, day or run",
    _arguments,
    cost,
    example="covey cost --by model --since 2026-01-31\ncovey cost --by session",
)
