"""covey settings: what is set, what holds where nothing is, and what it means."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.cli.show import plain, reply, table
from covey.errors import NotFound

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any


def _arguments(parser: Parser) -> None:
    parser.add_argument("table", nargs="?", metavar="TABLE", help="one table alone, such as merge or budget")


def settings(args: Namespace, client: Client) -> None:
    """Show every setting in force, what it means, and where it is set."""
    answer = client.ask("settings.show")
    shown = answer.value
    wanted = [each for each in shown["tables"] if args.table in (None, each["name"], each["name"].partition(".")[0])]
    if not wanted:
        names = ", ".join(dict.fromkeys(each["name"] for each in shown["tables"]))
        raise NotFound(f"There is no table {args.table} in the settings.", hint=f"There are {names}.")
    problem = [f"They make no sense as they are now, and those from before hold: {plain(shown['problem'])}", ""]
    parts = [_told(each) for each in wanted]
    reply(args, answer, "\n".join([f"Settings are changed in {plain(shown['file'])}", "",
                                   *(problem if shown["problem"] else []), "\n\n".join(parts)]))  # fmt: skip


def _told(one: dict[str, Any]) -> str:
    rows = [(f"  {each['name']} = {each['value']}", _where(each), each["meaning"]) for each in one["settings"]]
    return f"[{plain(one['name'])}]  {one['title']}\n{table(rows)}"


def _where(setting: dict[str, Any]) -> str:
    if not setting["is_set"]:
        return "default"
    return "set" if setting["line"] is None else f"line {setting['line']}"


COMMAND = Command(
    "show every setting in force: its value, where it is set, and what it means",
    _arguments,
    settings,
    example="covey settings\ncovey settings merge",
    owner=True,
)
