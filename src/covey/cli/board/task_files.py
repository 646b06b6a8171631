"""The tasks that a file asks for, checked from its first line to its last before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from covey.app.shapes.imports import ImportedTask
from covey.app.verbs import explain
from covey.core import checklists, globs, texts
from covey.core.tasks import Status
from covey.errors import Invalid

ENDED = ("done", "dropped")
_FIELDS = frozenset(ImportedTask.__struct_fields__) - {"key", "needs", "needs_any", "parent", "status"}


class _Names(msgspec.Struct):
    """What a line says beside the fields of its task."""

    title: str
    key: str | None = None
    id: str | None = None
    board: str | None = None
    status: str = "todo"
    parent: str | None = None
    needs: list[str] = []
    needs_any: list[str] = []


@dataclass
class Wish:
    """One task of a file, with names as the file uses them."""

    line: int
    key: str
    title: str
    fields: dict[str, Any]
    status: str = "todo"
    needs: list[str] = field(default_factory=list)
    needs_any: list[str] = field(default_factory=list)
    parent: str | None = None
    id: str | None = None
    board: str | None = None

    @property
    def ended(self) -> bool:
        """Say whether the file says that nothing is left to do."""
        return self.status in ENDED


def from_checklist(text: str, file: str) -> list[Wish]:
    """Return the wishes of a TODO.md."""
    items = checklists.parse(text)
    wishes = [
        Wish(
            line=item.line,
            key=item.key,
            title=item.title,
            fields={"body": item.body} if item.body else {},
            status="done" if item.ticked else "todo",
            parent=None if item.parent is None else items[item.parent].key,
        )
        for item in items
    ]
    return _checked(wishes, file)


def from_json_lines(text: str, file: str) -> list[Wish]:
    """Return the wishes of a file with one task a line."""
    wishes: list[Wish] = []
    paths: dict[str, str] = {}
    seen: dict[str, int] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        values = _object(line, f"{file} line {number}")
        wish = _wish(values, number, f"{file} line {number}")
        path = " / ".join([paths.get(wish.parent, wish.parent), wish.title] if wish.parent else [wish.title])
        seen[path] = seen.get(path, 0) + 1
        wish.key = wish.key or wish.id or (path if seen[path] == 1 else f"{path} ({seen[path]})")
        paths[wish.key] = path
        wishes.append(wish)
    return _checked(wishes, file)


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(line.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{where} is not valid JSON: {error}.") from None
    if not isinstance(values, dict):
        raise Invalid(f"{where} is not a JSON object.", hint='One task a line, such as {"title": "Fix the test"}.')
    return values


def _wish(values: dict[str, Any], number: int, where: str) -> Wish:
    """Return what one line asks for, with its names and texts of the right types."""
    own = {name: values.pop(name) for name in _Names.__struct_fields__ if name in values}
    try:
        typed = msgspec.convert(own, _Names)
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {explain(str(error))}") from None
    if typed.status not in Status._value2member_map_:
        known = ", ".join(Status)
        raise Invalid(f"{where}: there is no status {typed.status[:40]!r}.", hint=f"There are {known}.")
    unknown = next((name for name in values if name not in _FIELDS), None)
    if unknown is not None:
        known = ", ".join(sorted({*_FIELDS, "key", "needs", "needs_any", "parent", "status"}))
        raise Invalid(f"{where}: there is no field {unknown[:80]!r}.", hint=f"There are {known}.")
    return Wish(
        line=number,
        key=typed.key or "",
        title=typed.title,
        fields=values,
        status=typed.status,
        needs=typed.needs,
        needs_any=typed.needs_any,
        parent=typed.parent,
        id=typed.id,
        board=typed.board,
    )


def _checked(wishes: list[Wish], file: str) -> list[Wish]:
    """Return the wishes, or the first thing that is wrong with one of them."""
    lines: dict[str, int] = {}
    for wish in wishes:
        where = f"{file} line {wish.line}"
        if wish.key in lines:
            raise Invalid(f"{where}: the key {wish.key[:80]!r} stands on line {lines[wish.key]} already.")
        lines[wish.key] = wish.line
        if not wish.ended:
            _check(wish, where)
    _check_parents(wishes, file)
    _check_circles(wishes, file)
    return wishes


def _check(wish: Wish, where: str) -> None:
    try:
        task = msgspec.convert({**wish.fields, "title": wish.title, "key": wish.key[:500]}, ImportedTask)
        texts.line(task.title, "The title", texts.TITLE)
        texts.prose(task.body or "", "The body")
        if task.note:
            texts.line(task.note, "The note", 2000)
        for glob in (*(task.scope or ()), *(task.do_not_touch or ())):
            globs.compile(glob.removeprefix("new:"))
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {explain(str(error))}") from None
    except Invalid as error:
        raise Invalid(f"{where}: {error.message}", hint=error.hint) from None
    if wish.key in (*wish.needs, *wish.needs_any):
        raise Invalid(f"{where}: a task cannot need itself.")


def _check_parents(wishes: list[Wish], file: str) -> None:
    by_key = {wish.key: wish for wish in wishes}
    fine: set[str] = set()
    for wish in wishes:
        path: list[str] = []
        at: Wish | None = wish
        while at is not None and at.key not in fine:
            if at.key in path:
                raise Invalid(f"{file} line {wish.line}: a task cannot be its own ancestor.")
            path.append(at.key)
            at = by_key.get(at.parent) if at.parent else None
        fine.update(path)


def _check_circles(wishes: list[Wish], file: str) -> None:
    """Refuse needs that go round in a circle within the file."""
    by_key = {wish.key: wish for wish in wishes}
    done: set[str] = set()
    for wish in wishes:
        path: dict[str, Iterator[str]] = {}
        at: str | None = wish.key
        while at is not None:
            if at not in path and at not in done:
                path[at] = iter([*by_key[at].needs, *by_key[at].needs_any])
            need = next((n for n in path.get(at, ()) if n in by_key and n not in done), None)
            if need is not None and need in path:
                round_trip = [*list(path)[list(path).index(need) :], need]
                raise Invalid(
                    f"{file} line {wish.line}: these needs would go round in a circle: {' > '.join(round_trip)[:300]}."
                )
            if need is None:
                done.add(at)
                path.pop(at, None)
                need = next(reversed(path), None)
            at = need
