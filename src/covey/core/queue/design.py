"""Tests designed by what they would tell: each free slot gets the tree whose result is the hardest to foretell.

The measure is what is left to do, counted in tests: one for each bit that is not known yet of who fails, two for each
change that will have to fail alone before it is sent back, and some for what could land. A tree is worth what it takes
off that, given what the trees that run already will tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import log, log2

from covey.core.queue.posterior import ALL, WORLDS, Belief, believe, expected_rate, places
from covey.core.queue.train import FAILURES, Change, Choice, Plan, Purpose, State, eligible, failed_alone

WINDOW = 64
"""Changes of the line that are looked at in any case."""
LANDING, ALWAYS = 1.2, 0.5
"""What landing everything is worth, in tests: of several that pass only one lands, a single one always."""
SURE = 0.03
"""A change that passed before and is less likely than this to fail rides along in every tree."""
SUSPECT = 0.12
"""A change at least as likely as this to fail may be tested alone."""
WORTH = 0.02
"""A tree that takes less than this off what is left to do is not tested."""
FAILING = 1.2
"""What a failure alone of a change that fails is worth, in tests: two of them have to be shown."""
NESTED = 0.15
"""What it is worth that a tree is how a failed one begins: if it lands, less of that one is left."""
HANDFUL = 4
"""With one slot and as many or fewer changes decided, no tree holds more than these: most may be bad."""
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


def choose(state: State) -> Choice:
    """Fill the free slots with the trees that together tell and land most."""
    line = eligible(state) if state.free else ()
    if not line:
        return Choice()
    design = _Design(state, _window(state, line))
    plans = []
    for _ in range(state.free):
        tree = design.best()
        if tree is None:
            break
        plans.append(design.plan(tree))
    if not plans and not state.running:
        plans = [Plan((line[0].id,), Purpose.SOLO)]
    return Choice(tuple(plans))


def _window(state: State, line: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return the changes to look at: those of which something is known, and as many others as may be tested soon."""
    known = {id for result in state.results for id in result.test.changes}
    known.update(id for test in state.running.values() for id in test.changes)
    passed = {id for result in state.results if result.passed for id in result.test.changes}
    more = max(WINDOW, int(2 * state.slots * log(0.5) / log(1 - expected_rate(state, len(passed)))))
    found = []
    for change in line:
        if change.id in known:
            found.append(change)
        elif more > 0:
            more -= 1
            found.append(change)
    rate = state.rate
    if state.slots == 1 and rate.good + rate.bad + len(passed) < HANDFUL:
        return tuple(found[: max(HANDFUL, len(known))])
    return tuple(found)


