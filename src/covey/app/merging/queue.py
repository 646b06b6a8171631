"""The verbs of the queue as a whole: how it stands, its gates, the landing journal, and what stops or lets it go on."""

from __future__ import annotations

import gzip
import os
import statistics
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from covey.app.context import Call
from covey.app.history import transcripts
from covey.app.history.run_streams import Output
from covey.app.merging import gate_logs, queue_records
from covey.app.merging.merge_lookup import failed_in
from covey.app.merging.merge_reasons import line_of, look
from covey.app.shapes.fleet import Logs
from covey.app.shapes.forms import Nothing, Perhaps
from covey.app.shapes.merging.gates import GateFull, GateRow, LandingRow, ListFlakes, ListLandings, ReadGate
from covey.app.shapes.merging.merges import QueueFull, QueueRow
from covey.app.verbs import verb
from covey.core.fleet.launches import Observation
from covey.core.merging import gates
from covey.core.merging.merges import MergeState
from covey.core.merging.queue import queue_status
from covey.core.merging.queue.queue_status import QueueStatus
from covey.core.merging.queue_view import QueueView
from covey.core.people.alerts import AlertKind
from covey.core.people.rights import OWN_OR_REVIEW, OWNER_ONLY, SHARED
from covey.errors import NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from covey.runners.process import ProcessRunner

MAX_ENDED_COUNTED = 100
"""How many ended merges and gates the figures are made of."""
HOUR_S = 3600.0
MAX_GATE_STEPS = 100
"""Steps that a gate may have."""
MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Bytes of a gate's output that are answered at once."""


@verb("queue.show", "GET /api/queue", Nothing, QueueFull, may=SHARED)
def show(call: Call, asked: Nothing) -> QueueFull:
    """Show the train at a glance: how it stands, what is tested now, what waits and why, and how fast it lands."""
    view = look(call)
    ended = call.tx.last_ended_merges(MAX_ENDED_COUNTED)
    tested = call.tx.last_gates(MAX_ENDED_COUNTED)
    took = [gate.seconds for gate in tested if gate.state is gates.GateState.PASSED and gate.seconds]
    rest = [name for name in view.open if name not in view.places]
    return QueueFull.of(
        view.standing,
        **_where(call, view.standing),
        checked=view.checked,
        troubles=[*_troubles(call, view)],
        limits=[*call.context.gate.limits],
        fleet_paused=view.fleet_paused,
        running=[GateRow.of(gate) for gate in view.running],
        merges=[line_of(view, view.open[name]) for name in (*view.places, *rest)],
        landed_hour=call.tx.count_landed_since(call.tx.now - HOUR_S),
        ended=len(ended),
        rejected=sum(merge.state is MergeState.REJECTED for merge in ended),
        gate_seconds=statistics.median(took) if took else None,
        last=next((LandingRow.of(landing) for landing in call.tx.last_landings(1)), None),
    )


def _troubles(call: Call, view: QueueView) -> Iterator[str]:
    """Yield why the gate cannot be run, why the queue cannot go on, and why what landed does not reach the remote."""
    if view.broken:
        yield view.broken.told
    if view.stuck is not None:
        yield view.stuck.message
    told = call.tx.last_alert(AlertKind.NOT_PUSHED) if call.context.config.merge.push else None
    if told is not None and not call.tx.has_pushed_since(told.raised):
        yield told.message


def _where(call: Call, now: QueueStatus) -> dict[str, str]:
    """Return where the queue lands and how it tests: as set, as long as it has not begun."""
    config = call.context.config
    return {"branch": config.target, "strategy": now.strategy or config.merge.strategy}


@verb("queue.pause", "POST /api/queue/pause", Perhaps, QueueRow, may=OWNER_ONLY)
def pause(call: Call, asked: Perhaps) -> QueueRow:
    """Let the queue test and land nothing more; what is tested now is tested to its end."""
    return _put(call, queue_status.Paused(call.line(asked.reason, "The reason") or call.tx.standing().paused_why or ""))


@verb("queue.resume", "POST /api/queue/resume", Nothing, QueueRow, may=OWNER_ONLY)
def resume(call: Call, asked: Nothing) -> QueueRow:
    """Let the queue go on, also if it had halted because main is red: main is then tested again."""
    now = call.tx.standing()
    if not now.paused and not now.halted:
        raise Refused("The queue is not paused.", hint=_what_stops(call, now))
    call.context.gate.is_broken = False
    return _put(call, queue_status.Resumed())


