"""Testing: the gates that the train wants, each begun and ended in the log, and what is done when no gate can run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from covey.app import train
from covey.app.changes import step
from covey.app.reasons import UNSTARTED, mending
from covey.app.sessions import alert
from covey.app.train import digest
from covey.app.verbs import Call
from covey.config import Config
from covey.core import checks, failures, gates, merges
from covey.core.checks import Check
from covey.core.gates import Gate
from covey.core.merges import State
from covey.core.queue.train import FAILURES, Purpose, Test
from covey.core.sessions import COVEY
from covey.errors import CoveyError, ToolFailed
from covey.git import candidates
from covey.loops.building import Tree
from covey.loops.desk import Desk
from covey.loops.gates import Gates, Order, Outcome
from covey.store import rows

BROKEN_FOR = 60.0
"""Seconds after which a gate that could not be run is tried again."""
LOST = 3
"""Times that a gate may be killed, or not be started, before that counts."""
MOST_LOST = 100
"""Commits of which is remembered how often their gate was killed."""
STARTING = "start"
"""The step of a gate that could not be started, although one could on main."""
KILLED = (-9, 128 + 9)
"""How a check ends that was killed, as the kernel does when memory runs out: that says nothing of what was tested."""

log = logging.getLogger("covey.queue")


@dataclass
class Running:
    """A gate under way, in its place of the pool."""

    gate: Gate
    tree: Tree
    task: asyncio.Task[None] | None = None


@dataclass
class Probe:
    """A test of a commit that is none of the train's, beside the loop of the queue."""

    what: str
    """What is tested, in a word for whoever asked for it."""
    head: str
    """Where the line was: on another it says nothing."""
    commit: str
    checks: str
    task: asyncio.Task[str | None] | None = None
    """Returns the gate that it passed, None if it failed."""
    wanted: bool = True

    def is_over(self) -> bool:
        """Say whether it is known how it ended."""
        return self.task is not None and self.task.done()

    def passed_by(self) -> str | None:
        """Return the gate that it passed, if it did; it is over."""
        return None if self.task is None or self.task.cancelled() else self.task.result()


