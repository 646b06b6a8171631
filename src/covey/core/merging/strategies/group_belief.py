"""What results say of the changes that wait: how likely a tree is to pass, and how much its test would tell.

A set of changes is a whole number, bit i for the i-th in line: unions and sizes are then cheap enough to weigh hundreds
of possible tests at each event. Changes are taken to be bad independently of each other with one rate, which is
one of a few and learned. That k sets all fail is then known exactly by inclusion and exclusion over how likely unions
are clean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import exp, log, log2

from covey.core.merging.queue.train import Rate, TrainState, TreeResult, eligible
from covey.values import dataclass

RATES = ((0.002, 0.35), (0.01, 0.05), (0.03, 0.1), (0.06, 0.2), (0.12, 0.1), (0.25, 0.1), (0.5, 0.1))
"""How many of all changes may be bad, and how likely that is before anything is known.

Queues are of two kinds, those where hardly anything fails and others, so that a few that pass say much, and a few that
fail too. The steps are about twofold: a rate that is off by less costs next to nothing.
"""
MAX_CHANGES_COUNTED = 100.0
"""Of changes that were decided before no more than so many count for those that wait: rates change."""
FLAKED, STEADY = 0.1, 20.0
"""The same for trees that fail without a reason: one of two hundred."""
STALE = 0.004
"""The chance that a change which passed on another tree fails on main as it has become."""
TRUST = 0.6
"""How sure it has to be that what passed elsewhere is not why trees fail."""
NEVER = 1e-12
MAX_SETS = 9
"""Sets weighed together: time doubles with each, and those left out are the largest, which say the least."""


@dataclass(frozen=True)
class Belief:
    """What is known of open changes; every number here is a set of them."""

    ids: tuple[str, ...]
    may: int
    """Those that may be in a tree now."""
    passed: int
    """Those that passed on some tree, but are not in main yet."""
    failed: tuple[int, ...]
    """The smallest sets that are each known to hold a bad one."""
    apart: int
    """Those that better wait for others to land, since they failed together but passed apart."""
    running: tuple[int, ...]
    rates: tuple[tuple[float, float], ...]
    """How many of all may be bad, and how likely that is."""
    seen: float
    """Of how many changes it is known that they are good or bad."""
    flake: float

    @cached_property
    def rate(self) -> float:
        """How many of all are bad, in the mean."""
        return sum(rate * weight for rate, weight in self.rates)

    @cached_property
    def powers(self) -> tuple[float, ...]:
        """How likely so many untested changes are all good, if nothing had failed."""
        return tuple((1 - self.rate) ** size for size in range(len(self.ids) + 1))

    @cached_property
    def stale(self) -> tuple[float, ...]:
        """How likely so many that passed elsewhere are all good, if nothing had failed."""
        return tuple((1 - STALE) ** size for size in range(len(self.ids) + 1))

    def fresh(self, size: int) -> float:
        """Return how likely so many untested changes are all good, given that the rate itself is uncertain."""
        return sum(weight * (1 - rate) ** size for rate, weight in self.rates)

    def one_bad(self, size: int) -> float:
        """Return how likely exactly one of so many untested changes is bad."""
        return sum(weight * size * rate * (1 - rate) ** (size - 1) for rate, weight in self.rates)


def believe(state: TrainState) -> Belief:
    """Return what the results so far say."""
    line = eligible(state)
    may = (1 << len(line)) - 1
    ids = list(dict.fromkeys([*(change.id for change in line), *state.changes]))
    bit = {id: 1 << number for number, id in enumerate(ids)}
    passed = union(_set(bit, result.test.changes) for result in state.results if result.passed)
    trees = _failed(state.results, bit, passed)
    belief = Belief(
        ids=tuple(ids),
        may=may,
        passed=passed,
        failed=tuple(trees),
        apart=_apart(state.results, bit),
        running=tuple(_set(bit, test.changes) for test in state.running.values()),
        rates=_rates(state.rate, passed.bit_count(), [each.bit_count() for each in trees]),
        seen=state.rate.good + state.rate.bad + passed.bit_count(),
        flake=(state.rate.flaked + FLAKED) / (state.rate.steady + STEADY),
    )
    whole = tuple(trees.values())
    return replace(belief, failed=whole) if _is_doubtful(belief, whole) else belief


def _is_doubtful(belief: Belief, trees: Sequence[int]) -> bool:
    """Say whether so much failed on top of what passed elsewhere that this is to blame rather than all the others."""
    riding = [tree for tree in trees if tree & belief.passed and tree & ~belief.passed]
    below = union(tree & belief.passed for tree in riding)
    return len(riding) > 1 and Joint(belief, riding, ()).weigh(below)[0] < TRUST


def _set(bit: dict[str, int], changes: Iterable[str]) -> int:
    return sum(bit.get(id, 0) for id in changes)


def _failures(results: Sequence[TreeResult], bit: dict[str, int]) -> Iterator[tuple[int, list[int]]]:
    """Yield each set that failed, with those that passed later."""
    green = [(result.test.id, _set(bit, result.test.changes)) for result in results if result.passed]
    for result in results:
        if not result.passed:
            yield _set(bit, result.test.changes), [other for number, other in green if number > result.test.id]


def _failed(results: Sequence[TreeResult], bit: dict[str, int], passed: int) -> dict[int, int]:
    """Return the smallest sets that hold a bad one, with the trees that told so.

    What passed elsewhere is blamed only if nobody else is left.
    """
    found: dict[int, int] = {}
    for changes, later in _failures(results, bit):
        flaked = any(not changes & ~other for other in later)
        if changes and not flaked:
            blamed = changes & ~passed or changes & ~union(later)
            found[blamed] = min(found.get(blamed, changes), changes, key=int.bit_count)
    found.pop(0, None)
    sizes = sorted(found, key=int.bit_count)
    least = [each for number, each in enumerate(sizes) if not any(not less & ~each for less in sizes[:number])]
    return {each: found[each] for each in least}


def _apart(results: Sequence[TreeResult], bit: dict[str, int]) -> int:
    """Return the later half of what failed together, although each of it has passed since: one half at a time lands."""
    found = 0
    for changes, later in _failures(results, bit):
        if not changes & ~union(later) and all(changes & ~other for other in later):
            found |= changes & ~first(changes, -(-changes.bit_count() // 2))
    return found


def _rates(decided: Rate, passed: int, failed: Sequence[int]) -> tuple[tuple[float, float], ...]:
    """Return how likely each rate is after what was decided, how many passed, and how large failed sets are."""
    share = MAX_CHANGES_COUNTED / max(MAX_CHANGES_COUNTED, decided.good + decided.bad)
    good, bad = share * decided.good + passed, share * decided.bad
    logs = [
        log(weight) + good * log(1 - rate) + bad * log(rate) + sum(log(1 - (1 - rate) ** size) for size in failed)
        for rate, weight in RATES
    ]
    weights = [exp(each - max(logs)) for each in logs]
    return tuple((rate, weight / sum(weights)) for (rate, _), weight in zip(RATES, weights, strict=True))


def union(sets: Iterable[int]) -> int:
    """Return all that is in one of these sets."""
    found = 0
    for each in sets:
        found |= each
    return found


def elements(changes: int) -> Iterator[int]:
    """Yield each change of a set as a set of its own, in line."""
    while changes:
        first = changes & -changes
        yield first
        changes ^= first


def first(changes: int, size: int) -> int:
    """Return the first so many of a set."""
    found = 0
    for each in elements(changes):
        if not size:
            break
        found |= each
        size -= 1
    return found


def entropy(chance: float) -> float:
    """Return how many bits a yes or no of this chance tells."""
    return 0.0 if chance <= 0 or chance >= 1 else -chance * log2(chance) - (1 - chance) * log2(1 - chance)


class Joint:
    """How several tests may end together, given which sets failed; the first tests and sets, as far as terms allow."""

    def __init__(self, belief: Belief, failed: Sequence[int], tests: Sequence[int], terms: int = 2**MAX_SETS) -> None:
        self.belief = belief
        keep = 1 - belief.flake
        most = max(min(terms.bit_length() - 1, MAX_SETS), 2)
        tests = tests[: most - 1]
        room = most - len(tests)
        signed: dict[int, float] = {0: 1.0}
        for each in sorted(failed, key=int.bit_count)[:room]:
            for union, sign in list(signed.items()):
                signed[union | each] = signed.get(union | each, 0.0) - sign * keep
        self.tests = len(tests)
        self.terms: list[list[tuple[int, float]]] = [list(signed.items())]
        for test in tests:
            self.terms += [[(union | test, sign * keep) for union, sign in terms] for terms in self.terms]
        self.before = self._patterns(0)
        self.total = sum(self.before)

    def _patterns(self, more: int) -> list[float]:
        """Return how likely each set of tests passes, the others fail, and `more` is clean."""
        new, old, stale = self.belief.powers, self.belief.stale, self.belief.passed
        fresh = ~stale
        chances = []
        for terms in self.terms:
            chance = 0.0
            for union, sign in terms:
                union |= more
                chance += sign * new[(union & fresh).bit_count()] * old[(union & stale).bit_count()]
            chances.append(chance)
        for test in range(self.tests):
            step = 1 << test
            for pattern in range(len(chances)):
                if not pattern & step:
                    chances[pattern] -= chances[pattern | step]
        return chances

    def weigh(self, changes: int) -> tuple[float, float]:
        """Return how likely a test of these passes, and how many bits of the changes it tells that others do not.

        Whether a good tree fails by chance is uncertain too, and tells nothing of the changes.
        """
        if self.total <= 0:
            return 0.0, 0.0
        keep = 1 - self.belief.flake
        chance = entropy(keep)
        parts = self._patterns(changes)
        bits = sum(
            whole * entropy(part * keep / whole) - part * chance
            for whole, part in zip(self.before, parts, strict=True)
            if whole > NEVER
        )
        return max(0.0, min(1.0, sum(parts) * keep / self.total)), bits / self.total
