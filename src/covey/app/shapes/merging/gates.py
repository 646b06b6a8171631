"""What is asked and answered about gates, the tests that flaked in them, and the moves of main."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from covey.app.shapes.forms import Answered, Asked, Limit, Line, completed, fields_of
from covey.core.merging import gates
from covey.core.merging.gate_trials import TrialVerdict, judge
from covey.core.merging.landings import Landing


class ReadGate(Asked, frozen=True, kw_only=True):
    """From which byte on; a negative one counts from the end."""

    since: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0


class TryGate(Asked, frozen=True, kw_only=True):
    """The command to try in place of `merge.check`; without one, the gate as it is set."""

    check: Line | None = None


@completed(fields_of(gates.Gate, "ordinal", "test", "checks"))
class GateRow(Answered, frozen=True, kw_only=True):
    """One test of one tree, and how it ended."""

    id: str


class GateFull(GateRow, frozen=True, kw_only=True):
    """A gate, and what it shows if it was run on main alone.

    `verdict` is works, empty (it passed and ran no test), fails, broken (it could not do its work here) or lost; `told`
    says so in a sentence, `error` is the line of its output that says why, `advice` what to do.
    """

    verdict: TrialVerdict | None = None
    told: str = ""
    error: str = ""
    advice: str = ""

    @staticmethod
    def whole(gate: gates.Gate) -> GateFull:
        """Return a gate with what it shows."""
        trial = None if gate.merges else judge(gate)
        shown = {"verdict": None, "told": "", "error": "", "advice": ""} if trial is None else trial.__dict__
        return GateFull.of(gate, **shown)


class ListFlakes(Asked, frozen=True, kw_only=True):
    """How many tests, those that flaked last first."""

    limit: Limit = 200


class ListLandings(Asked, frozen=True, kw_only=True):
    """How many moves of main, the newest first."""

    limit: Limit = 50


@completed(fields_of(Landing, "ordinal"))
class LandingRow(Answered, frozen=True, kw_only=True):
    """One move of main: from which commit to which, with which merges, after which gate, and where it was pushed."""

    id: str
