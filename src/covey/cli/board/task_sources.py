"""What the board knows of files: which task came from which line."""

from __future__ import annotations

import hashlib
from pathlib import Path

from covey.cli.frame.client import Client, Json
from covey.errors import Invalid, NotFound
from covey.git.here import below_top
from covey.git.project import find

EVENTS_PER_PAGE = 1000
LONGEST_KEY = 500


class Board:
    """The tasks on the board by their keys, read from the log when first asked for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._added: dict[str, str | None] | None = None
        self._ids: dict[str, str] = {}
        self._tasks: dict[str, Json | None] = {}

    @property
    def added(self) -> dict[str, str | None]:
        """Return every task that was ever added with its key, in the order of adding."""
        if self._added is None:
            self._added = {}
            after: int | None = 0
            while after is not None:
                fields = {"kind": "task.added", "limit": EVENTS_PER_PAGE, "after": after}
                page = self._client.ask("log.list", fields=fields).value
                self._added |= {event["subject"]: event["data"].get("key") for event in page}
                after = page[-1]["seq"] if len(page) == EVENTS_PER_PAGE else None
            self._ids = {key: task for task, key in self._added.items() if key is not None}
        return self._added

    def id_of(self, key: str) -> str | None:
        """Return the task that was imported under a key."""
        return self._ids.get(key) if self.added else None

    def task(self, task: str) -> Json | None:
        """Return a task whole, or None if there is none."""
        if task not in self._tasks:
            try:
                self._tasks[task] = self._client.ask("task.show", {"id": task}).value
            except (NotFound, Invalid):
                self._tasks[task] = None
        return self._tasks[task]

    def status(self, task: str | None) -> str | None:
        """Return the status of a task that may not exist."""
        found = None if task is None else self.task(task)
        return None if found is None else str(found["status"])


def name_of(path: Path, client: Client) -> str:
    """Return the name under which a file's tasks are known: its path in the project, the same from every worktree."""
    folder = path.resolve().parent
    prefix = below_top(folder)
    if prefix is None or (client.token is None and find(folder).common != client.project().common):
        return path.name
    return prefix + path.name


def full_key(name: str, key: str) -> str:
    """Return a key as the board knows it: with the name of its file, and not too long."""
    whole = f"{name}#{key}"
    if len(whole) <= LONGEST_KEY:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{whole[: LONGEST_KEY - 17]}~{digest}"


def local_key(key: str) -> str:
    """Return a key as its file knows it."""
    return key.partition("#")[2] or key
