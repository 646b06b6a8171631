"""What every agent program is to covey: something that can be launched, and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from covey.core.launches import Launch
from covey.core.signals import Signal


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """One task for one run, as an agent needs it to be launched."""

    run: str
    session: str
    task: str
    title: str
    worktree: str
    prompt: str
    prompt_file: str
    """A file with the prompt, there when the program starts."""
    body_file: str
    """A file with the task's body alone, there when the program starts."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment that every agent gets: allow-listed, with git's settings and COVEY_*."""
    conversation: str | None = None
    """The conversation to take up again, if an earlier run of the task had one."""


class Agent(Protocol):
    """One agent program. Every method is pure and none may be left out."""

    @property
    def name(self) -> str:
        """Return the name by which sessions choose it."""

    def launch(self, work: Assignment) -> Launch:
        """Return how it is started on a piece of work."""

    def read(self, line: str) -> list[Signal]:
        """Return what one line of its output lets us know."""
