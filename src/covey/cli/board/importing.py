"""covey task import: the tasks of a file onto the board, or up to date; twice is once."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import msgspec

from covey.app.shapes.board import ImportedTask
from covey.app.verbs import explain
from covey.cli.board.task_sources import Board, full_key, name_of
from covey.cli.frame.client import Client, Json, parts
from covey.cli.frame.command import contents
from covey.cli.frame.output import ProgressLine, compact
from covey.core import globs, texts
from covey.core.board import checklists
from covey.core.board.tasks import Status
from covey.core.ids import is_task_id
from covey.errors import CoveyError, Invalid

FORMATS = {".md": "md", ".markdown": "md", ".jsonl": "jsonl", ".ndjson": "jsonl"}
MAX_TASKS_PER_REQUEST = 500
MAX_BYTES_PER_REQUEST = 700 * 1024
ENDED = ("done", "dropped")
_NAMES = ("title", "key", "id", "board", "status", "parent", "needs", "needs_any")
"""What a line says beside the fields of its task."""
_FIELDS = frozenset(ImportedTask.__struct_fields__) - {"key", "needs", "needs_any", "parent", "status"}


def import_file(args: Namespace, client: Client) -> None:
    """Bring the tasks of a file onto the board, and say what that did."""
    plan = plan_of(client, args.file, args.format)
    answer = bring(client, plan, {})
    if args.json:
        print(compact(answer))
        return
    counts = ", ".join(f"{len(answer[what])} {what}" for what in ("added", "updated", "unchanged"))
    print(f"Imported {args.file}: {counts}.")
    for remark in plan.remarks:
        print(f"  {remark}")


def plan_of(client: Client, file: str, kind: str | None) -> Plan:
    """Read a whole file and check it against the board; nothing is written yet."""
    text, name, kind = _read(client, file, kind)
    found = from_checklist(text, file) if kind == "md" else from_json_lines(text, file)
    with client:
        return Plan(found, name, file, Board(client), client)


def bring(client: Client, plan: Plan, extra: Json) -> dict[str, dict[str, str]]:
    """Write the tasks of a file with `extra` fields for each, and return their ids by key."""
    answer: dict[str, dict[str, str]] = {"added": {}, "updated": {}, "unchanged": {}}
    count, of = 0, len(plan.first) + len(plan.second)
    with ProgressLine() as progress:
        for part in (*_parts(plan.first, extra), *_parts(plan.second, extra)):  # what is sent again goes by itself
            try:
                said = client.ask("task.import", fields={"tasks": part}).value
            except CoveyError as error:
                if count:
                    error.hint = f"{count:,} tasks before these are on the board; import the file again. {error.hint}"
                raise
            for what in answer:
                answer[what] |= {key: task for key, task in said[what].items() if key not in answer["added"]}
            count += len(part)
            progress("imported", count, of)
    return answer


def _parts(tasks: list[Json], extra: Json) -> Iterator[list[Json]]:
    return parts((extra | task for task in tasks), _size, MAX_TASKS_PER_REQUEST, MAX_BYTES_PER_REQUEST)


def _size(task: Json) -> int:
    return len(json.dumps(task, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1


def _read(client: Client, file: str, kind: str | None) -> tuple[str, str, str]:
    text = contents(file, client.folder)
    if file == "-":
        return text, "-", kind or "jsonl"
    path = Path(client.folder) / file
    kind = kind or FORMATS.get(path.suffix.lower())
    if kind is None:
        raise Invalid(f"The name of {file} does not tell what is in it.", hint="Say --format md or jsonl.")
    return text, name_of(path, client), kind


class Plan:
    """What has to be sent for a file, given what the board knows already."""

    def __init__(self, found: list[Entry], name: str, file: str, board: Board, client: Client) -> None:
        self.remarks: list[str] = []
        self._file = file
        self._name = name
        self._board = board
        self._entries = {entry.key: entry for entry in found}
        exported = any(entry.board for entry in found)
        self._log = str(client.ask("status").value["log"]) if exported else None
        self.first, self.second = self._requests()

    def _requests(self) -> tuple[list[Json], list[Json]]:
        """Return the tasks to send, and those to send again with the needs that stand on later lines."""
        order = list(self._in_order())
        sent: set[str] = set()
        first: list[Json] = []
        second: list[Json] = []
        for entry in order:
            later = [name for name in (*entry.needs, *entry.needs_any) if name in self._entries and name not in sent]
            later = [name for name in later if self._target(name) is not None and self._is_new(name)]
            whole = self._request(entry, ())
            if later:
                second.append({"status": "todo"} | whole if self._is_new(entry.key) else whole)
            if later and self._is_new(entry.key):
                # Until its needs are there nobody may take it, and `next` takes nothing from the backlog.
                first.append(self._request(entry, later) | {"status": "backlog"})
            elif not later:
                first.append(whole)
            sent.add(entry.key)
        return first, second

    def _in_order(self) -> Iterator[Entry]:
        """Yield what is to be sent, parents before their children."""
        done: set[str] = set()
        for entry in self._entries.values():
            line: list[Entry] = []
            at: Entry | None = entry
            while at is not None and at.key not in done:
                line.append(at)
                done.add(at.key)
                at = self._entries.get(at.parent) if at.parent else None
            yield from (entry for entry in reversed(line) if self._is_wanted(entry))

    def _is_wanted(self, entry: Entry) -> bool:
        if self._is_here(entry):
            if self._target(entry.key) == entry.id and not entry.ended:
                self.remarks.append(f"line {entry.line}: {entry.id} came from no file; covey task edit changes it")
                return False
            return not entry.ended
        if entry.ended:
            task = self._board.id_of(full_key(self._name, entry.key))
            status = self._board.status(task)
            if status not in (None, *ENDED):
                self.remarks.append(f"line {entry.line}: {task} is ticked here and {status} on the board; it was left")
        return not entry.ended

    def _is_here(self, entry: Entry) -> bool:
        """Say whether a line is an export of a task of this very board."""
        return entry.board is not None and entry.board == self._log and entry.id in self._board.added

    def _is_new(self, key: str) -> bool:
        entry = self._entries[key]
        return not self._is_here(entry) and self._board.id_of(full_key(self._name, key)) is None

    def _target(self, key: str) -> str | None:
        """Return how the board knows a task of the file, or None if it is ended and was never there."""
        entry = self._entries[key]
        if self._is_here(entry):
            assert entry.id is not None
            return self._board.added[entry.id] or entry.id
        return None if entry.ended else full_key(self._name, key)

    def _request(self, entry: Entry, without: list[str] | tuple[str, ...]) -> Json:
        request = {**entry.fields, "key": self._target(entry.key), "title": entry.title}
        if entry.status == "backlog":
            request["status"] = "backlog"
        for what, names in (("needs", entry.needs), ("needs_any", entry.needs_any)):
            found = [self._need(entry, name, strict=what == "needs") for name in names if name not in without]
            if any(found):
                request[what] = [name for name in dict.fromkeys(found) if name]
        parent = self._parent(entry)
        return request if parent is None else request | {"parent": parent}

    def _need(self, entry: Entry, name: str, *, strict: bool) -> str | None:
        if name in self._entries:
            return self._target(name)
        status = self._board.status(name) if is_task_id(name) else None
        if status is None:
            raise Invalid(
                f"{self._file} line {entry.line}: there is no task {name[:80]!r} to need.",
                hint="A need is a key of this file, or the id of a task on the board.",
            )
        if status == "dropped" and strict and self._is_new(entry.key):
            raise Invalid(f"{self._file} line {entry.line}: {name} was dropped, so what needs it could never begin.")
        return name

    def _parent(self, entry: Entry) -> str | None:
        """Return the parent of a task, unless that has ended and can have no more children."""
        if entry.parent is None:
            return None
        known = self._entries.get(entry.parent)
        if known is None:
            status = self._board.status(entry.parent) if is_task_id(entry.parent) else None
            if status is None:
                raise Invalid(
                    f"{self._file} line {entry.line}: there is no task {entry.parent[:80]!r} to be the parent."
                )
            name, task = entry.parent, entry.parent
        else:
            name = full_key(self._name, known.key) if not self._is_here(known) else self._target(known.key) or ""
            found = known.id if self._is_here(known) else self._board.id_of(name)
            if found is None:
                return None if known.ended else name
            task, status = found, self._board.status(found)
        if status in ENDED and self._is_new(entry.key):
            self.remarks.append(f"line {entry.line}: its parent {task} is {status}, so it stands alone")
            return None
        return name


# What a file asks for, checked from its first line to its last before anything is written


class Entry(msgspec.Struct):
    """One task of a file, with names as the file uses them."""

    title: str
    key: str = ""
    id: str | None = None
    board: str | None = None
    status: str = "todo"
    parent: str | None = None
    needs: list[str] = []
    needs_any: list[str] = []
    line: int = 0
    fields: Json = {}

    @property
    def ended(self) -> bool:
        """Say whether the file says that nothing is left to do."""
        return self.status in ENDED


def from_checklist(text: str, file: str) -> list[Entry]:
    """Return the entries of a TODO.md."""
    items = checklists.parse(text)
    entries = [
        Entry(
            line=item.line,
            key=item.key,
            title=item.title,
            fields={"body": item.body} if item.body else {},
            status="done" if item.ticked else "todo",
            parent=None if item.parent is None else items[item.parent].key,
        )
        for item in items
    ]
    return _checked(entries, file)


def from_json_lines(text: str, file: str) -> list[Entry]:
    """Return the entries of a file with one task a line."""
    entries: list[Entry] = []
    paths: dict[str, str] = {}
    seen: dict[str, int] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        entry = _entry(_object(line, f"{file} line {number}"), number, f"{file} line {number}")
        path = " / ".join([paths.get(entry.parent, entry.parent), entry.title] if entry.parent else [entry.title])
        seen[path] = seen.get(path, 0) + 1
        entry.key = entry.key or entry.id or (path if seen[path] == 1 else f"{path} ({seen[path]})")
        paths[entry.key] = path
        entries.append(entry)
    return _checked(entries, file)


def _object(line: str, where: str) -> Json:
    try:
        values = msgspec.json.decode(line.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{where} is not valid JSON: {error}.") from None
    if not isinstance(values, dict):
        raise Invalid(f"{where} is not a JSON object.", hint='One task a line, such as {"title": "Fix the test"}.')
    return values


def _entry(values: Json, number: int, where: str) -> Entry:
    """Return what one line asks for, with its names and texts of the right types."""
    own = {name: values.pop(name) for name in _NAMES if name in values}
    if own.get("key", "") is None:
        del own["key"]
    try:
        entry = msgspec.convert(own | {"line": number, "fields": values}, Entry)
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {explain(str(error))}") from None
    if entry.status not in Status._value2member_map_:
        known = ", ".join(Status)
        raise Invalid(f"{where}: there is no status {entry.status[:40]!r}.", hint=f"There are {known}.")
    unknown = next((name for name in values if name not in _FIELDS), None)
    if unknown is not None:
        known = ", ".join(sorted({*_FIELDS, "key", "needs", "needs_any", "parent", "status"}))
        raise Invalid(f"{where}: there is no field {unknown[:80]!r}.", hint=f"There are {known}.")
    return entry


def _checked(entries: list[Entry], file: str) -> list[Entry]:
    """Return the entries, or the first thing that is wrong with one of them."""
    lines: dict[str, int] = {}
    for entry in entries:
        where = f"{file} line {entry.line}"
        if entry.key in lines:
            raise Invalid(f"{where}: the key {entry.key[:80]!r} stands on line {lines[entry.key]} already.")
        lines[entry.key] = entry.line
        if not entry.ended:
            _check(entry, where)
    _check_circles(entries, file)
    return entries


def _check(entry: Entry, where: str) -> None:
    try:
        task = msgspec.convert({**entry.fields, "title": entry.title, "key": entry.key[:500]}, ImportedTask).named()
        texts.line(task["title"], "The title", texts.MAX_TITLE_CHARS)
        texts.prose(task.get("body", ""), "The body")
        if "note" in task:
            texts.line(task["note"], "The note", 2000)
        for glob in (*task.get("scope", ()), *task.get("do_not_touch", ())):
            globs.compile(glob.removeprefix("new:"))
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {explain(str(error))}") from None
    except Invalid as error:
        raise Invalid(f"{where}: {error.message}", hint=error.hint) from None
    if entry.key in (*entry.needs, *entry.needs_any):
        raise Invalid(f"{where}: a task cannot need itself.")


def _check_circles(entries: list[Entry], file: str) -> None:
    """Refuse a task that is its own ancestor, and needs that go round in a circle within the file."""
    lines = {entry.key: entry.line for entry in entries}
    if circle := _circle({entry.key: [entry.parent] if entry.parent else [] for entry in entries}):
        raise Invalid(f"{file} line {lines[circle[0]]}: a task cannot be its own ancestor.")
    if circle := _circle({entry.key: [*entry.needs, *entry.needs_any] for entry in entries}):
        where = f"{file} line {lines[circle[0]]}"
        raise Invalid(f"{where}: these needs would go round in a circle: {' > '.join(circle)[:300]}.")


def _circle(behind: dict[str, list[str]]) -> list[str]:
    """Return a circle of what comes behind what, its first key once more at its end; nothing if there is none."""
    try:
        TopologicalSorter(behind).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return []
