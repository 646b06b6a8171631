"""What is asked and answered about where a line comes from."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from covey.app.shapes.forms import Asked, Commit, Path
from covey.app.shapes.gates import GateRow
from covey.app.shapes.landings import LandingRow
from covey.app.shapes.merges import MergeRow
from covey.app.shapes.runs import RunRow
from covey.core import tasks


class AskWhy(Asked, frozen=True, kw_only=True):
    """A line of a file: its text, the commit that brought it, and the task and merge that are known of that."""

    path: Path
    commit: Commit
    text: Annotated[str, Meta(max_length=16_384)] = ""
    task: Annotated[str, Meta(max_length=64)] | None = None
    merge: Annotated[str, Meta(max_length=64)] | None = None


class Passage(Struct, frozen=True, kw_only=True):
    """A place in the transcript of a run: the number of its line, when that was said if it is known, and what is near.

    `exact`: the very text of the line was written there; else it is the last use of a tool on the file.
    """

    run: str
    session: str
    line: int
    at: float | None
    exact: bool
    lines: list[str]


class WhyTask(Struct, frozen=True, kw_only=True):
    """The task for which a line was written."""

    id: str
    title: str
    body: str
    done_when: tuple[str, ...]
    status: tasks.Status


class LineWhy(Struct, frozen=True, kw_only=True):
    """Where a line comes from: its merge, task, run, gate and landing, who approved it, and where it was written."""

    commit: str
    merge: MergeRow | None
    task: WhyTask | None
    run: RunRow | None
    model: str | None
    gate: GateRow | None
    landing: LandingRow | None
    approved_by: str | None
    passage: Passage | None
