"""What a run's output lets us know, read on from where we were."""

from __future__ import annotations

from dataclasses import dataclass

from covey.agents.agent import Agent
from covey.core import signals
from covey.runners.runner import Runner

LINE = 1024 * 1024
"""Bytes of a line beyond which it is nobody's signal."""
SAID = 64_000
"""Characters of what was said that are kept."""
MOST = 64 * 1024 * 1024
"""Bytes that are read at most of what was printed before we began to listen."""


@dataclass
class Heard:
    """What a run has let us know so far; lost with us, and made again from its output."""

    read: int = 0
    rest: bytes = b""
    said: str = ""
    asks: str | None = None
    """The question that it waits with."""
    conversation: str | None = None
    result: str | None = None
    failed: str | None = None

    def take(self, signal: signals.Signal) -> None:
        """Take one signal in; whatever comes after a question shows that it was answered."""
        self.asks = None
        match signal:
            case signals.Said(text):
                self.said = f"{self.said}{text}\n"[-SAID:]
            case signals.Asks(question):
                self.asks = question
            case signals.Conversation(name):
                self.conversation = name
            case signals.Result(text):
                self.result = text
            case signals.Failed(what):
                self.failed = what
            case signals.Works():
                pass


def listen(heard: Heard, agent: Agent | None, runner: Runner, run_id: str, size: int) -> None:
    """Read all that a run has printed since; an agent that nobody knows any more is read and not understood."""
    if size - heard.read > MOST:
        heard.read, heard.rest = size - MOST, b""
    while True:
        data, following = runner.output(run_id, heard.read)
        if not data:
            return
        heard.read = following
        *lines, heard.rest = (heard.rest + data).split(b"\n")
        if len(heard.rest) > LINE:
            heard.rest = b""
        _understand(heard, agent, lines)


def finish(heard: Heard, agent: Agent | None) -> None:
    """Understand a last line that nothing ended."""
    lines, heard.rest = [heard.rest], b""
    _understand(heard, agent, lines)


def _understand(heard: Heard, agent: Agent | None, lines: list[bytes]) -> None:
    if agent is not None:
        for line in lines:
            for signal in agent.read(line.decode(errors="replace")):
                heard.take(signal)
