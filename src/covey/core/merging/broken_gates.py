"""Broken gates: what is said when no tree can be tested at all, and what has to happen then."""

from __future__ import annotations

from covey.core.merging.merges import WholeQueue
from covey.values import dataclass

ELSEWHERE = "start covey in a shell where that can be run (covey down && covey up)"


@dataclass(frozen=True)
class Breakage:
    """Why the gate cannot be run at all, and whether the settings or the machine are to blame."""

    why: str
    cause: WholeQueue

    @property
    def is_machines_fault(self) -> bool:
        """Say whether the machine kept it from running; if not, the settings name something that cannot be run."""
        return self.cause is WholeQueue.MACHINE

    @property
    def told(self) -> str:
        """Return what is said while it holds."""
        return f"{self.why} Nothing lands until that is mended: {self._remedy}."

    @property
    def alert(self) -> str:
        """Return what a person is told."""
        return f"{self.why} No change is to blame, so nothing lands until it is mended: {self._remedy}."

    @property
    def _remedy(self) -> str:
        if self.is_machines_fault:
            return "it is tried again every minute"
        return f"see merge.check in covey.toml, or {ELSEWHERE}"


def could_not_start(error: str, hint: str) -> str:
    """Return why a gate could not be started."""
    return f"The gate could not be started: {error} {hint}".strip()
