"""The tasks that a file asks for, checked from its first line to its last before anything is written."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import msgspec

from covey.app.shapes.board import ImportedTask
from covey.app.verbs import explain
from covey.cli.frame.client import Json
from covey.core import globs, texts
from covey.core.board import checklists
from covey.core.board.tasks import Status
from covey.errors import Invalid

ENDED = ("done", "dropped")
_NAMES = ("title", "key", "id", "board", "status", "parent", "needs", "needs_any")
"""What a line says beside the fields of its task."""
_FIELDS = frozenset(ImportedTask.__struct_fields__) - {"key", "needs", "needs_any", "parent", "status"}


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
