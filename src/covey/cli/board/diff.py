"""covey task diff: what the work for a task changes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import flag, option
from covey.cli.frame.output import as_json, colourful, some
from covey.core.figures import one
from covey.errors import NotFound
from covey.plain import plain

MAX_BAR_MARKS = 40
"""Marks that tell how much of a file changed, at most."""
_COLOURS = {"+": "32", "-": "31", "@": "36"}


OPTIONS = (
    option("id", metavar="ID", help="the task"),
    option("path", nargs="?", metavar="PATH", help="only this file"),
    flag("--stat", "only list the files and how much changed in each"),
    flag("--working", "include changes that are not committed yet"),
    flag("--conflicts", "show what it would conflict with instead of the changes"),
)


def diff(args: Namespace, client: Client) -> None:
    """Show what the work for a task changes."""
    if args.conflicts:
        _conflicts(args, client)
        return
    fields = {"path": args.path} | ({"working": True} if args.working else {})
    answer = client.ask("task.diff", {"id": args.id}, fields)
    if args.json:
        as_json(answer)
        return
    found = answer.value
    if found["tip"] is None:
        raise NotFound(f"There is no work on {args.id} to look at yet.", hint="There is once something was committed.")
    if args.stat:
        print(_stat(found))
    else:
        for file in found["files"]:
            for line in _whole(client, args, file):
                print(line)
    if found["dirty"] and not found["working"]:
        print(f"Something is not committed yet: covey task diff {args.id} --working shows it too.")


def _whole(client: Client, args: Namespace, file: Json) -> Iterator[str]:
    """Yield the lines of a file, and ask for the rest of them page by page."""
    was = f"{plain(file['old_path'])} -> " if file["old_path"] else ""
    yield _paint(f"{was}{plain(file['path'])}  {_what(file)}", "1")
    while True:
        for line in (file["patch"] or "").split("\n")[:-1]:
            yield _paint(plain(line.replace("\t", "    ")), _COLOURS.get(line[:1], ""))
        if file["next"] is None:
            break
        fields = {"path": file["path"], "since": file["next"]} | ({"working": True} if args.working else {})
        file = client.ask("task.diff", {"id": args.id}, fields).value["files"][0]
    if file["cut"]:
        yield "It is too large to be shown whole."


def _stat(found: Json) -> str:
    files = found["files"]
    most = max((file["plus"] + file["minus"] for file in files), default=0)
    width = max((len(plain(file["path"])) for file in files), default=0)
    lines = [f" {plain(file['path']):<{width}}  {_bar(file, most)}" for file in files]
    lines += [f" and {one(found['more'], 'file')} more"] if found["more"] else []
    count = len(files) + found["more"]
    return "\n".join([*lines, f" {one(count, 'file')}, +{found['plus']} -{found['minus']}"])


def _bar(file: Json, most: int) -> str:
    if file["binary"]:
        return "binary"
    plus, minus = file["plus"], file["minus"]
    share = min(1.0, MAX_BAR_MARKS / most) if most else 0.0
    marks = _paint("+" * -(-int(plus * share * 100) // 100), "32") + _paint(
        "-" * -(-int(minus * share * 100) // 100), "31"
    )
    return f"{plus + minus:>5} {marks}".rstrip()


def _what(file: Json) -> str:
    words = "binary" if file["binary"] else f"+{file['plus']} -{file['minus']}"
    mode = f", mode {file['old_mode']} -> {file['mode']}" if file["old_mode"] else ""
    return f"({file['status']}, {words}{mode})"


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and text and colourful() else text


def _conflicts(args: Namespace, client: Client) -> None:
    answer = client.ask("task.conflicts", {"id": args.id})
    if args.json:
        as_json(answer)
        return
    found = answer.value
    lines = [f"main: conflicts in {_paths(found['conflicts'])}" if found["conflicts"] else "main: merges cleanly"]
    for other in found["others"]:
        named = f"{other['task']} ({other['merge'] or other['status']})"
        if other["conflicts"]:
            lines.append(f"{named}: conflicts in {_paths(other['conflicts'])}")
        elif other["close"]:
            lines.append(f"{named}: close in {_paths(other['close'])}")
        else:
            lines.append(f"{named}: changes {_paths(other['shared'])} too")
    print("\n".join(lines))


def _paths(paths: list[str]) -> str:
    return some([plain(path) for path in paths], 5)
