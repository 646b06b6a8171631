"""How a run ends: what is written of it, and what becomes of its task and its session."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import takewhile

from covey.core.board.tasks import Status, Task
from covey.core.figures import span
from covey.core.fleet.outcomes import Again, Crashed, HandIn, PutOff, Verdict
from covey.core.fleet.runs import Outcome, Run
from covey.core.fleet.sessions import SessionState
from covey.core.fleet.signals import Trouble
from covey.core.people.permits import is_push
from covey.core.people.questions import Question
from covey.values import dataclass

SLOW_CRASH_FACTOR = 2
"""Crashes in a row that are far apart block a task when they are this many times the limit for a short time."""
MAX_BROKEN_CONVERSATIONS = 2
"""Conversations that may break under one claim; the next one counts as a failure of the task."""
_STATES = {
    Trouble.KEY: SessionState.STALLED,
    Trouble.CREDIT: SessionState.STALLED,
    Trouble.CORRUPT: SessionState.IDLE,
    Trouble.BUDGET: SessionState.IDLE,
}
_HANDED_IN = (Status.REVIEW, Status.MERGING, Status.DONE)


class Fate(StrEnum):
    """What becomes of the task of a run that ends."""

    STAYS = "stays"
    """Nothing changes: its session goes on with it, or the task is no longer the run's."""
    HANDED_IN = "handed in"
    RELEASED = "released"
    """It goes back to the board, and that is nobody's failure."""
    FAILED = "failed"
    """It goes back to the board with what went wrong, and is blocked after too many tries."""
    BLOCKED = "blocked"
    """It has crashed its runs too often, and needs a person."""


@dataclass(frozen=True, kw_only=True)
class End:
    """How a run ends."""

    outcome: Outcome
    fate: Fate = Fate.STAYS
    what: str | None = None
    commit: str | None = None
    result: str | None = None
    state: SessionState | None = None
    """What its session is afterwards, for what `evidence` says; None: it is idle, as after any run."""
    evidence: str = ""
    waits: bool = False
    """Its session waits before it goes on, if there is a time to wait until."""


def is_at_work(task: Task, run: Run) -> bool:
    """Say whether a task is at work under this run's claim."""
    return task.status is Status.DOING and _is_claimed_by(task, run)


def is_theirs(task: Task | None, run: Run) -> bool:
    """Say whether a task is still the run's: at work, or handed in by it."""
    return task is not None and _is_claimed_by(task, run) and task.status in (Status.DOING, *_HANDED_IN)


def _is_claimed_by(task: Task, run: Run) -> bool:
    return task.session == run.session and task.fence == run.fence


def still_asked(asked: Sequence[Question], run: Run, verdict: Verdict) -> list[Question]:
    """Return the open questions of a task for which its run has to wait."""
    if not isinstance(verdict, HandIn):
        return list(asked)
    # What it wanted to push is not part of the work: that lands through the queue.
    return [each for each in asked if each.run == run.id and not is_push(each.tool, each.about)]


def in_context(verdict: Verdict, run: Run, task: Task, earlier: Sequence[Run], branch: str) -> Verdict:
    """Return a verdict with regard to the task, its `earlier` runs and its branch."""
    if isinstance(verdict, PutOff) and verdict.fresh and breaks_again(run, earlier):
        return Again(verdict.what, fresh=True)
    if isinstance(verdict, HandIn) and task.open_children:
        return Again(f"{task.id} has children that are not done: its commits stay on {branch}.")
    return verdict


def end_of(
    run: Run, task: Task, verdict: Verdict, asked: Sequence[Question], *, crashes_too_often: bool = False
) -> End:
    """Decide how a run ends; `asked` is what its task still waits for a person to answer."""
    if not is_at_work(task, run):
        return End(outcome=Outcome.HANDED_IN if is_theirs(task, run) else Outcome.STOPPED, what=run.ending)
    if run.person:
        return End(outcome=Outcome.STOPPED, what=run.ending or "The person left.")
    if is_stopped(run):
        fate = Fate.STAYS if run.again else Fate.RELEASED
        return End(outcome=Outcome.STOPPED, fate=fate, what=run.ending, waits=True)
    if asked:
        what = f"It waits for an answer to {asked[0].id}."
        return End(outcome=Outcome.PUT_OFF, what=what, state=SessionState.NEEDS_YOU, evidence=asked[0].text)
    match verdict:
        case HandIn():
            return End(outcome=Outcome.HANDED_IN, fate=Fate.HANDED_IN, commit=verdict.commit, result=verdict.result)
        case PutOff(what):
            state = _STATES.get(verdict.trouble, SessionState.LIMITED)
            return End(outcome=Outcome.PUT_OFF, what=what, state=state, evidence=what, waits=True)
        case Crashed(what):
            fate = Fate.BLOCKED if crashes_too_often else Fate.STAYS
            return End(outcome=Outcome.CRASHED, fate=fate, what=what, waits=True)
        case Again(what):
            return End(outcome=Outcome.FAILED, fate=Fate.FAILED, what=what, waits=True)


def is_stopped(run: Run) -> bool:
    """Say whether a run was stopped for a reason that says nothing of its work."""
    return run.ending is not None and not run.fault and not run.over


def breaks_again(run: Run, earlier: Sequence[Run]) -> bool:
    """Say whether conversations broke so often under this claim that it cannot be chance."""
    broken = [one for one in _same_claim(run, earlier) if one.outcome is Outcome.PUT_OFF and one.conversation == ""]
    return len(broken) >= MAX_BROKEN_CONVERSATIONS


def crashes_before(run: Run, earlier: Sequence[Run]) -> list[Run]:
    """Return the crashes right before this run under the same claim; `earlier` has the newest first.

    A crash keeps the claim: one under an earlier claim was before a person, or a try, gave the task a new chance.
    """
    counts = [one for one in _same_claim(run, earlier) if one.outcome not in (Outcome.PUT_OFF, Outcome.STOPPED)]
    return list(takewhile(lambda one: one.outcome in (Outcome.CRASHED, Outcome.LOST), counts))


def _same_claim(run: Run, earlier: Sequence[Run]) -> list[Run]:
    return [one for one in earlier if one.id != run.id and one.fence == run.fence]


def crashes_too_often(crashes: Sequence[Run], now: float, *, most: int, seconds: float) -> bool:
    """Say whether one crash more, now, is too many: `most` within some seconds, or more however long it took."""
    fresh = [one for one in crashes if (one.ended or 0.0) >= now - seconds]
    return len(fresh) + 1 >= most or len(crashes) + 1 >= SLOW_CRASH_FACTOR * most


def crash_story(run: Run, crashes: Sequence[Run], now: float, what: str) -> str:
    """Return why a task is blocked that has crashed its runs too often."""
    first = what.splitlines()[0] if what else ""
    seconds = now - min([run.begun, *(one.begun for one in crashes)])
    return f"Its runs crashed {len(crashes) + 1} times in {span(seconds)}; the last time: {first}"