@dataclass
class _Design:
    """The choice of trees for the free slots, one after the other."""

    state: State
    window: tuple[Change, ...]
    belief: Belief = field(init=False)

    def __post_init__(self) -> None:
        state = self.state
        self.belief = believe([change.id for change in self.window], state)
        belief = self.belief
        self.landing = LANDING if state.slots > 1 else ALWAYS
        self.chance = [worlds.bit_count() / WORLDS for worlds in belief.fails]
        self.needs = _needs(self.window, belief.place)
        self.cells: list[tuple[int, int]] = [(ALL, 0)]
        self.trees: list[int] = []
        self.alone: dict[int, int] = {}
        for index, change in enumerate(self.window):
            failures = len(failed_alone(state, change.id))
            if failures:
                self.alone[index] = failures
        for result in state.results:
            if not result.passed:
                self.trees.append(self._mask(result.test.changes))
        self.nested = self._beginnings()
        for test in state.running.values():
            self._runs(self._mask(test.changes), lands=test.on == state.main)
        self.riding = self._closed(
            i for i in range(len(self.window)) if belief.passed >> i & 1 and self.chance[i] < SURE
        )

    def _mask(self, ids: Iterable[str]) -> int:
        place = self.belief.place
        return sum(1 << place[id] for id in ids if id in place)

    def _beginnings(self) -> set[int]:
        """Return how the trees begin that failed on main as it is."""
        found = set()
        for result in self.state.results:
            if not result.passed and result.test.on == self.state.main:
                tree = 0
                for id in result.test.changes[:-1]:
                    tree |= self._mask((id,))
                    found.add(tree)
        return found

    def _closed(self, indices: Iterable[int]) -> int:
        """Return those of some changes whose needs are among them too."""
        tree = 0
        for index in indices:
            if self.needs[index] & ~tree == 0:
                tree |= 1 << index
        return tree

    def _runs(self, tree: int, *, lands: bool) -> None:
        """Take into account that a tree is tested: its result tells worlds apart."""
        self.trees.append(tree)
        if tree.bit_count() == 1:
            index = tree.bit_length() - 1
            self.alone[index] = self.alone.get(index, 0) + 1
        red = self.belief.red(tree)
        size = tree.bit_count() if lands else 0
        cells = []
        for worlds, most in self.cells:
            if worlds & red:
                cells.append((worlds & red, most))
            if worlds & ~red:
                cells.append((worlds & ~red, max(most, size)))
        self.cells = cells

    def value(self, tree: int, red: int) -> float:
        """Return how many tests less are left to do, in the mean, when a tree is tested that is red in these worlds."""
        told = landed = 0.0
        size = tree.bit_count()
        flake = self.belief.flake
        for worlds, most in self.cells:
            count = worlds.bit_count()
            fails = (worlds & red).bit_count()
            told += count * _information(fails / count, flake)
            if size > most:
                landed += (count - fails) * (size - most)
        value = told + self.landing * landed / len(self.window)
        if size == 1:
            value += self._failing(tree.bit_length() - 1) * red.bit_count()
        return value / WORLDS + (NESTED if tree in self.nested else 0.0)

    def _failing(self, index: int) -> float:
        """Return what one more failure alone of a change is worth."""
        failures = self.alone.get(index, 0)
        if failures >= FAILURES:
            return 0.0
        # Whoever is looked for among others ends up alone in a tree anyway: only of the known is it progress.
        return FAILING if failures else FAILING * self.chance[index]

    def best(self) -> int | None:
        """Return the tree worth most, and take into account that it runs."""
        best, worth = 0, WORTH
        for tree in self._candidates():
            value = self.value(tree, self.belief.red(tree))
            if value > worth:
                best, worth = tree, value
        if not best:
            return None
        self._runs(best, lands=True)
        return best

    def _candidates(self) -> Iterator[int]:
        atoms = self._atoms()
        for base in dict.fromkeys((self.riding, 0)):
            if base:
                yield base
            yield self._climb(base, atoms)
        for atom in atoms:
            if self.chance[atom[0]] >= SUSPECT and not self.needs[atom[0]]:
                yield 1 << atom[0]
        everything = self.riding
        for index, chance in enumerate(self.chance):
            if chance < 0.3:
                everything |= 1 << index
        yield self._closed(places(everything))

    def _atoms(self) -> list[list[int]]:
        """Return changes in lists of those that nothing tells apart, each in line."""
        atoms: dict[tuple[int, bool], list[int]] = {}
        for index in range(len(self.window)):
            if self.riding >> index & 1:
                continue
            sign = 0
            for number, tree in enumerate(self.trees):
                sign |= (tree >> index & 1) << number
            atoms.setdefault((sign, bool(self.belief.passed >> index & 1)), []).append(index)
        return list(atoms.values())

    def _climb(self, tree: int, atoms: list[list[int]]) -> int:
        """Return a tree made of parts of atoms, added one after the other as long as it gets better."""
        red = self.belief.red(tree)
        worth = self.value(tree, red) if tree else 0.0
        left = list(atoms)
        while left:
            found = None
            for number, atom in enumerate(left):
                for more, more_red in self._parts(tree, red, atom):
                    value = self.value(more, more_red)
                    if value > worth + 1e-9:
                        worth, found = value, (number, more, more_red)
            if found is None:
                break
            number, tree, red = found
            del left[number]
        return tree

    def _parts(self, tree: int, red: int, atom: list[int]) -> Iterator[tuple[int, int]]:
        """Yield a tree with the first so many of an atom added, with all they need."""
        for count, index in enumerate(atom, 1):
            add = (self._needed(index) | 1 << index) & ~tree
            tree |= add
            red |= self.belief.fails[index] if add == 1 << index else self.belief.red(add)
            if count in _SIZES or count == len(atom):
                yield tree, red

    def _needed(self, index: int) -> int:
        needs = self.needs[index]
        for other in places(needs):
            needs |= self._needed(other)
        return needs

    def plan(self, tree: int) -> Plan:
        """Return the tree as a plan, what rides along first: it lands first."""
        first, rest = tree & self.riding, tree & ~self.riding
        changes = tuple(self.belief.ids[index] for index in (*places(first), *places(rest)))
        if len(changes) > 1:
            return Plan(changes)
        return Plan(changes, Purpose.RETRY if failed_alone(self.state, changes[0]) else Purpose.SOLO)


_SIZES = frozenset(PARTS)


def _needs(window: tuple[Change, ...], place: dict[str, int]) -> list[int]:
    return [sum(1 << place[need] for need in set(change.needs) if need in place) for change in window]


@lru_cache(maxsize=8192)
def _information(fails: float, flake: float) -> float:
    """Return how many bits a test tells of which a share of worlds says that it fails, where flakes blur it."""
    return _bits(fails + (1 - fails) * flake) - (1 - fails) * _bits(flake)


def _bits(chance: float) -> float:
    return -chance * log2(chance) - (1 - chance) * log2(1 - chance) if 0 < chance < 1 else 0.0
