"""What a run's signals are to a reader: lines, each with a mark at its beginning that says what it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from covey.core.figures import span
from covey.core.fleet.signals import (
    Asks,
    Called,
    Calls,
    Compacts,
    Context,
    Conversation,
    Failed,
    Limited,
    Result,
    Said,
    Settled,
    Signal,
    Spent,
    Total,
    Waits,
    Wants,
    Works,
)
from covey.core.history.actions import USE_MARK
from covey.core.people.permits import SHELL

SAYS, USES, CAME, ASKS, TROUBLE, COMPACTS, ENDS = "- ", "> ", "< ", "? ", "! ", "~ ", "= "
MAX_ABOUT_CHARS = 300
"""Characters of what a tool is used for, and of a line that it printed."""
MAX_NESTING = 20
"""Levels within each other down to which what a tool is given is told; nobody reads on, and Python could not."""
PRINTED_LINES, LOOKED_LINES = 40, 6
"""Lines of what came of a command or a failure, and of what another tool found."""
MAX_TIME_S = datetime.max.replace(tzinfo=UTC).timestamp()


@dataclass
class Transcript:
    """Turns signals into lines as they come; one that begins in the middle of a run says all that it can."""

    calls: dict[str, Calls] = field(default_factory=dict)
    """The uses of tools that have not ended."""
    said: str = ""
    under: str | None = None
    """The use of a tool that was told last: what comes of it stands below it."""

    def take(self, signals: Sequence[Signal]) -> list[str]:
        """Return the lines that the signals of one line of output are worth, none for what is only of use to covey."""
        lines: list[str] = []
        for i, signal in enumerate(signals):
            following = signals[i + 1] if i + 1 < len(signals) else None
            if isinstance(signal, Said) and isinstance(following, Calls) and signal.text.startswith(following.tool):
                continue  # the same again, in words
            told = self._take(signal)
            if told:
                self.under = signal.id if isinstance(signal, Calls) else None
            lines += told
        return lines

    def _take(self, signal: Signal) -> list[str]:
        match signal:
            case Said(text, piece):
                self.said = text.strip()
                return [] if piece and not self.said else _marked(SAYS, text)
            case Calls(name, tool, about, edit):
                self.calls[name] = signal
                return [f"{USES}{_used(tool, about)}", *_below(edit.splitlines())]
            case Called():
                return self._called(signal)
            case Asks():
                return _asked(signal)
            case Limited():
                return _put_off(signal)
            case Compacts(on):
                return [f"{COMPACTS}{'makes' if on else 'made'} its conversation shorter"]
            case Result(text):
                repeats = self.said and text.strip() == self.said
                return _marked(ENDS, "done, as it said" if repeats else text.strip() or "done")
            case Failed(what, trouble, until):
                return _marked(TROUBLE, f"gave up ({trouble}): {_joined(what, _until(until))}")
            case Settled() | Works() | Waits() | Conversation() | Spent() | Total() | Context():
                return []

    def _called(self, called: Called) -> list[str]:
        call = self.calls.pop(called.id, None)
        used = "a tool" if call is None else _used(call.tool, call.about)
        printed = called.output.splitlines()
        if called.failed:
            return [f"{TROUBLE}failed: {used}", *_below(_shortened(printed, PRINTED_LINES))]
        if not printed or (call is not None and call.edit):  # of an edit that went in its lines say all
            return []
        most = PRINTED_LINES if call is None or call.tool == SHELL else LOOKED_LINES
        head = [] if self.under == called.id else [f"{CAME}{used}"]
        return [*head, *_below(_shortened(printed, most))]


def words_of(line: str) -> str:
    """Return a line of a transcript without the mark at its beginning."""
    return line[2:] if line[:2] in (SAYS, USES, CAME, ASKS, TROUBLE, COMPACTS, ENDS, "  ") else line


def _below(lines: Sequence[str]) -> list[str]:
    return [f"  {line[:MAX_ABOUT_CHARS]}{'…' if len(line) > MAX_ABOUT_CHARS else ''}".rstrip() for line in lines]


def _shortened(lines: Sequence[str], most: int) -> list[str]:
    """Leave out the middle of what is too long: what it is stands at the beginning, what went wrong at the end."""
    if len(lines) <= most:
        return list(lines)
    head = most // 4
    return [*lines[:head], f"… {len(lines) - most + 1} lines …", *lines[len(lines) - most + head + 1 :]]


def _marked(mark: str, text: str) -> list[str]:
    """Return a text with a mark before its first line, the others below it."""
    first, *rest = text.strip().splitlines() or [""]
    return [f"{mark}{first}".rstrip(), *(f"  {line}".rstrip() for line in rest)]


def _used(tool: str, about: str) -> str:
    first, *rest = _plain(USE_MARK.sub("", about)).strip().splitlines() or [""]
    cut = first[:MAX_ABOUT_CHARS] + ("…" if rest or len(first) > MAX_ABOUT_CHARS else "")
    return f"{' '.join(tool.split())}: {cut}".removesuffix(": ")


def _plain(about: str) -> str:
    """Return what a tool is given in words, where that is an object."""
    if not about.startswith("{"):
        return about
    try:
        given = json.loads(about)
    except (ValueError, RecursionError):
        return about
    return ", ".join(f"{key}: {_value(value)}" for key, value in given.items())


def _value(value: object, levels: int = MAX_NESTING) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping | list) and not levels:
        return "…"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(each, levels - 1)}" for key, each in value.items())
    if isinstance(value, list):
        return "; ".join(_value(each, levels - 1) for each in value)
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "none"}[value]
    return str(value)


def _put_off(limited: Limited) -> list[str]:
    again = "" if limited.again_in is None else f"; it tries again in {span(limited.again_in)}"
    return _marked(TROUBLE, f"put off ({limited.trouble}): {_joined(limited.what, _until(limited.until) + again)}")


def _asked(asks: Asks) -> list[str]:
    """Return a question with what it is about and its choices."""
    lines = _marked(ASKS, asks.question)
    if asks.wants is Wants.PERMISSION and asks.about and asks.about not in asks.question:
        lines.append(f"  {_used(asks.tool, asks.about)}")
    return lines + ([f"  choices: {', '.join(asks.choices)}"] if asks.choices else [])


def _joined(sentence: str, more: str) -> str:
    """Let a sentence go on with what follows it, if anything does."""
    return sentence.removesuffix(".") + more if more else sentence


def _until(moment: float | None) -> str:
    """Return when something ends, in the words of a line; a time that no calendar has is left out."""
    if moment is None or not 0 <= moment < MAX_TIME_S:
        return ""
    return f", until {datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
