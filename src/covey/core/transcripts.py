"""What a run's signals are to a reader: lines, each with a mark at its beginning that says what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from covey.core.signals import (
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

SAYS, USES, ASKS, TROUBLE, COMPACTS, ENDS = "- ", "> ", "? ", "! ", "~ ", "= "
ABOUT = 300
"""Characters of what a tool is used for."""
SPAN = datetime.max.replace(tzinfo=UTC).timestamp()


@dataclass
class Transcript:
    """Turns signals into lines as they come; one that begins in the middle of a run says all that it can."""

    calls: dict[str, str] = field(default_factory=dict)
    """The uses of tools that have not ended."""
    said: str = ""

    def take(self, signals: Sequence[Signal]) -> list[str]:
        """Return the lines that the signals of one line of output are worth, none for what is only of use to covey."""
        lines: list[str] = []
        for i, signal in enumerate(signals):
            following = signals[i + 1] if i + 1 < len(signals) else None
            if isinstance(signal, Said) and isinstance(following, Calls) and signal.text.startswith(following.tool):
                continue  # the same again, in words
            before = signals[i - 1] if i else None
            if isinstance(signal, Calls) and isinstance(before, Said) and before.text.startswith(signal.tool):
                signal = replace(signal, about=before.text.removeprefix(signal.tool).removeprefix(": "))
            lines += self._take(signal)
        return lines

    def _take(self, signal: Signal) -> list[str]:
        match signal:
            case Said(text, piece):
                self.said = text.strip()
                return [] if piece and not self.said else _marked(SAYS, text)
            case Calls(name, tool, about):
                self.calls[name] = used = _used(tool, about)
                return [f"{USES}{used}"]
            case Called(name, failed):
                used = self.calls.pop(name, "a tool")
                return [f"{TROUBLE}failed: {used}"] if failed else []
            case Asks():
                return _asked(signal)
            case Limited():
                again = "" if signal.again_in is None else f"; it tries again in {signal.again_in:.0f} s"
                return _marked(TROUBLE, f"put off ({signal.trouble}): {signal.what}{_until(signal.until)}{again}")
            case Compacts(on):
                return [
                    f"{COMPACTS}makes its conversation shorter" if on else f"{COMPACTS}made its conversation shorter"
                ]
            case Result(text):
                repeats = self.said and text.strip() == self.said
                return _marked(ENDS, "done, as it said" if repeats else text.strip() or "done")
            case Failed(what, trouble, until):
                return _marked(TROUBLE, f"gave up ({trouble}): {what}{_until(until)}")
            case Settled() | Works() | Waits() | Conversation() | Spent() | Total() | Context():
                return []


def _marked(mark: str, text: str) -> list[str]:
    """Return a text with a mark before its first line, the others below it."""
    first, *rest = text.strip().splitlines() or [""]
    return [f"{mark}{first}".rstrip(), *(f"  {line}".rstrip() for line in rest)]


def _used(tool: str, about: str) -> str:
    first, *rest = about.strip().splitlines() or [""]
    cut = first[:ABOUT] + ("…" if rest or len(first) > ABOUT else "")
    return f"{' '.join(tool.split())}: {cut}".removesuffix(": ")


def _asked(asks: Asks) -> list[str]:
    """Return a question with what it is about and its choices."""
    lines = _marked(ASKS, asks.question)
    if asks.wants is Wants.PERMISSION and asks.about and asks.about not in asks.question:
        lines.append(f"  {_used(asks.tool, asks.about)}")
    return lines + ([f"  choices: {', '.join(asks.choices)}"] if asks.choices else [])


def _until(moment: float | None) -> str:
    """Return when something ends, in the words of a line; a time that no calendar has is left out."""
    if moment is None or not 0 <= moment < SPAN:
        return ""
    return f", until {datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
