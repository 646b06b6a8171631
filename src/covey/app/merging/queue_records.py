"""What the merge queue writes down: how it stands, each gate, and each move of main."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from covey.app.changes import change, step
from covey.app.reverts import settle
from covey.app.verbs import Call
from covey.config import Config
from covey.core import gates, landings, merges, tasks
from covey.core.gates import Gate
from covey.core.landings import Landing
from covey.core.merges import Merge
from covey.core.queue import standing
from covey.core.queue.standing import QUEUE, Standing
from covey.core.queue.steps import MEMORY
from covey.core.queue.train import Rate
from covey.core.sessions import COVEY
from covey.core.tasks import Status
from covey.store import rows

LAST = 200
"""Merges and gates from which is learned."""


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


def put(call: Call, event: standing.Event, actor: str = COVEY) -> Standing:
    """Write how the queue stands after an event, and the event."""
    before = call.tx.get(rows.QUEUE, QUEUE)
    after = standing.apply(before or Standing(), event, call.tx.now, actor)
    if before is None:
        call.tx.insert(rows.QUEUE, after)
    else:
        call.tx.update(rows.QUEUE, before, after)
    call.tx.append(actor, QUEUE, event, after)
    return after


def learned(call: Call) -> Rate:
    """Return what the last merges and gates teach about how many are good, as the train would have learned it."""
    rate, keep = Rate(), 1 - 1 / MEMORY
    for merge in reversed(call.tx.last_ended_merges(LAST)):
        bad = 0.0 if merge.state is merges.State.LANDED else float(merge.cause == "fails")
        good = float(merge.state is merges.State.LANDED)
        rate = replace(rate, good=rate.good * keep + good, bad=rate.bad * keep + bad)
    failed: set[str] = set()
    for gate in reversed(call.tx.last_gates(LAST)):
        if gate.state is gates.State.FAILED:
            failed.add(gate.commit)
        elif gate.state is gates.State.PASSED and gate.checks:
            flaked = float(gate.commit in failed)
            rate = replace(rate, steady=rate.steady * keep + 1, flaked=rate.flaked * keep + flaked)
    return rate


def start_gate(call: Call, event: gates.Started, by: str = COVEY) -> Gate:
    """Write that a gate began."""
    seq = call.tx.next_seq
    gate = gates.first(f"gate-{seq}", seq, event, call.tx.now)
    call.tx.insert(rows.GATES, gate)
    call.tx.append(by, gate.id, event, gate)
    return gate


def end_gate(call: Call, gate_id: str, event: gates.Ended | gates.Lost, by: str = COVEY) -> Gate | None:
    """Write how a gate ended; None if that was written before."""
    before = call.tx.get(rows.GATES, gate_id)
    if before is None or before.state is not gates.State.RUNNING:
        return None
    after = gates.apply(before, event, call.tx.now)
    call.tx.update(rows.GATES, before, after)
    call.tx.append(by, gate_id, event, after)
    return after


def note_flakes(call: Call, gate: Gate, tests: tuple[str, ...]) -> None:
    """Write that the tests failed before on the very tree that has passed now."""
    for test in dict.fromkeys(tests):
        before = call.tx.get(rows.FLAKES, test)
        after = gates.flakes(before, test, gate.id, call.tx.now)
        if before is None:
            call.tx.insert(rows.FLAKES, after)
        else:
            call.tx.update(rows.FLAKES, before, after)
    call.tx.append(COVEY, gate.id, gates.Flaked(tuple(dict.fromkeys(tests))), gate)


def journal(call: Call, event: landings.Made) -> Landing:
    """Write a move of main into the landing journal."""
    seq = call.tx.next_seq
    landing = landings.first(f"landing-{seq}", seq, event, call.tx.now)
    call.tx.insert(rows.LANDINGS, landing)
    call.tx.append(COVEY, landing.id, event, landing)
    return landing


def landed(call: Call, branch: str, arrived: Sequence[Merge], before: str | None) -> Landing | None:
    """Write that merges that had passed are on a branch, in this order, and what follows for their tasks."""
    now = [call.tx.get(rows.MERGES, merge.id) for merge in arrived]
    there = [merge for merge in now if merge is not None and merge.state is merges.State.PASSED and merge.candidate]
    if not there:
        return None
    last = there[-1].candidate or ""
    found = call.tx.find(rows.GATES, "WHERE state = 'passed' AND \"commit\" = ? ORDER BY ordinal DESC LIMIT 1", (last,))
    made = landings.Made(
        branch=branch,
        before=before or there[0].onto or "",
        commit=last,
        merges=tuple(merge.id for merge in there),
        gate=found[0].id if found and found[0].checks else None,
        untested=any(merge.untested for merge in there),
    )
    landing = journal(call, made)
    for merge in there:
        _landed(call, merge, landing)
    return landing


def _landed(call: Call, merge: Merge, landing: Landing) -> None:
    commit = merge.candidate or landing.commit
    after = step(call, merge, merges.Landed(commit, landing.id), COVEY)
    task = call.tx.task(merge.task)
    if task is not None and task.status is Status.MERGING:
        change(call, task, tasks.land(task, commit), COVEY)
    settle(call, after)


def last_landed(call: Call, branch: str) -> str | None:
    """Return the commit that a branch took last from the queue."""
    found = call.tx.find(rows.LANDINGS, "WHERE branch = ? ORDER BY ordinal DESC LIMIT 1", (branch,))
    return found[0].commit if found else call.tx.last_landed()


def pushed(call: Call, landing: Landing, remote: str) -> Landing:
    """Write that a landing has reached a remote."""
    event = landings.Pushed(remote)
    after = landings.apply(landing, event, call.tx.now)
    call.tx.update(rows.LANDINGS, landing, after)
    call.tx.append(COVEY, landing.id, event, after)
    return after
