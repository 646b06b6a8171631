"""Tried gates: gates that a person tries on main, beside the train and its slots."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace

from covey.app.context import Call
from covey.app.merging import gate_tries
from covey.config import Config
from covey.core.merging import gates
from covey.core.merging.gates import Gate
from covey.core.merging.queue_view import could_not_start
from covey.errors import CoveyError
from covey.loops.gates.gate_outcomes import order_for, result_of, unstarted, was_killed, write_end
from covey.loops.gates.gates import Gates
from covey.loops.runtime import Runtime, cancel, going_on

log = logging.getLogger("covey.queue")


@dataclass
class TriedGates:
    """Runs the gates that a person tries."""

    runtime: Runtime
    pool: Gates
    tries: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """Those under way, by gate."""
    _stopping: asyncio.Task[None] | None = None
    """The end of one that was called off; held here so that it is not forgotten half way."""

    def hear(self, gate: Gate, payload: object) -> None:
        """Begin a gate of which the log says that a person tries it, or end one that was called off."""
        if isinstance(payload, gates.Started):
            self.begin(gate, payload.check)
        elif isinstance(payload, gates.Lost) and gate.id in self.tries:
            self._stopping = asyncio.ensure_future(self.call_off(gate.id))

    def begin(self, gate: Gate, check: str) -> asyncio.Task[None]:
        """Begin the gate that a person tries, with another check than that of the settings if one is named."""
        config = self.runtime.app.context.config
        config = replace(config, merge=replace(config.merge, check=check or config.merge.check))
        trying = self.tries[gate.id] = asyncio.ensure_future(self._run(gate, config))
        trying.add_done_callback(lambda _: self.tries.pop(gate.id, None))
        return trying

    async def call_off(self, gate: str) -> None:
        """End a gate that a person tried and does not want any more."""
        if gate in self.tries:
            await self.pool.stop(gate)

    async def close(self) -> None:
        """End every one at once, since the daemon ends."""
        await cancel(self.tries.values())

    async def _run(self, gate: Gate, config: Config) -> None:
        event = await self._result(gate, config)
        with going_on(log, f"the end of {gate.id} could not be written"):
            await self.runtime.write(lambda call: _write_end(call, gate, event))

    async def _result(self, gate: Gate, config: Config) -> gates.Ended | gates.Lost:
        order = replace(order_for(gate, config), config=config, pauses=False)
        try:
            outcome = await self.pool.run(order)
        except CoveyError as error:
            return unstarted(could_not_start(error.message, error.hint))
        except Exception as error:
            log.exception("%s failed", gate.id)
            return gates.Lost(f"Unexpected error ({type(error).__name__}); see the daemon log.")
        if outcome.passed is None or was_killed(outcome):
            return gates.Lost(outcome.why or "it was ended by somebody else")
        return result_of(outcome)


def _write_end(call: Call, gate: Gate, event: gates.Ended | gates.Lost) -> None:
    """Write how a try ended; if main passed on which the queue has halted, it goes on."""
    write_end(call, gate, event)
    gate_tries.end_halt(call, gate)
