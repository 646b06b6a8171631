"""The merge queue: steps the train through the log as it is written, and hands out what the train wants.

The train itself is pure (`core/merging/queue`): it says which trees are tested, what lands and what goes back. Here are
git, gates and the log. Whatever goes wrong, a new epoch begins on main as it is, and no merge is lost by that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from covey.app.board.task_changes import step
from covey.app.context import Call
from covey.app.merging import queue_records
from covey.app.merging.queue_records import digest
from covey.config import Merge as MergeSettings
from covey.core.fleet.sessions import COVEY
from covey.core.merging import merges
from covey.core.merging.gates import TRY, Gate
from covey.core.merging.merges import MergeState
from covey.core.merging.queue import queue_status, steps
from covey.core.merging.queue.queue_status import QueueStatus
from covey.core.merging.queue.train import Halt, Land, Rate, Reject, Test
from covey.errors import CoveyError, Refused, Unavailable
from covey.git.landing import landing
from covey.loops.gates.gates import Gates
from covey.loops.gates.tried_gates import TriedGates
from covey.loops.merge_queue import build, execute
from covey.loops.merge_queue.admit import Admission
from covey.loops.merge_queue.blame import MAX_STUMBLES, Blame
from covey.loops.merge_queue.build import Builder, Clash
from covey.loops.merge_queue.foreign_commits import ForeignCommits, Probe
from covey.loops.merge_queue.gate_runs import BrokenGate, GateRuns
from covey.loops.merge_queue.main_branch import MainBranch, MainPosition, passed
from covey.loops.merge_queue.queue_state import (
    Epoch,
    FollowedTrain,
    QueueSettings,
    RestartQueue,
    holds_now,
    settings_of,
)
from covey.loops.merge_queue.remote_sync import RemoteSync
from covey.loops.runtime import Runtime, going_on, wait_at_most
from covey.store.engine.rows import Change

QUEUE_REST_S = 2.0
"""Seconds after which the queue looks again although nothing was told."""
LAST_PUSH_S = 10.0
"""Seconds that a push has to end when the daemon ends."""
MAX_LEARNED_FROM = 200
"""How many recent merges and gates the failure rate is estimated from."""
HEARS = ("merge.", "queue.", "gate.", "fleet.", "task.approved", "task.edited")

log = logging.getLogger("covey.queue")


class Queue:
    """Lands what was handed in: many at once, and never anything that did not pass as it is."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.news = asyncio.Event()
        self.epoch: Epoch | None = None
        self.train = FollowedTrain()
        self.pool = Gates(runtime)
        self.tried = TriedGates(runtime, self.pool)
        self.broken = BrokenGate(runtime)
        self.gate_runs = GateRuns(runtime, self.pool, self.broken, self.news.set)
        self.main = MainBranch(runtime)
        self.blame = Blame(runtime)
        self.builder = Builder(runtime.project, runtime.wall)
        self.foreign = ForeignCommits(runtime, self.main, self.gate_runs, self.news.set)
        self.remote = RemoteSync(runtime, self.main, self.foreign, self.is_idle, self.news.set)
        self.admission = Admission(
            runtime, self.train, self.main, self.gate_runs, self.builder, self.foreign, self.blame
        )
        self._halted_under: MergeSettings | None = None
        """The settings under which main was found red; under others it is tested again."""
        self._is_tidy = False
        """Nothing is left of an epoch that ended."""
        self._begun_under: QueueSettings | None = None
        """What the last epoch depended on."""

    # Hearing

    def hear(self, changes: Iterable[Change]) -> None:
        """Step the train through changes of the kinds that it hears of, and tell each part what is news to it."""
        for each in changes:
            self.news.set()
            was_halted = self.train.state.halted
            try:
                self.train.follow(each)
            except Exception:
                log.exception("the train failed at %s", each.kind)
                self._end_epoch()
            if each.kind == "queue.resumed" and was_halted:
                self._end_epoch()
            if each.kind in ("merge.rejected", "merge.withdrawn"):
                self.main.unsure = True
            if each.kind in ("merge.landed", "merge.rejected", "merge.withdrawn", "merge.held"):
                self.blame.suspects.discard(each.subject)
            elif each.kind == "task.edited":
                self.admission.is_reordered = True
            elif isinstance(each.row, Gate) and each.row.purpose == TRY:
                self.tried.hear(each.row, each.payload)

    def _end_epoch(self) -> None:
        """Let nothing more be decided on what was known so far."""
        if self.epoch is not None:
            self.epoch.is_over = True
        self.epoch = None

    # The loop

    async def run(self) -> None:
        """Look and act for ever."""
        while True:
            has_more = await self._try_tick()
            if not has_more:  # whoever gave us more to do has told us
                await wait_at_most(QUEUE_REST_S, self.news)
            self.news.clear()

    async def _try_tick(self) -> bool:
        """Do what is to be done now, whatever goes wrong, and say whether there may be more."""
        try:
            has_more = await self.tick()
            self.blame.nothing_failed()
            return has_more
        except RestartQueue as why:
            self.blame.nobody()
            log.info("a new epoch begins: %s", why)
            await self._rest_after(f"The train begins anew again and again: {why}", MAX_STUMBLES * 3)
            return True
        except CoveyError as error:
            log.warning("the merge queue could not be looked after: %s", error)
            await self.blame.count(error.message, is_ours=isinstance(error, Unavailable))
            await self._rest_after(f"{error.message} {error.hint}".strip())
        except Exception as error:
            log.exception("the merge queue failed")
            await self.blame.count(f"Unexpected error ({type(error).__name__}); see the daemon log.")
            await self._rest_after("Unexpected error; see the daemon log.")
        return False

    async def _rest_after(self, what: str, free_times: int = 0) -> None:
        self._end_epoch()
        await self.blame.rest_after(what, QUEUE_REST_S, free_times)

    async def stop(self) -> None:
        """End the gates; their merges stay in the queue. What has reached main is written down as landed."""
        await self.foreign.close()
        await self.tried.close()
        await self.gate_runs.close()
        await self.pool.stop_all()
        await self.main.rest()
        with going_on(log, "the merge queue could not be left tidy"):
            await self.runtime.write(lambda call: queue_records.lose_gates(call, "the daemon ended"))
            await self.main.settle()
            await self.remote.rest(LAST_PUSH_S)
            await self.main.tidy()
            await self._put_gates_away()

    async def tick(self) -> bool:
        """Do what is to be done now, and say whether there may be more."""
        if self.foreign.probe is not None and await self._is_held_up_by(self.foreign.probe):
            return False
        epoch = self.epoch
        if epoch is None or self._is_outdated(epoch):
            self._end_epoch()
            if not await self._has_work():
                await self._rest()
                await self.main.glance()
                return False
            epoch = self.epoch = await self._begin()
        holds = await self.runtime.read(holds_now)
        await self._stop_unwanted()
        if holds.is_paused or (not holds.has_work and self.is_idle()):
            await self.main.glance()
            if not holds.is_paused:
                await self._rest()
            return False
        at = await self._carry_out(epoch, is_frozen=holds.is_frozen)
        await self._follow_main(epoch, at or await self.main.look(), is_frozen=holds.is_frozen)
        if self.train.state.halted:
            self.runtime.app.context.gate.is_broken = True
            return False
        if self.broken.found is not None and await self.broken.holds_queue():
            return False
        await self.admission.admit(epoch)
        self.train.take_test_requests()
        await self._stop_unwanted()
        if self.train.todo:
            return True
        await self._start_wanted(epoch)
        if self.train.todo:
            return True
        await self._rest()
        return False

    def is_idle(self) -> bool:
        """Say whether nothing is under way or wanted."""
        train = self.train
        return not (train.todo or train.wanted or train.state.changes or train.state.running or self.gate_runs.running)

    def _is_outdated(self, epoch: Epoch) -> bool:
        """Say whether an epoch has to end, since it depends on what is no longer so."""
        config = self.runtime.app.context.config
        halted_under = self._halted_under if self.train.state.halted else None
        is_single = bool(self.blame.suspects)
        return (
            halted_under not in (None, config.merge)
            or (epoch.is_single is not is_single and not self.gate_runs.running)
            or self.gate_runs.unwritten
            or (epoch.config is not config and epoch.settings != settings_of(config))
        )

    # A new epoch

    async def _has_work(self) -> bool:
        """End every gate, and say whether anything wants to land; if not, clear up what is left half done."""
        await self.gate_runs.stop_all()
        if (await self.runtime.read(holds_now)).has_work:
            self._is_tidy = False
            return True
        if not self._is_tidy:
            await self._clear_up()
            self._is_tidy = True
        return False

    async def _clear_up(self) -> None:
        """End what an earlier daemon, or an epoch that failed, has left half done."""
        await self.runtime.in_git_thread(lambda: landing.recover(self.runtime.project))
        await self.pool.recover()
        if await self.runtime.read(lambda call: bool(call.tx.running_gates())):
            await self.runtime.write(lambda call: queue_records.lose_gates(call, "it was cut short", self.tried.tries))
        self.gate_runs.unwritten = False

    async def _begin(self) -> Epoch:
        """Begin an epoch on main as it is; what was being tested is tested again."""
        await self._clear_up()
        at = await self.main.settle() or await self.main.look() or await self.main.look()
        if at is None:
            raise Refused("What waits for main changes all the time.")
        config = self.runtime.app.context.config
        settings, base = settings_of(config), await self.main.newest(at)
        if not self.train.heard.begun:
            fleet = await self.runtime.read(lambda call: call.tx.fleet())
            self.train.heard = replace(self.train.heard, fleet_paused=fleet.paused)
        is_single = bool(self.blame.suspects)
        forgives = self._halted_under not in (None, config.merge)
        self._halted_under = None if forgives else self._halted_under
        # Where main moves all the time, epochs begin all the time: what is written then must not grow with the queue.
        goes_on = self.train.heard.begun and self._begun_under == settings
        self._begun_under = settings
        strategy = "serial" if is_single else settings.strategy
        began = queue_status.Began(strategy=strategy, slots=self.pool.slots(), base=base, forgives=forgives)
        learned = self.train.state.rate if self.train.heard.begun else None
        number, standing = await self.runtime.write(
            lambda call: self._write_beginning(call, began, learned, settings.checks, goes_on=goes_on)
        )
        if standing.halted is None and self.broken.found is None:
            self.runtime.app.context.gate.is_broken = False
        return Epoch(number, config, settings, at.head, {0: base}, is_single=is_single)

    def _write_beginning(
        self, call: Call, began: queue_status.Began, learned: Rate | None, checks: str, *, goes_on: bool
    ) -> tuple[int, QueueStatus]:
        """Write that an epoch begins, and that no gate is under way any more."""
        number, halted = call.tx.next_seq, call.tx.standing().halted
        failed = [call.tx.get(Gate, gate) for gate in call.tx.standing().gates]  # maybe by other checks than now
        # A gate that has never passed and halted an earlier daemon's queue may find here what it needs.
        is_untried = halted is not None and not self.train.heard.begun and not call.tx.has_worked(checks)
        if learned is None:
            last = call.tx.last_ended_merges(MAX_LEARNED_FROM), call.tx.last_gates(MAX_LEARNED_FROM)
            learned = steps.learned(*last)
        event = replace(
            began,
            proven=not checks or call.tx.has_passed(began.base, checks),
            rate=learned,
            forgives=began.forgives or is_untried or any(each is not None and each.checks != checks for each in failed),
        )
        standing = queue_records.put(call, event)
        queue_records.lose_gates(call, "the train began anew", self.tried.tries)
        for merge in () if goes_on else call.tx.open_merges():
            if merge.state is MergeState.TESTING:
                step(call, merge, merges.Requeued("its test was cut short"), COVEY)
        return number, standing

    # What is done in it

    async def _is_held_up_by(self, probe: Probe) -> bool:
        """Say whether a foreign commit is tested: main waits for the end of that, unless nobody needs it any more."""
        if probe.is_over():
            if self.remote.behind is not None:
                await self.remote.push()  # before anything else moves main: it was tested on main as it is
            return self.foreign.is_testing()
        at = await self.main.look()
        if at is None or at.head != probe.head or probe.checks != digest(self.runtime.app.context.config):
            await self.foreign.stop()
            self._is_tidy = False
            return False
        await self._stop_unwanted()
        return True

    async def _carry_out(self, epoch: Epoch, *, is_frozen: bool) -> MainPosition | None:
        """Do what the train decided, in this order; return where main was found after the last landing, if any."""
        at = None
        while not epoch.is_over and (action := self.train.next_decision()) is not None:
            match action:
                case Land():
                    at = await execute.land(self.runtime, self.main, self.blame, epoch, action, is_frozen=is_frozen)
                case Reject():
                    await execute.reject(self.runtime, epoch, action, self.train.gates_of(action.tests))
                case Halt():
                    self._halted_under = self.runtime.app.context.config.merge
                    await execute.halt(self.runtime, epoch, self.train.gates_of(action.tests))
        await self._stop_unwanted()
        self.train.forget_old(epoch)
        return at

    # Tests

    async def _stop_unwanted(self) -> None:
        """End the gates of tests that the train has given up; those of test 0 are not the train's."""
        wanted = {0, *self.train.state.running}
        unwanted = [gate for gate, each in self.gate_runs.running.items() if each.gate.test not in wanted]
        if unwanted:
            await self.gate_runs.stop(unwanted)

    async def _start_wanted(self, epoch: Epoch) -> None:
        """Begin the tests that the train wants, as long as there is room."""
        for number in sorted(self.train.wanted):
            # The train may have dropped it, or part of it may have landed, since it was wanted.
            test = self.train.state.running.get(number)
            if test is None:
                self.train.wanted.discard(number)
            elif len(self.gate_runs.running) < self.train.state.slots:
                self.train.wanted.discard(number)
                await self._start_test(epoch, test)

    async def _start_test(self, epoch: Epoch, test: Test) -> None:
        """Build the tree of a test, and begin its gate."""
        if test.on < 0:  # main holds another part of it than its first
            await self.gate_runs.give_up(test, epoch.base)
            return
        if test.on > epoch.main:  # what it stands on is decided, and lands before it begins
            self.train.wanted.add(test.id)
            return
        config, base = self.runtime.app.context.config, epoch.mains[test.on]
        wanted, landed = await self.runtime.read(lambda call: build.look(call, test.changes))
        group = f"{epoch.number}.{test.id}"
        with self.blame.handling(test.changes):
            built = await self.runtime.in_git_thread(lambda: self.builder.build(base, wanted, config, group, landed))
        if isinstance(built, Clash):
            await build.note_clash(self.runtime, epoch.conflicts, built)
            return
        if base == epoch.mains.get(0) != epoch.head:
            built = replace(built, since=epoch.head)  # what the remote has beyond main lands with it
        epoch.trees[test.id] = built
        is_current = self.train.state.running.get(test.id) == test
        gate = await self.gate_runs.start(test.id, test.purpose, built) if is_current else None
        if gate is None and test.id in self.train.state.running:
            self.train.wanted.add(test.id)  # something landed or left in this moment

    # Main

    async def _follow_main(self, epoch: Epoch, at: MainPosition | None, *, is_frozen: bool) -> None:
        """See that main is where we left it, and let it follow to what has passed."""
        if at is None or at.head != epoch.head:
            raise RestartQueue(f"{epoch.settings.target} was moved by somebody else")
        if not is_frozen and await self.runtime.read(lambda call: bool(passed(call))):
            await self.main.follow(at)
        if self.train.state.halted and await self.main.newest(at) not in (at.head, epoch.base):
            raise RestartQueue("the remote has moved on")

    async def _rest(self) -> None:
        """Do what has to be done when nothing more can be tested now."""
        await self.remote.push()
        await self.main.tidy()
        if not (self.gate_runs.running or self.foreign.is_testing() or self.train.wanted or self.train.state.changes):
            await self._put_gates_away()
        if self.is_idle() and self.train.heard.begun and self.pool.slots() != self.train.state.slots:
            self._end_epoch()  # the next one has as many slots as the gates of this one have taught

    async def _put_gates_away(self) -> None:
        """Remove the pool's worktrees if no session is left that could fill the queue soon."""
        if not await self.runtime.read(lambda call: bool(call.tx.run_sessions())):
            await self.pool.put_away()
