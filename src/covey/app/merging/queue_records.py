"""What the merge queue writes down: how it stands, each gate, and each move of main."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from covey.app.board.task_changes import change, step
from covey.app.context import Call
from covey.app.merging.reverts import settle
from covey.config import Config
from covey.core.board import tasks
from covey.core.board.tasks import Status
from covey.core.fleet.sessions import COVEY
from covey.core.merging import gates, landings, merges
from covey.core.merging.gates import Gate
from covey.core.merging.landings import Landing
from covey.core.merging.merges import Merge
from covey.core.merging.queue import queue_status
from covey.core.merging.queue.queue_status import QUEUE, QueueStatus

IN_TRAIN = (merges.MergeState.QUEUED, merges.MergeState.TESTING)
"""The states of a merge that is tested or about to be."""


def digest(config: Config) -> str:
    """Return what stands for the checks in the settings; nothing if there are none.

    Before the dash stand the commands alone: what a gate is given may change while it stays the same gate.
    """
    merge = config.merge
    if not merge.check:
        return ""
    room = (merge.isolate, merge.network, merge.env, merge.show)
    commands = (merge.quick, merge.check, merge.checks)
    return f"{_mark(commands)}-{_mark((*commands, room))}"


def _mark(value: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def put(call: Call, event: queue_status.Event, actor: str = COVEY) -> QueueStatus:
    """Write how the queue stands after an event, and the event."""
    before = call.tx.get(queue_status.QueueStatus, QUEUE)
    after = queue_status.apply(before or QueueStatus(), event, call.tx.now, actor)
    return call.tx.record(actor, QUEUE, event, before, after)


def step_if(call: Call, merge_id: str, event: merges.Event, states: Collection[merges.MergeState] = IN_TRAIN) -> None:
    """Write what becomes of a merge, unless something else has become of it."""
    now = call.tx.get(merges.Merge, merge_id)
    if now is not None and now.state in states:
        step(call, now, event, COVEY)


def end_gate(call: Call, gate_id: str, event: gates.Ended | gates.Lost, by: str = COVEY) -> Gate | None:
    """Write how a gate ended; None if that was written before."""
    before = call.tx.get(gates.Gate, gate_id)
    if before is None or before.state is not gates.GateState.RUNNING:
        return None
    return call.tx.advance(before, event, by)


def lose_gates(call: Call, why: str, but: Collection[str] = ()) -> None:
    """Write that gates have no result if nobody knows how they ended, except for those that still run."""
    for gate in call.tx.running_gates():
        if gate.id not in but:
            end_gate(call, gate.id, gates.Lost(why))


def note_flakes(call: Call, gate: Gate, tests: tuple[str, ...]) -> None:
    """Write that the tests failed before on the very tree that has passed now."""
    for test in dict.fromkeys(tests):
        before = call.tx.get(gates.Flake, test)
        call.tx.put(before, gates.flakes(before, test, gate.id, call.tx.now))
    call.tx.append(COVEY, gate.id, gates.Flaked(tuple(dict.fromkeys(tests))), gate)


def landed(call: Call, branch: str, arrived: Sequence[Merge], before: str | None) -> Landing | None:
    """Write that merges that had passed are on a branch, in this order, and what follows for their tasks."""
    now = [call.tx.get(merges.Merge, merge.id) for merge in arrived]
    there = [
        merge for merge in now if merge is not None and merge.state is merges.MergeState.PASSED and merge.candidate
    ]
    if not there:
        return None
    last = there[-1].candidate or ""
    gate = call.tx.last_passed_gate(last)
    made = landings.Made(
        branch=branch,
        before=before or there[0].onto or "",
        commit=last,
        merges=tuple(merge.id for merge in there),
        gate=gate.id if gate is not None and gate.checks else None,
        untested=any(merge.untested for merge in there),
    )
    landing = call.tx.begin(Landing, made, COVEY)
    for merge in there:
        commit = merge.candidate or last
        after = step(call, merge, merges.Landed(commit, landing.id), COVEY)
        task = call.tx.task(merge.task)
        if task is not None and task.status is Status.MERGING:
            change(call, task, tasks.land(task, commit), COVEY)
        settle(call, after)
    return landing
