"""covey overlap: where open branches come close, and the files at which they do so again and again."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.frame.client import Json
from covey.cli.frame.command import Command, asking, option
from covey.cli.frame.output import age, first_line, plain, some, table
from covey.core.figures import one

MAX_FILES_SHOWN = 3
"""Files of an overlap that are shown in a line."""


def _shown(found: Json, args: Namespace) -> str:
    """Return the overlaps and the hot files."""
    parts = [_one(found["overlaps"], args.task) if args.task else _all(found["overlaps"])]
    if found["hot"]:
        parts.append("Hot: tasks on these start one after another.\n" + _hot(found["hot"]))
    return "\n\n".join(parts)


def _all(overlaps: list[Json]) -> str:
    if not overlaps:
        return "No open branches overlap."
    shown = ((each, some(each["files"], MAX_FILES_SHOWN)) for each in overlaps)
    return table(((each["level"], _side(each, "one"), _side(each, "other"), files) for each, files in shown), words=0)


def _one(overlaps: list[Json], task: str) -> str:
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


def _side(overlap: Json, side: str) -> str:
    session = overlap[f"{side}_session"]
    return f"{overlap[side]} ({session})" if session else str(overlap[side])


def _hot(files: list[Json]) -> str:
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
    "show which open branches change the same files or lines, or conflict, and which files are hot",
    option("task", nargs="?", metavar="TASK", help="only what overlaps with this task"),
    asking("overlap.list", "task", show=_shown),
    example="covey overlap T-3",
)
