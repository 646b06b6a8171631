"""The agents of the night: programs that exist only in virtual time, and speak in signals written as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from covey.agents.agent import Assignment, Sight, Terminal, Traits, WithoutLedger
from covey.core.fleet import signals
from covey.core.fleet.launches import Launch, Screen
from covey.core.fleet.signals import Asks, Signal, Usage
from covey.core.people.questions import Reply

GAP = 2.0
MEMORY = 200 * 1024 * 1024
TRUE = "/bin/true"
"""A program that there is; no run of a night is a process."""
NAMES = ("night", "owl")
"""Two agents that speak: one says what each call cost, one besides what its conversation cost in all."""


@dataclass(frozen=True)
class NightTerminal:
    """The program as a person sees it, of which nothing is read."""

    name: str
    begins: bool = True

    def launch(self, work: Assignment) -> Launch:
        return _launch(self.name, work, terminal=True)

    def see(self, screen: Screen) -> Sight:
        return Sight.BUSY

    def typed(self, screen: Screen) -> str:
        return ""

    def asked(self, screen: Screen) -> str:
        return ""

    def says(self, screen: Screen) -> signals.Limited | signals.Compacts | None:
        return None

    def journal(self, work: Assignment) -> str | None:
        return None

    def read(self, line: str) -> list[Signal]:
        return []

    def leave(self) -> str:
        return "leave"


@dataclass(frozen=True)
class NightAgent(WithoutLedger):
    """A program that says all that it does."""

    name: str
    traits: Traits = field(
        default_factory=lambda: Traits(
            speaks=True, resumes=True, priced=True, compact="compact", gap=GAP, memory=MEMORY
        )
    )

    @property
    def terminal(self) -> Terminal | None:
        return NightTerminal(self.name)

    def launch(self, work: Assignment) -> Launch:
        return _launch(self.name, work, terminal=False)

    def read(self, line: str) -> list[Signal]:
        try:
            told = json.loads(line)
        except ValueError:
            return [signals.Said(line)] if line.strip() else []
        return [_signal(told)]

    def say(self, text: str) -> str | None:
        return json.dumps({"say": text})

    def answer(self, asks: Asks, reply: Reply) -> str | None:
        return json.dumps({"answer": asks.id, "allows": reply.allows, "text": reply.text})


night, owl = (NightAgent(name) for name in NAMES)


def spoken(signal: Signal) -> str:
    """Return a signal as the line that an agent of the night prints."""
    return json.dumps({"signal": type(signal).__name__, **asdict(signal)})


def _signal(told: dict[str, Any]) -> Signal:
    kind = told.pop("signal")
    if "usage" in told:
        told["usage"] = Usage(**told["usage"])
    if "choices" in told:
        told["choices"] = tuple(told["choices"])
    if "trouble" in told:
        told["trouble"] = signals.Trouble(told["trouble"])
    if "wants" in told:
        told["wants"] = signals.Wants(told["wants"])
    made: Signal = getattr(signals, kind)(**told)
    return made


def _launch(name: str, work: Assignment, *, terminal: bool) -> Launch:
    env = {**work.env, "NIGHT_AGENT": name, "NIGHT_CONVERSATION": work.conversation or ""}
    return Launch(argv=(TRUE,), cwd=work.worktree, env=env, typed=True, terminal=terminal)
