"""What the log says to the train: the daemon steps through it as it is written, and anybody can do so again later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from covey.core.fleet.fleet_state import Fleet
from covey.core.merging import gates
from covey.core.merging.gates import Gate
from covey.core.merging.merges import Merge
from covey.core.merging.queue.queue_status import Joined, QueueStatus
from covey.core.merging.queue.steps import step
from covey.core.merging.queue.train import (
    Action,
    Arrived,
    Change,
    Clashed,
    Ended,
    Event,
    Left,
    Lost,
    Paused,
    Together,
    TrainState,
)
from covey.core.nouns import Payload, Row
from covey.values import dataclass

LEAVING = ("merge.landed", "merge.rejected", "merge.withdrawn", "merge.held", "merge.requeued")
"""After these a merge is in the train no more; one that is queued again enters again."""


@dataclass(frozen=True)
class Heard:
    """The train as far as the log tells; there is none before the first `queue.began`."""

    train: TrainState = field(default_factory=TrainState)
    begun: bool = False
    joining: tuple[Event, ...] = ()
    """What has entered and joins the train together with what enters next."""
    known: Mapping[str, Arrived] = field(default_factory=dict)
    """Each open merge as it entered last: one that joins the next train unchanged need not be told of again."""
    queue_paused: bool = False
    fleet_paused: bool = False


def heard(kind: str, row: Row | None) -> Event | None:
    """Return what an event of the log, with the row as it is after it, is to the train; None if it is nothing."""
    match row:
        case Merge() if kind == "merge.entered":
            change = Change(row.id, row.ordinal, row.priority, row.needs, row.paths)
            return Arrived(change, row.against)
        case Merge() if kind == "merge.clashed":
            return Clashed(row.id, row.against)
        case Merge() if kind in LEAVING:
            return Left(row.id)
        case Gate() if kind == "gate.ended":
            return Ended(row.test, row.state is gates.GateState.PASSED, row.failures)
        case Gate() if kind == "gate.lost":
            return Lost(row.test)
        case _:
            return None


def take(before: Heard, kind: str, row: Row | None, payload: Payload | None = None) -> tuple[Heard, tuple[Action, ...]]:
    """Return the train after an event of the log, and what is to be done now."""
    match row:
        case QueueStatus() if kind == "queue.began":
            return _begin(before, row), ()
        case QueueStatus() if kind == "queue.joined":
            again = payload.again if isinstance(payload, Joined) else ()
            events = (*before.joining, *(before.known[each] for each in again if each in before.known))
            return _step(replace(before, joining=()), Together(events))
        case QueueStatus() if kind in ("queue.paused", "queue.resumed"):
            return _pause(replace(before, queue_paused=row.paused))
        case Fleet():
            return _pause(replace(before, fleet_paused=row.paused))
    event = heard(kind, row)
    if event is None:
        return before, ()
    before = _remember(before, kind, row, event)
    if not before.begun:
        return before, ()
    if isinstance(event, Left) and kind == "merge.landed" and event.id not in before.train.changes:
        return before, ()  # the train itself let it land
    if isinstance(event, Arrived):
        return replace(before, joining=(*before.joining, event)), ()
    if isinstance(event, Clashed) and event.against:
        event = _with_lost(before.train, event)
    return _step(before, event)


def _remember(before: Heard, kind: str, row: Row | None, event: Event) -> Heard:
    """Keep in mind how a merge entered, and with what it clashed since, until it has ended or waits for a person."""
    if isinstance(event, Arrived):
        return replace(before, known={**before.known, event.change.id: event})
    if not isinstance(row, Merge) or row.id not in before.known:
        return before
    if kind == "merge.clashed":
        return replace(before, known={**before.known, row.id: replace(before.known[row.id], clashes=row.against)})
    if kind in LEAVING and kind != "merge.requeued":
        return replace(before, known={name: each for name, each in before.known.items() if name != row.id})
    return before


def _begin(before: Heard, row: QueueStatus) -> Heard:
    train = TrainState(
        strategy=row.strategy,
        slots=row.slots,
        green=0 if row.proven else 1,
        halted=row.halted is not None,
        paused=row.paused or before.fleet_paused,
        rate=row.rate,
    )
    return replace(before, train=train, begun=True, joining=(), queue_paused=row.paused)


def _pause(after: Heard) -> tuple[Heard, tuple[Action, ...]]:
    on = after.queue_paused or after.fleet_paused
    return (after, ()) if not after.begun or on is after.train.paused else _step(after, Paused(on))


def _with_lost(train: TrainState, clash: Clashed) -> Event:
    """Take out the tests that cannot be, since their trees would hold both sides of a clash."""
    both = (n for n, test in train.running.items() if clash.id in test.changes and {*clash.against} & {*test.changes})
    return Together((*(Lost(number) for number in both), clash))


def _step(before: Heard, event: Event) -> tuple[Heard, tuple[Action, ...]]:
    if not before.begun:
        return before, ()
    train, actions = step(before.train, event)
    return replace(before, train=train), actions
