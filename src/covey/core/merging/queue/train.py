"""The train: changes that want to land, what is tested of them, and one `step` that every strategy shares.

A strategy only chooses what to test next. What lands, what is rejected and when the queue halts follows from rules that
hold for all of them: main takes only a tree that passed the gate as it is; a change is rejected only after it failed
twice as the only difference from a tree that passed; no waiting change is blamed for a red main.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from covey.values import dataclass

FAILURES = 2
"""Failures alone over a green tree that reject a change: the second is the retry for flakes."""


class Purpose(StrEnum):
    """Why a tree is tested."""

    GROUP = "group"
    SOLO = "solo"
    RETRY = "retry"
    PROBE = "probe"
    """Main alone, to see whether it is to blame."""


class RejectCause(StrEnum):
    """Why a change does not land."""

    FAILS = "fails"
    """The gate fails with it. Whether it is bad or does not go with what landed is told by the gate's output."""
    TEXT = "text"
    NEEDS = "needs"


@dataclass(frozen=True)
class Change:
    """One change that wants to land; a larger priority goes first, then whoever is needed, then whoever came first."""

    id: str
    order: int
    priority: int = 0
    needs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Test:
    """One tree under test: the value of main with number `on`, and changes put on it in this order."""

    id: int
    on: int
    changes: tuple[str, ...]
    purpose: Purpose = Purpose.GROUP
    alone: bool = False
    """One change was, or has become, all that this tree differs in from a value of main."""
    exact: bool = True
    """The tree holds all of that main; if not, it failed with less than that."""


@dataclass(frozen=True)
class TreeResult:
    """How the test of a tree ended."""

    test: Test
    passed: bool
    failures: tuple[str, ...] = ()
    """What failed, as far as the output names it."""


# What happens


@dataclass(frozen=True)
class Arrived:
    """A change came, came again with another priority, or merges with main after all, although it was doubtful.

    It needs only what has not landed yet; `clashes` are open ones with which git cannot merge it.
    """

    change: Change
    clashes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Left:
    """A change wants to land no more, or never entered; whoever needs it is rejected."""

    id: str


@dataclass(frozen=True)
class Clashed:
    """Git cannot merge a change with others, or, if none is named, with main as it is."""

    id: str
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """The gate ended on a tree."""

    test: int
    passed: bool
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lost:
    """A test ended without a result."""

    test: int


@dataclass(frozen=True)
class Paused:
    """A person stopped the queue, or let it go on; what runs, runs on."""

    on: bool


@dataclass(frozen=True)
class Together:
    """Several of these at the same moment, after which is decided once."""

    events: tuple[Event, ...]


Event = Arrived | Left | Clashed | Ended | Lost | Paused | Together


# What is to be done


@dataclass(frozen=True)
class Start:
    """Test this tree."""

    test: Test


@dataclass(frozen=True)
class Cancel:
    """End a test whose result is of no use any more."""

    test: int


@dataclass(frozen=True)
class Land:
    """Bring main to the tree of a test that passed; `changes` are those that main does not hold yet, in order."""

    test: int
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Reject:
    """Send a change back; `tests` are those that it failed alone, `blame` what it clashes with or needs."""

    id: str
    reason: RejectCause
    tests: tuple[int, ...] = ()
    blame: tuple[str, ...] = ()


@dataclass(frozen=True)
class Halt:
    """Main itself fails its gate: nothing more is started before it has changed."""

    tests: tuple[int, ...]


Action = Start | Cancel | Land | Reject | Halt


