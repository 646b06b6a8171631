"""Where a line comes from: the merge that brought it, its task and run, and the place in the transcript."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from covey.app import edits, journals, transcripts
from covey.app.costs import spent_by
from covey.app.queued import approver
from covey.app.shapes.gates import GateRow
from covey.app.shapes.landings import LandingRow
from covey.app.shapes.merges import MergeRow
from covey.app.shapes.runs import RunRow
from covey.app.shapes.whence import AskWhy, LineWhy, Passage, WhyTask
from covey.app.verbs import Call, verb
from covey.core import runs
from covey.core.merges import Merge
from covey.core.rights import PARTLY
from covey.core.signals import Calls
from covey.core.spending import Used
from covey.core.texts import redact
from covey.core.transcripts import USES, Transcript
from covey.errors import CoveyError
from covey.store import rows
from covey.values import dataclass

RUNS = 20
"""Runs of a task whose transcripts are looked at, the newest first."""
AROUND = 2
"""Lines of a transcript that are shown before and after a place."""
SHORT = 3
"""Characters below which the text of a line says nothing of where it was written."""


@verb("line.why", "GET /api/why", AskWhy, LineWhy, may=PARTLY, long=True)
def why(call: Call, asked: AskWhy) -> LineWhy:
    """Say where a line comes from: its merge, task, run, gate and landing, and where in a transcript it was written.

    A session is told of its own runs only.
    """
    merge = None if asked.merge is None else call.tx.get(rows.MERGES, asked.merge)
    task = call.tx.task(merge.task if merge is not None else asked.task or "")
    merge = merge or (None if task is None else call.tx.last_merge(task.id))
    landing = None if merge is None or merge.landing is None else call.tx.landing(merge.landing)
    tried = [] if task is None else _runs(call, task.id, merge)
    tried = [run for run in tried if call.who.session in (None, run.session)]
    found = next((place for run in tried if (place := _passage(call, run, asked)) is not None), None)
    run = next((each for each in tried if found is not None and each.id == found.run), tried[0] if tried else None)
    gate = None if landing is None or landing.gate is None else call.tx.get(rows.GATES, landing.gate)
    return LineWhy(
        commit=asked.commit,
        merge=None if merge is None else MergeRow.of(merge),
        task=None
        if task is None
        else WhyTask(
            id=task.id,
            title=task.title,
            body=call.tx.text(task.body),
            done_when=task.done_when,
            status=task.status,
        ),
        run=None if run is None else RunRow.of(run, spent_by(call, "run", [run.id]).get(run.id, Used())),
        model=None if run is None else _model(call, run),
        gate=None if gate is None else GateRow.of(gate),
        landing=None if landing is None else LandingRow.of(landing),
        approved_by=None if merge is None else approver(call, merge),
        passage=found,
    )


def _runs(call: Call, task: str, merge: Merge | None) -> list[runs.Run]:
    """Return the runs for a task that can have written what a merge brought, the newest first."""
    found = call.tx.last_runs("task", task, RUNS)
    return [run for run in found if merge is None or run.begun <= merge.queued]


def _model(call: Call, run: runs.Run) -> str | None:
    """Return the model that wrote most in a run, else the one that was asked for."""
    sql = "SELECT model FROM spends WHERE run = ? GROUP BY model ORDER BY sum(output) DESC LIMIT 1"
    found = call.tx.db.rows(sql, (run.id,))
    return (str(found[0][0]) if found else run.model) or None


# The place in the transcript


def _passage(call: Call, run: runs.Run, asked: AskWhy) -> Passage | None:
    """Return the last place in the transcript of a run where a line was written; None if nothing tells."""
    if call.house.runs is None:
        return None
    folder = call.house.runs / run.id
    said = _Said(asked.text, asked.path)
    reader, output = _stream(call, run, folder)
    if reader is not None and output is not None:
        said.listen(reader, output)
    else:
        said.read(_kept(folder) or _printed(call, run))
    return said.passage(run)


def _stream(call: Call, run: runs.Run, folder: Path) -> tuple[edits.Reader | None, edits.Output | None]:
    """Return what understands the stream of a run, and the stream, as long as it is there whole."""
    from covey.agents import registry  # few commands read what an agent said, and all of them start with this module
    from covey.agents.agent import terminal_of

    runner = call.house.runner
    try:
        agent = registry.find(run.agent, call.house.config.declared())
    except CoveyError:
        return None, None
    journal, terminal = journals.find(folder), terminal_of(run, agent)
    if terminal is not None and journal is not None and journal.size():
        return terminal.read, journal.read
    if runner is None or run.runner != runs.PROCESS or not agent.traits.speaks or not runner.look(run.id).size:
        return None, None
    return edits.reader(agent, folder, run), lambda since: runner.output(run.id, since)


def _kept(folder: Path) -> list[str]:
    """Return the lines of the transcript that was kept of a run."""
    lines: list[str] = []
    at = 0
    while True:
        part = transcripts.kept(folder, at)
        if part is None or part[1] == at or not part[0]:
            return lines
        lines += part[0].splitlines()
        at = part[1]


def _printed(call: Call, run: runs.Run) -> list[str]:
    """Return what a run printed that has no stream with a structure."""
    runner = call.house.runner
    if runner is None or not runner.look(run.id).size:
        return []
    return list(transcripts.whole(lambda since: runner.output(run.id, since), None))


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

    def listen(self, reader: edits.Reader, output: edits.Output) -> None:
        """Read a stream, each line of which may be the use of a tool."""
        transcript = Transcript()
        for raw in edits.lines_of(output):
            line = raw.decode(errors="replace")
            signals = reader(line)
            told = transcript.take(signals)
            used = [number for number, each in enumerate(told, len(self.lines)) if each.startswith(USES)]
            self.lines += told
            for number, call in zip(used, (each for each in signals if isinstance(each, Calls)), strict=False):
                self._note(number, call, line)

    def _note(self, number: int, call: Calls, line: str) -> None:
        """Note the use of a tool if it can have written what is looked for."""
        at = edits.moment_of(line)
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
        """Read a transcript of which only the words are left."""
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