@dataclass
class Testing:
    """Runs the tests of the train."""

    desk: Desk
    pool: Gates
    tell: Callable[[], None]
    """Says that a gate has ended."""
    running: dict[str, Running] = field(default_factory=dict)
    broken: tuple[str, float] | None = None
    """The checks that could not be run, and when to try them again."""
    probe: Probe | None = None
    """What is tested, or was last, for its own sake."""
    tries: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """The gates that a person tries, beside the train and its slots."""
    _unwanted: set[str] = field(default_factory=set)
    _lost: dict[str, int] = field(default_factory=dict)
    """How often a gate was killed, by the commit that it tested."""
    _unstarted: dict[str, int] = field(default_factory=dict)
    """How often a gate could not be started, by the commit that it was to test."""
    _in_a_row: int = 0
    """Gates that could not be started, whatever they were to test, since one could."""
    unwritten: bool = False
    """How a gate ended could not be written, so that the train would wait for it for ever."""

    # Beginning and ending

    def has_room(self, slots: int) -> bool:
        """Say whether one more gate may begin."""
        return len(self.running) < slots

    def is_busy(self) -> bool:
        """Say whether a gate runs, or is about to."""
        return bool(self.running) or self.is_probing()

    def is_probing(self) -> bool:
        """Say whether something is tested for its own sake."""
        return self.probe is not None and not self.probe.is_over()

    def is_broken(self) -> bool:
        """Say whether the gate could not be run a moment ago, whatever was tested."""
        return self.broken is not None and self.desk.awake() <= self.broken[1]

    async def start(self, test: Test, tree: Tree) -> bool:
        """Begin the gate on a tree, and say so, unless one of its merges is no longer there to be tested."""
        config = self.desk.app.house.config
        event = gates.Started(
            test=test.id,
            base=tree.base,
            commit=tree.commit,
            merges=tuple(link.id for link in tree.links),
            purpose=test.purpose.value,
            slot=self._free_slot(),
            checks=digest(config),
        )
        return await self._start(event, tree, config) is not None

    async def give_up(self, test: Test, base: str) -> None:
        """Write that a test cannot be made any more, so that the train knows."""
        event = gates.Started(
            test=test.id, base=base, commit=base, merges=test.changes, purpose=test.purpose.value, slot=0
        )

        def write(call: Call) -> None:
            gate = train.start_gate(call, event)
            train.end_gate(call, gate.id, gates.Lost("main has moved on before it could begin"))

        await self.desk.write(write)

    def begin_alone(self, what: str, head: str, commit: str) -> None:
        """Begin to test a commit that is none of the train's, twice if need be; the train may go on hearing.

        Where another such test is under way, that ends first: whoever asked asks again.
        """
        if self.is_probing():
            return
        probe = self.probe = Probe(what, head, commit, digest(self.desk.app.house.config))
        probe.task = asyncio.ensure_future(self._prove(probe))
        probe.task.add_done_callback(lambda _: self.tell())

    def take_alone(self, what: str, head: str) -> Probe | None:
        """Return the test of this on this head by these checks, if there is one; once it is over, it is forgotten."""
        probe, checks = self.probe, digest(self.desk.app.house.config)
        if probe is None or (probe.what, probe.head, probe.checks) != (what, head, checks):
            return None
        if probe.is_over():
            self.probe = None
        return probe

    async def end_alone(self) -> None:
        """End the test of what nobody wants any more."""
        probe, self.probe = self.probe, None
        if probe is None or probe.task is None:
            return
        probe.wanted = False
        while not probe.task.done():
            await self.stop([gate for gate, each in self.running.items() if each.tree.commit == probe.commit])
            await asyncio.wait([probe.task], timeout=0.1)

    async def _prove(self, probe: Probe) -> str | None:
        failed = 0
        for _ in range(FAILURES + LOST):
            gate = await self._run_alone(Tree(probe.commit, ()), probe.head) if probe.wanted else None
            if gate is not None and gate.state is gates.State.PASSED:
                return gate.id
            failed += gate is not None and gate.state is gates.State.FAILED  # one that was lost says nothing
            if gate is None or failed == FAILURES or self.is_broken():
                break
        return None

    async def _run_alone(self, tree: Tree, base: str) -> Gate | None:
        """Test a commit that is none of the train's to the end, and return its gate."""
        config = self.desk.app.house.config
        event = gates.Started(
            test=0,
            base=base,
            commit=tree.commit,
            purpose=Purpose.PROBE.value,
            slot=self._free_slot(),
            checks=digest(config),
        )
        gate = await self._start(event, tree, config)
        if gate is None:
            return None
        running = self.running.get(gate.id)
        if running is not None and running.task is not None:
            await asyncio.wait([running.task])
        return await self.desk.read(lambda call: call.tx.get(rows.GATES, gate.id))

    def _free_slot(self) -> int:
        taken = {each.gate.slot for each in self.running.values()}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    async def _start(self, event: gates.Started, tree: Tree, config: Config) -> Gate | None:
        gate = await self.desk.write(lambda call: _begin(call, event, tree))
        if gate is None or gate.state is not gates.State.RUNNING:
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

    async def stop_all(self) -> None:
        """End every gate, and return when all of them have ended."""
        await self.stop(list(self.running))
        tasks = [each.task for each in self.running.values() if each.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """End every gate at once, since the daemon ends; what it tested is tested again by the next."""
        if self.probe is not None and self.probe.task is not None:
            self.probe.task.cancel()
            await asyncio.gather(self.probe.task, return_exceptions=True)
        tasks = [*self.tries.values(), *(each.task for each in self.running.values() if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.pool.stop_all()

    # Gates that a person tries

    def try_out(self, gate: Gate, check: str) -> asyncio.Task[None]:
        """Begin the gate that a person tries, with another check than that of the settings if one is named."""
        config = self.desk.app.house.config
        config = replace(config, merge=replace(config.merge, check=check or config.merge.check))
        trying = self.tries[gate.id] = asyncio.ensure_future(self._try(gate, config))
        trying.add_done_callback(lambda _: self.tries.pop(gate.id, None))
        return trying

    async def call_off(self, gate: str) -> None:
        """End a gate that a person tried and does not want any more."""
        if gate in self.tries:
            await self.pool.stop(gate)

    async def _try(self, gate: Gate, config: Config) -> None:
        limit = config.merge.check_minutes * 60
        order = Order(gate.id, gate.commit, gate.slot, _all_checks(config), limit, config=config, pauses=False)
        event: gates.Ended | gates.Lost
        try:
            outcome = await self.pool.run(order)
        except CoveyError as error:
            why = f"{UNSTARTED}: {error.message} {error.hint}".strip()
            event = gates.Ended(passed=False, step=STARTING, summary=why, fingerprint=STARTING)
        except Exception as error:
            log.exception("%s failed", gate.id)
            event = gates.Lost(f"covey failed in a way that nobody has foreseen ({type(error).__name__}).")
        else:
            is_known = outcome.passed is not None and not _is_killed(outcome)
            event = _told(outcome) if is_known else gates.Lost(outcome.why or "it was ended by somebody else")
        try:
            await self.desk.write(lambda call: _ended(call, gate, event))
        except CoveyError as error:
            log.warning("%s could not be written to its end: %s", gate.id, error)

    # One gate

    async def _run(self, gate: Gate, tree: Tree, config: Config) -> None:
        """Run a gate to its end, and write how it ended."""
        try:
            await self._end(gate, tree, config)
        except CoveyError as error:
            log.warning("%s could not be written to its end: %s", gate.id, error)
            self.unwritten = True
        except Exception:
            log.exception("%s failed", gate.id)
            self.unwritten = True
        finally:
            self.running.pop(gate.id, None)
            self._unwanted.discard(gate.id)
            self.tell()

    async def _end(self, gate: Gate, tree: Tree, config: Config) -> None:
        try:
            order = await self.desk.beside(lambda: self._order(gate, tree, config))
            outcome = await self.pool.run(order)
        except CoveyError as error:
            await self._could_not_start(gate, tree, error, config)
            return
        except Exception as error:
            log.exception("%s failed", gate.id)
            unforeseen = ToolFailed(f"covey failed in a way that nobody has foreseen ({type(error).__name__}).")
            await self._could_not_start(gate, tree, unforeseen, config)
            return
        self._in_a_row = 0
        self._unstarted.pop(gate.commit, None)
        if gate.id not in self._unwanted and await self._is_of_no_use(gate, tree, order, outcome):
            said = failures.error_line(outcome.summary) if outcome.cannot_run else ""
            await self._break(gate, f"{outcome.why}, which said: {said}." if said else outcome.why, config)
            return
        event = self._event(gate, outcome)
        await self.desk.write(lambda call: _ended(call, gate, event))

    def _order(self, gate: Gate, tree: Tree, config: Config) -> Order:
        if gate.purpose == Purpose.PROBE.value:
            wanted = _all_checks(config)
        else:
            since = tree.since or tree.base
            changed = candidates.changed_paths(self.desk.project, since, tree.commit) if config.merge.checks else ()
            wanted = checks.checks_for(config.merge, changed)
        return Order(gate.id, tree.commit, gate.slot, wanted, config.merge.check_minutes * 60)

    def _event(self, gate: Gate, outcome: Outcome) -> gates.Ended | gates.Lost:
        """Return what a gate came to; one that is killed again and again has failed."""
        passed, why, summary = outcome.passed, outcome.why, outcome.summary
        if passed is None or _is_killed(outcome):
            if gate.id in self._unwanted:
                return gates.Lost("nobody wanted it any more")
            times = self._lost.pop(gate.commit, 0) + 1
            self._lost = dict([*self._lost.items(), (gate.commit, times)][-MOST_LOST:])
            if times < LOST or outcome.strayed:
                return gates.Lost(why or "it was ended by somebody else")
            summary = f"It ended {LOST} times without a result. The last time: {why}\n{summary}".strip()
        self._lost.pop(gate.commit, None)
        return _told(replace(outcome, passed=bool(passed), summary=summary))

    # Gates that cannot run

    async def _could_not_start(self, gate: Gate, tree: Tree, error: CoveyError, config: Config) -> None:
        """Let a gate be tried again that could not be started; after some times the queue waits for a person.

        If one can be started on what landed before, that commit is to blame: it has failed, and the others go on.
        """
        times = self._unstarted.pop(gate.commit, 0) + 1
        self._unstarted = dict([*self._unstarted.items(), (gate.commit, times)][-MOST_LOST:])
        why = f"{UNSTARTED}: {error.message} {error.hint or 'Look at the disk.'}"
        self._in_a_row += 1
        lost = gates.Lost(why[:500])
        if times < LOST and self._in_a_row < LOST:
            await self.desk.write(lambda call: train.end_gate(call, gate.id, lost))
            return
        order = Order(gate.id, gate.commit, gate.slot, _all_checks(config), config.merge.check_minutes * 60)
        if await self._is_broken(gate, tree, order, by_start=True):
            self._in_a_row, self._unstarted = 0, {}
            await self._break(gate, why, config)
        elif times < LOST:
            await self.desk.write(lambda call: train.end_gate(call, gate.id, lost))
        else:
            self._unstarted.pop(gate.commit, None)
            event = gates.Ended(passed=False, step=STARTING, summary=why, fingerprint=STARTING)
            await self.desk.write(lambda call: _ended(call, gate, event))

    async def _is_of_no_use(self, gate: Gate, tree: Tree, order: Order, outcome: Outcome) -> bool:
        """Say whether no tree can pass now: the gate cannot be run, or others work again and again where it must not.

        What passed while something outside of its worktree changed may not land, but nobody says that it is bad.
        """
        if outcome.passed is None and outcome.strayed and self._lost.get(gate.commit, 0) + 1 >= LOST:
            self._lost.pop(gate.commit, None)
            return True
        return outcome.cannot_run and await self._is_broken(gate, tree, order)

    async def _is_broken(self, gate: Gate, tree: Tree, order: Order, *, by_start: bool = False) -> bool:
        """Say whether the gate cannot be run on what landed before either; then no change is to blame.

        `by_start` asks only whether it can be started there.
        """
        if not tree.links:
            return True
        for number in range(LOST):  # one start that fails, beside all that happens to main meanwhile, says nothing yet
            try:
                outcome = await self.pool.run(replace(order, gate=f"{gate.id}-main-{number}", commit=tree.base))
            except CoveyError as error:
                log.warning("%s could not be tried on what landed before: %s", gate.id, error)
                continue
            return outcome.cannot_run and not by_start
        return True

    async def _break(self, gate: Gate, why: str, config: Config) -> None:
        await self.desk.write(lambda call: train.end_gate(call, gate.id, gates.Lost(why[:500])))
        await self.wait_for_mending(why, config)

    async def wait_for_mending(self, why: str, config: Config) -> None:
        """Let the whole queue wait until the settings name a gate that can be run, and tell the person once."""
        told = self.broken is not None and self.broken[0] == digest(config)
        self.broken = (digest(config), self.desk.awake() + BROKEN_FOR)
        self.desk.app.house.broken_gate = True

        def write(call: Call) -> None:
            for merge in call.tx.open_merges():
                if merge.state in (State.QUEUED, State.TESTING) and merge.reason is None:
                    queued = step(call, merge, merges.Requeued("the gate cannot be run"), COVEY)
                    step(call, queued, merges.Waits(why), COVEY)
            if not told:
                message = f"{why} That is no change's fault, so nothing lands until it is mended: {mending(why)}."
                alert(call, "gate_broken", message, None, None)

        await self.desk.write(write)

    async def waits(self) -> bool:
        """Say whether the gate is broken as far as we know; what was handed in meanwhile waits too."""
        house, broken = self.desk.app.house, self.broken
        if broken is None:
            return False
        if broken[0] != digest(house.config) or self.desk.awake() > broken[1] or not house.broken_gate:
            house.broken_gate = False
            # Whoever was told once is told again only of something else.
            self.broken = (broken[0], 0.0)
            return False
        queued = [m for m in await self.desk.read(lambda call: call.tx.open_merges()) if m.state is State.QUEUED]
        reason = next((merge.reason for merge in queued if merge.reason), None)
        if reason is not None and any(not merge.reason for merge in queued):
            await self.wait_for_mending(reason, house.config)
        return True


def _begin(call: Call, event: gates.Started, tree: Tree) -> Gate | None:
    """Write that a gate begins, and, where nothing has to be run, that it has passed."""
    found = [call.tx.get(rows.MERGES, each) for each in event.merges]
    if any(merge is None or merge.state not in (State.QUEUED, State.TESTING) for merge in found):
        return None
    gate = train.start_gate(call, event)
    for merge, link in zip(found, tree.links, strict=True):
        if merge is not None and merge.state is State.QUEUED:
            step(call, merge, merges.Tested(None if link.is_empty else link.commit, gate.id), COVEY)
    if not event.checks:
        return train.end_gate(call, gate.id, gates.Ended(passed=True, summary="There is no gate."))
    if event.merges and call.tx.has_passed(event.commit, event.checks):
        return train.end_gate(call, gate.id, gates.Ended(passed=True, code=0, summary="It has passed before."))
    return gate


def _ended(call: Call, gate: Gate, event: gates.Ended | gates.Lost) -> None:
    """Write how a gate ended, and which tests flaked if the same tree had failed before."""
    if train.end_gate(call, gate.id, event) is None or isinstance(event, gates.Lost) or not event.passed:
        return
    where = "WHERE state = 'failed' AND \"commit\" = ? AND checks = ? ORDER BY ordinal"
    failed = call.tx.find(rows.GATES, where, (gate.commit, gate.checks))
    tests = tuple(dict.fromkeys(test for each in failed for test in each.failures))
    if tests:
        train.note_flakes(call, gate, tests)


def _told(outcome: Outcome) -> gates.Ended:
    """Return what is written of a gate whose result is known."""
    return gates.Ended(
        passed=bool(outcome.passed),
        code=outcome.code,
        step=outcome.step,
        seconds=round(outcome.seconds, 3),
        cpu=None if outcome.cpu is None else round(outcome.cpu, 3),
        failures=outcome.failures,
        fingerprint=outcome.fingerprint,
        summary=outcome.summary,
    )


def _is_killed(outcome: Outcome) -> bool:
    """Say whether somebody else killed the check: not we, since it took too long or printed too much."""
    return outcome.code in KILLED and not (outcome.late or outcome.flooded)


def _all_checks(config: Config) -> tuple[Check, ...]:
    """Return every check, as main alone has to pass them."""
    further = tuple(Check(" ".join(each.paths), each.run) for each in config.merge.checks)
    return (*checks.checks_for(replace(config.merge, checks=()), ()), *further)
