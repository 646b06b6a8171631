"""The merge queue: steps the train through the log as it is written, and does what the train wants.

The train itself is pure (`core/queue`): it says which trees are tested, what lands and what goes back. Here are git,
gates and the log. Whatever goes wrong, the train begins anew on main as it is, and no merge is lost by that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import field

from covey.app import sendback
from covey.app.sessions import alert
from covey.app.train import digest
from covey.core import gates
from covey.core.gates import TRY, Gate
from covey.core.queue import heard as hearing
from covey.errors import CoveyError, Unavailable
from covey.git.fitness import can_write
from covey.loops import acting, beginning, bringing, joining
from covey.loops.crew import Anew, Crew, Journey, lose_all, settings_of, standing_now
from covey.loops.desk import Desk
from covey.loops.main_line import passed
from covey.store.rows import Change
from covey.values import dataclass

REST_EVERY = 2.0
LAST_PUSH = 10.0
"""Seconds that a push has to end when the daemon ends."""
PATIENT = 3
"""Times that the same thing goes wrong before a person is told, or the queue rests before it begins anew."""
LISTENS = ("merge.", "queue.", "gate.", "fleet.", "task.approved", "task.edited")

log = logging.getLogger("covey.queue")


@dataclass
class Queue:
    """Lands what was handed in: many at once, and never anything that did not pass as it is."""

    desk: Desk
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _failed: tuple[str, int] = ("", 0)
    """What went wrong last, and how often in a row."""
    _calling_off: asyncio.Task[None] | None = None
    """The end of a gate that a person tried; held here so that it is not forgotten half way."""

    def __post_init__(self) -> None:
        self.crew = Crew(self.desk, self.news.set)

    # Hearing

    def hear(self, changes: Iterable[Change]) -> None:
        """Step the train through changes, in the order of the log."""
        for each in changes:
            if not each.kind.startswith(LISTENS):
                continue
            self.news.set()
            try:
                self._take(each)
            except Exception:
                log.exception("the train failed at %s", each.kind)
                self.crew.journey = None
            if each.kind in ("merge.rejected", "merge.withdrawn"):
                self.crew.line.unsure = True
            if each.kind in ("merge.landed", "merge.rejected", "merge.withdrawn", "merge.held"):
                self.crew.suspects.discard(each.subject)
            elif each.kind == "task.edited":
                self.crew.entering.look_again()
            elif isinstance(each.row, Gate) and each.row.purpose == TRY:
                self._try(each.row, each.payload)

    def _try(self, gate: Gate, payload: object) -> None:
        """Begin a gate that a person tries, or end one that was called off."""
        if isinstance(payload, gates.Started):
            self.crew.testing.try_out(gate, payload.check)
        elif isinstance(payload, gates.Lost) and gate.id in self.crew.testing.tries:
            self._calling_off = asyncio.ensure_future(self.crew.testing.call_off(gate.id))

    def _take(self, each: Change) -> None:
        was_halted = self.crew.heard.train.halted
        self.crew.heard, actions = hearing.take(self.crew.heard, each.kind, each.row, each.payload)
        if each.kind == "queue.began":
            self.crew.todo.clear()
            self.crew.wanted.clear()
            self.crew.gate_of.clear()
        elif each.kind == "gate.started" and isinstance(each.row, Gate):
            self.crew.gate_of[each.row.test] = each.row.id
        elif each.kind == "queue.resumed" and was_halted:
            self.crew.journey = None
        self.crew.todo += actions

    # The loop

    async def run(self) -> None:
        """Look and act for ever."""
        while True:
            more = False
            try:
                more = await self.tick()
                self._failed = ("", 0)
            except Anew as why:
                self.crew.busy_with = ()
                log.info("the train begins anew: %s", why)
                await self._after(f"The train begins anew again and again: {why}", PATIENT * 3)
                more = True
            except CoveyError as error:
                log.warning("the merge queue could not be looked after: %s", error)
                await self._blame(error.message, is_ours=isinstance(error, Unavailable))
                await self._after(f"{error.message} {error.hint}".strip(), 0)
            except Exception as error:
                log.exception("the merge queue failed")
                await self._blame(f"covey failed in a way that nobody has foreseen ({type(error).__name__}).")
                await self._after("It failed in a way that nobody has foreseen; the log of the daemon tells.", 0)
            if not more:  # whoever gave us more to do has told us
                try:
                    async with asyncio.timeout(REST_EVERY):
                        await self.news.wait()
                except TimeoutError:
                    pass
            self.news.clear()

    async def _after(self, what: str, patience: int) -> None:
        """Rest after something went wrong, unless that is usual, and tell a person of what goes wrong again."""
        self.crew.journey = None
        times = self._failed[1] + 1 if self._failed[0] == what else 1
        self._failed = (what, times)
        if times > patience:
            await asyncio.sleep(REST_EVERY)
        if times == patience + PATIENT and what not in self.crew.told:
            self.crew.told.add(what)
            message = f"The merge queue cannot go on: {what} It is tried again and again; nothing is lost."
            try:
                await self.desk.write(lambda call: alert(call, "queue_stuck", message, None, None))
            except CoveyError as error:
                log.warning("nobody could be told: %s", error)

    async def _blame(self, what: str, *, is_ours: bool = False) -> None:
        """Count what went wrong for the merge that was at hand; one with which it does so again and again is blocked.

        Of several at once nobody knows which: they are taken one at a time from now on. A full disk, or a git that
        does not work at all, is no merge's fault.
        """
        at_hand, self.crew.busy_with = self.crew.busy_with, ()
        try:
            if is_ours or not at_hand or not await self.desk.beside(lambda: can_write(self.desk.project)):
                return
            if len(at_hand) > 1:
                self.crew.suspects |= {*at_hand}
                return
            (merge,) = at_hand
            await self.desk.write(lambda call: sendback.stumbled(call, merge, what, PATIENT))
        except CoveyError as error:
            log.warning("%s could not be blamed: %s", at_hand, error)

    async def stop(self) -> None:
        """End the gates; their merges stay in the queue. What has reached main is written down as landed."""
        self.crew.is_ending = True
        await self.crew.testing.close()
        await self.crew.line.rest()
        try:
            await self.desk.write(lambda call: lose_all(call, "the daemon ended"))
            await self.crew.line.settle()
            await self.crew.pusher.rest(LAST_PUSH)
            await self.crew.line.tidy()
            await acting.put_away(self.crew)
        except CoveyError as error:
            log.warning("the merge queue could not be left tidy: %s", error)

    async def tick(self) -> bool:
        """Do what is to be done now, and say whether there may be more."""
        if await self._is_testing_alone():
            return False
        journey = self.crew.journey
        halted_under = self.crew.halted_under if self.crew.heard.train.halted else None
        is_other = halted_under not in (None, self.crew.config.merge)
        is_single = bool(self.crew.suspects)
        is_changed = journey is not None and journey.is_single is not is_single and not self.crew.testing.running
        is_changed = is_changed or self.crew.testing.unwritten
        if journey is None or is_other or is_changed or journey.settings != settings_of(self.crew.config):
            if not await beginning.recover(self.crew):
                await self.crew.line.glance()
                return False
            journey = self.crew.journey = await beginning.begin(self.crew)
        is_paused, is_frozen, is_open = await self.desk.read(standing_now)
        await acting.stop_unwanted(self.crew)
        if is_paused or (not is_open and self.crew.is_idle()):
            await self.crew.line.glance()
            if not is_paused:
                await self._rest()
            return False
        await acting.act(self.crew, journey, frozen=is_frozen)
        await self._look(journey, frozen=is_frozen)
        if await self._is_waiting():
            return False
        await joining.enter(self.crew, journey)
        acting.take_wishes(self.crew)
        await acting.stop_unwanted(self.crew)
        if self.crew.todo:
            return True
        await acting.start_wanted(self.crew, journey)
        if self.crew.todo:
            return True
        await self._rest()
        return False

    async def _is_testing_alone(self) -> bool:
        """Say whether something is tested for its own sake: main waits for its end, unless it is of no use any more."""
        probe = self.crew.testing.probe
        if probe is None:
            return False
        if probe.is_over():
            if self.crew.pusher.behind is not None:
                await bringing.push(self.crew)  # before anything else moves main: it was tested on main as it is
            return self.crew.testing.is_probing()
        line = await self.crew.line.look()
        if line is None or line.head != probe.head or probe.checks != digest(self.crew.config):
            await self.crew.testing.end_alone()
            self.crew.is_tidy = False
            return False
        await acting.stop_unwanted(self.crew)
        return True

    async def _rest(self) -> None:
        """Do what has to be done when nothing more can be tested now."""
        await bringing.push(self.crew)
        await self.crew.line.tidy()
        await acting.put_away(self.crew)
        if self.crew.is_idle() and self.crew.heard.begun and self.crew.gates.slots() != self.crew.heard.train.slots:
            self.crew.journey = None  # the next train has as many slots as the gates of this one have taught

    async def _is_waiting(self) -> bool:
        """Say whether nothing can be tested: main is red, or the gate cannot be run."""
        if self.crew.heard.train.halted:
            self.desk.app.house.broken_gate = True
            return True
        return await self.crew.testing.waits()

    async def _look(self, journey: Journey, *, frozen: bool) -> None:
        """See that the line is where we left it, and let main follow."""
        line = await self.crew.line.look()
        if line is None or line.head != journey.head:
            raise Anew(f"{journey.settings.target} was moved by somebody else")
        if not frozen and await self.desk.read(lambda call: bool(passed(call))):
            await self.crew.line.follow()
        if self.crew.heard.train.halted and await beginning.newest(self.crew, line) not in (line.head, journey.base):
            raise Anew("the remote has moved on")
