"""covey task export: the board as JSON lines or as a checklist, and the boxes of a checklist ticked."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from covey.cli.boards import Board, Progress, full_key, local_key, name_of
from covey.cli.client import Client
from covey.cli.show import escaped, prose
from covey.core import checklists
from covey.core.figures import one
from covey.core.tasks import ENDED
from covey.errors import Invalid, Refused

DEFAULTS: dict[str, Any] = {
    "body": "", "kind": "change", "assignee": None, "role": None, "priority": 0, "needs": [], "needs_any": [],
    "parent": None, "scope": [], "do_not_touch": [], "overlap": False, "done_when": [], "budget": None,
}  # fmt: skip
BATCH = 200


def export_file(args: Namespace, client: Client) -> None:
    """Write the board, or tick what is done in a checklist that exists."""
    path = None if args.file in (None, "-") else Path(client.folder) / args.file
    kind = args.format or ("jsonl" if path is not None and path.suffix.lower() in (".jsonl", ".ndjson") else "md")
    if path is not None and path.is_file() and not args.force:
        if kind == "jsonl":
            raise Refused(f"{args.file} exists already.", hint="--force writes it anew; what is in it is lost then.")
        done = tick(client, args.file)
        told = {"file": args.file, "ticked": sorted(done)}
        print(json.dumps(told) if args.json else f"Ticked {one(len(done), 'box', 'boxes')} in {args.file}.")
        return
    lines = _export(client)
    if path is None and args.json:
        print(escaped(json.dumps(lines, ensure_ascii=False, separators=(",", ":"))))
        return
    text = "".join(_json_lines(lines) if kind == "jsonl" else _checklist(lines))
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


def _done_keys(client: Client, name: str, items: list[checklists.Item]) -> dict[str, str]:
    board = Board(client)
    with client:
        found = {item.key: board.id_of(full_key(name, item.key)) for item in items if not item.ticked}
        return {key: task for key, task in found.items() if task and board.status(task) == "done"}


def _export(client: Client) -> list[dict[str, Any]]:
    """Return every task as a line of an import, in the order in which they came onto the board."""
    log = client.ask("status").value["log"]
    board = Board(client)
    ids = list(board.added)
    progress = Progress("exported", len(ids))
    tasks: list[dict[str, Any]] = []
    for start in range(0, len(ids), BATCH):
        with client:
            tasks += [task for name in ids[start : start + BATCH] if (task := board.task(name)) is not None]
        progress.at(len(tasks))
    progress.end()
    names = _names(tasks)
    return [_line(task, names, log) for task in tasks]


def _names(tasks: list[dict[str, Any]]) -> dict[str, str]:
    """Return how the lines of an export name each task: by its key, or by its id where the key is not its alone."""
    keys = {task["id"]: local_key(task["key"]) if task["key"] else task["id"] for task in tasks}
    used = Counter(keys.values())
    return {task: key if used[key] == 1 and (key == task or key not in keys) else task for task, key in keys.items()}


def _line(task: dict[str, Any], names: dict[str, str], log: str) -> dict[str, Any]:
    values = task | {
        "needs": [names.get(need, need) for need in task["needs"] if need not in task["needs_any"]],
        "needs_any": [names.get(need, need) for need in task["needs_any"]],
        "parent": task["parent"] and names.get(task["parent"], task["parent"]),
    }
    line = {"id": task["id"], "key": names[task["id"]], "title": task["title"], "status": task["status"]}
    return line | {name: values[name] for name, usual in DEFAULTS.items() if values[name] != usual} | {"board": log}


def _json_lines(lines: list[dict[str, Any]]) -> Iterator[str]:
    for line in lines:
        yield escaped(json.dumps(line, ensure_ascii=False, separators=(",", ":"))) + "\n"


def _checklist(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the board as a nested checklist."""
    children: dict[str | None, list[dict[str, Any]]] = {}
    keys = {line["key"] for line in lines}
    for line in lines:
        parent = line.get("parent")
        children.setdefault(parent if parent in keys else None, []).append(line)
    stack = [(line, 0) for line in reversed(children.get(None, []))]
    while stack:
        line, depth = stack.pop()
        margin = "  " * depth
        title = f"~~{line['title']}~~" if line["status"] == "dropped" else line["title"]
        yield f"{margin}- [{'x' if line['status'] in ENDED else ' '}] {title}\n"
        for text in (line.get("body") or "").split("\n") if line.get("body") else ():
            yield f"{margin}  {text}\n" if text.strip() else "\n"
        stack += [(child, depth + 1) for child in reversed(children.get(line["key"], []))]


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # a device or a pipe stays what it is
            path.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Invalid(f"{path} cannot be written: {error.strerror}.") from None
