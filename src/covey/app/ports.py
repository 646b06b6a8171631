"""What the verbs ask of a daemon: its loops, its terminals, git. Without one, `context.NoDaemon` stands for all."""

from __future__ import annotations

from typing import Protocol

from covey.app.context import Lands
from covey.core.fleet.start_limits import Wait
from covey.core.fleet.watchdog import Verdict


class FleetView(Protocol):
    """What the fleet knows of sessions, which is in no row."""

    @property
    def no_place(self) -> str:
        """Return why no worktree can be made, and so no run starts, until a person has done something; else ""."""

    def why(self, session: str) -> tuple[Verdict | None, Wait | None]:
        """Return what the watchdog thinks of a session's run, and why it does not start one."""

    def forgive(self, agent: str, session: str) -> None:
        """Forget what kept an agent and a session from starting."""

    def weight(self, session: str) -> int:
        """Return the bytes of memory that a session's run took when it was last weighed."""


class TerminalView(Protocol):
    """The terminals of runs, as people come to them."""

    def attach_command(self, run: str) -> list[str]:
        """Return the command that shows the terminal of a run."""

    def is_used(self, run: str) -> bool:
        """Say whether the terminal of a run is open before a person."""


class CommitReader(Protocol):
    """What git tells of commits that are about to be handed in."""

    def lands(self, session: str, commit: str, main: str) -> Lands | None:
        """Return what a session's commit, or ref, would land on main; None if git cannot tell."""
