"""What every agent program is to covey: something that can be launched, read, and talked to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from covey.agents import streams
from covey.core.fleet.launches import Launch, Screen
from covey.core.fleet.runs import TMUX, Run
from covey.core.fleet.signals import Asks, Compacts, Limited, Signal
from covey.core.people.permits import PermissionLevel
from covey.core.people.questions import Reply
from covey.values import dataclass


@dataclass(frozen=True, kw_only=True)
class HookDoor:
    """Where an agent program asks covey at each step of its work."""

    url: str
    """The daemon's address on loopback; a hook is posted to /hooks/ and its moment there."""
    relay: tuple[str, ...]
    """The words that start the relay, for programs and moments that only know commands."""
    holds: bool = True
    """Whether a question for permission in a terminal is asked by a hook too, and kept open while a person decides."""


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
    folder: str = ""
    """The run's own folder, for files that the program needs beside the worktree."""
    git: str = ""
    """The folder that all worktrees share: a commit writes there."""
    entry: str = ""
    """The folder in it that is this worktree's own."""
    private: tuple[str, ...] = ()
    """Folders of covey's own that no agent may look into; its TMUX_TMPDIR may lie in one, and is its own."""
    program: str = ""
    """The program to start, if the settings name another than the usual one."""
    arguments: tuple[str, ...] = ()
    """What the settings add to its command line."""
    model: str = ""
    permissions: PermissionLevel = PermissionLevel.EDITS
    commands: tuple[str, ...] = ()
    """Commands that it may run without asking at the level `edits`: each stands for all that begin with its words."""
    gate: tuple[str, ...] = ()
    """What the gate runs: others of the same kind, such as one test, need no question at the level `edits`."""
    allowance: float | None = None
    """Dollars that it may spend, if there is a limit."""
    hooks: HookDoor | None = None
    """Where it asks at each step; None lets it work unasked."""

    def command(self, program: str, *words: str) -> list[str]:
        """Return how its command line begins: with its program, what that is always given, and the model if one is set.

        `program`: the usual one.
        """
        model = ["--model", streams.word(self.model)] if self.model else []
        return [streams.word(self.program) or program, *words, *model]


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What covey has to know of an agent program to treat it well."""

    speaks: bool = False
    """It always says how it ended (Result or Failed): one that ends without a word was cut off."""
    resumes: bool = False
    """It can take a conversation up again."""
    priced: bool = False
    """It says what it cost in dollars."""
    hooks: bool = False
    """It asks covey at each step of its work, if it is told where."""
    asks: bool = False
    """It asks for permission, and waits for it, before it runs a command that its level does not allow."""
    script: bool = False
    """What it is given is a script that it runs: words for somebody to read mean nothing to it."""
    fixed: bool = False
    """It is given nothing of its task, and does the same for every one."""
    bodies: bool = False
    """Of the words of its task it is given the body alone, so that there is nothing to run without one."""
    env: tuple[str, ...] = ()
    """Variables of the user's environment that it needs besides the usual ones; a name may end with *."""
    compact: str = ""
    """What is said to it so that it makes its conversation shorter; empty if it does that by itself or not at all."""
    gap: float = 0.0
    """Seconds between two starts."""
    memory: int = 64 * 1024 * 1024
    """Bytes that one of it takes, until we know better."""


class Sight(StrEnum):
    """What a terminal program's screen says of it."""

    STARTING = "starting"
    READY = "ready"
    """It stands at an empty prompt and takes a text."""
    TYPED = "typed"
    """It stands at a prompt in which something is written."""
    BUSY = "busy"
    ASKS = "asks"
    """A dialog waits for a person: a text typed now would answer it."""
    UNKNOWN = "unknown"


class Terminal(Protocol):
    """An agent program in a terminal, where a person can see and use it. Every method is pure."""

    @property
    def begins(self) -> bool:
        """Say whether a conversation can begin there; else one is only taken over that began elsewhere."""

    def launch(self, work: Assignment) -> Launch:
        """Return how it is started in a terminal; the prompt is not part of it, it is typed."""

    def see(self, screen: Screen) -> Sight:
        """Return what its screen says of it."""

    def typed(self, screen: Screen) -> str:
        """Return what is written at its prompt, as far as it can be seen; a text that is shown folded as its mark."""

    def asked(self, screen: Screen) -> str:
        """Return the question of the dialog that is open, for a person to read."""

    def says(self, screen: Screen) -> Limited | Compacts | None:
        """Return what only its screen says of what it does now: its journal is silent until that is over."""

    def journal(self, work: Assignment) -> str | None:
        """Return where it writes its conversation, as a pattern of a path; None if nowhere that we can read."""

    def read(self, line: str) -> list[Signal]:
        """Return what one line of its journal lets us know."""

    def leave(self) -> str:
        """Return what is typed at its prompt to end it."""


def traits_of(agent: Agent | None) -> Traits:
    """Return what covey has to know of an agent; of one that is no longer installed, nothing."""
    return Traits() if agent is None else agent.traits


def terminal_of(run: Run, agent: Agent | None) -> Terminal | None:
    """Return the terminal program that a run is, None if it is none."""
    if agent is None or agent.terminal is None or run.runner != TMUX:
        return None
    return agent.terminal if agent.terminal.begins or run.person else None


class Agent(Protocol):
    """One agent program. Every method is pure and none may be left out."""

    @property
    def name(self) -> str:
        """Return the name by which sessions choose it."""

    @property
    def traits(self) -> Traits:
        """Return what covey has to know of it."""

    @property
    def terminal(self) -> Terminal | None:
        """Return it as a terminal program, None if it is none."""

    def launch(self, work: Assignment) -> Launch:
        """Return how it is started on a piece of work."""

    def read(self, line: str) -> list[Signal]:
        """Return what one line of its output lets us know."""

    def ledger(self, folder: str, conversation: str) -> tuple[str, ...]:
        """Return where below its launch's ledger it writes what its calls cost, as patterns of paths.

        Nothing if its output says so in time, or if it cannot be found without the name of its conversation.
        """

    def count(self, line: str) -> list[Signal]:
        """Return what one line of its ledger says of its spending, and nothing else."""

    def edited(self, line: str) -> str | None:
        """Return what the edit in a line of its ledger took out and put in; None if its output has that.

        One for each edit that its output names, in the same order.
        """

    def bill(self) -> str | None:
        """Return what is typed so that it says what it has cost so far, None if it cannot be asked."""

    def say(self, text: str) -> str | None:
        """Return what is typed to tell it something while it works, None if it does not listen."""

    def answer(self, asks: Asks, reply: Reply) -> str | None:
        """Return what is typed to answer its question, None if it cannot be answered while it runs."""


class WithoutLedger:
    """The part of an agent that says in its output what it spends, or says it nowhere: nothing else is to be read."""

    def ledger(self, folder: str, conversation: str) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def count(self, line: str) -> list[Signal]:
        """Return nothing."""
        return []

    def edited(self, line: str) -> str | None:
        """Return nothing."""
        return None

    def bill(self) -> str | None:
        """Return nothing: it cannot be asked."""
        return None


class HearsNothing(WithoutLedger):
    """The part of an agent that is given its task and nothing after it: it never asks, and does not listen."""

    def say(self, text: str) -> str | None:
        """Return nothing: it does not listen while it works."""
        return None

    def answer(self, asks: Asks, reply: Reply) -> str | None:
        """Return nothing: it never asks."""
        return None
