"""What the merge queue writes down: how it stands, each gate, and each move of main."""

from __future__ import annotations

from covey.app.verbs import Call
from covey.core import gates, landings
from covey.core.gates import Gate
from covey.core.landings import Landing
from covey.core.queue import standing
from covey.core.queue.standing import QUEUE, Standing
from covey.core.sessions import COVEY
from covey.store import rows


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


def start_gate(call: Call, event: gates.Started) -> Gate:
    """Write that a gate began."""
    seq = call.tx.next_seq
    gate = gates.first(f"gate-{seq}", seq, event, call.tx.now)
    call.tx.insert(rows.GATES, gate)
    call.tx.append(COVEY, gate.id, event, gate)
    return gate


def end_gate(call: Call, gate_id: str, event: gates.Ended | gates.Lost) -> Gate | None:
    """Write how a gate ended; None if that was written before."""
    before = call.tx.get(rows.GATES, gate_id)
    if before is None or before.state is not gates.State.RUNNING:
        return None
    after = gates.apply(before, event, call.tx.now)
    call.tx.update(rows.GATES, before, after)
    call.tx.append(COVEY, gate_id, event, after)
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


def pushed(call: Call, landing: Landing, remote: str) -> Landing:
    """Write that a landing has reached a remote."""
    event = landings.Pushed(remote)
    after = landings.apply(landing, event, call.tx.now)
    call.tx.update(rows.LANDINGS, landing, after)
    call.tx.append(COVEY, landing.id, event, after)
    return after
