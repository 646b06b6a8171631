"""What a run has let us know so far: its signals, put together."""

from __future__ import annotations

import hashlib
from dataclasses import field, replace

from covey.core.costs.spending import Bill
from covey.core.fleet import signals
from covey.core.fleet.signals import Asks, Calls, Limited, Signal, Trouble
from covey.core.people.commands import egress
from covey.core.people.permits import SHELL
from covey.values import dataclass

MAX_SAID_CHARS = 64_000
"""Characters of what was said that are kept."""


@dataclass(frozen=True)
class Call:
    """A use of a tool that has not ended, and since when."""

    tool: str
    about: str
    since: float


@dataclass
class RunState:
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
    background: set[str] = field(default_factory=set)
    """Those of its calls after which its model has spoken again: it does not wait for what comes of them."""
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
        """Say whether it has had an answer, and has neither asked again nor begun to use a tool for which it waits."""
        return self.waits is None and self.calls.keys() <= self.background

    def take(self, signal: Signal, at: float) -> None:
        """Take one signal in; whatever comes after a question shows that it was answered."""
        self.at = at
        if self._count(signal):
            return
        if isinstance(signal, Asks):
            self._ask(signal)
            return
        self._answered()
        if not isinstance(signal, signals.Said):
            self.in_pieces = False
        if not self._take_stop(signal, at):
            self._take_work(signal, at)

    def _take_stop(self, signal: Signal, at: float) -> bool:
        """Take in that the run is put off, shortens its conversation or ends; say whether it was such a signal."""
        match signal:
            case Limited():
                self.limited, self.limits = signal, self.limits + 1
                self.put_off = at if self.put_off is None else self.put_off
            case signals.Compacts(on):
                self.compacts = at if on else None
                self.compacted += not on
            case signals.Result(text):
                self._end()
                self.result = text or self.last.strip()  # some end without words of their own
            case signals.Failed(what, trouble, until):
                named = self.limited.until if self.limited is not None and trouble is Trouble.LIMIT else None
                self._end()
                self.failed, self.trouble, self.until = what, trouble, until or named
            case _:
                return False
        return True

    def _take_work(self, signal: Signal, at: float) -> None:
        """Take in that the run goes on: it speaks, asks its model, uses a tool, or no longer needs an answer."""
        if isinstance(signal, signals.Waits):
            self.turns += self.waits is None
            self.waits = at
            self.asked += 1
            self._forget_end()
            return
        if isinstance(signal, signals.Called):
            self._called(signal)
            return
        self._goes_on()
        match signal:
            case signals.Said():
                self._say(signal)
            case signals.Settled(name):
                for key in [key for key, asks in self.asks.items() if name in (asks.handle, asks.id)]:
                    self.close(key)
            case Calls():
                self._call(signal, at)

    def _count(self, signal: Signal) -> bool:
        """Take in what only counts, and tells nothing of whether the run goes on; say whether it was such a signal."""
        match signal:
            case signals.Spent(call=""):
                self.unnamed += 1
                self.bill.take(replace(signal, call=f"#{self.unnamed}"))
            case signals.Spent() | signals.Total():
                self.bill.take(signal)
            case signals.Context(used, window):
                self.context = used / window if window > 0 else None
            case signals.Conversation(name):
                self.conversation = name
            case _:
                return False
        return True

    def _say(self, said: signals.Said) -> None:
        """Keep what was said as lines; the pieces of a message are joined to one."""
        goes_on = said.piece and self.in_pieces
        before = self.said.removesuffix("\n") if goes_on else self.said
        self.said = f"{before}{said.text}\n"[-MAX_SAID_CHARS:]
        self.last = f"{self.last}{said.text}"[-MAX_SAID_CHARS:] if goes_on else said.text
        self.background = set(self.calls)
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
        self.used.add(call.id)
        self.calls[call.id] = Call(call.tool, call.about, at)
        now = (call.tool, call.about)
        if now != self.last_call:
            self.repeats, self.last_result = 0, None
        self.last_call, self.called = now, at

    def _called(self, called: signals.Called) -> None:
        call, result = self.calls.pop(called.id, None), (called.failed, called.result)
        if call is not None and call.tool == SHELL and not called.failed and egress.found(call.about):
            self.sent.append(call.about)
        if call is None or (call.tool, call.about) != self.last_call:
            return  # another has begun meanwhile
        self.repeats = self.repeats + 1 if result == self.last_result else 1
        self.last_result = result

    def _goes_on(self) -> None:
        self.waits, self.limited, self.put_off, self.compacts = None, None, None, None

    def _forget_end(self) -> None:
        self.result, self.failed, self.trouble, self.until = None, None, None, None

    def _end(self) -> None:
        self._goes_on()
        self._forget_end()
        self.calls.clear()
        for key in list(self.asks):
            self.close(key)


def digest(name: str) -> str:
    """Return a short name for a long one."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
