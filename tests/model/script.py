"""What a scripted model says: values that hold for every protocol, and where in its script a conversation stands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

ALWAYS = sys.maxsize
"""The number of times of a trouble that never ends."""

# What the model does


@dataclass(frozen=True)
class Write:
    """Write a file with the agent's own tool for it; aider, which has none, only makes new ones."""

    path: str
    content: str


@dataclass(frozen=True)
class Read:
    """Read a file with the agent's own tool for it."""

    path: str


@dataclass(frozen=True)
class Shell:
    """Run a command with the agent's own tool for it."""

    command: str


@dataclass(frozen=True)
class Tool:
    """Call one tool by its name; arguments that are a string make a call of a free-form tool."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)


Action = Write | Read | Shell | Tool

# What goes wrong


@dataclass(frozen=True, kw_only=True)
class Fail:
    """Answer with an error; in the stream, after an answer that began well, where the protocol has a word for that."""

    status: int = 500
    type: str = "api_error"
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict)
    in_stream: bool = False
    times: int = 1
    whoever: bool = False


@dataclass(frozen=True, kw_only=True)
class Hang:
    """Say no more after so many frames of the stream, and keep the connection open."""

    after: int = 0
    times: int = ALWAYS
    whoever: bool = False


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Hang up after so many frames of the stream."""

    after: int = 3
    times: int = 1
    whoever: bool = False


Trouble = Fail | Hang | Cut
"""Each befalls the first `times` requests for its step: of each conversation, or, with `whoever`, of all together."""


def trouble_of(troubles: Iterable[Trouble], before: int, before_of_all: int) -> Trouble | None:
    """Return what befalls a request that so many others for the same step came before."""
    for trouble in troubles:
        count = before_of_all if trouble.whoever else before
        if count < trouble.times:
            return trouble
        before, before_of_all = before - trouble.times, before_of_all - trouble.times
    return None


# What it costs


@dataclass(frozen=True)
class Usage:
    """Tokens as providers bill them; `input` leaves out what was read from the cache or written to it."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


@dataclass(frozen=True)
class Price:
    """Dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0

    def of(self, usage: Usage) -> float:
        """Return what such usage costs."""
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        ) / 1_000_000


SCRIPTED_PRICE = Price(2.0, 10.0, 0.2, 2.5)
"""What opencode and aider are told that the model called `scripted` costs."""

NOTHING = Usage()
TURN = Usage(input=1000, output=50)
SIDE = Usage(input=100, output=5)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One answer of the model: what it says and does, when, and what goes wrong before it does."""

    text: str = ""
    do: tuple[Action, ...] = ()
    thinking: str = ""
    delay: float = 0.0
    chunk_delay: float = 0.0
    hold: str = ""
    """The name of a gate that the test opens; until then the model says nothing."""
    troubles: tuple[Trouble, ...] = ()
    usage: Usage = TURN
    stop: str = ""
    """The protocol's own word for why the answer ends, when it is not the usual one."""
    headers: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, Step] = field(default_factory=dict)
    """What it does instead if anybody but itself has said these words in the conversation; the first that fit count."""

    def given(self, words: str) -> Step:
        """Return what it does after a conversation in which others have said these words."""
        return next((step for sign, step in self.told.items() if sign in words), self)


@dataclass(frozen=True)
class Script:
    """What a model says, turn by turn; after the last step it only says that it is done."""

    steps: tuple[Step, ...]
    commit_message: str = "Do as the script says"
    """What it answers to an agent that commits by itself and asks for the words."""
    summary: Step = Step(usage=SIDE)
    """When it answers who asks for a summary of the conversation, and what goes wrong; the words are the server's."""

    def step(self, number: int) -> Step:
        """Return one step, and past the end a last word."""
        return self.steps[number] if number < len(self.steps) else Step(text="The script is over.")


def committing(path: str, content: str, message: str = "Do as the script says", **more: Any) -> Script:
    """Return a script that writes a file, commits it and says so; `more` goes into the first step."""
    return Script(
        (
            Step(text=f"I write {path}.", do=(Write(path, content),), **more),
            Step(do=(Shell(f"git add -A && git commit -q -m '{message}'"),)),
            Step(text=f"Done: {path} is committed."),
        ),
        commit_message=message,
    )


# Where a conversation stands


@dataclass(frozen=True)
class Message:
    """One message of a conversation; `calls` are the ids of the tools that the model called in it."""

    mine: bool
    text: str = ""
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """A step of a script."""

    script: str
    step: int


_MARKER = re.compile(r"\[\[script ([\w-]+)(?: from (\d+))?\]\]")
_CALL = re.compile(r"^(?:toolu|call)_([\w-]+)__(\d+)__[0-9a-f]+$")


def marker(script: str, step: int = 0) -> str:
    """Return what a prompt says to be answered by a script."""
    return f"[[script {script} from {step}]]" if step else f"[[script {script}]]"


def call_id(prefix: str, place: Place, nonce: str) -> str:
    """Return an id of a tool call that tells where it stood, which outlives compaction."""
    return f"{prefix}_{place.script}__{place.step}__{nonce}"


def find_place(messages: Iterable[Message], script: str) -> Place:
    """Return where a conversation stands: the last marker a user wrote names the script and starts the count."""
    step, mine = 0, False
    for message in messages:
        if message.mine:
            ours = [found for call in message.calls if (found := _CALL.match(call)) and found[1] == script]
            if ours:
                step = int(ours[-1][2]) + 1
            elif not mine:
                step += 1
        elif markers := _MARKER.findall(message.text):
            script, step = markers[-1][0], int(markers[-1][1] or 0)
        mine = message.mine
    return Place(script, step)
