"""What is asked and answered about gates, and the tests that flaked in them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from covey.app.shapes.forms import Asked, Limit, Line
from covey.core import gates
from covey.core.gate_trials import Verdict, judge


class ReadGate(Asked, frozen=True, kw_only=True):
    """From which byte on; a negative one counts from the end."""

    since: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0


class TryGate(Asked, frozen=True, kw_only=True):
    """The command to try in place of `merge.check`; without one, the gate as it is set."""

    check: Line | None = None


class GateRow(Struct, frozen=True, kw_only=True):
    """One test of one tree, and how it ended."""

    id: str
    base: str
    commit: str
    merges: tuple[str, ...]
    purpose: str
    slot: int
    state: gates.State
    why: str | None
    code: int | None
    step: str
    seconds: float | None
    cpu: float | None
    failures: tuple[str, ...]
    fingerprint: str
    summary: str
    started: float
    ended: float | None

    @staticmethod
    def of(gate: gates.Gate) -> GateRow:
        """Return a gate as it is answered."""
        return GateRow(**{name: getattr(gate, name) for name in GateRow.__struct_fields__})


class GateFull(GateRow, frozen=True, kw_only=True):
    """A gate, and what it shows if it was run on main alone.

    `verdict` is works, empty (it passed and ran no test), fails, broken (it could not do its work here) or lost; `told`
    says so in a sentence, `error` is the line of its output that says why, `advice` what to do.
    """

    verdict: Verdict | None = None
    told: str = ""
    error: str = ""
    advice: str = ""

    @staticmethod
    def whole(gate: gates.Gate) -> GateFull:
        """Return a gate with what it shows."""
        own = {name: getattr(gate, name) for name in GateRow.__struct_fields__}
        trial = None if gate.merges else judge(gate)
        return GateFull(**own) if trial is None else GateFull(**own, **trial.__dict__)


class ListFlakes(Asked, frozen=True, kw_only=True):
    """How many tests, those that flaked last first."""

    limit: Limit = 200


class FlakeRow(Struct, frozen=True):
    """A test that failed and then passed on the very same tree: how often, first and last, and where it failed."""

    test: str
    times: int
    first: float
    last: float
    gate: str
