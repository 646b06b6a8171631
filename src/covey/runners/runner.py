"""A place where processes live longer than we do."""

from __future__ import annotations

from typing import Protocol

from covey.core.fleet.launches import Activity, Launch, Observation


class Runner(Protocol):
    """Starts runs, and knows them again after a restart of ours. Every method may be called twice, or too late."""

    def start(self, run_id: str, launch: Launch) -> None:
        """Start a run; one that was started already, by whomever, is left as it is."""

    def look(self, run_id: str) -> Observation:
        """Return what can be seen of a run now."""

    def end_of(self, run_id: str) -> int | None:
        """Return a descriptor of the caller's own that can be read once the run has ended; None if nobody can wait."""

    def output(self, run_id: str, since: int) -> tuple[bytes, int]:
        """Return a part of its output from an offset on, and where the next part begins."""

    def errors(self, run_id: str) -> bytes:
        """Return the end of what it said on standard error, if that is kept apart from its output."""

    def type(self, run_id: str, text: str) -> None:
        """Let a text arrive at the run's input; refuse one that takes none."""

    def finish(self, run_id: str) -> None:
        """Let the run's input end, so that a program which has said all ends by itself; one that takes none is fine."""

    def activity(self, run_id: str, *, memory: bool = False) -> Activity | None:
        """Return what the processes of a run do, None if it is not alive; memory, which costs most, only if asked."""

    def stop(self, run_id: str) -> None:
        """End a run with all that it started, first kindly and soon not; one that has not begun never will."""

    def hold(self, run_id: str, *, on: bool) -> None:
        """Let a run and all that it started stand still, or go on; already so, or gone, is fine."""

    def forget(self, run_id: str) -> None:
        """Remove what is only needed while a run lives, and keep its output; refuse for one that lives."""
