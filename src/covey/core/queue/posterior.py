"""What the results so far say of each open change: worlds drawn from all that could be true, each as likely as it is.

A world says which changes fail. Changes fail independently, with a rate that is itself not known but one of a few; the
gate of a good tree fails now and then by a flake, and never passes a bad one. Given the rate, what is known of failed
trees that share no change is independent, so worlds are drawn exactly, by a table over which of the failed trees of one
such knot are explained already. A world is one bit; for each change there is one int with the bits of the worlds in
which it fails, so that the chance of a tree to pass is a matter of `or` and of counting bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log

from covey.core.queue.train import State
from covey.core.queue.world import chance

WORLDS = 256
ALL = (1 << WORLDS) - 1
RATES = ((0.002, 0.25), (0.015, 0.15), (0.04, 0.2), (0.08, 0.2), (0.16, 0.12), (0.35, 0.08))
"""How many of the changes may fail, and how likely that is before anything is known."""
TRUST = 60.0
"""Of changes that landed or failed earlier no more than so many count for those that wait: rates change."""
JOINING = 0.004
"""The chance that a change which passed without the others fails with them: it was tested beside other changes."""
FLAKES, TESTS = 0.2, 20.0
"""What is believed of flakes at first: as if so many of so many passed trees had failed before."""
KNOT = 7
"""At most so many failed trees are weighed against each other; the smallest, which say most."""


@dataclass(frozen=True)
class Belief:
    """What is believed of the changes in a window of the line, by their place in it."""

    ids: tuple[str, ...]
    place: dict[str, int]
    passed: int
    """The changes that passed in some tree, as bits."""
    fails: tuple[int, ...]
    """For each change the worlds in which it fails."""
    flake: float
    doubted: int
    """The changes that fail in some world, as bits."""

    def red(self, tree: int) -> int:
        """Return the worlds in which a tree fails."""
        found = 0
        for index in places(tree & self.doubted):
            found |= self.fails[index]
        return found


def places(mask: int) -> Iterator[int]:
    """Yield the places of the bits of a mask, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def flake_rate(state: State) -> float:
    """Return the chance that a good tree fails, as far as it is known."""
    return min((state.rate.flaked + FLAKES) / (state.rate.steady + TESTS), 0.3)


def prior(state: State, cleared: int) -> list[tuple[float, float]]:
    """Return each rate with its weight, after what landed, what was rejected and how many passed but wait."""
    seen = state.rate.good + state.rate.bad
    trust = min(1.0, TRUST / seen) if seen else 1.0
    good, bad = trust * state.rate.good + cleared, trust * state.rate.bad
    logs = [log(weight) + good * log(1 - rate) + bad * log(rate) for rate, weight in RATES]
    top = max(logs)
    return [(rate, exp(each - top)) for (rate, _), each in zip(RATES, logs, strict=True)]


def expected_rate(state: State, cleared: int) -> float:
    """Return the share of changes that is expected to fail."""
    weights = prior(state, cleared)
    return sum(rate * weight for rate, weight in weights) / sum(weight for _, weight in weights)


@dataclass(frozen=True)
class _Atom:
    """Changes that were in the same failed trees, so that nothing tells them apart."""

    sign: int
    fresh: tuple[int, ...]
    passed: tuple[int, ...]


@dataclass(frozen=True)
class _Knot:
    """Failed trees that share changes, directly or by way of others."""

    atoms: tuple[_Atom, ...]
    odds: tuple[float, ...]
    """For each failed tree the chance that nothing but flakes explains it."""

    def table(self, rate: float) -> list[list[float]]:
        """Return, before each atom and for each set of explained trees, the chance of all the rest of the results."""
        size = 1 << len(self.odds)
        last = [1.0] * size
        for state in range(size):
            for number, odds in enumerate(self.odds):
                if not state >> number & 1:
                    last[state] *= odds
        tables = [last]
        for atom in reversed(self.atoms):
            after, clean, sign = tables[-1], _clean(atom, rate), atom.sign
            tables.append([clean * after[s] + (1 - clean) * after[s | sign] for s in range(size)])
        tables.reverse()
        return tables


def _clean(atom: _Atom, rate: float) -> float:
    return (1 - rate) ** len(atom.fresh) * (1 - JOINING) ** len(atom.passed)


