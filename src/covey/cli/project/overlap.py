"""covey overlap: where open branches come close, and the files at which they do so again and again."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of
from covey.cli.show import age, first_line, plain, reply, table
from covey.core.figures import one

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

SHOWN = 3
"""Files of an overlap that are shown in a line."""


def _arguments(parser: Parser) -> None:
    parser.add_argument("task", nargs="?", metavar="TASK", help="only what overlaps with this task")


def show(args: Namespace, client: Client) -> None:
    """Show the overlaps and the hot files."""
    answer = client.ask("overlap.list", fields=body_of(args, "task"))
    found = answer.value
    parts = [_one(found["overlaps"], args.task) if args.task else _all(found["overlaps"])]
    if found["hot"]:
        parts.append("Hot: tasks on these start one after another.\n" + _hot(found["hot"]))
    reply(args, answer, "\n\n".join(parts))


def _all(overlaps: list[dict[str, Any]]) -> str:
    if not overlaps:
        return "No open branches overlap."
    lines = ((each["level"], _side(each, "one"), _side(each, "other"), _few(each["files"])) for each in overlaps)
    return table(lines, words=0)


def _one(overlaps: list[dict[str, Any]], task: str) -> str:
    """Return the overlaps of one task whole: who the others are, and every file."""
    if not overlaps:
        return f"{task} overlaps with no open branch."
    lines = []
    for each in overlaps:
        side = "other" if each["one"] == task else "one"
        title = f": {first_line(each[f'{side}_title'], 60)}" if each[f"{side}_title"] else ""
        lines.append(f"{each['level']} with {_side(each, side)}{title}, since {age(each['found'])}")
        lines += [f"  {plain(path)}" for path in each["files"]]
    return "\n".join(lines)


def _side(overlap: dict[str, Any], side: str) -> str:
    session = overlap[f"{side}_session"]
    return f"{overlap[side]} ({session})" if session else str(overlap[side])


def _few(files: list[str]) -> str:
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return ", ".join(files[:SHOWN]) + more


def _hot(files: list[dict[str, Any]]) -> str:
    return table(
        (
            f"  {file['path']}",
            one(file["collisions"], "collision"),
            f"hot since {age(file['since'])}",
            f"last {age(file['last'])}",
        )
        for file in files
    )


COMMAND = Command(
    "show where open branches come close: in a file, at the same lines, or in conflict; and files that are hot",
    _arguments,
    show,
    example="covey overlap T-3",
)
