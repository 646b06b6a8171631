"""Where the words of a run are, and what understands them: its output, its journal, or the transcript that was kept."""

from __future__ import annotations

from functools import partial

from covey.app.context import Call
from covey.app.history import journals, run_edits, transcripts
from covey.app.history.run_edits import Output, Reader
from covey.core.fleet import runs
from covey.errors import CoveyError, Unavailable
from covey.values import dataclass

TYPE_CHECKING = False  # As typing.TYPE_CHECKING: agents take their time to import.
if TYPE_CHECKING:
    from pathlib import Path

    from covey.agents.agent import Agent


@dataclass(frozen=True)
class Source:
    """Where the words of a run are: in what it printed or wrote, or, without an output, in what was kept of it."""

    output: Output | None
    reader: Reader | None
    """What understands them; without one they are plain lines."""
    size: int
    alive: bool

    def place(self, since: int) -> int:
        """Return a byte counted from the beginning; a negative one counts from the end."""
        return since if since >= 0 else max(self.size + since, 0)


def source_of(call: Call, run: runs.Run, *, raw: bool = False) -> Source:
    """Return where the words of a run are; `raw`: as it printed them, and not as its agent means them."""
    runner = call.context.runner
    if runner is None:
        raise Unavailable("Nothing can be read of runs here.")
    seen = runner.look(run.id)
    reader, journal = (None, None) if raw else reader_of(call, run, alive=seen.alive)
    is_gone = not seen.size or (run.runner == runs.TMUX and journal is None and not raw)
    if is_gone and not seen.alive and _is_kept(call, run):
        return Source(None, reader, 0, alive=False)
    if journal is not None:
        return Source(journal.read, reader, journal.size(), seen.alive)
    return Source(partial(runner.output, run.id), reader, seen.size, seen.alive)


def _is_kept(call: Call, run: runs.Run) -> bool:
    folder = call.context.runs
    return folder is not None and (folder / run.id / transcripts.TRANSCRIPT_FILE).exists()


def kept(call: Call, run: runs.Run, since: int) -> tuple[str, int, int]:
    """Return a part of the transcript that was kept, where it begins, and where the next part does."""
    assert call.context.runs is not None
    text, following = transcripts.kept(call.context.runs / run.id, since) or ("", max(since, 0))
    return text, following - len(text.encode()), following


def reader_of(call: Call, run: runs.Run, *, alive: bool) -> tuple[Reader | None, journals.Journal | None]:
    """Return what understands the output of a run, or, if it draws on a terminal, its journal.

    Nothing does if its agent is not known any more or prints plain lines.
    """
    agent = _agent_of(call, run)
    folder = None if call.context.runs is None else call.context.runs / run.id
    return (None, None) if agent is None else reader_by(agent, folder, run, alive=alive)


def reader_by(
    agent: Agent, folder: Path | None, run: runs.Run, *, alive: bool
) -> tuple[Reader | None, journals.Journal | None]:
    """Return the same where the agent is known; `folder`: the run's own."""
    from covey.agents.agent import terminal_of

    if run.runner == runs.PROCESS:
        reader = agent.read if folder is None else run_edits.reader(agent, folder, run)
        return (reader if agent.traits.speaks else None), None
    journal = None if folder is None else journals.find(folder)
    terminal = terminal_of(run, agent)
    if terminal is None or (journal is None and not alive):
        return None, None  # of one that ended without a word, what it drew says more
    return terminal.read, journal or journals.Journal("")


def words_of(call: Call, run: runs.Run) -> Reader | None:
    """Return what understands the words of a program that prints plain lines besides, None if it has none."""
    agent = _agent_of(call, run) if run.runner == runs.PROCESS else None
    return None if agent is None else agent.read


def _agent_of(call: Call, run: runs.Run) -> Agent | None:
    try:
        return call.context.agent(run.agent)
    except CoveyError:
        return None
