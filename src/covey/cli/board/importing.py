"""covey task import: the tasks of a file onto the board, or up to date; twice is once."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from covey.cli import wishes
from covey.cli.boards import Board, Progress, full_key, name_of
from covey.cli.client import Client
from covey.cli.command import decode, standard_input
from covey.cli.wishes import ENDED, Wish
from covey.core.ids import is_task_id
from covey.errors import CoveyError, Invalid
from covey.plain import escaped

FORMATS = {".md": "md", ".markdown": "md", ".jsonl": "jsonl", ".ndjson": "jsonl"}
MOST_TASKS = 500
MOST_BYTES = 700 * 1024


def import_file(args: Namespace, client: Client) -> None:
    """Bring the tasks of a file onto the board, and say what that did."""
    answer, remarks = bring(client, args.file, args.format, {})
    if args.json:
        print(escaped(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))))
        return
    counts = ", ".join(f"{len(answer[what])} {what}" for what in ("added", "updated", "unchanged"))
    print(f"Imported {args.file}: {counts}.")
    for remark in remarks:
        print(f"  {remark}")


def bring(
    client: Client, file: str, kind: str | None, extra: dict[str, Any]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Read a whole file, check it, write it with `extra` fields for every task; return ids by key, and remarks."""
    text, name, kind = _read(client, file, kind)
    found = wishes.from_checklist(text, file) if kind == "md" else wishes.from_json_lines(text, file)
    plan = Plan(found, name, file, Board(client), client)
    with client:
        first, second = plan.requests()
    answer = _send(client, [extra | request for request in (*first, *second)], len(first))
    return answer, plan.remarks


def _read(client: Client, file: str, kind: str | None) -> tuple[str, str, str]:
    if file == "-":
        return decode(standard_input(), "standard input"), "-", kind or "jsonl"
    path = Path(client.folder) / file
    try:
        text = decode(path.read_bytes(), file)
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.") from None
    kind = kind or FORMATS.get(path.suffix.lower())
    if kind is None:
        raise Invalid(f"The name of {file} does not tell what is in it.", hint="Say --format md or jsonl.")
    return text, name_of(path, client), kind


