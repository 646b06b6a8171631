"""Group testing: each test is chosen for what it tells, and what passed rides along until it lands.

Several changes share one test; a group that fails is split until the bad ones stand alone; whatever passed, but on a
tree that main has left behind, is put under the next tests, so that one of them brings it to main.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from covey.core.merging.queue.train import (
    FAILURES,
    Choice,
    Plan,
    Purpose,
    TrainState,
    eligible,
    failed_alone,
    failed_sets,
)
from covey.core.merging.strategies.group_belief import Belief, Joint, believe, elements, entropy, first, union
from covey.values import dataclass

CONFIRM = 0.7
"""What a failure alone of a change that is surely bad is worth, in bits: it is needed, but can wait."""
WAITING_BITS = 0.05
"""By how many bits a second failure alone is worth more with each round that its author waits for it."""
SUSPECT = 0.05
"""By how many bits a test among suspects is preferred to one of untested changes, so that few stay suspects."""
AT_ONCE = 2.0
"""What is worth more than all that is measured in bits."""
MIN_TEST_BITS = 0.2
"""A test that tells less than this, in bits, is not worth a slot."""
ALL_IN = 0.4
"""All untested changes are tested at once if this is how likely they pass; else in groups that pass half the time."""
EVEN = 0.5
BOLD = 0.25
"""The same for one slot of several while nothing runs: if it passes, all the others were not needed."""
START = 16
"""With one slot and as many or fewer changes known, no group is larger: where some are bad, it tells little."""
ONE_BAD = 0.9
"""What a single bad one in a group is worth to a single slot: when all the others have landed, it has failed alone."""
SELDOM_BAD, SELDOM_FLAKED = 0.25, 0.02
"""Of changes and of tests, the parts that were bad or flaked up to which a single change is tested once at a time."""
LIKELY = 0.8
"""What runs is built upon if this is how likely it passes: if it lands, what is on it lands too, else it waits."""
FINE = 24
"""Parts of a set are tried in every size up to this; larger ones are cut in halves, thirds and quarters."""
EFFORT = 2**16
"""So many terms are summed up for the choices of one step, so that it takes some tens of milliseconds at most."""
MAX_FAILED_CUT = 16
"""Of failed sets that have changes in common, so many of the smallest are cut; the others wait for what that tells."""


@dataclass(frozen=True)
class Option:
    """A test that may be worth a slot; a change alone is tested on main as it is, so that its failure counts."""

    changes: int
    worth: float
    passes: float
    alone: bool = False
    on: tuple[str, ...] = ()
    """A tree that runs and that this one begins with."""


def choose(state: TrainState) -> Choice:
    """Choose the tests that tell most, one after the other, given what is known and what runs."""
    if not state.changes:
        return Choice()
    return _lone(state) if len(state.changes) == 1 and _is_unremarkable(state) else _choose(state)


def _is_unremarkable(state: TrainState) -> bool:
    """Say whether no test has told anything, and little fails here: a second test at once would tell little."""
    rate, is_calm = state.rate, not state.results and all(test.changes for test in state.running.values())
    return is_calm and rate.bad <= SELDOM_BAD * rate.good and rate.flaked <= SELDOM_FLAKED * rate.steady


def _lone(state: TrainState) -> Choice:
    """Test the only change there is alone, and once: what the choice comes to if nothing has to be weighed."""
    line = () if state.running else eligible(state)
    return Choice(tuple(Plan((change.id,), Purpose.SOLO) for change in line))


def _choose(state: TrainState) -> Choice:
    """Weigh what could be tested, and choose until all slots are taken or nothing more is worth one."""
    table = Table(state)
    cancel = _useless(state, table)
    if cancel:
        state = replace(state, running={number: test for number, test in state.running.items() if number not in cancel})
        table = Table(state)
    chosen: list[Option] = []
    while len(chosen) < state.free:
        options = (option for option in _options(table, state.free - len(chosen)) if table.is_new(option))
        best = max(options, key=lambda option: option.worth, default=None)
        if best is None or best.worth < MIN_TEST_BITS:
            break
        chosen.append(best)
        table.take(best)
    return Choice(tuple(_plans(table, chosen, state.free)), cancel)


def _useless(state: TrainState, table: Table) -> tuple[int, ...]:
    """Return the running tests of groups whose end is known, since a part of them has failed."""
    running = zip(state.running.items(), table.belief.running, strict=True)
    return tuple(number for (number, test), changes in running if not test.alone and table.fails(changes))


class Table:
    """What a choice is made from; it changes only as tests are chosen."""

    def __init__(self, state: TrainState) -> None:
        belief = self.belief = believe(state)
        bit = {id: 1 << number for number, id in enumerate(belief.ids)}
        self.blamed = union(belief.failed)
        """Those among which there is a bad one."""
        self.needs = {
            bit[change.id]: union(bit[need] for need in change.needs if need in bit)
            for change in state.changes.values()
            if change.needs
        }
        """What changes need that is open too."""
        self.needy = union(self.needs)
        """Those that need something."""
        self.alone = _alone(state, bit)
        """How often changes failed alone or are tested alone now."""
        self.known = {union(bit[id] for id in failed) for failed in failed_sets(state)}
        """What failed together: no tree that holds it is tested again."""
        self.waiting = _waiting(state, bit)
        """How many rounds of tests the changes that are known to be bad have waited."""
        self.slots = state.slots
        """How many tests run at a time."""
        self.trees = _trees(state, bit) if self.slots == 1 else None
        """For a single slot, what failed together on main as it is."""
        self.most = START if self.slots == 1 and belief.seen < START else len(belief.ids)
        """So many untested changes may be in one group."""
        self.riders = 0
        self.riders = self.whole(belief.passed & belief.may & ~self.blamed & ~belief.apart)
        """Those that passed elsewhere: they are put first into every tree."""
        self.tests = [test & ~self.riders for test in belief.running if test & ~self.riders]
        """What runs or was chosen, without riders."""
        top = _top(state)
        below = union(bit[id] for id in top)
        is_likely = belief.fresh((below & ~belief.passed).bit_count()) >= LIKELY
        is_built_upon = is_likely and not below & (self.blamed | ~belief.may)
        self.top = top if is_built_upon else ()
        """The tree that is built upon, which begins with all others that run."""
        self.below = below & ~self.riders if is_built_upon else 0
        """What of it does not ride anyway."""
        self.weighed: dict[tuple[object, ...], list[Option]] = {}

    def take(self, option: Option) -> None:
        """Reckon with a test that was chosen."""
        self.tests.append(option.changes)
        if option.alone:
            self.alone[option.changes] = self.alone.get(option.changes, 0) + 1

    def whole(self, changes: int) -> int:
        """Return those of a set that may be in one tree with the riders: what they need is there too."""
        there = changes | self.riders
        while missing := union(each for each in elements(there & self.needy) if self.needs[each] & ~there):
            there &= ~missing
        return there & ~self.riders

    def is_new(self, option: Option) -> bool:
        """Say whether a test is of a tree that is not known to fail, or of one change alone."""
        return option.alone or not self.fails(option.changes | self.riders)

    def fails(self, changes: int) -> bool:
        """Say whether some or all of these failed together before."""
        return any(not failed & ~changes for failed in self.known)

    def counts(self, change: int) -> bool:
        """Say whether a failure of one change alone would bring its rejection nearer."""
        return not self.needs.get(change) and self.alone.get(change, 0) < FAILURES


def _top(state: TrainState) -> tuple[str, ...]:
    """Return the largest tree that runs, if it begins with all others that run and may land."""
    running = sorted((test.changes for test in state.running.values() if test.on == state.main), key=len)
    nested = all(more[: len(less)] == less for less, more in pairwise(running))
    return running[-1] if running and nested else ()


def _alone(state: TrainState, bit: dict[str, int]) -> dict[int, int]:
    found = {
        bit[result.test.changes[0]]: len(failed_alone(state, result.test.changes[0]))
        for result in state.results
        if result.test.alone and not result.passed
    }
    for test in state.running.values():
        if test.alone:
            change = bit[test.changes[0]]
            found[change] = found.get(change, 0) + 1
    return found


def _trees(state: TrainState, bit: dict[str, int]) -> tuple[int, ...]:
    """Return what failed together on main as it is, each tree as the bits of its changes."""
    return tuple(
        union(bit[id] for id in result.test.changes)
        for result in state.results
        if not result.passed and result.test.exact and result.test.on == state.main
    )


def _waiting(state: TrainState, bit: dict[str, int]) -> dict[int, float]:
    """Return how many rounds of tests ago each change first failed alone."""
    return {
        bit[result.test.changes[0]]: (state.tests - result.test.id) / state.slots
        for result in reversed(state.results)
        if len(result.test.changes) == 1 and not result.passed
    }


# What might be tested


def _options(table: Table, slots: int) -> Iterator[Option]:
    yield from _untested(table, slots)
    for failed, tests in _parts(table):
        key = (*failed, 0, *tests, *(table.alone.get(each, 0) for each in tests))
        if key not in table.weighed:
            table.weighed[key] = list(_weigh(table, failed, tests))
        yield from table.weighed[key]


def _untested(table: Table, slots: int) -> Iterator[Option]:
    """Yield a group of changes that were not tested and are not being tested."""
    belief = table.belief
    pool = table.whole(belief.may & ~belief.passed & ~table.blamed & ~union(table.tests))
    if table.trees is not None:
        yield from _in_turn(table, pool, table.trees)
        return
    size = min(pool.bit_count(), table.most)
    if size and slots > 1 and not table.tests and belief.fresh(size) >= BOLD:
        yield Option(pool, AT_ONCE, belief.fresh(size), _is_one(pool) and table.counts(pool))
        return
    if size and belief.fresh(size) < ALL_IN:
        size = min(_even(belief, size), -(-size // slots))
    group = table.whole(first(pool, size))
    if group:
        passes = belief.fresh(group.bit_count())
        alone = _is_one(group) and table.counts(group)
        if table.top:
            yield Option(group | table.below, AT_ONCE, passes, on=table.top)
        else:
            yield Option(group, entropy(passes) + CONFIRM * alone * (1 - passes) ** 2, passes, alone)


def _in_turn(table: Table, pool: int, trees: Sequence[int]) -> Iterator[Option]:
    """Yield groups of untested changes for a single slot, which finishes what failed before it begins something else.

    As long as nothing else lands, whoever is left of a tree that failed has failed alone.
    """
    belief = table.belief
    for tree in trees:
        rest = tree & pool
        if rest and _is_one(tree & ~rest):
            for size in {*range(1, min(rest.bit_count(), FINE)), rest.bit_count()}:
                yield from _group(table, first(rest, size), rest)
    size = min(pool.bit_count(), table.most)
    if size and belief.fresh(size) < ALL_IN:
        size = max(range(1, size + 1), key=lambda size: _fruit(belief, size))
    for option in _group(table, first(pool, size), 0):
        yield replace(option, worth=MIN_TEST_BITS) if belief.failed else option


def _group(table: Table, changes: int, rest: int) -> Iterator[Option]:
    """Yield a test of untested changes; if they are all the rest of a tree that failed, they tell of one more."""
    group = table.whole(changes)
    if group:
        passes = table.belief.fresh(group.bit_count())
        worth = _fruit(table.belief, group.bit_count()) + ONE_BAD * passes * (group == rest)
        yield Option(group, worth, passes, _is_one(group) and table.counts(group))


def _fruit(belief: Belief, size: int) -> float:
    return entropy(belief.fresh(size)) + ONE_BAD * belief.one_bad(size)


def _even(belief: Belief, most: int) -> int:
    """Return how many untested changes pass about half the time."""
    size = 1
    while size < most and belief.fresh(size + 1) >= EVEN:
        size += 1
    return size


def _parts(table: Table) -> Iterator[tuple[list[int], list[int]]]:
    """Yield failed sets and tests in parts that have no change in common, so that each can be weighed by itself."""
    # Nothing has something in common with what is empty: it would never leave the list.
    failed, tests = ([each for each in sets if each] for sets in (table.belief.failed, table.tests))
    while failed or tests:
        inside = failed[0] if failed else tests[0]
        before = 0
        while inside != before:
            before = inside
            inside |= union(each for each in (*failed, *tests) if each & inside)
        yield [each for each in failed if each & inside], [each for each in tests if each & inside]
        failed = [each for each in failed if not each & inside]
        tests = [each for each in tests if not each & inside]


def _weigh(table: Table, failed: Sequence[int], tests: Sequence[int]) -> Iterator[Option]:
    """Yield what could be tested among changes that failed together or are being tested, with what it is worth."""
    failed = sorted(failed, key=int.bit_count)[:MAX_FAILED_CUT]
    candidates = _candidates(table, failed, tests)
    joint = Joint(table.belief, failed, tests, EFFORT // (table.slots * max(len(candidates), 1)))
    for changes in candidates - set(tests[joint.tests :]):
        passes, bits = joint.weigh(changes)
        alone = _is_one(changes) and table.counts(changes)
        if alone:
            # Who is looked for among others fails alone in the end anyway: only of the known is it progress.
            bad = (1 - passes) ** (1 if changes in table.waiting else 2)
            needed = (CONFIRM + WAITING_BITS * table.waiting.get(changes, 0.0)) * bad
            yield Option(changes, bits + SUSPECT + needed, passes, alone)
        elif bits > MIN_TEST_BITS:
            yield Option(changes, bits + SUSPECT, passes)


def _candidates(table: Table, failed: Sequence[int], tests: Sequence[int]) -> set[int]:
    """Return parts of what nothing tells apart yet, and what cuts through all of these."""
    inside = (union(failed) or union(tests)) & table.belief.may
    atoms: dict[tuple[bool, ...], int] = {}
    for each in elements(inside):
        kind = tuple(bool(each & other) for other in (*failed, *tests, table.belief.passed))
        atoms[kind] = atoms.get(kind, 0) | each
    found: set[int] = set()
    for atom in atoms.values():
        size = atom.bit_count()
        cuts = {size // 4, size // 3, size // 2, 2 * size // 3, size, *range(1, min(size, FINE))}
        found.update(first(atom, part) for part in cuts)
    for group in {*failed, inside}:
        within = [atom & group for atom in atoms.values() if atom & group]
        for part in (2, 3, 4):
            found.add(union(first(atom, atom.bit_count() // part) for atom in within))
        found.add(union(first(atom, -(-atom.bit_count() // 2)) for atom in within))
    return {table.whole(each) for each in found} - {0}


def _is_one(changes: int) -> bool:
    return not changes & changes - 1


# What is tested


def _plans(table: Table, chosen: Sequence[Option], free: int) -> Iterator[Plan]:
    """Yield the trees to test: riders first, but for changes whose failure alone is to count."""
    below = _order(table, table.riders)
    carried = not below or _is_carried(table, chosen)
    carrier = None if carried else _carrier(table, chosen)
    for option in chosen:
        if option.alone and option is not carrier:
            has_failed = option.changes in table.waiting
            yield Plan(_order(table, option.changes), Purpose.RETRY if has_failed else Purpose.SOLO)
        else:
            yield Plan(tuple(dict.fromkeys(option.on + below + _order(table, option.changes))))
    rest = _unknown(table, table.riders)
    if not carried and not carrier and len(chosen) < free and rest:
        yield Plan(_order(table, rest))
    elif not chosen and not table.belief.running and table.belief.may:
        yield Plan(table.belief.ids[:1], Purpose.SOLO)


def _order(table: Table, changes: int) -> tuple[str, ...]:
    return tuple(table.belief.ids[each.bit_length() - 1] for each in elements(changes))


def _is_carried(table: Table, chosen: Sequence[Option]) -> bool:
    """Say whether a test with all riders runs or was chosen."""
    return any(not option.alone for option in chosen) or any(not table.riders & ~test for test in table.belief.running)


def _carrier(table: Table, chosen: Sequence[Option]) -> Option | None:
    """Return the change alone that takes the riders below it, since nothing else carries them."""
    likely = [each for each in chosen if each.passes >= EVEN and not table.fails(each.changes | table.riders)]
    return max(likely, key=lambda option: option.passes, default=None)


def _unknown(table: Table, changes: int) -> int:
    """Return as many of the first of these as are not known to fail together."""
    while table.fails(changes):
        changes = first(changes, changes.bit_count() // 2)
    return changes