@verb("queue.freeze", "POST /api/queue/freeze", Perhaps, QueueRow, may=OWNER_ONLY)
def freeze(call: Call, asked: Perhaps) -> QueueRow:
    """Keep main where it is: testing goes on, and what passes waits for main."""
    return _put(call, queue_status.Frozen(call.line(asked.reason, "The reason") or call.tx.standing().frozen_why or ""))


@verb("queue.thaw", "POST /api/queue/thaw", Nothing, QueueRow, may=OWNER_ONLY)
def thaw(call: Call, asked: Nothing) -> QueueRow:
    """Let main move again, to all that has passed meanwhile."""
    now = call.tx.standing()
    if not now.frozen:
        raise Refused("Main is not frozen.", hint=_what_stops(call, now))
    return _put(call, queue_status.Thawed())


def _what_stops(call: Call, now: QueueStatus) -> str:
    if now.frozen:
        return "Main is frozen: covey merge thaw lets it move."
    if now.paused or now.halted:
        return "The queue stands still: covey merge resume lets it go on."
    return (
        "The whole fleet is paused: covey resume." if call.tx.fleet().paused else "covey merge queue shows the train."
    )


def _put(call: Call, event: queue_status.Event) -> QueueRow:
    now = queue_records.put(call, event, call.actor(None))
    return QueueRow.of(now, **_where(call, now))


@verb("gate.show", "GET /api/gates/{id}", Nothing, GateFull, may=SHARED)
def show_gate(call: Call, asked: Nothing, id: str) -> GateFull:
    """Show one gate: what it tests or tested, how that ended, and what that shows if it tested main alone."""
    return GateFull.whole(call.find(gates.Gate, id))


@verb("gate.log", "GET /api/gates/{id}/log", ReadGate, Logs, may=OWN_OR_REVIEW)
def read_gate(call: Call, asked: ReadGate, id: str) -> Logs:
    """Read what a gate printed, from a byte on, without the secrets in it."""
    gate = call.find(gates.Gate, id)
    runner, runs = call.context.runner, call.context.runs
    if runner is None or runs is None:
        raise Unavailable("Nothing can be read of gates here.")
    path = runs.parent / gate_logs.FOLDER / f"{gate.id}{gate_logs.SUFFIX}"
    if path.exists():
        size, alive = _size(path), False
        output: Output = partial(_packed, path)
    else:
        run, seen = _step_of(runner, gate.id)
        size, alive = seen.size, seen.alive
        output = partial(runner.output, run)
        if not size and not alive and gate.state is gates.GateState.RUNNING:
            alive = True  # its first step is about to begin
        elif not size and not alive:
            raise NotFound(f"What {gate.id} printed is not kept.", hint="It is kept as long as log.keep_days says.")
    since = asked.since if asked.since >= 0 else max(size + asked.since, 0)
    text, following = transcripts.raw(output, since, size, alive=alive)
    return Logs(gate.id, text, following, alive, transcript=False)


def _step_of(runner: ProcessRunner, gate: str) -> tuple[str, Observation]:
    """Return the run in which a gate's last step so far is made, and what is seen of it."""
    run, seen = gate, runner.look(gate)
    for number in range(2, MAX_GATE_STEPS):
        later = runner.look(f"{gate}.{number}")
        if not later.alive and not later.size:
            break
        run, seen = f"{gate}.{number}", later
    return run, seen


def _size(path: Path) -> int:
    """Return how long a packed file is; its end says it."""
    try:
        with open(path, "rb") as packed:
            packed.seek(-4, os.SEEK_END)
            return int.from_bytes(packed.read(4), "little")
    except OSError:
        return 0


def _packed(path: Path, at: int) -> tuple[bytes, int]:
    try:
        with gzip.open(path) as file:
            file.seek(at)
            data = file.read(MAX_ANSWER_BYTES)
    except (OSError, EOFError) as error:
        raise Unavailable(f"What the gate printed cannot be read: {error}.") from None
    return data, at + len(data)


@verb("landing.list", "GET /api/landings", ListLandings, list[LandingRow], may=SHARED)
def list_landings(call: Call, asked: ListLandings) -> list[LandingRow]:
    """List the landing journal: what main was and is, with which merges, after which gate; the newest first."""
    return [LandingRow.of(landing) for landing in call.tx.last_landings(asked.limit)]


@verb("flake.list", "GET /api/flakes", ListFlakes, list[gates.Flake], may=SHARED)
def list_flakes(call: Call, asked: ListFlakes) -> list[gates.Flake]:
    """List the tests that failed and then passed on the very same tree, those that did so last first."""
    return [replace(flake, gate=failed_in(call, flake)) for flake in call.tx.flakes(asked.limit)]
