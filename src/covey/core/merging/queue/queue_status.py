"""How the queue as a whole stands: at work, paused, frozen, or halted because main itself is red."""

from __future__ import annotations

from dataclasses import replace

from covey.core.merging.gates import Gate, GateState
from covey.core.merging.queue.train import Rate
from covey.values import dataclass

QUEUE = "queue"
UNLEARNED = Rate()


@dataclass(frozen=True)
class QueueStatus:
    """The queue since it last began, and what keeps it from testing (paused, halted) or from moving main (frozen)."""

    id: str = QUEUE
    strategy: str = ""
    slots: int = 0
    base: str | None = None
    proven: bool = False
    rate: Rate = UNLEARNED
    began: float | None = None
    paused: bool = False
    frozen: bool = False
    halted: str | None = None
    """Why nothing lands before main has changed."""
    gates: tuple[str, ...] = ()
    """The gates that main failed."""
    paused_why: str | None = None
    paused_by: str | None = None
    paused_since: float | None = None
    frozen_why: str | None = None
    frozen_by: str | None = None
    frozen_since: float | None = None


@dataclass(frozen=True, kw_only=True)
class Began:
    """A new train began on a commit of main, `proven` if that passed the gate, and what is open enters again."""

    strategy: str
    slots: int
    base: str
    proven: bool = False
    rate: Rate = UNLEARNED
    """What was learned so far of how many are good."""
    forgives: bool = False
    """Main is tested again although it failed before: by other checks, or under other settings."""


@dataclass(frozen=True)
class Joined:
    """What had entered since the last one joined the train together: after all of it is decided once."""

    merges: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    """Those of them that were in a train before and have not changed; nothing else is written about them."""


@dataclass(frozen=True)
class Paused:
    """Nothing more is tested or lands."""

    why: str = ""


@dataclass(frozen=True)
class Resumed:
    """The queue goes on, also if it had halted; with a `gate`, by which main passed after all, only the halt ends."""

    gate: str = ""


@dataclass(frozen=True)
class Frozen:
    """Main stays where it is; what passes waits for it."""

    why: str = ""


@dataclass(frozen=True)
class Thawed:
    """Main may move again."""


@dataclass(frozen=True)
class Halted:
    """Main itself fails its gate, so nothing lands until it has changed."""

    why: str
    gates: tuple[str, ...] = ()


def ends_halt(standing: QueueStatus, gate: Gate, checks: str) -> bool:
    """Say whether a gate shows that the main on which the queue has halted passes `checks`, those of the settings."""
    passed = gate.state is GateState.PASSED and gate.code == 0
    return passed and standing.halted is not None and (gate.commit, gate.checks) == (standing.base, checks)


Event = Began | Joined | Paused | Resumed | Frozen | Thawed | Halted


def apply(standing: QueueStatus, event: Event, at: float, by: str) -> QueueStatus:
    """Return the queue as it stands after `event`. Never refuses."""
    match event:
        case Began(strategy=strategy, slots=slots, base=base, proven=proven, rate=rate, forgives=forgives):
            halted = standing.halted if base == standing.base and not forgives else None
            return replace(
                standing,
                strategy=strategy,
                slots=slots,
                base=base,
                proven=proven,
                rate=rate,
                began=at,
                halted=halted,
                gates=standing.gates if halted else (),
            )
        case Joined():
            return standing
        case Paused(why):
            return replace(standing, paused=True, paused_why=why or None, paused_by=by, paused_since=at)
        case Resumed(gate):
            # A main that was red is tested again.
            going = replace(standing, halted=None, gates=(), base=standing.base if standing.halted is None else None)
            if gate:
                return going
            return replace(going, paused=False, paused_why=None, paused_by=None, paused_since=None)
        case Frozen(why):
            return replace(standing, frozen=True, frozen_why=why or None, frozen_by=by, frozen_since=at)
        case Thawed():
            return replace(standing, frozen=False, frozen_why=None, frozen_by=None, frozen_since=None)
        case Halted(why, gates):
            return replace(standing, halted=why, gates=gates)
