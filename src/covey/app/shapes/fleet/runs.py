"""What is asked and answered about runs and what they print."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from covey.app.shapes.forms import Answered, Asked, Limit, Name, TaskId, form
from covey.core.fleet import runs


class ReadLogs(Asked, frozen=True, kw_only=True):
    """Which run (default: the last), from which byte on; a negative `since` counts from the end.

    Without `raw`, what an agent says in a structured stream is answered as a transcript of whole lines.
    """

    run: Annotated[str, form(r"(run|gate)-[0-9]+", "must be the id of a run, such as run-12")] | None = None
    since: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0
    raw: bool = False


class ListRuns(Asked, frozen=True, kw_only=True):
    """Which runs, the newest first."""

    session: Name | None = None
    task: TaskId | None = None
    limit: Limit = 50


class RunRow(Answered, frozen=True, kw_only=True):
    """One start of an agent program; `cost` is in dollars, without those of `unpriced` tokens."""

    id: str
    session: str
    task: str
    fence: int
    agent: str
    base: str | None
    conversation: str | None
    ending: str | None
    outcome: runs.Outcome | None
    code: int | None
    what: str | None
    commit: str | None
    begun: float
    ended: float | None
    cost: float
    tokens: int
    unpriced: int


class Logs(Struct, frozen=True):
    """A part of what a run printed, where the next part begins, and whether it may still print more.

    It is as it was printed, or a `transcript`; secrets are taken out of both.
    """

    run: str
    text: str
    next: int
    alive: bool
    transcript: bool
