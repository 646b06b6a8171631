"""Where a line comes from: the merge that brought it, its task and run, and the place in the transcript."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from covey.app.context import Call
from covey.app.fleet.fleet_verbs import run_row
from covey.app.history import run_streams, transcripts
from covey.app.merging.merge_lookup import approver
from covey.app.shapes.fleet import RunRow
from covey.app.shapes.forms import Answered, Asked, Commit, Path
from covey.app.shapes.merging.gates import GateRow, LandingRow
from covey.app.shapes.merging.merges import MergeRow
from covey.app.verbs import verb
from covey.core.board import tasks
from covey.core.board.tasks import Task
from covey.core.fleet import runs
from covey.core.fleet.signals import Calls
from covey.core.history.transcripts import USES, Transcript
from covey.core.merging.gates import Gate
from covey.core.merging.merges import Merge
from covey.core.people.rights import PARTLY
from covey.core.texts import redact
from covey.values import dataclass

RUNS = 20
"""Runs of a task whose transcripts are looked at, the newest first."""
AROUND = 2
"""Lines of a transcript that are shown before and after a place."""
SHORT = 3
"""Characters below which the text of a line says nothing of where it was written."""


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


class WhyTask(Answered, frozen=True, kw_only=True):
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


@verb("line.why", "GET /api/why", AskWhy, LineWhy, may=PARTLY, long=True)
def why(call: Call, asked: AskWhy) -> LineWhy:
    """Say where a line comes from: its merge, task, run, gate and landing, and where in a transcript it was written.

    A session is told of its own runs only.
    """
    merge, task = _work(call, asked)
    landing = None if merge is None else call.tx.landing(merge.landing)
    gate = None if landing is None or landing.gate is None else call.tx.get(Gate, landing.gate)
    run, passage = (None, None) if task is None else _written(call, task, merge, asked)
    return LineWhy(
        commit=asked.commit,
        merge=None if merge is None else MergeRow.of(merge),
        task=None if task is None else WhyTask.of(task, body=call.tx.text(task.body)),
        run=None if run is None else run_row(call, run),
        model=None if run is None else _model(call, run),
        gate=None if gate is None else GateRow.of(gate),
        landing=None if landing is None else LandingRow.of(landing),
        approved_by=None if merge is None else approver(call, merge),
        passage=passage,
    )


def _work(call: Call, asked: AskWhy) -> tuple[Merge | None, Task | None]:
    """Return the merge and the task that brought a line, as far as they are known."""
    merge = None if asked.merge is None else call.tx.get(Merge, asked.merge)
    task = call.tx.task(merge.task if merge is not None else asked.task or "")
    return merge or (None if task is None else call.tx.last_merge(task.id)), task


def _written(call: Call, task: Task, merge: Merge | None, asked: AskWhy) -> tuple[runs.Run | None, Passage | None]:
    """Return the run that wrote a line and the place where it did; if none tells, the last run that can have."""
    own = [run for run in call.tx.last_runs(RUNS, task=task.id) if call.who.session in (None, run.session)]
    tried = [run for run in own if merge is None or run.begun <= merge.queued]
    for run in tried:
        passage = _passage(call, run, asked)
        if passage is not None:
            return run, passage
    return next(iter(tried), None), None


def _model(call: Call, run: runs.Run) -> str | None:
    """Return the model that wrote most in a run, else the one that was asked for."""
    found = call.tx.main_model(run.id)
    return (run.model if found is None else found) or None


# The place in the transcript


def _passage(call: Call, run: runs.Run, asked: AskWhy) -> Passage | None:
    """Return the last place in the transcript of a run where a line was written; None if nothing tells."""
    if call.context.runner is None or call.context.runs is None:
        return None
    said = _Said(asked.text, asked.path)
    source = transcripts.source_of(call, run)
    if source.output is not None and source.reader is not None:
        said.listen(source.reader, source.output)
    else:
        printed = () if source.output is None else transcripts.whole(source.output, None)
        said.read(_kept(call.context.runs / run.id) or list(printed))
    return said.passage(run)


def _kept(folder: pathlib.Path) -> list[str]:
    """Return the lines of the transcript that was kept of a run."""
    text, at = "", 0
    while (part := transcripts.kept(folder, at)) is not None and part[0]:
        text, at = text + part[0], part[1]
    return text.splitlines()


@dataclass(frozen=True)
class _Place:
    """Where in a transcript a tool is used, and where below that the line stands which was looked for."""

    line: int
    inside: int | None = None
    at: float | None = None

    def shown(self, lines: Sequence[str]) -> list[str]:
        """Return the lines of a transcript around it."""
        head = list(lines[max(self.line - AROUND, 0) : self.line + AROUND + 1])
        if self.inside is None or self.inside <= self.line + AROUND:
            return head
        first = max(self.inside - AROUND, self.line + AROUND + 1)
        gap = ["  …"] if first > self.line + AROUND + 1 else []
        return [*head, *gap, *lines[first : self.inside + AROUND + 1]]


class _Said:
    """A transcript as far as it was read, with the last place in it where a line was written."""

    def __init__(self, text: str, path: str) -> None:
        self.lines: list[str] = []
        self.edit: _Place | None = None
        """The last edit of the file that put the very line in."""
        self.place: _Place | None = None
        """The last use of a tool that has the very text in it."""
        self.near: _Place | None = None
        """The last use of a tool on the file, in case no text is told."""
        self._path = path
        self._line = text.strip()
        self._texts = _spellings(self._line) if len(self._line) >= SHORT else ()

    def listen(self, reader: run_streams.Reader, output: run_streams.Output) -> None:
        """Read a stream; each of its lines may be the use of a tool."""
        transcript = Transcript()
        for raw in run_streams.lines_of(output):
            line = raw.decode(errors="replace")
            signals = reader(line)
            told = transcript.take(signals)
            used = [number for number, each in enumerate(told, len(self.lines)) if each.startswith(USES)]
            self.lines += told
            for number, call in zip(used, (each for each in signals if isinstance(each, Calls)), strict=False):
                self._note(number, call, line)

    def _note(self, number: int, call: Calls, line: str) -> None:
        """Note the use of a tool if it can have written what is looked for."""
        at = run_streams.moment_of(line)
        written = [row for row, each in enumerate(call.edit.splitlines(), 1) if self._is_written(each)]
        if written and self._path in f"{call.about}\n{line}":
            self.edit = _Place(number, number + written[-1], at)
        elif written or any(text in line for text in self._texts):
            self.place = _Place(number, number + written[-1] if written else None, at)
        elif self._path in line:
            self.near = _Place(number)

    def _is_written(self, each: str) -> bool:
        return bool(self._texts) and each.startswith("+") and each[1:].strip() == self._line

    def read(self, lines: Sequence[str]) -> None:
        """Read a transcript that has only its words left."""
        self.lines += lines
        used = path_used = None
        for number, line in enumerate(lines):
            if line.startswith(USES):
                used, path_used = number, self._path in line
            elif not line.startswith("  ") and line:
                used = None
            if used is not None and number > used and self._is_written(line.strip()):
                place = _Place(used, number)
                self.edit, self.place = (place if path_used else self.edit), place
            elif any(text in line for text in self._texts):
                self.place = _Place(number)
            elif self._path in line:
                self.near = _Place(number)

    def passage(self, run: runs.Run) -> Passage | None:
        """Return the place as it is shown."""
        exact = self.edit or self.place
        place = exact or self.near
        if place is None:
            return None
        return Passage(
            run=run.id,
            session=run.session,
            line=place.line + 1,
            at=place.at,
            exact=exact is not None,
            lines=redact("\n".join(place.shown(self.lines))).split("\n"),
        )


def _spellings(text: str) -> tuple[str, ...]:
    """Return how a text can stand in JSON, or in plain lines; JSON within JSON is escaped twice."""
    once = [json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]]
    return tuple(dict.fromkeys([text, *once, *(json.dumps(each)[1:-1] for each in once)]))
