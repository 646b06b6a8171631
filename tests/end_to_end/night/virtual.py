"""Virtual time: an event loop in which hours pass as soon as nobody has anything to do, and clocks to match."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from random import Random
from typing import Any

from covey.core.leases.expiry import Instant

BEGIN = 1_767_643_200.0
"""Seconds since 1970 at which every night begins: 2026-01-05, 20:00 UTC, four hours before a day ends."""


class Standstill(Exception):
    """Nobody waits for anything any more, so no time can pass."""


class _Jumping(selectors.SelectSelector):
    """Waits for nothing real: where another would sleep, time jumps."""

    jump: Callable[[float], None] = staticmethod(lambda seconds: None)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Standstill("Nobody waits for anything.")
        if timeout > 0:
            self.jump(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer, and whose threads are steps of its own.

    What is done beside the loop takes a moment of virtual time, and is done at its beginning or at its end, as chance
    will have it: whoever is killed in that moment does not know which.
    """

    def __init__(self, chance: Random) -> None:
        selector = _Jumping()
        super().__init__(selector)
        selector.jump = self._jump
        self._virtual = 0.0
        self._chance = chance
        self.life = 0
        """Whose steps these are: what an earlier life has not begun, nobody does any more."""
        self.steps = 0
        self.killed: type[BaseException] = KeyboardInterrupt
        """What work raises in which its daemon is killed: nobody ever hears of it."""

    def _jump(self, seconds: float) -> None:
        self._virtual += seconds

    def time(self) -> float:
        """Return the seconds since the night began."""
        return self._virtual

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Do work here and now, or in a moment."""
        future, life = self.create_future(), self.life
        self.steps += 1
        takes = self._chance.uniform(0.001, 0.02)

        def work() -> tuple[Any, BaseException | None]:
            try:
                return func(*args), None
            except (Exception, self.killed) as error:  # noqa: BLE001 - whoever waits has to hear of it
                return None, error

        def answer(value: Any, error: BaseException | None) -> None:
            if future.done() or life != self.life or isinstance(error, self.killed):
                return
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        def late() -> None:
            if life == self.life:
                answer(*work())

        if self._chance.random() < 0.5:
            done = work()
            self.call_later(takes, lambda: answer(*done))
        else:
            self.call_later(takes, late)
        return future


class VirtualClock:
    """Three clocks that all go as the loop's time does; awake and boot begin anew when the machine does."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._booted = -1_000.0
        self._asleep = 0.0
        self._boots = 1
        self.boot_id = "boot-1"

    def now(self) -> Instant:
        """Look at all three at once."""
        at = self._loop.time()
        awake = at - self._booted
        return Instant(BEGIN + at + self._asleep, awake, awake + self._asleep)

    @property
    def wall(self) -> float:
        """Return the time of day."""
        return BEGIN + self._loop.time() + self._asleep

    def suspend(self, seconds: float) -> None:
        """Let the machine sleep: it is later then, and nobody has noticed."""
        self._asleep += seconds

    def reboot(self) -> None:
        """Begin to count the time since the machine was started anew."""
        self._boots += 1
        self.boot_id = f"boot-{self._boots}"
        self._booted = self._loop.time() - 10.0