@dataclass(frozen=True)
class Rate:
    """How many of the last changes were good and how many not, old ones counting less; and the same for flakes."""

    good: float = 0.0
    bad: float = 0.0
    steady: float = 0.0
    flaked: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TrainState:
    """All that is known of the train; never changed in place."""

    strategy: str = "group"
    slots: int = 1
    main: int = 0
    """The number of main's value, one more with each landing."""
    green: int = 0
    """The first value of main that is known to pass the gate: 0 if it was so from the beginning."""
    halted: bool = False
    paused: bool = False
    changes: Mapping[str, Change] = field(default_factory=dict)
    """What is open, by id."""
    clashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """With which other open changes git cannot merge one."""
    doubtful: frozenset[str] = frozenset()
    """What clashed with something that has landed: it waits until somebody has looked whether it merges with main."""
    running: Mapping[int, Test] = field(default_factory=dict)
    results: tuple[TreeResult, ...] = ()
    """What ended tests say of changes that are open still, the oldest first."""
    landed: frozenset[str] = frozenset()
    """What has landed and is needed by an open change."""
    gone: frozenset[str] = frozenset()
    """What was rejected or left and is needed by an open change, which cannot land then."""
    tests: int = 0
    """The number of the last test."""
    rate: Rate = Rate()

    @property
    def proven(self) -> bool:
        """Main as it is passed the gate."""
        return self.main >= self.green

    @property
    def free(self) -> int:
        """How many more tests may run at the same time."""
        return max(self.slots - len(self.running), 0)


@dataclass(frozen=True)
class Plan:
    """A tree that a strategy wants to see tested on main as it is."""

    changes: tuple[str, ...]
    purpose: Purpose = Purpose.GROUP


@dataclass(frozen=True)
class Choice:
    """What a strategy wants: running tests to end, and trees to test, the most important first."""

    start: tuple[Plan, ...] = ()
    cancel: tuple[int, ...] = ()


Strategy = Callable[[TrainState], Choice]


# What strategies ask


def in_line(state: TrainState) -> tuple[Change, ...]:
    """Return what is open in the order in which it is to land: by priority, the needed first, then by arrival."""
    needed = {need for change in state.changes.values() for need in change.needs if need in state.changes}
    if not needed:
        return tuple(sorted(state.changes.values(), key=lambda change: (-change.priority, change.order)))
    weight = _weights(state)
    return _needs_first(
        state,
        sorted(state.changes.values(), key=lambda change: (-weight[change.id], change.id not in needed, change.order)),
    )


def _weights(state: TrainState) -> dict[str, int]:
    """Return the priority of each change: its own, or a larger one of somebody who needs it."""
    weight = {change.id: change.priority for change in state.changes.values()}
    pending = list(state.changes.values())
    while pending:
        change = pending.pop()
        for need in change.needs:
            if need in weight and weight[need] < weight[change.id]:
                weight[need] = weight[change.id]
                pending.append(state.changes[need])
    return weight


def _needs_first(state: TrainState, changes: Iterable[Change]) -> tuple[Change, ...]:
    placed: dict[str, Change] = {}
    for change in changes:
        way = [change]
        seen = {change.id}
        while way:
            missing = [
                state.changes[need]
                for need in way[-1].needs
                if need in state.changes and need not in placed and need not in seen
            ]
            if missing:
                way.append(missing[0])
                seen.add(missing[0].id)
            else:
                last = way.pop()
                placed.setdefault(last.id, last)
    return tuple(placed.values())


def eligible(state: TrainState) -> tuple[Change, ...]:
    """Return, in line, what may be in a tree now: no clash with an open one before it, needs landed or before it."""
    found: list[Change] = []
    before: set[str] = set()
    may: set[str] = set()
    for change in in_line(state):
        clash = state.clashes.get(change.id)
        free = change.id not in state.doubtful and (clash is None or clash.isdisjoint(before))
        if free and all(need in state.landed or need in may for need in change.needs):
            found.append(change)
            may.add(change.id)
        before.add(change.id)
    return tuple(found)


def failed_sets(state: TrainState) -> list[frozenset[str]]:
    """Return what failed together: as long as main is not in doubt, each of these holds a culprit."""
    return [frozenset(result.test.changes) for result in state.results if not result.passed and result.test.changes]


def failed_alone(state: TrainState, change: str) -> tuple[int, ...]:
    """Return the tests that a change failed alone on a green main: two of them reject it."""
    return tuple(
        result.test.id
        for result in state.results
        if not result.passed
        and result.test.alone
        and result.test.changes == (change,)
        and result.test.on >= state.green
    )
