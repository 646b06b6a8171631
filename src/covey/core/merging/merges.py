"""The life of a merge: one entry of the merge queue.

review > queued > testing > passed > landed (> reverted)        rejected   withdrawn
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from covey.errors import Refused
from covey.values import dataclass


class MergeState(StrEnum):
    """Where a merge stands."""

    REVIEW = "review"
    QUEUED = "queued"
    TESTING = "testing"
    PASSED = "passed"
    LANDED = "landed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    REVERTED = "reverted"


class WholeQueue(StrEnum):
    """What a merge waits for together with the whole queue."""

    HALTED = "halted"
    """Main is red."""
    SETTINGS = "settings"
    """The gate cannot be run, as the settings name it."""
    MACHINE = "machine"
    """The machine keeps the gate from running."""


OPEN = (MergeState.REVIEW, MergeState.QUEUED, MergeState.TESTING, MergeState.PASSED)


@dataclass(frozen=True, kw_only=True)
class Merge:
    """Work that was handed in and wants to land."""

    id: str
    ordinal: int
    task: str
    session: str
    branch: str
    commit: str | None = None
    state: MergeState = MergeState.QUEUED
    approved: bool = False
    candidate: str | None = None
    onto: str | None = None
    """The commit right before its own part of the candidate."""
    untested: bool = False
    run: str | None = None
    """The last gate that it was in."""
    landed: str | None = None
    landing: str | None = None
    reverts: str | None = None
    """The merge whose work this one takes out of main."""
    priority: int = 0
    needs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    """Open merges with which git cannot merge it."""
    reason: str | None = None
    cause: str = ""
    """What is behind the reason: a WholeQueue while it waits, why it was rejected then; empty if it is nothing such."""
    fingerprint: str = ""
    """What the failure looked like for which it was rejected."""
    queued: float = 0.0
    ended: float | None = None


@dataclass(frozen=True, kw_only=True)
class Queued:
    """Work entered the queue, or waits for a review before it."""

    task: str
    session: str
    branch: str
    commit: str | None = None
    review: bool = False
    reverts: str | None = None
    reopen: bool = False
    """Open the task whose work is taken out of main again."""
    why: str = ""
    """Why it is taken out, if somebody said so."""


@dataclass(frozen=True, kw_only=True)
class Entered:
    """It joined the train, or changed its place in it: what it needs, changes, and cannot be merged with."""

    priority: int = 0
    needs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    commit: str | None = None
    """The commit to land, if it was made only now."""


@dataclass(frozen=True)
class Clashed:
    """Git cannot merge it with these others, or, if none is named, with main as it is."""

    against: tuple[str, ...]


@dataclass(frozen=True)
class Approved:
    """The merge was let into the queue: by a person, or by a reviewer, who cannot let protected paths land."""

    person: bool = True


@dataclass(frozen=True)
class Tested:
    """The gate began on this merge: on this commit, in this run."""

    commit: str | None = None
    run: str | None = None


@dataclass(frozen=True)
class Passed:
    """The commit that would land passed the gate as it is, or a person let it pass `untested`; main may take it now."""

    commit: str
    untested: bool = False
    onto: str | None = None


@dataclass(frozen=True)
class Waits:
    """It cannot go on before a person has done something: a checkout of main is in the way, or the gate is broken."""

    why: str
    failed: int = 0
    """How many times in a row the queue itself has failed on it; 0 if it waits for something else."""
    cause: str = ""
    """A WholeQueue, if the whole queue waits for it."""


@dataclass(frozen=True)
class Held:
    """The merge waits for a person after all, for this reason."""

    why: str


@dataclass(frozen=True)
class Requeued:
    """The merge has to be built and tested again, for this reason."""

    why: str


@dataclass(frozen=True)
class Landed:
    """The merge is on main, in this commit, or on it again; `landing` is the move that brought it."""

    commit: str
    landing: str | None = None


@dataclass(frozen=True)
class Rejected:
    """The merge did not land, for this reason; `cause` is fails, text, needs, or empty when a person said so."""

    reason: str
    cause: str = ""
    fingerprint: str = ""
    gates: tuple[str, ...] = ()
    blame: tuple[str, ...] = ()


@dataclass(frozen=True)
class Withdrawn:
    """The merge left the queue because its task did."""

    reason: str


@dataclass(frozen=True)
class Reverted:
    """What the merge brought was taken out of main again, in this commit."""

    commit: str


Event = (
    Queued
    | Entered
    | Clashed
    | Approved
    | Tested
    | Passed
    | Waits
    | Held
    | Requeued
    | Landed
    | Rejected
    | Withdrawn
    | Reverted
)

_FROM: dict[type[Event], tuple[MergeState, ...]] = {
    Approved: (MergeState.REVIEW, MergeState.QUEUED),
    **dict.fromkeys((Entered, Clashed, Tested, Passed, Held), (MergeState.QUEUED, MergeState.TESTING)),
    **dict.fromkeys((Waits, Requeued), (MergeState.QUEUED, MergeState.TESTING, MergeState.PASSED)),
    Landed: (MergeState.QUEUED, MergeState.TESTING, MergeState.PASSED, MergeState.REVERTED),
    **dict.fromkeys((Rejected, Withdrawn), OPEN),
    Reverted: (MergeState.LANDED,),
}

_STEPS: dict[type[Event], str] = {
    Approved: "be approved",
    Held: "be held",
    Requeued: "be tried again",
    Landed: "land",
    Rejected: "be rejected",
    Withdrawn: "be dropped",
    Reverted: "be reverted",
}
_STANDS = {
    MergeState.REVIEW: "waits for a review",
    MergeState.QUEUED: "is in the queue",
    MergeState.TESTING: "is being tested",
    MergeState.PASSED: "has passed its gate, and main takes it next",
    MergeState.LANDED: "has landed already",
    MergeState.REJECTED: "was rejected already",
    MergeState.WITHDRAWN: "has left the queue already",
    MergeState.REVERTED: "was taken out of main again",
}


def step(merge: Merge, event: Event) -> Event:
    """Return the event if the merge may take this step, or refuse it."""
    twice = isinstance(event, Approved) and (
        merge.approved or (not event.person and merge.state is not MergeState.REVIEW)
    )
    if twice or merge.state not in _FROM.get(type(event), ()):
        verb = _STEPS.get(type(event), f"be {type(event).__name__.lower()}")
        why = f"{merge.id} cannot {verb}: it {_STANDS[merge.state]}."
        if twice and merge.state in _FROM[Approved]:
            why = f"{merge.id} is approved already."
        raise Refused(why, hint=f"covey merge why {merge.id} tells where it is.")
    return event


def waits_for_person(merge: Merge, *, has_gate: bool, broken_gate: bool) -> bool:
    """Say whether a merge goes on only when a person has done something."""
    if merge.state is MergeState.QUEUED:
        # What it waited for under a daemon before may be mended by now: only a try can tell.
        return broken_gate or not (merge.approved or has_gate)
    return merge.state is MergeState.PASSED and merge.reason is not None


def first(merge_id: str, seq: int, event: Queued, at: float) -> Merge:
    """Return the merge that a Queued event begins."""
    return Merge(
        id=merge_id,
        ordinal=seq,
        task=event.task,
        session=event.session,
        branch=event.branch,
        commit=event.commit,
        reverts=event.reverts,
        state=MergeState.REVIEW if event.review else MergeState.QUEUED,
        queued=at,
    )


def apply(merge: Merge, event: Event, at: float) -> Merge:
    """Return the merge as it is after `event`. Never refuses."""
    waited = merge.state in OPEN and not isinstance(event, Clashed)
    return _after(replace(merge, cause="") if waited else merge, event, at)


def _after(merge: Merge, event: Event, at: float) -> Merge:
    match event:
        case Queued():
            return first(merge.id, merge.ordinal, event, at)
        case Approved(person):
            return replace(merge, state=MergeState.QUEUED, approved=person, reason=None)
        case Entered(priority=priority, needs=needs, paths=paths, against=against, commit=commit):
            made = commit or merge.commit
            return replace(
                merge, priority=priority, needs=needs, paths=paths, against=against, commit=made, reason=None
            )
        case Clashed(against):
            # One that cannot be merged with main itself has nobody else to wait for.
            return replace(merge, against=tuple(dict.fromkeys((*merge.against, *against))) if against else ())
        case Tested(commit, run):
            return replace(merge, state=MergeState.TESTING, candidate=commit, run=run, reason=None)
        case Passed(commit, untested, onto):
            return replace(merge, state=MergeState.PASSED, candidate=commit, untested=untested, onto=onto, reason=None)
        case Waits(why=why, cause=cause):
            return replace(merge, reason=why, cause=cause)
        case Held(why):
            return replace(merge, state=MergeState.REVIEW, approved=False, reason=why)
        case Requeued():
            return replace(merge, state=MergeState.QUEUED, candidate=None, onto=None, untested=False, reason=None)
        case Landed(commit, landing):
            return replace(merge, state=MergeState.LANDED, landed=commit, landing=landing, reason=None, ended=at)
        case Rejected(reason, cause, fingerprint):
            ended = replace(merge, state=MergeState.REJECTED, reason=reason, ended=at)
            return replace(ended, cause=cause, fingerprint=fingerprint)
        case Withdrawn(reason):
            return replace(merge, state=MergeState.WITHDRAWN, reason=reason, ended=at)
        case Reverted():
            # Where it landed stays true; where it was taken out is told by the merge that did so.
            return replace(merge, state=MergeState.REVERTED, ended=at)
