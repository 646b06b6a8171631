"""Cumulative prefixes: as many nested trees as there are slots; the largest that passes lands, a gap is searched."""

from __future__ import annotations

from math import log

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

BAD, GOOD = 0.5, 14.0
"""What is believed of the failure rate before anything is known, as so many changes seen."""
MIN_FAILURE_RATE, MAX_FAILURE_RATE = 0.001, 0.9


def choose(state: TrainState) -> Choice:
    """Test prefixes of the line at once, and again alone what failed alone."""
    failed = failed_sets(state)
    line = [change.id for change in eligible(state)]
    known = {id for id in line if {id} in failed}
    again = [id for id in line if 0 < failed.count(frozenset((id,))) < FAILURES or (id in known and state.proven)]
    cancel = _to_cancel(state, failed)
    running = [test.changes for number, test in state.running.items() if number not in cancel]
    free = state.slots - len(running)
    alone = [id for id in again if (id,) not in running][:free]
    start = [Plan((id,), Purpose.RETRY if failed_alone(state, id) else Purpose.SOLO) for id in alone]
    free -= len(start)
    if free > 0:
        rest = _behind(max(running, key=len, default=()), _without(state, line, known))
        start += _prefixes(state, rest, running, failed)[:free]
    return Choice(tuple(start), cancel)


def _to_cancel(state: TrainState, failed: list[frozenset[str]]) -> tuple[int, ...]:
    """Return the tests that hold more than what is known to fail, or that stand on a main of before."""
    tests = [(number, test) for number, test in state.running.items() if test.purpose is not Purpose.PROBE]
    holds_failed = {number for number, test in tests if any(each < set(test.changes) for each in failed)}
    is_behind = {number for number, test in tests if test.on != state.main and not test.alone}
    return tuple(number for number, _ in tests if number in holds_failed | is_behind)


def _prefixes(
    state: TrainState, line: list[str], running: list[tuple[str, ...]], failed: list[frozenset[str]]
) -> list[Plan]:
    """Return the prefixes of the line that are worth a test and are not under test, the longest first."""
    sizes = [len(test) for test in running if tuple(line[: len(test)]) == test]
    cuts = _cuts(state, line, [each for each in failed if each.issubset(line)])
    return [
        Plan(tuple(line[:cut]), Purpose.SOLO if cut == 1 else Purpose.GROUP) for cut in _still_to_start(cuts, sizes)
    ]


def _without(state: TrainState, line: list[str], known: set[str]) -> list[str]:
    """Return the line without those that failed alone, and without whoever needs them."""
    left: list[str] = []
    out = set(known)
    for id in line:
        if id in out or out.intersection(state.changes[id].needs):
            out.add(id)
        else:
            left.append(id)
    return left


def _behind(tested: tuple[str, ...], line: list[str]) -> list[str]:
    """Return the line behind what is being tested already, so that all trees under test are prefixes of another."""
    if not set(tested).issubset(line):
        return line
    first = set(tested)
    return [*tested, *(id for id in line if id not in first)]


def _cuts(state: TrainState, line: list[str], failed: list[frozenset[str]]) -> list[int]:
    """Return how long prefixes to test are: evenly in a gap that is known to fail, else as likely as not to pass."""
    place = {id: number for number, id in enumerate(line, 1)}
    gap = min((max(place[id] for id in each) for each in failed), default=0)
    slots = state.slots
    if gap:
        cuts = {round(gap * part / (slots + 1)) for part in range(1, slots + 1)}
        return sorted(cut for cut in {max(cut, 1) for cut in cuts} if cut < gap)
    bad = (state.rate.bad + BAD) / (state.rate.good + state.rate.bad + BAD + GOOD)
    good = log(1 - min(max(bad, MIN_FAILURE_RATE), MAX_FAILURE_RATE))
    wanted = {max(1, int(log(1 - part / (slots + 1)) / good)) for part in range(1, slots + 1)}
    cuts = {min(cut, len(line)) for cut in wanted if line}
    cuts |= set([number for number in range(1, len(line) + 1) if number not in cuts][: slots - len(cuts)])
    return sorted(cuts)


def _still_to_start(cuts: list[int], sizes: list[int]) -> list[int]:
    """Return the cuts that no running test stands for, the longest first."""
    left = list(cuts)
    for size in sizes:
        if left:
            left.remove(min(left, key=lambda cut: abs(cut - size)))
    return [cut for cut in reversed(left) if cut not in sizes]
