"""The landing journal: every value that the queue gave to main, and what it was before."""

from __future__ import annotations

from dataclasses import replace

from covey.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Made:
    """The branch took a commit that holds these merges; `gate` is the test that it passed."""

    branch: str
    before: str
    commit: str
    merges: tuple[str, ...] = ()
    gate: str | None = None
    untested: bool = False


@dataclass(frozen=True, kw_only=True)
class Landing(Made):
    """One move of main: the commit that passed as it is, the one before, and the merges that came with it, in order."""

    id: str
    ordinal: int
    made: float = 0.0
    remote: str | None = None
    pushed: float | None = None


@dataclass(frozen=True)
class Pushed:
    """The commit reached a remote."""

    remote: str


Event = Made | Pushed


def apply(landing: Landing, event: Event, at: float) -> Landing:
    """Return the landing as it is after `event`. Never refuses."""
    match event:
        case Made():
            return landing
        case Pushed(remote):
            return replace(landing, remote=remote, pushed=at)
