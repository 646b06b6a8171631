"""What covey does next with a session that it runs: decided from what should be and what is."""

from __future__ import annotations

from enum import StrEnum

from covey.core.figures import span
from covey.core.fleet.launches import Observation
from covey.core.fleet.runs import Ending, Run
from covey.core.fleet.sessions import Goal, Session


class Step(StrEnum):
    """One step for one session; each is harmless when it is taken twice."""

    REST = "rest"
    BEGIN = "begin"
    """Find a task and write down the intent to run."""
    START = "start"
    """Prepare the worktree and start the program."""
    READ = "read"
    """Read what the program printed."""
    HOLD = "hold"
    GO_ON = "go on"
    END = "end"
    """Write down that the run is to be stopped."""
    STOP = "stop"
    """Stop the program."""
    JUDGE = "judge"
    """Nothing is alive any more: see what came of it."""
    LET_GO = "let go"
    """Give back what a session holds that is not to work."""
    REMOVE = "remove"


def next_step(
    session: Session, run: Run | None, seen: Observation | None, *, paused: bool, holds: bool, ending: Ending | None
) -> Step:
    """Return the next step; `paused` is the fleet, `holds` whether it holds a task, `ending` why its run must stop."""
    still = paused or session.goal is Goal.PAUSED
    if run is None or seen is None:
        return _without_run(session, still=still, holds=holds)
    if not seen.known:
        # What ran and cannot be seen any more was taken away; it is never started twice.
        if run.ending is not None or run.base is not None:
            return Step.JUDGE
        return Step.END if ending is not None else Step.REST if still else Step.START
    if not seen.alive:
        return Step.JUDGE
    if run.ending is not None:
        return Step.STOP
    if ending is not None:
        return Step.END
    if still is not seen.held:
        return Step.HOLD if still else Step.GO_ON
    return Step.READ


def _without_run(session: Session, *, still: bool, holds: bool) -> Step:
    match session.goal:
        case Goal.REMOVED:
            return Step.REMOVE
        case Goal.STOPPED:
            return Step.LET_GO if holds else Step.REST
        case Goal.PAUSED | Goal.WORKING:
            return Step.REST if still else Step.BEGIN


MAX_OUTPUT_BYTES = 256 * 1024 * 1024
"""Bytes that a run may print before it must be out of its mind."""


def why_end(
    session: Session, run: Run, *, theirs: bool, at_work: float, limit: float, printed: int = 0
) -> Ending | None:
    """Return why a run must stop, None if it may go on.

    `theirs`: the task is still the session's, at work or handed in; `at_work`: seconds in which it did not stand still;
    `printed`: bytes of its output.
    """
    if session.goal is Goal.REMOVED:
        return Ending(f"{run.session} is being removed.")
    if session.goal is Goal.STOPPED:
        return Ending(f"{run.session} was stopped.")
    if not theirs:
        return Ending(f"{run.task} is no longer with {run.session}.")
    if session.attached is not None and not run.person:
        return Ending(f"{session.attached} takes the conversation over.", again=True)
    if session.attached is None and run.person:
        return Ending("The conversation was given back.", again=True)
    if run.person:
        return None
    if at_work > limit:
        return Ending(f"The run took longer than {span(limit)}.", fault=True)
    if printed > MAX_OUTPUT_BYTES:
        return Ending(f"The run printed more than {MAX_OUTPUT_BYTES // 1024**2} MiB.", fault=True)
    return None
