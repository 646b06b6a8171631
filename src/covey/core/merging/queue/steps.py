"""One step of the train: what happened is taken in, what follows from it is decided, and the strategy chooses again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from covey.core.merging.gates import Gate, GateState
from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.queue.train import (
    FAILURES,
    Action,
    Arrived,
    Cancel,
    Clashed,
    Ended,
    Event,
    Halt,
    Land,
    Left,
    Lost,
    Paused,
    Plan,
    Purpose,
    Rate,
    Reject,
    RejectCause,
    Start,
    Strategy,
    Test,
    Together,
    TrainState,
    TreeResult,
    failed_alone,
)
from covey.core.merging.strategies import group, prefix, serial
from covey.values import dataclass

STRATEGIES: dict[str, Strategy] = {"group": group.choose, "serial": serial.choose, "prefix": prefix.choose}
RATE_MEMORY = 200.0
"""Changes, or tests, after which an old one counts for about a third of a new one."""
MAX_RESULTS_KEPT = 2000
"""Results that are remembered at most, so that no change that waits for weeks makes the train slow."""


def step(state: TrainState, event: Event) -> tuple[TrainState, tuple[Action, ...]]:
    """Return the train after something happened, and what is to be done now, in this order."""
    train = _Train(state)
    train.take_in(event)
    train.decide()
    train.choose()
    train.forget_what_nobody_needs()
    return train.state, tuple(train.actions)


@dataclass
class _Train:
    """One step under way."""

    state: TrainState
    actions: list[Action] = field(default_factory=list)

    # What happened

    def take_in(self, event: Event) -> None:
        state = self.state
        match event:
            case Together(events):
                for each in events:
                    self.take_in(each)
            case Arrived(change, clashes):
                self.state = replace(
                    state,
                    changes={**state.changes, change.id: change},
                    doubtful=state.doubtful - {change.id},
                    landed=state.landed - {change.id},
                    gone=state.gone - {change.id},
                )
                if clashes:
                    self._clash(change.id, clashes)
            case Left(id):
                self._forget(id)
                self.state = replace(self.state, gone=self.state.gone | {id})
            case Clashed(id, ()):
                if id in state.changes:
                    self._reject(id, RejectCause.TEXT, blame=())
            case Clashed(id, against):
                self._clash(id, against)
            case Ended(number, passed, failures):
                self._ended(number, passed, failures)
            case Lost(number):
                self.state = replace(state, running={n: test for n, test in state.running.items() if n != number})
            case Paused(on):
                self.state = replace(state, paused=on)

    def _clash(self, id: str, against: tuple[str, ...]) -> None:
        state = self.state
        others = [other for other in against if other in state.changes and other != id]
        if id not in state.changes or not others:
            return
        clashes = dict(state.clashes)
        for other in others:
            clashes[id] = clashes.get(id, frozenset()) | {other}
            clashes[other] = clashes.get(other, frozenset()) | {id}
        self.state = replace(state, clashes=clashes)

    def _ended(self, number: int, passed: bool, failures: tuple[str, ...]) -> None:
        state = self.state
        test = state.running.get(number)
        if test is None:
            return
        results, rate, keep = state.results, state.rate, 1 - 1 / RATE_MEMORY
        if passed:
            results = tuple(result for result in results if not _is_refuted(result, test))
            flaked = len(state.results) - len(results)
            rate = replace(rate, steady=rate.steady * keep + 1, flaked=rate.flaked * keep + flaked)
        if test.changes or not passed:
            results = (*results, TreeResult(test, passed, failures))[-MAX_RESULTS_KEPT:]
        green = state.green
        if passed and test.purpose is Purpose.PROBE and test.on == state.main:
            green = min(green, state.main)
        self.state = replace(
            state,
            running={n: each for n, each in state.running.items() if n != number},
            results=results,
            rate=rate,
            green=green,
        )

    # What follows

    def decide(self) -> None:
        while not self.state.paused and (self._land_one() or self._reject_one()):
            pass
        if any(not result.passed for result in self.state.results):
            self._see_main()

    def _land_one(self) -> bool:
        state = self.state
        ready = [
            result.test
            for result in state.results
            if result.passed and result.test.on == state.main and result.test.changes and self._may_land(result.test)
        ]
        if not ready or state.halted:
            return False
        best = max(ready, key=lambda test: (len(test.changes), -test.id))
        self.actions.append(Land(best.id, best.changes))
        self._landed(best.changes)
        return True

    def _may_land(self, test: Test) -> bool:
        before = set(self.state.landed)
        for id in test.changes:
            change = self.state.changes.get(id)
            if change is None or not before.issuperset(change.needs):
                return False
            before.add(id)
        return True

    def _landed(self, landed: tuple[str, ...]) -> None:
        state, gone = self.state, set(landed)
        keep = (1 - 1 / RATE_MEMORY) ** len(landed)
        rate = replace(state.rate, good=state.rate.good * keep + len(landed), bad=state.rate.bad * keep)
        running = {n: _on_top(test, state.main, landed) for n, test in state.running.items()}
        results = (_after(result, state, landed) for result in state.results)
        clashing = {other for id in landed for other in state.clashes.get(id, ())}
        self.state = replace(
            state,
            main=state.main + 1,
            green=min(state.green, state.main + 1),
            changes={id: change for id, change in state.changes.items() if id not in gone},
            clashes=_without(state.clashes, gone) if state.clashes else state.clashes,
            doubtful=(state.doubtful | clashing) - gone,
            landed=state.landed | gone,
            running=running,
            results=tuple(result for result in results if result is not None),
            rate=rate,
        )
        empty = [n for n, test in running.items() if not test.changes]
        if empty:
            self._cancel(empty)

    def _reject_one(self) -> bool:
        state = self.state
        for change in state.changes.values():
            lost = tuple(need for need in change.needs if need in state.gone)
            if lost:
                self._reject(change.id, RejectCause.NEEDS, blame=lost)
                return True
        for id in dict.fromkeys(r.test.changes[0] for r in state.results if r.test.alone and not r.passed):
            tests = failed_alone(state, id)
            if len(tests) >= FAILURES and not state.halted:
                rate, keep = state.rate, 1 - 1 / RATE_MEMORY
                self.state = replace(state, rate=replace(rate, good=rate.good * keep, bad=rate.bad * keep + 1))
                self._reject(id, RejectCause.FAILS, tests=tests)
                return True
        return False

    def _reject(
        self, id: str, reason: RejectCause, *, tests: tuple[int, ...] = (), blame: tuple[str, ...] = ()
    ) -> None:
        self.actions.append(Reject(id, reason, tests, blame))
        self._forget(id)
        self.state = replace(self.state, gone=self.state.gone | {id})

    def _forget(self, id: str) -> None:
        """Take a change out: a tree that holds it may not land, and its failures say nothing of others."""
        state = self.state
        self._cancel(n for n, test in state.running.items() if id in test.changes)
        kept = (_but(result, id) for result in self.state.results)
        self.state = replace(
            self.state,
            changes={other: change for other, change in state.changes.items() if other != id},
            clashes=_without(state.clashes, {id}),
            doubtful=state.doubtful - {id},
            results=tuple(result for result in kept if result is not None),
        )

    def forget_what_nobody_needs(self) -> None:
        """Keep of what has ended only what an open change asks for; whoever comes later names what is still to land."""
        state = self.state
        if state.landed or state.gone:
            needed = frozenset(need for change in state.changes.values() for need in change.needs)
            self.state = replace(state, landed=state.landed & needed, gone=state.gone & needed)

    def _cancel(self, numbers: Iterable[int]) -> None:
        ended = {n for n in numbers if n in self.state.running}
        self.actions += [Cancel(n) for n in sorted(ended)]
        self.state = replace(self.state, running={n: t for n, t in self.state.running.items() if n not in ended})

    def _see_main(self) -> None:
        state = self.state
        probes = tuple(
            result.test.id
            for result in state.results
            if result.test.purpose is Purpose.PROBE and not result.passed and result.test.on == state.main
        )
        if len(probes) >= FAILURES and not state.halted and not state.proven:
            self.state = replace(state, halted=True)
            self.actions.append(Halt(probes))

    # What next

    def choose(self) -> None:
        if self.state.paused or self.state.halted:
            return
        if any(not result.passed for result in self.state.results) and self._is_main_in_doubt():
            self._start(Plan((), Purpose.PROBE))
        choice = STRATEGIES[self.state.strategy](self.state)
        if choice.cancel:
            self._cancel(choice.cancel)
        for plan in choice.start:
            if self.state.free:
                self._start(plan)

    def _is_main_in_doubt(self) -> bool:
        """Say whether something failed on a main that is not known to pass by itself."""
        state = self.state
        if state.proven or not state.free:
            return False
        if any(test.purpose is Purpose.PROBE and test.on == state.main for test in state.running.values()):
            return False
        return any(not result.passed and result.test.on == state.main for result in state.results)

    def _start(self, plan: Plan) -> None:
        state = self.state
        number = state.tests + 1
        test = Test(number, state.main, plan.changes, plan.purpose, alone=len(plan.changes) == 1)
        self.state = replace(state, tests=number, running={**state.running, number: test})
        self.actions.append(Start(test))


def _on_top(test: Test, main: int, landed: tuple[str, ...]) -> Test:
    """Return a test after a landing: on the new main if its tree holds just that first, else as news of the rest."""
    if test.on == main and test.changes[: len(landed)] == landed:
        rest = test.changes[len(landed) :]
        return replace(test, on=main + 1, changes=rest, alone=len(rest) == 1)
    rest = tuple(id for id in test.changes if id not in landed)
    if rest == test.changes:
        return test
    whole = test.exact and test.on in (main, -1) and set(landed).issubset(test.changes)
    return replace(test, on=-1, changes=rest, alone=False, exact=whole)


def _after(result: TreeResult, state: TrainState, landed: tuple[str, ...]) -> TreeResult | None:
    """Return what a result says after a landing, if it says anything still."""
    test, gone = result.test, set(landed)
    whole = test.exact and test.on == state.main and gone.issubset(test.changes)
    if result.passed:
        test = _on_top(test, state.main, landed)
    elif test.on >= state.green or whole or not state.green or (test.on == -1 and test.exact):
        # What failed also fails on a main with some of it; it failed alone only if nothing else of it is new there.
        rest = tuple(id for id in test.changes if id not in gone)
        if rest != test.changes:
            test = replace(test, on=state.main + 1, changes=rest, alone=whole and len(rest) == 1, exact=whole)
    else:  # it failed on a main that may have been red, and is not now
        return None
    return replace(result, test=test) if test.changes else None


def _is_refuted(result: TreeResult, passed: Test) -> bool:
    """Say whether a tree that passed holds one that failed, which must have been by chance then."""
    test = result.test
    same_kind = bool(test.changes) == bool(passed.changes)
    return not result.passed and same_kind and test.on <= passed.on and set(passed.changes).issuperset(test.changes)


def _but(result: TreeResult, id: str) -> TreeResult | None:
    if id not in result.test.changes:
        return result
    rest = tuple(other for other in result.test.changes if other != id)
    if not rest or not result.passed:
        return None
    return replace(result, test=replace(result.test, on=-1, changes=rest, alone=False))


def _without(clashes: Mapping[str, frozenset[str]], gone: set[str]) -> dict[str, frozenset[str]]:
    left = {id: others - gone for id, others in clashes.items() if id not in gone}
    return {id: others for id, others in left.items() if others}


def learned(ended: Sequence[Merge], tested: Sequence[Gate]) -> Rate:
    """Return what merges and gates, the newest first, teach about how many are good, as a train would have learned."""
    rate, keep = Rate(), 1 - 1 / RATE_MEMORY
    for merge in reversed(ended):
        bad = 0.0 if merge.state is MergeState.LANDED else float(merge.cause == "fails")
        good = float(merge.state is MergeState.LANDED)
        rate = replace(rate, good=rate.good * keep + good, bad=rate.bad * keep + bad)
    failed: set[str] = set()
    for gate in reversed(tested):
        if gate.state is GateState.FAILED:
            failed.add(gate.commit)
        elif gate.state is GateState.PASSED and gate.checks:
            flaked = float(gate.commit in failed)
            rate = replace(rate, steady=rate.steady * keep + 1, flaked=rate.flaked * keep + flaked)
    return rate
