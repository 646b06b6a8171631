"""Gate runs: the gates that the train wants, each begun and ended in the log; and whose fault it is if none runs.

When no tree can be tested at all, the whole queue waits, and a person is told once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from covey.app.board.task_changes import step
from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.app.merging import merge_lookup, queue_records
from covey.app.merging.queue_records import digest
from covey.config import Config
from covey.core.fleet.sessions import COVEY
from covey.core.merging import failures, gates, merges, test_counts
from covey.core.merging.checks import Check
from covey.core.merging.gates import Gate
from covey.core.merging.merges import MergeState, WholeQueue
from covey.core.merging.queue.train import Purpose, Test
from covey.core.merging.queue_view import Breakage, could_not_start
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError, ToolFailed
from covey.git.candidates import candidates
from covey.loops.gates.gate_outcomes import (
    Order,
    Outcome,
    order_for,
    result_of,
    unstarted,
    was_killed,
    write_end,
)
from covey.loops.gates.gates import Gates
from covey.loops.merge_queue.build import CandidateTree
from covey.loops.runtime import Runtime, cancel

MAX_LOST = 3
"""Times that a gate may be killed, or not be started, before that counts."""
MAX_RAN_NONE = 100
"""Commits that are known to have no test."""
MAX_WHY_CHARS = 500
RETRY_AFTER_S = 60.0
"""Seconds after which a gate that could not be run is tried again."""

log = logging.getLogger("covey.queue")


@dataclass
class BrokenGate:
    """Knows whether the gate can be run at all, and lets the queue wait while it cannot."""

    runtime: Runtime
    found: tuple[str, float] | None = None
    """The checks that could not be run at some time, and when to try them again; None if nothing is known of such."""
    _breakage: Breakage | None = None

    def is_broken(self) -> bool:
        """Say whether the gate could not be run a moment ago, whatever was tested."""
        return self.found is not None and self.runtime.awake() <= self.found[1]

    async def wait_for_repair(self, broken: Breakage, config: Config) -> None:
        """Let the whole queue wait until the settings name a gate that can be run, and tell a person once."""
        was_told = self.found is not None and self.found[0] == digest(config)
        self.found, self._breakage = (digest(config), self.runtime.awake() + RETRY_AFTER_S), broken
        self.runtime.app.context.gate.is_broken = True

        def write(call: Call) -> None:
            for merge in call.tx.open_merges():
                if merge.state in queue_records.IN_TRAIN and merge.reason is None:
                    queued = step(call, merge, merges.Requeued("the gate cannot be run"), COVEY)
                    step(call, queued, merges.Waits(broken.why, cause=broken.cause), COVEY)
            if not was_told:
                alert(call, AlertKind.GATE_BROKEN, broken.alert, None, None)

        await self.runtime.write(write)

    async def holds_queue(self) -> bool:
        """Say whether the gate is broken as far as we know; what was handed in meanwhile waits too."""
        context, found = self.runtime.app.context, self.found
        if found is None:
            return False
        if found[0] != digest(context.config) or self.runtime.awake() > found[1] or not context.gate.is_broken:
            context.gate.is_broken = False
            # Whoever was told once is told again only of something else.
            self.found = (found[0], 0.0)
            return False
        queued = [
            m for m in await self.runtime.read(lambda call: call.tx.open_merges()) if m.state is MergeState.QUEUED
        ]
        if self._breakage is not None and any(not merge.reason for merge in queued):
            await self.wait_for_repair(self._breakage, context.config)
        return True


@dataclass
class Running:
    """A gate under way, in its place of the pool."""

    gate: Gate
    tree: CandidateTree
    task: asyncio.Task[None] | None = None


@dataclass
class GateRuns:
    """Runs the tests of the train."""

    runtime: Runtime
    pool: Gates
    broken: BrokenGate
    tell: Callable[[], None]
    """Says that a gate has ended."""
    running: dict[str, Running] = field(default_factory=dict)
    unwritten: bool = False
    """How a gate ended could not be written, so that the train would wait for it for ever."""
    _unwanted: set[str] = field(default_factory=set)
    _lost: dict[str, int] = field(default_factory=dict)
    """How often a gate was killed, by the commit that it tested."""
    _unstarted: dict[str, int] = field(default_factory=dict)
    """How often a gate could not be started, by the commit that it was to test."""
    _ran_none: deque[tuple[str, str, tuple[Check, ...]]] = field(default_factory=lambda: deque(maxlen=MAX_RAN_NONE))
    """Commits on which checks ran no test and nobody minds, with the settings of the gate and its checks."""
    _unstarted_in_a_row: int = 0
    """Gates that could not be started, whatever they were to test, since one could."""

    # Beginning and ending

    async def give_up(self, test: Test, base: str) -> None:
        """Write that a test cannot be made any more, so that the train knows."""
        event = gates.Started(
            test=test.id, base=base, commit=base, merges=test.changes, purpose=test.purpose.value, slot=0
        )

        def write(call: Call) -> None:
            gate = call.tx.begin(Gate, event, COVEY)
            queue_records.end_gate(call, gate.id, gates.Lost("main has moved on before it could begin"))

        await self.runtime.write(write)

    async def run_alone(self, commit: str, base: str) -> Gate | None:
        """Test a commit that is not the train's to the end, and return its gate."""
        gate = await self.start(0, Purpose.PROBE, CandidateTree(commit, ()), base)
        running = None if gate is None else self.running.get(gate.id)
        if gate is None or running is None:
            return gate
        if running.task is not None:
            await asyncio.wait([running.task])
        return await self.runtime.read(lambda call: call.tx.get(gates.Gate, gate.id))

    async def start(self, test: int, purpose: Purpose, tree: CandidateTree, base: str = "") -> Gate | None:
        """Begin the gate on a tree, and return it, unless one of its merges is no longer there to be tested."""
        config = self.runtime.app.context.config
        taken = {each.gate.slot for each in self.running.values()}
        event = gates.Started(
            test=test,
            base=base or tree.base,
            commit=tree.commit,
            merges=tuple(link.id for link in tree.links),
            purpose=purpose.value,
            slot=next(number for number in range(1, len(taken) + 2) if number not in taken),
            checks=digest(config),
        )
        gate = await self.runtime.write(lambda call: _begin(call, event, tree))
        if gate is None or gate.state is not gates.GateState.RUNNING:
            return gate
        running = self.running[gate.id] = Running(gate, tree)
        running.task = asyncio.ensure_future(self._run(gate, tree, config))
        return gate

    async def stop(self, unwanted: Collection[str]) -> None:
        """End gates whose results are of no use any more."""
        for gate in unwanted:
            if gate not in self._unwanted:
                self._unwanted.add(gate)
                await self.pool.stop(gate)
                await self.pool.stop(_on_main(gate))

    async def stop_all(self) -> None:
        """End every gate, and return when all of them have ended."""
        await self.stop(list(self.running))
        tasks = [each.task for each in self.running.values() if each.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """End every gate at once, since the daemon ends; what it tested is tested again by the next."""
        await cancel(each.task for each in self.running.values())

    # One gate

    async def _run(self, gate: Gate, tree: CandidateTree, config: Config) -> None:
        """Run a gate to its end, and write how it ended."""
        try:
            await self._end(gate, tree, config)
        except CoveyError as error:
            log.warning("the end of %s could not be written: %s", gate.id, error)
            self.unwritten = True
        except Exception:
            log.exception("%s failed", gate.id)
            self.unwritten = True
        finally:
            self.running.pop(gate.id, None)
            self._unwanted.discard(gate.id)
            self.tell()

    async def _end(self, gate: Gate, tree: CandidateTree, config: Config) -> None:
        try:
            if config.merge.checks and gate.purpose != Purpose.PROBE.value:  # which ones, the changed paths say
                order = await self.runtime.in_git_thread(lambda: self._order_by_paths(gate, tree, config))
            else:
                order = order_for(gate, config)
            outcome = await self.pool.run(order)
            if outcome.passed and outcome.tests == 0:
                outcome = await self._tested(gate, tree, order, outcome)
        except CoveyError as error:
            await self._could_not_start(gate, tree, error, config)
            return
        except Exception as error:
            log.exception("%s failed", gate.id)
            unforeseen = ToolFailed(f"Unexpected error ({type(error).__name__}); see the daemon log.")
            await self._could_not_start(gate, tree, unforeseen, config)
            return
        self._unstarted_in_a_row = 0
        self._unstarted.pop(gate.commit, None)
        is_odd = (outcome.strayed or outcome.cannot_run) and gate.id not in self._unwanted
        if is_odd and await self._is_of_no_use(gate, tree, order, outcome):
            said = failures.error_line(outcome.summary) if outcome.cannot_run else ""
            why = f"{outcome.why}, which said: {said}." if said else outcome.why
            await self._break(gate, Breakage(why, WholeQueue.SETTINGS), config)
            return
        event = self._event(gate, outcome)
        await self.runtime.write(lambda call: write_end(call, gate, event))

    def _order_by_paths(self, gate: Gate, tree: CandidateTree, config: Config) -> Order:
        changed = candidates.changed_paths(self.runtime.project, tree.since or tree.base, tree.commit)
        return order_for(gate, config, changed)

    async def _tested(self, gate: Gate, tree: CandidateTree, order: Order, outcome: Outcome) -> Outcome:
        """Return how a gate ended that passed without a test: while main has tests, it has failed."""
        if tree.links and not await self.runtime.read(lambda call: merge_lookup.may_run_no_test(call, gate)):
            on_main = await self._count_on_main(gate, tree, order)
            if on_main is None:
                return replace(outcome, passed=None, why="What its checks run on main could not be found out.")
            if test_counts.is_untested(outcome.tests, on_main.tests):
                why, step = test_counts.untested(on_main.tests or 0), test_counts.NO_TEST_STEP
                return replace(outcome, passed=False, why=why, step=step, fingerprint=step, summary=why)
        self._ran_none.append((gate.commit, gate.checks, order.checks))
        return outcome

    async def _count_on_main(self, gate: Gate, tree: CandidateTree, order: Order) -> Outcome | None:
        """Run the checks of a gate on main below it, unless they are known to run no test there; None if it was lost.

        That is asked of main itself, since only the same checks of the same moment can be compared.
        """
        if (tree.base, gate.checks, order.checks) in self._ran_none:
            return Outcome(passed=True, tests=0)
        found = await self.pool.run(replace(order, gate=_on_main(gate.id), commit=tree.base))
        if found.passed is None or was_killed(found) or gate.id in self._unwanted:
            return None
        if found.tests == 0:
            self._ran_none.append((tree.base, gate.checks, order.checks))
        return found

    def _event(self, gate: Gate, outcome: Outcome) -> gates.Ended | gates.Lost:
        """Return what a gate came to; one that is killed again and again has failed."""
        passed, why, summary = outcome.passed, outcome.why, outcome.summary
        if passed is None or was_killed(outcome):
            if gate.id in self._unwanted:
                return gates.Lost("nobody wanted it any more")
            times = self._lost[gate.commit] = self._lost.get(gate.commit, 0) + 1
            if times < MAX_LOST or outcome.strayed:
                return gates.Lost(why or "it was ended by somebody else")
            summary = f"It ended {MAX_LOST} times without a result. The last time: {why}\n{summary}".strip()
        self._lost.pop(gate.commit, None)
        return result_of(replace(outcome, passed=bool(passed), summary=summary))

    # Gates that cannot run

    async def _could_not_start(self, gate: Gate, tree: CandidateTree, error: CoveyError, config: Config) -> None:
        """Let a gate be tried again that could not be started; after some times the queue waits for a person.

        If one can be started on what landed before, that commit is to blame: it has failed, and the others go on.
        """
        times = self._unstarted[gate.commit] = self._unstarted.get(gate.commit, 0) + 1
        why = could_not_start(error.message, error.hint or "Look at the disk.")
        self._unstarted_in_a_row += 1
        event: gates.Ended | gates.Lost = gates.Lost(why[:MAX_WHY_CHARS])
        if times >= MAX_LOST or self._unstarted_in_a_row >= MAX_LOST:
            order = order_for(gate, config)
            if await self._is_broken(gate, tree, order, by_start=True):
                self._unstarted_in_a_row, self._unstarted = 0, {}
                await self._break(gate, Breakage(why, WholeQueue.MACHINE), config)
                return
        if times >= MAX_LOST:
            self._unstarted.pop(gate.commit, None)
            event = unstarted(why)
        await self.runtime.write(lambda call: write_end(call, gate, event))

    async def _is_of_no_use(self, gate: Gate, tree: CandidateTree, order: Order, outcome: Outcome) -> bool:
        """Say whether no tree can pass now: the gate cannot be run, or others work again and again where it must not.

        What passed while something outside of its worktree changed may not land, but nobody says that it is bad.
        """
        if outcome.passed is None and outcome.strayed and self._lost.get(gate.commit, 0) + 1 >= MAX_LOST:
            self._lost.pop(gate.commit, None)
            return True
        return outcome.cannot_run and await self._is_broken(gate, tree, order)

    async def _is_broken(self, gate: Gate, tree: CandidateTree, order: Order, *, by_start: bool = False) -> bool:
        """Say whether the gate cannot be run on what landed before either; then no change is to blame.

        `by_start` asks only whether it can be started there.
        """
        if not tree.links:
            return True
        for number in range(MAX_LOST):  # one start that fails beside all else that happens says nothing yet
            try:
                outcome = await self.pool.run(replace(order, gate=f"{gate.id}-main-{number}", commit=tree.base))
            except CoveyError as error:
                log.warning("%s could not be tried on what landed before: %s", gate.id, error)
                continue
            return outcome.cannot_run and not by_start
        return True

    async def _break(self, gate: Gate, broken: Breakage, config: Config) -> None:
        lost = gates.Lost(broken.why[:MAX_WHY_CHARS])
        await self.runtime.write(lambda call: queue_records.end_gate(call, gate.id, lost))
        await self.broken.wait_for_repair(broken, config)


def _on_main(gate: str) -> str:
    """Return what the run is called in which the checks of a gate are run on main to compare."""
    return f"{gate}-main"


def _begin(call: Call, event: gates.Started, tree: CandidateTree) -> Gate | None:
    """Write that a gate begins, and, where nothing has to be run, that it has passed."""
    found = [call.tx.get(merges.Merge, each) for each in event.merges]
    if any(merge is None or merge.state not in queue_records.IN_TRAIN for merge in found):
        return None
    gate = call.tx.begin(Gate, event, COVEY)
    for merge, link in zip(found, tree.links, strict=True):
        if merge is not None and merge.state is MergeState.QUEUED:
            step(call, merge, merges.Tested(None if link.is_empty else link.commit, gate.id), COVEY)
    if not event.checks:
        return queue_records.end_gate(call, gate.id, gates.Ended(passed=True, summary="There is no gate."))
    if event.merges and call.tx.has_passed(event.commit, event.checks):
        return queue_records.end_gate(call, gate.id, gates.Ended(passed=True, code=0, summary="It has passed before."))
    return gate
