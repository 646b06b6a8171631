"""The transcripts of runs that have ended: kept redacted, so that what was printed can go before them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from covey.agents.agent import Agent
from covey.app.history import run_streams
from covey.app.history.run_streams import Output, Reader
from covey.app.history.transcripts import TRANSCRIPT_FILE, plain, raw, readable, reader_by, whole
from covey.core.fleet.runs import PROCESS, Run
from covey.runners.process import ProcessRunner

END = 64 * 1024
"""Bytes of what a run printed of which its story is made."""
NOTHING_MORE = ("= done", "= done, as it said")
"""Last lines that tell nothing."""


def transcript_of(runner: ProcessRunner, folder: Path, run: Run, agent: Agent | None) -> Iterator[str]:
    """Yield the lines of a run's transcript, redacted; of an agent without a structured stream what it printed.

    `folder`: the run's own.
    """
    output, reader = _source(runner, folder, run, agent)
    plain = agent if reader is None and run.runner == PROCESS else None
    return whole(output, reader, None if plain is None else plain.read)


def end_of(runner: ProcessRunner, folder: Path, run: Run, agent: Agent | None, size: int) -> str:
    """Return the end of a run's transcript as its story tells it; "" of one that draws on a terminal.

    Of an agent with a structured stream that said nothing in it: what else it printed.
    """
    output, reader = _source(runner, folder, run, agent)
    journal = run_streams.find_journal(folder)
    if reader is not None:
        size = size if run.runner == PROCESS or journal is None else journal.size()
        text, _ = readable(output, reader, max(size - END, 0), size, alive=False)
        lines = text.splitlines()
        while lines and lines[-1] in NOTHING_MORE:
            lines.pop()
        return "\n".join(lines) or (_beside(output, size) if run.runner == PROCESS else "")
    if run.runner != PROCESS:
        return ""
    since = max(size - END, 0)
    return (plain(output, agent.read, since, size, alive=False) if agent else raw(output, since, size, alive=False))[0]


def _beside(output: Output, size: int) -> str:
    """Return the end of what was printed without the records of a stream, such as the complaint of a program."""
    since = max(size - END, 0)
    lines = raw(output, since, size, alive=False)[0].splitlines()[1 if since else 0 :]
    return "\n".join(line for line in lines if not line.lstrip().startswith("{"))


def _source(runner: ProcessRunner, folder: Path, run: Run, agent: Agent | None) -> tuple[Output, Reader | None]:
    """Return where a run's words are, and what understands them, if that is more than plain lines."""
    reader, journal = reader_by(agent, folder, run, alive=False)
    return (partial(runner.output, run.id) if journal is None else journal.read), reader


def keep_transcript(folder: Path, lines: Iterable[str]) -> None:
    """Keep the transcript of a run beside its output, whole or not at all; one that is kept already stays."""
    path, draft = folder / TRANSCRIPT_FILE, folder / f"{TRANSCRIPT_FILE}.new"
    if path.exists():
        return
    draft.unlink(missing_ok=True)
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "wb") as opened:
        with gzip.GzipFile("", "wb", 6, opened, mtime=0) as packed:
            for line in lines:
                packed.write(f"{line}\n".encode(errors="replace"))
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(path)