class Plan:
    """What has to be sent for a file, given what the board knows already."""

    def __init__(self, found: list[Wish], name: str, file: str, board: Board, client: Client) -> None:
        self.remarks: list[str] = []
        self._file = file
        self._name = name
        self._board = board
        self._wishes = {wish.key: wish for wish in found}
        exported = any(wish.board for wish in found)
        self._log = str(client.ask("status").value["log"]) if exported else None

    def requests(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the tasks to send, and those to send again with the needs that stand on later lines."""
        order = list(self._in_order())
        sent: set[str] = set()
        first: list[dict[str, Any]] = []
        second: list[dict[str, Any]] = []
        for wish in order:
            later = [name for name in (*wish.needs, *wish.needs_any) if name in self._wishes and name not in sent]
            later = [name for name in later if self._target(name) is not None and self._is_new(name)]
            whole = self._request(wish, ())
            if later:
                second.append({"status": "todo"} | whole if self._is_new(wish.key) else whole)
            if later and self._is_new(wish.key):
                # Until its needs are there nobody may take it, and `next` takes nothing from the backlog.
                first.append(self._request(wish, later) | {"status": "backlog"})
            elif not later:
                first.append(whole)
            sent.add(wish.key)
        return first, second

    def _in_order(self) -> Iterator[Wish]:
        """Yield what is to be sent, parents before their children."""
        done: set[str] = set()
        for wish in self._wishes.values():
            line: list[Wish] = []
            at: Wish | None = wish
            while at is not None and at.key not in done:
                line.append(at)
                done.add(at.key)
                at = self._wishes.get(at.parent) if at.parent else None
            yield from (wish for wish in reversed(line) if self._is_wanted(wish))

    def _is_wanted(self, wish: Wish) -> bool:
        if self._is_here(wish):
            if self._target(wish.key) == wish.id and not wish.ended:
                self.remarks.append(f"line {wish.line}: {wish.id} came from no file; covey task edit changes it")
                return False
            return not wish.ended
        if wish.ended:
            task = self._board.id_of(full_key(self._name, wish.key))
            status = self._board.status(task)
            if status not in (None, *ENDED):
                self.remarks.append(f"line {wish.line}: {task} is ticked here and {status} on the board; it was left")
        return not wish.ended

    def _is_here(self, wish: Wish) -> bool:
        """Say whether a line is an export of a task of this very board."""
        return wish.board is not None and wish.board == self._log and wish.id in self._board.added

    def _is_new(self, key: str) -> bool:
        wish = self._wishes[key]
        return not self._is_here(wish) and self._board.id_of(full_key(self._name, key)) is None

    def _target(self, key: str) -> str | None:
        """Return how the board knows a task of the file, or None if it is ended and was never there."""
        wish = self._wishes[key]
        if self._is_here(wish):
            assert wish.id is not None
            return self._board.added[wish.id] or wish.id
        return None if wish.ended else full_key(self._name, key)

    def _request(self, wish: Wish, without: list[str] | tuple[str, ...]) -> dict[str, Any]:
        request = {**wish.fields, "key": self._target(wish.key), "title": wish.title}
        if wish.status == "backlog":
            request["status"] = "backlog"
        for what, names in (("needs", wish.needs), ("needs_any", wish.needs_any)):
            found = [self._need(wish, name, strict=what == "needs") for name in names if name not in without]
            if any(found):
                request[what] = [name for name in dict.fromkeys(found) if name]
        parent = self._parent(wish)
        return request if parent is None else request | {"parent": parent}

    def _need(self, wish: Wish, name: str, *, strict: bool) -> str | None:
        if name in self._wishes:
            return self._target(name)
        status = self._board.status(name) if is_task_id(name) else None
        if status is None:
            raise Invalid(
                f"{self._file} line {wish.line}: there is no task {name[:80]!r} to need.",
                hint="A need is a key of this file, or the id of a task on the board.",
            )
        if status == "dropped" and strict and self._is_new(wish.key):
            raise Invalid(f"{self._file} line {wish.line}: {name} was dropped, so what needs it could never begin.")
        return name

    def _parent(self, wish: Wish) -> str | None:
        """Return the parent of a task, unless that has ended and can have no more children."""
        if wish.parent is None:
            return None
        known = self._wishes.get(wish.parent)
        if known is None:
            status = self._board.status(wish.parent) if is_task_id(wish.parent) else None
            if status is None:
                raise Invalid(f"{self._file} line {wish.line}: there is no task {wish.parent[:80]!r} to be the parent.")
            name, task = wish.parent, wish.parent
        else:
            name = full_key(self._name, known.key) if not self._is_here(known) else self._target(known.key) or ""
            found = known.id if self._is_here(known) else self._board.id_of(name)
            if found is None:
                return None if known.ended else name
            task, status = found, self._board.status(found)
        if status in ENDED and self._is_new(wish.key):
            self.remarks.append(f"line {wish.line}: its parent {task} is {status}, so it stands alone")
            return None
        return name


def _send(client: Client, tasks: list[dict[str, Any]], first: int) -> dict[str, dict[str, str]]:
    answer: dict[str, dict[str, str]] = {"added": {}, "updated": {}, "unchanged": {}}
    progress = Progress("imported", len(tasks))
    count = 0
    for part in _parts(tasks, first):
        try:
            said = client.ask("task.import", fields={"tasks": part}).value
        except CoveyError as error:
            if count:
                error.hint = f"{count:,} tasks before these are on the board; import the file again. {error.hint}"
            raise
        for what in ("added", "updated", "unchanged"):
            answer[what] |= {key: task for key, task in said[what].items() if key not in answer["added"]}
        count += len(part)
        progress.at(count)
    progress.end()
    return answer


def _parts(tasks: list[dict[str, Any]], first: int) -> Iterator[list[dict[str, Any]]]:
    """Yield tasks in parts that a request may carry; what is sent again never shares one with its first sending."""
    part: list[dict[str, Any]] = []
    size = 0
    for place, task in enumerate(tasks):
        length = len(json.dumps(task, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1
        if part and (len(part) == MOST_TASKS or size + length > MOST_BYTES or place == first):
            yield part
            part, size = [], 0
        part.append(task)
        size += length
    if part:
        yield part
