"""covey settings: what is set, what holds where nothing is, and what it means."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, option
from covey.cli.frame.output import plain, reply, table
from covey.errors import NotFound


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


def _told(one: Json) -> str:
    rows = [(f"  {each['name']} = {each['value']}", _where(each), each["meaning"]) for each in one["settings"]]
    return f"[{plain(one['name'])}]  {one['title']}\n{table(rows)}"


def _where(setting: Json) -> str:
    if not setting["is_set"]:
        return "default"
    return "set" if setting["line"] is None else f"line {setting['line']}"


COMMAND = Command(
    "show every setting in force: its value, where it is set, and what it means",
    option("table", nargs="?", metavar="TABLE", help="show only one table, such as merge or budget"),
    settings,
    example="covey settings\ncovey settings merge",
    owner=True,
)
