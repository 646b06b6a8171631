"""What a run has let us know so far: its signals, put together."""

from __future__ import annotations

import hashlib
from dataclasses import field, replace

from covey.core import signals, ways_out
from covey.core.permits import SHELL
from covey.core.signals import Asks, Calls, Limited, Signal, Trouble
from covey.core.spending import Bill
from covey.values import dataclass

SAID = 64_000
"""Characters of what was said that are kept."""


@dataclass(frozen=True)
class Call:
    """A use of a tool that has not ended, and since when."""

    tool: str
    about: str
    since: float


@dataclass
class Heard:
    """What a run has let us know; lost with us, and made again from its output. Times are the watcher's."""

    said: str = ""
    last: str = ""
    """What it said last."""
    in_pieces: bool = False
    """What it said last came in pieces, and another may follow."""
    asks: dict[str, Asks] = field(default_factory=dict)
    """The questions that it has asked and not gone on from, by a key that is the same however often they are read."""
    answered: set[str] = field(default_factory=set)
    """Those from which it has gone on."""
    conversation: str | None = None
    result: str | None = None
    failed: str | None = None
    trouble: Trouble | None = None
    until: float | None = None
    """When it can go on, as its provider named it."""
    at: float | None = None
    """When it last let us know anything."""
    waits: float | None = None
    """Since when it waits for its model."""
    asked: int = 0
    """How often it asked its model in all: never, before it has its prompt."""
    turns: int = 0
    """The same, where the results of several tools at once are one answer to it."""
    calls: dict[str, Call] = field(default_factory=dict)
    last_call: tuple[str, str] | None = None
    called: float | None = None
    """When it last began to use a tool."""
    repeats: int = 0
    """How often in a row it has used the same tool for the same, and the same came of it."""
    last_result: tuple[bool, str | None] | None = None
    """Whether its last use of a tool failed, and what came of it; None while that goes on."""
    limited: Limited | None = None
    """It was put off, and has not gone on since."""
    put_off: float | None = None
    """Since when it has been put off again and again."""
    limits: int = 0
    """How often it was put off in all."""
    used: set[str] = field(default_factory=set)
    """The names of all its uses of tools."""
    sent: list[str] = field(default_factory=list)
    """Commands that led out of the machine, as far as their words tell, and did not fail."""
    compacts: float | None = None
    compacted: int = 0
    context: float | None = None
    """How full its context is, 1.0 is full."""
    bill: Bill = field(default_factory=Bill)
    unnamed: int = 0
    """How many calls of a model without a name are in it."""

    @property
    def is_over(self) -> bool:
        """Say whether it has said all that it had to say, unless it is told more."""
        return self.result is not None or self.failed is not None

    @property
    def is_between(self) -> bool:
        """Say whether it has had an answer, and has neither asked again nor begun to use a tool."""
        return self.waits is None and not self.calls

    def take(self, signal: Signal, at: float) -> None:
        """Take one signal in; whatever comes after a question shows that it was answered."""
        self.at = at
        match signal:
            case signals.Spent(call=""):
                self.unnamed += 1
                self.bill.take(replace(signal, call=f"#{self.unnamed}"))
                return
            case signals.Spent() | signals.Total():
                self.bill.take(signal)
                return
            case signals.Context(used, window):
                self.context = used / window if window > 0 else None
                return
            case signals.Conversation(name):
                self.conversation = name
                return
            case Asks():
                self._ask(signal)
                return
            case _:
                self._answered()
        if not isinstance(signal, signals.Said):
            self.in_pieces = False
        match signal:
            case signals.Said():
                self._say(signal)
                self._goes_on()
            case signals.Waits():
                self.turns += self.waits is None
                self.waits = at
                self.asked += 1
                self.result, self.failed, self.trouble, self.until = None, None, None, None
            case signals.Settled(name):
                self._goes_on()
                for key in [key for key, asks in self.asks.items() if name in (asks.handle, asks.id)]:
                    self.close(key)
            case Calls():
                self._call(signal, at)
            case signals.Called():
                self._called(signal)
            case Limited():
                self.limited, self.limits = signal, self.limits + 1
                self.put_off = at if self.put_off is None else self.put_off
            case signals.Compacts(on):
                self.compacts = at if on else None
                self.compacted += not on
            case signals.Result(text):
                self._end(result=text or self.last.strip())  # some end without words of their own
            case signals.Failed(what, trouble, until):
                named = self.limited.until if self.limited is not None and trouble is Trouble.LIMIT else None
                self._end(failed=what, trouble=trouble, until=until or named)
            case _:
                self._goes_on()

    def _say(self, said: signals.Said) -> None:
        """Keep what was said as lines; the pieces of a message are joined to one."""
        goes_on = said.piece and self.in_pieces
        before = self.said.removesuffix("\n") if goes_on else self.said
        self.said = f"{before}{said.text}\n"[-SAID:]
        self.last = f"{self.last}{said.text}"[-SAID:] if goes_on else said.text
        self.in_pieces = said.piece

    def _ask(self, asks: Asks) -> None:
        self.waits = None
        key = digest(asks.id) if asks.id else f"#{len(self.asks) + len(self.answered) + 1}"
        if key not in self.answered:
            self.asks[key] = asks

    def _answered(self) -> None:
        """Whatever comes after a question without a name shows that it was answered; one with a name stays open."""
        for key in [key for key, asks in self.asks.items() if not asks.id]:
            self.close(key)

    def close(self, key: str) -> None:
        """Note that a question needs no answer any more."""
        if self.asks.pop(key, None) is not None:
            self.answered.add(key)

    def _call(self, call: Calls, at: float) -> None:
        self._goes_on()
        self.used.add(call.id)
        self.calls[call.id] = Call(call.tool, call.about, at)
        now = (call.tool, call.about)
        if now != self.last_call:
            self.repeats, self.last_result = 0, None
        self.last_call, self.called = now, at

    def _called(self, called: signals.Called) -> None:
        call, result = self.calls.pop(called.id, None), (called.failed, called.result)
        if call is not None and call.tool == SHELL and not called.failed and ways_out.found(call.about):
            self.sent.append(call.about)
        if call is None or (call.tool, call.about) != self.last_call:
            return  # another has begun meanwhile
        self.repeats = self.repeats + 1 if result == self.last_result else 1
        self.last_result = result

    def _goes_on(self) -> None:
        self.waits, self.limited, self.put_off, self.compacts = None, None, None, None

    def _end(
        self,
        *,
        result: str | None = None,
        failed: str | None = None,
        trouble: Trouble | None = None,
        until: float | None = None,
    ) -> None:
        self._goes_on()
        self.calls.clear()
        for key in list(self.asks):
            self.close(key)
        self.result, self.failed, self.trouble, self.until = result, failed, trouble, until


def digest(name: str) -> str:
    """Return a short name for a long one."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
