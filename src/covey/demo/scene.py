"""What the view knows: rows as the daemon's events bring them, and what happened last."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

Row = dict[str, Any]
QUIET = (
    "daemon.started", "lease.given", "log.begun", "mail.read", "merge.queued", "session.changed", "session.registered",
    "session.token_minted", "task.added",
)  # fmt: skip
"""Kinds of events that the columns show well enough without a line of their own."""


@dataclass
class Scene:
    """The board, the sessions and the story so far."""

    began: float = field(default_factory=time.monotonic)
    tasks: dict[str, Row] = field(default_factory=dict)
    sessions: dict[str, Row] = field(default_factory=dict)
    story: list[tuple[float, Row]] = field(default_factory=list)
    seq: int = 0
    leases: int = 0

    @property
    def seconds(self) -> float:
        """Return how long it has been going on."""
        return time.monotonic() - self.began

    def take_in(self, topic: str, data: Any) -> None:
        """Take in one of the daemon's events."""
        if topic == "board":
            self.tasks |= {row["id"]: row for row in data}
        elif topic == "sessions":
            self.sessions |= {row["name"]: row for row in data}

    def hear(self, events: list[Row]) -> list[Row]:
        """Take in what the log says happened, and return what is worth a line."""
        for event in events:
            self.seq = event["seq"]
            self.leases += {"lease.taken": 1, "lease.given": -1, "lease.expired": -1}.get(event["kind"], 0)
        told = [event for event in events if event["kind"] not in QUIET]
        self.story += [(self.seconds, event) for event in told]
        return told

    def in_status(self, *statuses: str) -> list[Row]:
        """Return the tasks in some statuses."""
        return [task for task in self.tasks.values() if task["status"] in statuses]

    @property
    def dry(self) -> bool:
        """Say whether nothing waits and nobody is at work."""
        return bool(self.tasks) and not self.in_status("backlog", "todo", "doing")


class Followed:
    """The daemon's events, read in a thread of their own into a queue; None marks their end."""

    def __init__(self, url: str, token: str) -> None:
        address = urlsplit(url)
        self.queue: SimpleQueue[tuple[str, Any] | None] = SimpleQueue()
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        self._connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {token}"})
        self._answer = self._connection.getresponse()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError, http.client.HTTPException):
            for frame in frames(iter(self._answer.readline, b"")):
                self.queue.put(frame)
        self.queue.put(None)

    def close(self) -> None:
        """Stop following."""
        with suppress(OSError):
            if self._connection.sock is not None:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._answer.close()
        self._connection.close()


def frames(lines: Iterator[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield topic and data of each event of a stream."""
    topic = ""
    for line in lines:
        name, _, value = line.rstrip(b"\n").partition(b": ")
        if name == b"event":
            topic = value.decode()
        elif name == b"data":
            yield topic, json.loads(value)