class _Dice:
    """Numbers as good as random that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self.word = int(chance(seed, 0, 7) * 2**64) | 1

    def throw(self) -> float:
        self.word = (self.word * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self.word >> 11) / 9007199254740992.0


def believe(ids: Sequence[str], state: State) -> Belief:
    """Return what the results in the state say of these changes; results about others are left out."""
    place = {id: index for index, id in enumerate(ids)}
    passed = 0
    failed: list[tuple[int, float]] = []
    flake = flake_rate(state)
    known = (1 << len(ids)) - 1
    for result in state.results:
        tree = 0
        for id in result.test.changes:
            if id in place:
                tree |= 1 << place[id]
        if result.passed:
            passed |= tree
            failed = [each for each in failed if each[0] & ~tree]
        elif tree and all(id in place for id in result.test.changes):
            failed.append((tree, flake))
    knots = _knots(_strongest(failed), passed)
    inside = 0
    for knot in knots:
        for atom in knot.atoms:
            for index in (*atom.fresh, *atom.passed):
                inside |= 1 << index
    fresh = tuple(places(known & ~inside & ~passed))
    others = tuple(places(passed & ~inside))
    fails = _draw(knots, fresh, others, prior(state, passed.bit_count()), len(ids), _Dice(state.tests))
    doubted = sum(1 << index for index, worlds in enumerate(fails) if worlds)
    return Belief(tuple(ids), place, passed, tuple(fails), flake, doubted)


def _strongest(failed: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the failed trees with the chance of a flake in each; one that holds a smaller one says little more."""
    odds: dict[int, float] = {}
    for tree, flake in failed:
        odds[tree] = odds.get(tree, 1.0) * flake
    least = [tree for tree in odds if not any(other != tree and other & ~tree == 0 for other in odds)]
    return [(tree, odds[tree]) for tree in sorted(least, key=lambda tree: (tree.bit_count(), tree))]


def _knots(failed: list[tuple[int, float]], passed: int) -> list[_Knot]:
    groups: list[tuple[int, list[tuple[int, float]]]] = []
    for tree, odds in failed:
        near = [group for group in groups if group[0] & tree]
        if sum(len(members) for _, members in near) >= KNOT:
            continue
        groups = [group for group in groups if not group[0] & tree]
        mask, members = tree, [(tree, odds)]
        for other, more in near:
            mask |= other
            members = more + members
        groups.append((mask, members))
    return [_knot(mask, members, passed) for mask, members in groups]


def _knot(mask: int, members: list[tuple[int, float]], passed: int) -> _Knot:
    fresh: dict[int, list[int]] = {}
    known: dict[int, list[int]] = {}
    for index in places(mask):
        sign = 0
        for number, (tree, _) in enumerate(members):
            sign |= (tree >> index & 1) << number
        (known if passed >> index & 1 else fresh).setdefault(sign, []).append(index)
    atoms = [
        _Atom(sign, tuple(fresh.get(sign, ())), tuple(known.get(sign, ()))) for sign in dict.fromkeys([*fresh, *known])
    ]
    return _Knot(tuple(atoms), tuple(odds for _, odds in members))


def _draw(
    knots: list[_Knot],
    fresh: Sequence[int],
    others: Sequence[int],
    rates: list[tuple[float, float]],
    size: int,
    dice: _Dice,
) -> list[int]:
    """Return, for each change, the worlds in which it fails."""
    fails = [0] * size
    weighed: list[tuple[float, float, list[list[list[float]]]]] = []
    for rate, weight in rates:
        tables = [knot.table(rate) for knot in knots]
        for table in tables:
            weight *= table[0][0]
        weighed.append((rate, weight, tables))
    total = sum(weight for _, weight, _ in weighed)
    reached, world = 0.0, 0
    for rate, weight, tables in weighed:
        reached += weight
        while world < WORLDS and (world + 0.5) * total <= WORLDS * reached:
            bit = 1 << world
            for knot, table in zip(knots, tables, strict=True):
                _draw_knot(knot, table, rate, fails, bit, dice)
            _scatter(fresh, rate, fails, bit, dice)
            _scatter(others, JOINING, fails, bit, dice)
            world += 1
    return fails


def _draw_knot(knot: _Knot, table: list[list[float]], rate: float, fails: list[int], bit: int, dice: _Dice) -> None:
    state = 0
    for number, atom in enumerate(knot.atoms):
        here, after = table[number][state], table[number + 1]
        clean = _clean(atom, rate)
        if here > 0 and dice.throw() * here >= clean * after[state]:
            state |= atom.sign
            _at_least_one(atom, rate, clean, fails, bit, dice)


def _at_least_one(atom: _Atom, rate: float, clean: float, fails: list[int], bit: int, dice: _Dice) -> None:
    """Let one or more of the atom's changes fail in a world."""
    first = 1 - dice.throw() * (1 - clean)
    index = int(log(first) / log(1 - rate)) if atom.fresh else 0
    if index < len(atom.fresh):
        fails[atom.fresh[index]] |= bit
        _scatter(atom.fresh[index + 1 :], rate, fails, bit, dice)
    elif atom.passed:
        fails[atom.passed[int(dice.throw() * len(atom.passed))]] |= bit
    else:
        fails[atom.fresh[-1]] |= bit


def _scatter(items: Sequence[int], rate: float, fails: list[int], bit: int, dice: _Dice) -> None:
    """Let each fail in a world with the same chance; steps from one that fails to the next."""
    size, scale = len(items), 1 / log(1 - rate)
    index = int(log(1 - dice.throw()) * scale)
    while index < size:
        fails[items[index]] |= bit
        index += 1 + int(log(1 - dice.throw()) * scale)
