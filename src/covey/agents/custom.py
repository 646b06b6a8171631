"""An agent of your own: any program, declared in covey.toml by its command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from covey.agents import streams
from covey.agents.agent import Assignment, Terminal, Traits, WithoutLedger
from covey.core import texts
from covey.core.fleet import signals
from covey.core.fleet.launches import Launch
from covey.core.fleet.signals import Signal, Trouble
from covey.core.people.questions import Decision, Reply
from covey.errors import Invalid
from covey.values import dataclass

PLACEHOLDERS = ("prompt", "prompt_file", "body_file", "worktree", "task", "title", "session", "run")
"""What may stand in braces in a command."""

MAX_WORD_BYTES = 100 * 1024
"""Bytes up to which a word is passed to a program; the kernel refuses one of 128 KiB."""

MAX_SIGNAL_CHARS = 1024 * 1024
"""Characters up to which a line may be a signal."""

MAX_NUMBER = 2.0**50
"""More than any number that a signal can mean."""

_PROMPT = frozenset(("prompt", "prompt_file"))
_TEXT = frozenset((*_PROMPT, "body_file", "title"))
"""Those that bring in what somebody wrote in a task; its id is covey's own."""
_PLACEHOLDER = re.compile(r"(?<!\$)\{(" + "|".join(PLACEHOLDERS) + r")\}")
_LIKE_A_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z][A-Za-z_-]*)\}")


@dataclass(frozen=True)
class Declared(WithoutLedger):
    """A program that is started by a command with placeholders, and speaks in lines."""

    name: str
    command: tuple[str, ...]
    terminal: Terminal | None = None

    @property
    def traits(self) -> Traits:
        """Return what can be known of a program from how it is started: one that gets no prompt reads none."""
        given = {name for word in self.command for name in _PLACEHOLDER.findall(word)}
        words = given & _TEXT
        return Traits(script=given.isdisjoint(_PROMPT), fixed=not words, bodies=words == {"body_file"})

    def launch(self, work: Assignment) -> Launch:
        """Return the command with the work in its placeholders; the program is answered on its standard input."""
        values = {name: str(getattr(work, name)).replace("\0", "") for name in PLACEHOLDERS}
        short = values | {"prompt": f"Read the file {values['prompt_file']}: it says all that you have to do."}
        argv: list[str] = []
        for word in self.command:  # once: what is put in is not looked at again
            filled = _PLACEHOLDER.sub(lambda found: values[found[1]], word)
            if len(filled.encode("utf-8", "replace")) > MAX_WORD_BYTES:
                filled = _PLACEHOLDER.sub(lambda found: short[found[1]], word)
            argv.append(filled)
        return Launch(argv=tuple(argv), cwd=work.worktree, env=dict(work.env), typed=True)

    def read(self, line: str) -> list[Signal]:
        """Return the signal that a line is, or else the line as something said."""
        line = line.strip()
        signal = _signal(line)
        if signal is not None:
            return [signal]
        return [*streams.said(line[: 4 * streams.MAX_SHOWN_CHARS].rpartition("\r")[2])]

    def say(self, text: str) -> str | None:
        """Return the text as it is typed."""
        return text

    def answer(self, asks: signals.Asks, reply: Reply) -> str | None:
        """Return the answer as one line, which is what a program that asked reads."""
        words = reply.text if reply.decision in (Decision.REPLY, Decision.ALLOW) else f"{reply.decision} {reply.text}"
        return " ".join(words.split())


def check(name: str, command: object) -> tuple[str, ...]:
    """Return the command that a table of covey.toml declares for an agent, or say what is wrong with it."""
    texts.name(name, "The name of an agent")
    if not isinstance(command, list | tuple) or not all(isinstance(word, str) for word in command):
        raise Invalid(
            f"The command of the agent {name} must be a list of texts.", hint='Like command = ["bash", "{body_file}"].'
        )
    if not command or not command[0].strip():
        raise Invalid(f"The command of the agent {name} names no program.", hint='Like ["bash", "{body_file}"].')
    for word in command:
        if "\0" in word:
            raise Invalid(f"The command of the agent {name} has a NUL in it.")
        for named in _LIKE_A_PLACEHOLDER.findall(word):  # other braces belong to the program
            import difflib  # only braces need it, and every command reads the settings

            near = difflib.get_close_matches(named.lower().replace("-", "_"), PLACEHOLDERS, 1, 0.6)
            if near and named not in PLACEHOLDERS:
                raise Invalid(
                    f"The command of the agent {name} has {{{named}}} in it, which covey does not know.",
                    hint=f"Did you mean {{{near[0]}}}?",
                )
    return tuple(command)


def _signal(line: str) -> Signal | None:
    """Return what a line means that is one JSON object with `covey` in it, as a signal."""
    told = _told(line)
    text, name, tool, about = (streams.text(told, key) for key in ("text", "id", "tool", "about"))
    # One case for each signal that a program may give.
    match told.get("covey"):
        case "working":
            return signals.Works()
        case "ask" if text:
            return signals.Asks(text)
        case "result" if text:
            return signals.Result(text)
        case "failed" if text:
            return signals.Failed(text, _trouble(told, Trouble.OTHER), _number(told, "until"))
        case "limited" if text:
            return signals.Limited(_trouble(told, Trouble.LIMIT), text, _number(told, "until"))
        case "conversation" if name:
            return signals.Conversation(name)
        case "waits":
            return signals.Waits()
        case "calls" if tool:
            return signals.Calls(name, tool, about)
        case "called":
            result = streams.mark(told["result"]) if "result" in told else None
            return signals.Called(name, result=result, output=streams.output(told.get("result")))
        case "spent" if call := streams.text(told, "call"):
            counts = (int(_number(told, key) or 0) for key in ("input", "output", "cache_read", "cache_write"))
            return signals.Spent(
                call, signals.Usage(*counts), streams.text(told, "model") or None, _number(told, "cost")
            )
    return None


def _told(line: str) -> Mapping[str, Any]:
    """Return the JSON object of a line, an empty one if it is nothing that was said to covey."""
    if len(line) > MAX_SIGNAL_CHARS or '"covey"' not in line:
        return {}
    return streams.record(line) or {}


def _number(told: Mapping[str, Any], key: str) -> float | None:
    """Return a number that makes sense, None if none was said."""
    return streams.amount(told, key, MAX_NUMBER)


def _trouble(told: Mapping[str, Any], usual: Trouble) -> Trouble:
    return next((trouble for trouble in Trouble if trouble == told.get("trouble")), usual)
