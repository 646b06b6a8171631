"""covey task export: the board as JSON lines or as a checklist, and the boxes of a checklist ticked."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import NODEFAULT, structs

from covey.app.shapes.board import AddTask
from covey.cli.board.task_sources import Board, full_key, local_key, name_of
from covey.cli.frame.client import Client, Json
from covey.cli.frame.output import ProgressLine, compact, nested, prose
from covey.core.board import checklists
from covey.core.board.tasks import ENDED
from covey.core.figures import one
from covey.errors import Invalid, Refused

_APART = ("title", "status", "batch", "note", "for_session")
"""Fields of a new task that are always exported, or never."""
DEFAULTS: Json = {
    field.name: [] if field.default in (NODEFAULT, ()) else field.default
    for field in structs.fields(AddTask)
    if field.name not in _APART
}
TASKS_PER_LOOK = 200


def export_file(args: Namespace, client: Client) -> None:
    """Write the board, or tick what is done in a checklist that exists."""
    path = None if args.file in (None, "-") else Path(client.folder) / args.file
    kind = args.format or ("jsonl" if path is not None and path.suffix.lower() in (".jsonl", ".ndjson") else "md")
    if path is not None and os.path.isfile(path) and not args.force:
        if kind == "jsonl":
            raise Refused(f"{args.file} exists already.", hint="--force writes it anew; what is in it is lost then.")
        done = tick(client, args.file)
        told = {"file": args.file, "ticked": sorted(done)}
        print(json.dumps(told) if args.json else f"Ticked {one(len(done), 'box', 'boxes')} in {args.file}.")
        return
    lines = _export(client)
    if path is None and args.json:
        print(compact(lines))
        return
    text = "".join([f"{compact(line)}\n" for line in lines] if kind == "jsonl" else _checklist(lines))
    if path is None:
        sys.stdout.buffer.write((prose(text) if sys.stdout.isatty() else text).encode())
        return
    _write(path, text)
    said = {"file": args.file, "tasks": len(lines)}
    print(json.dumps(said) if args.json else f"Wrote {one(len(lines), 'task')} to {args.file}.")


def tick(client: Client, file_name: str) -> list[str]:
    """Tick the boxes of done tasks that came from a file, and return these; a tick changes one byte and no more."""
    path = Path(client.folder) / file_name
    try:
        with path.open("r+b") as file:
            data = file.read()
            text = data.decode("utf-8", "surrogateescape")
            done = _done_keys(client, name_of(path, client), checklists.parse(text))
            ticked = checklists.tick(text, done).encode("utf-8", "surrogateescape")
            if ticked != data:
                file.seek(0)
                file.write(ticked)
    except OSError as error:
        raise Invalid(f"{file_name} cannot be written: {error.strerror}.") from None
    return list(done.values())


def _done_keys(client: Client, name: str, items: list[checklists.ChecklistItem]) -> dict[str, str]:
    board = Board(client)
    with client:
        found = {item.key: board.id_of(full_key(name, item.key)) for item in items if not item.ticked}
        return {key: task for key, task in found.items() if task and board.status(task) == "done"}


def _export(client: Client) -> list[Json]:
    """Return every task as a line of an import, in the order in which they came onto the board."""
    log = client.ask("status").value["log"]
    board = Board(client)
    ids = list(board.added)
    tasks: list[Json] = []
    with ProgressLine() as progress:
        for start in range(0, len(ids), TASKS_PER_LOOK):
            with client:
                found = (board.task(name) for name in ids[start : start + TASKS_PER_LOOK])
                tasks += [task for task in found if task is not None]
            progress("exported", len(tasks), len(ids))
    names = _names(tasks)
    return [_line(task, names, log) for task in tasks]


def _names(tasks: list[Json]) -> dict[str, str]:
    """Return how the lines of an export name each task: by its key, or by its id where the key is not its alone."""
    keys = {task["id"]: local_key(task["key"]) if task["key"] else task["id"] for task in tasks}
    used = Counter(keys.values())

    def is_its_alone(task: str, key: str) -> bool:
        return used[key] == 1 and (key == task or key not in keys)

    return {task: key if is_its_alone(task, key) else task for task, key in keys.items()}


def _line(task: Json, names: dict[str, str], log: str) -> Json:
    values = task | {
        "needs": [names.get(need, need) for need in task["needs"] if need not in task["needs_any"]],
        "needs_any": [names.get(need, need) for need in task["needs_any"]],
        "parent": task["parent"] and names.get(task["parent"], task["parent"]),
    }
    line = {"id": task["id"], "key": names[task["id"]], "title": task["title"], "status": task["status"]}
    return line | {name: values[name] for name, usual in DEFAULTS.items() if values[name] != usual} | {"board": log}


def _checklist(lines: list[Json]) -> Iterator[str]:
    """Yield the board as a nested checklist."""
    for line, depth in nested(lines, "key"):
        margin = "  " * depth
        title = f"~~{line['title']}~~" if line["status"] == "dropped" else line["title"]
        yield f"{margin}- [{'x' if line['status'] in ENDED else ' '}] {title}\n"
        for text in (line.get("body") or "").split("\n") if line.get("body") else ():
            yield f"{margin}  {text}\n" if text.strip() else "\n"


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe stays what it is
            path.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise Invalid(f"{path} cannot be written: {error.strerror}.") from None
