"""Group testing: each test is chosen for what it tells, and what passed rides along until it lands.

Several changes share one test; a group that fails is split until the bad ones stand alone; whatever passed, but on a
tree that main has left behind, is put under the next tests, so that one of them brings it to main.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from covey.core.queue.group_belief import Joint, believe, elements, entropy, first
from covey.core.queue.train import FAILURES, Choice, Plan, Purpose, State, failed_alone

CONFIRM = 0.7
"""What a failure alone is worth, in bits, of a change that is surely bad: it is needed, but can wait."""
ALL_IN = 0.4
LEAST = 0.02
"""A test that tells less than this, in bits, is not worth a slot."""


@dataclass(frozen=True)
class Option:
    """A test that may be worth a slot."""

    changes: int
    worth: float
    passes: float
    solo: bool = False


def choose(state: State) -> Choice:
    """Choose the tests that tell most, given what is known and what runs."""
    if not state.free:
        return Choice()
    return _Chooser(state).choose()


class _Chooser:
    def __init__(self, state: State) -> None:
        self.state = state
        self.belief = belief = believe(state)
        self.bit = {id: 1 << number for number, id in enumerate(belief.ids)}
        self.needs = {
            self.bit[id]: sum(self.bit[need] for need in change.needs if need in self.bit)
            for id, change in state.changes.items()
            if change.needs
        }
        self.blamed = 0
        for each in belief.failed:
            self.blamed |= each
        self.riders = self.whole(belief.passed & belief.may & ~self.blamed)
        self.tests = [test & ~self.riders for test in belief.running]
        self.alone: dict[int, int] = {}
        for test in state.running.values():
            if len(test.changes) == 1:
                each = self.bit[test.changes[0]]
                self.alone[each] = self.alone.get(each, 0) + 1
        for result in state.results:
            if result.test.alone and not result.passed:
                each = self.bit[result.test.changes[0]]
                if each not in self.alone:
                    self.alone[each] = 0
        for each in self.alone:
            self.alone[each] += len(failed_alone(state, belief.ids[each.bit_length() - 1]))

    def whole(self, changes: int) -> int:
        """Leave out what cannot be in a tree of these alone, since something it needs is not there."""
        left = True
        while left and self.needs:
            left = False
            for each, needed in self.needs.items():
                if changes & each and needed & ~changes:
                    changes &= ~each
                    left = True
        return changes

    def choose(self) -> Choice:
        chosen: list[Option] = []
        free = self.state.free
        while len(chosen) < free:
            options = [*self.suspects(), *self.fresh(free - len(chosen))]
            best = max(options, key=lambda option: option.worth, default=None)
            if best is None or best.worth < LEAST:
                break
            chosen.append(best)
            self.tests.append(best.changes)
            if best.solo:
                self.alone[best.changes] = self.alone.get(best.changes, 0) + 1
        plans = [self.plan(option) for option in chosen]
        carried = any(not option.solo for option in chosen)
        if self.riders and len(plans) < free and not carried:
            if not any(not self.riders & ~test for test in self.belief.running):
                plans.append(Plan(self.order(self.riders)))
        if not plans and not self.state.running and self.belief.may:
            plans.append(self.plan(Option(1, 0, 0, solo=True)))
        return Choice(tuple(plan for plan in plans if plan.changes))

    def plan(self, option: Option) -> Plan:
        if option.solo:
            again = self.alone.get(option.changes, 0) > 1
            return Plan(self.order(option.changes), Purpose.RETRY if again else Purpose.SOLO)
        return Plan(self.order(self.riders) + self.order(option.changes & ~self.riders))

    def order(self, changes: int) -> tuple[str, ...]:
        return tuple(self.belief.ids[each.bit_length() - 1] for each in elements(changes))

    def fresh(self, slots: int) -> Iterator[Option]:
        belief = self.belief
        pool = belief.may & ~belief.passed & ~self.blamed
        for test in self.tests:
            pool &= ~test
        pool = self.whole(pool | self.riders) & ~self.riders
        count = pool.bit_count()
        if not count:
            return
        size = count
        if belief.fresh(count) < ALL_IN:
            size = 1
            while size < count and belief.fresh(size + 1) >= 0.5:
                size += 1
            size = min(size, -(-count // slots))
        group = self.whole(first(pool, size) | self.riders) & ~self.riders or pool
        passes = belief.fresh(group.bit_count())
        yield Option(group, entropy(passes), passes, solo=size == 1 and not group & group - 1 and passes < 0.6)

    def suspects(self) -> Iterator[Option]:
        left = list(self.belief.failed)
        while left:
            failed, tests, inside = [left.pop()], [], 0
            inside = failed[0]
            grown = True
            while grown:
                more = [each for each in left if each & inside]
                tested = [test for test in self.tests if test & inside and test not in tests]
                left = [each for each in left if each not in more]
                failed += more
                tests += tested
                grown = bool(more or tested)
                for each in (*more, *tested):
                    inside |= each
            yield from self.component(failed, tests)

    def component(self, failed: list[int], tests: list[int]) -> Iterator[Option]:
        joint = Joint(self.belief, failed, tests)
        blamed = 0
        for each in failed:
            blamed |= each
        blamed &= self.belief.may
        atoms: dict[tuple[bool, ...], int] = {}
        for each in elements(blamed):
            sign = tuple(bool(each & other) for other in (*failed, *tests, self.belief.passed))
            atoms[sign] = atoms.get(sign, 0) | each
        found: dict[int, None] = {}
        for atom in atoms.values():
            size = atom.bit_count()
            for part in {1, size // 4, size // 3, size // 2, 2 * size // 3, size}:
                found[first(atom, part)] = None
        for group in (*failed, blamed):
            for part, up in ((2, 0), (2, 1), (3, 0), (4, 0)):
                cross = 0
                for atom in atoms.values():
                    if atom & group:
                        cross |= first(atom, (atom.bit_count() + up * (part - 1)) // part)
                found[cross] = None
        for changes in found:
            whole = self.whole(changes | self.riders) & ~self.riders
            if not whole:
                continue
            passes, bits = joint.weigh(whole)
            solo = not whole & whole - 1 and not self.needs.get(whole)
            worth = bits + 0.05
            if solo and self.alone.get(whole, 0) < FAILURES:
                worth += CONFIRM * (1 - passes)
            yield Option(
                whole, worth if bits + (solo and self.alone.get(whole, 0) < FAILURES) > LEAST else 0, passes, solo
            )
