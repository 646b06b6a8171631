"""What an agent program lets us know by its output; every agent says it in these words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """It said or did something that people may like to see."""

    text: str


@dataclass(frozen=True)
class Asks:
    """It waits for a person's answer."""

    question: str


@dataclass(frozen=True)
class Works:
    """It goes on, after a question too."""


@dataclass(frozen=True)
class Conversation:
    """The name under which the agent can take this conversation up again."""

    id: str


@dataclass(frozen=True)
class Result:
    """What it says came of its work, in its own words."""

    text: str


@dataclass(frozen=True)
class Failed:
    """It says that it cannot go on."""

    what: str


Signal = Said | Asks | Works | Conversation | Result | Failed
