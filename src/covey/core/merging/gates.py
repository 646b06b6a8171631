"""Gates: tests of trees that may become main, each written down with how it ended, and the tests that flaked."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from covey.values import dataclass

TRY = "try"
"""The purpose of a gate that a person tries on main: it is not the train's, and nothing lands by it."""
TRY_SLOT = 0
"""The place of such a gate in the pool: the train's begin after it."""


class GateState(StrEnum):
    """Where a gate stands."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    LOST = "lost"
    """It ended without a result: nobody wanted it any more, or it was killed."""


@dataclass(frozen=True, kw_only=True)
class GateSpec:
    """Which tree is tested, and how; `test` is its number in a train."""

    test: int
    base: str
    commit: str
    merges: tuple[str, ...] = ()
    purpose: str = "group"
    slot: int = 1
    checks: str = ""
    """What stands for the checks that were run, to know whether they are the same now; empty if there were none."""


@dataclass(frozen=True, kw_only=True)
class Gate(GateSpec):
    """One test of one tree: the commit under test, that of main below it, and the merges between them in order."""

    id: str
    ordinal: int
    state: GateState = GateState.RUNNING
    why: str | None = None
    code: int | None = None
    step: str = ""
    seconds: float | None = None
    cpu: float | None = None
    failures: tuple[str, ...] = ()
    fingerprint: str = ""
    summary: str = ""
    started: float = 0.0
    ended: float | None = None


@dataclass(frozen=True)
class Flake:
    """A test that failed and then passed on the very same tree: how often, first and last, and in which gate."""

    test: str
    times: int
    first: float
    last: float
    gate: str


@dataclass(frozen=True, kw_only=True)
class Started(GateSpec):
    """The gate began on a tree; `check` is what a person tries instead of the checks."""

    check: str = ""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The gate said whether the tree is good; `step` is the check that failed, `summary` the lines that tell why."""

    passed: bool
    code: int | None = None
    step: str = ""
    seconds: float = 0.0
    cpu: float | None = None
    failures: tuple[str, ...] = ()
    fingerprint: str = ""
    summary: str = ""


@dataclass(frozen=True)
class Lost:
    """The gate ended without a result, for this reason."""

    why: str


@dataclass(frozen=True)
class Flaked:
    """The same tree passed that had failed: these of its tests cannot be relied on."""

    tests: tuple[str, ...]


Event = Started | Ended | Lost | Flaked


def first(gate: str, seq: int, event: Started, at: float) -> Gate:
    """Return the gate that a Started event begins."""
    spec = {name: value for name, value in vars(event).items() if name != "check"}
    return Gate(id=gate, ordinal=seq, started=at, **spec)


def apply(gate: Gate, event: Event, at: float) -> Gate:
    """Return the gate as it is after `event`. Never refuses."""
    match event:
        case Started():
            return first(gate.id, gate.ordinal, event, at)
        case Ended():
            return replace(
                gate,
                state=GateState.PASSED if event.passed else GateState.FAILED,
                code=event.code,
                step=event.step,
                seconds=event.seconds,
                cpu=event.cpu,
                failures=event.failures,
                fingerprint=event.fingerprint,
                summary=event.summary,
                ended=at,
            )
        case Lost(why):
            return replace(gate, state=GateState.LOST, why=why, ended=at)
        case Flaked():
            return gate


def flakes(known: Flake | None, test: str, gate: str, at: float) -> Flake:
    """Return the record of a test that has flaked once more."""
    if known is None:
        return Flake(test, 1, at, at, gate)
    return replace(known, times=known.times + 1, last=at, gate=gate)
