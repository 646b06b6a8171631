"""What an agent program lets us know by its output; every agent says it in these words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import StrEnum

from covey.values import dataclass


class Trouble(StrEnum):
    """Why an agent cannot go on; what follows from each is decided in `outcomes`."""

    LIMIT = "limit"
    """Its provider takes no more requests of ours for now."""
    OVERLOAD = "overload"
    """Its provider has no room for anybody, or fails."""
    CONNECTION = "connection"
    """Its provider does not answer, or the answer was cut off."""
    KEY = "key"
    """It has no right to ask: a key or a login is missing or wrong."""
    CREDIT = "credit"
    """Nobody pays for it any more."""
    CONTEXT = "context"
    """The conversation has become too long, and could not be made shorter."""
    CORRUPT = "corrupt"
    """The conversation is broken: its provider refuses it for ever."""
    BUDGET = "budget"
    """It has spent what it was allowed to."""
    OTHER = "other"
    """It gave up for a reason of its own."""


class Wants(StrEnum):
    """What a question wants."""

    PERMISSION = "permission"
    """A word that it may do something."""
    ANSWER = "answer"
    """An answer in words."""


@dataclass(frozen=True)
class Usage:
    """Tokens; `input` are those that came from no cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return the tokens of each kind."""
        return self.input, self.output, self.cache_read, self.cache_write

    def with_other(self, combine: Callable[[int, int], int], other: Usage) -> Usage:
        """Return of each kind what its two numbers come to."""
        return Usage(*map(combine, self.counts, other.counts))

    def __add__(self, other: Usage) -> Usage:
        return self.with_other(int.__add__, other)

    def __sub__(self, other: Usage) -> Usage:
        """Return of each kind what is more than the other has, never less than nothing."""
        return self.with_other(lambda mine, theirs: max(mine - theirs, 0), other)

    def covers(self, other: Usage) -> bool:
        """Say whether the other can be a part of it."""
        return self.or_more(other) == self

    def or_more(self, other: Usage) -> Usage:
        """Return of each kind what is more."""
        return self.with_other(max, other)

    @property
    def tokens(self) -> int:
        """Return all tokens together."""
        return sum(self.counts)


@dataclass(frozen=True)
class Said:
    """It said or did something that people may like to see."""

    text: str
    piece: bool = False
    """It is a piece of a message: those that come one after the other are joined as they are."""


@dataclass(frozen=True)
class Asks:
    """It waits for a person's answer."""

    question: str
    id: str = ""
    """The agent's own name for the question, by which it is answered; the same question has the same."""
    wants: Wants = Wants.ANSWER
    tool: str = ""
    """For a permission: the tool, `shell` for a command."""
    about: str = ""
    """For a permission: the whole command, path or address; what a permit is compared with."""
    choices: tuple[str, ...] = ()
    handle: str = ""
    """By what the agent takes the question back, if not by its name."""


@dataclass(frozen=True)
class Settled:
    """It wants no answer to one of its questions any more, and goes on."""

    id: str
    """The handle of the question, or its name."""


@dataclass(frozen=True)
class Works:
    """It goes on, after a question too."""


@dataclass(frozen=True)
class Waits:
    """It has asked its model, and waits for what that says."""


@dataclass(frozen=True)
class Calls:
    """It began to use a tool."""

    id: str
    tool: str
    """The tool, `shell` for a command."""
    about: str
    """What it uses the tool for: the command, the path; the same call again has the same, to the last character."""
    edit: str = field(default="", compare=False)
    """For people: the lines that it takes out and puts in, with - and + before them, if it edits and we can tell."""


@dataclass(frozen=True)
class Called:
    """A use of a tool has ended."""

    id: str
    failed: bool = False
    result: str | None = field(default=None, compare=False)
    """A mark of what came of it, the same only if that was the same; None if the agent does not say."""
    output: str = field(default="", compare=False)
    """For people: what it printed or answered, as far as the agent says that."""


@dataclass(frozen=True)
class Conversation:
    """The name under which the agent can take this conversation up again."""

    id: str


@dataclass(frozen=True)
class Spent:
    """One call of a model cost this; said twice of the same call, the last word counts."""

    call: str
    """The agent's own name for the call; empty if it has none, and says of each only once what it cost."""
    usage: Usage
    model: str | None = None
    cost: float | None = None
    """Dollars, if the agent knows them."""


@dataclass(frozen=True)
class Total:
    """All that a model cost so far; it takes the place of the single calls of that model."""

    usage: Usage
    model: str | None = None
    cost: float | None = None
    whole: bool = False
    """Since the conversation began, in earlier runs too; else since the program was started."""


@dataclass(frozen=True)
class Limited:
    """Its provider put it off, and it tries again by itself."""

    trouble: Trouble
    what: str
    until: float | None = None
    """When it may go on, in seconds since 1970, if that was named."""
    again_in: float | None = None
    """Seconds until it tries again."""


@dataclass(frozen=True)
class Compacts:
    """It makes its conversation shorter; `on` false: it has done so."""

    on: bool = True


@dataclass(frozen=True)
class Context:
    """How full its context is: tokens used of those that fit."""

    used: int
    window: int


@dataclass(frozen=True)
class Result:
    """What it says came of its work, in its own words; nothing follows unless it is told more."""

    text: str


@dataclass(frozen=True)
class Failed:
    """It says that it cannot go on."""

    what: str
    trouble: Trouble = Trouble.OTHER
    until: float | None = None
    """When it can go on, in seconds since 1970, if that was named."""


Signal = (
    Said
    | Asks
    | Settled
    | Works
    | Waits
    | Calls
    | Called
    | Conversation
    | Spent
    | Total
    | Limited
    | Compacts
    | Context
    | Result
    | Failed
)
