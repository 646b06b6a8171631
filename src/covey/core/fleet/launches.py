"""How a program is started, and what can be seen of it afterwards: what agents ask for and runners do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from covey.values import dataclass


@dataclass(frozen=True)
class Layer:
    """A folder that can be written and stays as it is: what is written lies in `upper`, and is thrown away."""

    place: str
    lower: tuple[str, ...]
    """What is seen at the place, the first before the others."""
    upper: str
    work: str
    """An empty folder beside `upper` that the kernel needs."""
    absent: tuple[str, ...] = ()
    """Files in it that are not to be seen."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One start of a program: all that a runner has to know."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment of the program; nothing is inherited, and a runner adds only its mark (COVEY_RUN...)."""
    stdin: str | None = None
    """What it reads, and then the end of file; None gives it an empty one."""
    typed: bool = False
    """Its input stays open until `finish`, and what is typed to the run arrives there."""
    apart: bool = False
    """What it says on standard error is kept apart from its output, since that is for a machine to read."""
    terminal: bool = False
    """It wants a terminal to draw on; only a runner that has one can start it."""
    most: int = 0
    """Bytes of output after which the run is ended at once, whoever watches it or not; 0 means any number."""
    layers: tuple[Layer, ...] = ()
    """What is laid over folders first, for this program alone."""
    ledger: str = ""
    """The folder below which the program writes what its calls of a model cost, if it does so beside its output."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that must be there when it starts, by their whole path; written by whoever calls the runner."""


@dataclass(frozen=True)
class Observation:
    """What a runner sees of a run."""

    known: bool
    """It was started here once, or stopped before it could be; it is never started again."""
    alive: bool
    """Something of it may still write; a run that is not alive stays so."""
    code: int | None = None
    """Its exit code, negative for a signal; None while it lives, and if nobody saw it end."""
    size: int = 0
    """Bytes of its output so far."""
    failure: str | None = None
    """Why the program could not be started at all."""
    held: bool = False
    """It stands still because it was told to."""
    cpu: float | None = field(default=None, compare=False)
    """Seconds of processor time that it and all that it started used; known when it has ended, if somebody saw it."""


@dataclass(frozen=True)
class Activity:
    """What the processes of a run do, whatever they say."""

    cpu: float
    """Seconds of processor time that all of them used so far, also those that have ended."""
    processes: int
    """How many there are, the program itself among them."""
    memory: int
    """Bytes that would be free without them."""
    connections: int
    """Connections to a server that are open."""


@dataclass(frozen=True)
class Screen:
    """What a terminal shows."""

    lines: tuple[str, ...]
    column: int = 0
    row: int = 0
    """Where the cursor stands."""
    title: str = ""
