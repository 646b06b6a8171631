"""Trying the gate: the checks are run on main as it is, because a person wants to know whether they work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from covey.app.context import Call
from covey.app.merging import queue_records
from covey.app.shapes.forms import Nothing
from covey.app.shapes.merging.gates import GateFull, TryGate
from covey.app.verbs import verb
from covey.core.fleet.sessions import COVEY
from covey.core.merging import gates
from covey.core.merging.gates import TRY, TRY_SLOT, Gate
from covey.core.merging.queue import queue_status
from covey.core.people.rights import OWNER_ONLY
from covey.core.texts import line
from covey.errors import Refused, Unavailable

CALLED_OFF = "it was called off"


def _look_at_main(call: Call, asked: TryGate) -> Callable[[], str | None] | None:
    """Return a look at where main is, or the branch on which work lands once there is one."""
    project, config = call.context.repository, call.context.config
    if project is None:
        return None

    def look() -> str | None:
        from covey.git.candidates import candidates

        names = dict.fromkeys((config.target, config.project.main))
        return next((commit for name in names if (commit := candidates.resolve(project, f"refs/heads/{name}"))), None)

    return look


@verb("gate.try", "POST /api/gates/try", TryGate, GateFull, may=OWNER_ONLY, status=201, ahead=_look_at_main)
def begin(call: Call, asked: TryGate) -> GateFull:
    """Try the gate on main as it is, or another check in its place; the gate that is answered runs from now on."""
    config = call.context.config
    check = line(asked.check, "The check", 2000) if asked.check else ""
    if not check and not config.merge.check:
        raise Refused("There is no gate to try: merge.check is not set.", hint='[merge] check = "make test", say.')
    if call.context.repository is None:
        raise Unavailable("No gate can be tried here.")
    commit = call.seen
    if commit is None:
        raise Refused(f"There is no commit on {config.target} to try the gate on.", hint="Commit something first.")
    checks = queue_records.digest(replace(config, merge=replace(config.merge, check=check or config.merge.check)))
    for gate in call.tx.running_gates():
        if gate.purpose == TRY and (gate.commit, gate.checks) == (commit, checks):
            return GateFull.whole(gate)
        if gate.purpose == TRY:
            raise Refused(f"Another gate is tried at this moment: {gate.id}.", hint="Wait for its end, or stop it.")
    started = gates.Started(
        test=0, base=commit, commit=commit, purpose=TRY, slot=TRY_SLOT, checks=checks, check=check
    )  # fmt: skip
    return GateFull.whole(call.tx.begin(Gate, started, call.actor(None)))


def end_halt(call: Call, gate: Gate) -> None:
    """Let the queue go on in the name of whoever tried a gate, if by it the main passes on which the queue halted."""
    ended, standing = call.tx.get(Gate, gate.id), call.tx.standing()
    checks = queue_records.digest(call.context.config)
    if ended is None or not queue_status.ends_halt(standing, ended, checks):
        return
    started = call.tx.last_event(gate.id, "gate.started")
    call.context.gate.is_broken = False
    queue_records.put(call, queue_status.Resumed(gate.id), COVEY if started is None else started.actor)


@verb("gate.stop", "POST /api/gates/{id}/stop", Nothing, GateFull, may=OWNER_ONLY)
def stop(call: Call, asked: Nothing, id: str) -> GateFull:
    """Call off a gate that you try; the queue ends its own gates itself."""
    gate = call.find(gates.Gate, id)
    if gate.purpose != TRY:
        raise Refused(f"{id} is the queue's.", hint="covey merge pause lets the queue stand still.")
    return GateFull.whole(queue_records.end_gate(call, id, gates.Lost(CALLED_OFF), call.actor(None)) or gate)
