"""The queue at one moment, and what follows from that: what each merge waits for, and what brings it on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import Enum

from covey.core.board.tasks import Status, Task
from covey.core.merging import merges
from covey.core.merging.broken_gates import Breakage
from covey.core.merging.gates import Gate
from covey.core.merging.merges import Merge, MergeState, WholeQueue
from covey.core.merging.queue.queue_status import QueueStatus
from covey.core.people.alerts import Alert
from covey.values import dataclass

MAX_IN_A_SENTENCE = 5
"""Tests, files or names that a sentence names."""
UNTESTED = "merge.check is not set, so nobody tests it"


@dataclass(frozen=True)
class MergeWait:
    """What a merge waits for (`is_thing`), or why it waits."""

    words: str
    is_thing: bool = True

    @property
    def text(self) -> str:
        """Return it in a few words."""
        return f"for {self.words}" if self.is_thing else self.words


class Standstill(Enum):
    """What keeps the whole queue from testing, in the words in which a merge waits for it."""

    HALTED = MergeWait("the queue has halted", is_thing=False)
    PAUSED = MergeWait("the queue is paused", is_thing=False)
    BROKEN_GATE = MergeWait("the gate, which cannot be run")
    STUCK = MergeWait("the queue, which cannot go on")
    FLEET_PAUSED = MergeWait("the fleet is paused", is_thing=False)


@dataclass(frozen=True)
class QueueView:
    """The queue at one moment: all that is open, in its order, the gates that run, and how it stands."""

    places: dict[str, int]
    """Where in line each merge is that is in line, the first one first."""
    open: dict[str, Merge]
    tasks: dict[str, Task]
    running: list[Gate]
    standing: QueueStatus
    fleet_paused: bool
    checked: bool
    broken: Breakage | None = None
    """Why the gate cannot be run at all, if it cannot."""
    never_passed: bool = False
    """The queue has halted, and no commit has ever passed the gate as it is set."""
    stuck: Alert | None = None
    """What a person was told of a queue that cannot go on, if nothing shows that it went on since."""
    named: dict[str, Merge] = field(default_factory=dict)
    """Merges that have ended and that an open one needs."""

    def place(self, merge: Merge) -> int | None:
        """Return where in line a merge is, 1 for the first; None if it is not in line."""
        return self.places.get(merge.id)

    def gate_of(self, merge: Merge) -> Gate | None:
        """Return the gate in which a merge is tested now."""
        within = [gate for gate in self.running if merge.id in gate.merges]
        return next((gate for gate in within if gate.id == merge.run), within[-1] if within else None)


def needs_person(view: QueueView, merge: Merge) -> bool:
    """Say whether a merge goes on only when a person has done something."""
    if merge.state is MergeState.QUEUED:
        return not view.checked and not merge.approved
    if merge.state is MergeState.PASSED:
        return merge.reason is not None and not view.standing.frozen  # what is frozen is told of the whole queue
    return merge.state is MergeState.REVIEW


def waits(view: QueueView, merge: Merge) -> MergeWait | None:
    """Return what an open merge waits for, None if it is tested now or has ended."""
    found = _held_by(view, merge)
    return found.value if isinstance(found, Standstill) else found


def is_stuck(view: QueueView, merge: Merge) -> bool:
    """Say whether a merge waits for nothing but a queue that cannot go on."""
    return _held_by(view, merge) is Standstill.STUCK


def waits_with_all(view: QueueView, merge: Merge) -> bool:
    """Say whether a merge waits for what is told of the whole queue."""
    return bool(merge.cause) and (merge.cause != WholeQueue.HALTED or view.standing.halted is not None)


def _held_by(view: QueueView, merge: Merge) -> MergeWait | Standstill | None:
    if merge.state not in merges.OPEN or view.gate_of(merge) is not None:
        return None
    if merge.state is MergeState.REVIEW:
        return _reason(merge) or MergeWait("a review")
    if needs_person(view, merge):
        return _reason(merge) or MergeWait(f"your approval: {UNTESTED}")
    if merge.state is MergeState.PASSED:
        frozen = view.standing.frozen
        return MergeWait("main, which is frozen") if frozen else _stands_still(view) or MergeWait("main to take it")
    if merge.reason and not waits_with_all(view, merge):
        return _reason(merge)
    return _behind(view, merge) or _stands_still(view)


def _reason(merge: Merge) -> MergeWait | None:
    return MergeWait(merge.reason, is_thing=False) if merge.reason else None


def _behind(view: QueueView, merge: Merge) -> MergeWait | None:
    """Return which other merges one waits for."""
    needs = [name for name in merge.needs if has_not_landed(view, name)]
    if needs:
        return MergeWait(f"{', '.join(needs[:MAX_IN_A_SENTENCE])}, which it needs")
    clashes = before(view, merge)
    return MergeWait(f"{', '.join(clashes[:MAX_IN_A_SENTENCE])}, with which git cannot merge it") if clashes else None


def has_not_landed(view: QueueView, name: str) -> bool:
    """Say whether a merge is known that is not on main."""
    known = view.open.get(name) or view.named.get(name)
    return known is not None and known.state is not MergeState.LANDED


def before(view: QueueView, merge: Merge) -> list[str]:
    """Return the merges with which git cannot merge one and that are before it in line."""
    place = view.place(merge) or 0
    return [name for name in merge.against if view.places.get(name, place) < place]


def _stands_still(view: QueueView) -> Standstill | None:
    """Return what keeps the whole queue from testing."""
    if view.standing.halted:
        return Standstill.HALTED
    if view.standing.paused:
        return Standstill.PAUSED
    if view.broken:
        return Standstill.BROKEN_GATE
    if view.stuck:
        return Standstill.STUCK
    return Standstill.FLEET_PAUSED if view.fleet_paused else None


def next_steps(view: QueueView, merge: Merge, task: Task | None, *, moved_on: bool) -> list[str]:
    """Return the commands that bring a merge on, none if it gets on by itself."""
    match merge.state:
        case MergeState.REVIEW:
            return [f"covey merge approve {merge.id}", f'covey merge reject {merge.id} "REASON"']
        case MergeState.QUEUED if needs_person(view, merge):
            return [f"covey merge approve {merge.id}", f'covey merge reject {merge.id} "REASON"']
        case MergeState.REJECTED | MergeState.WITHDRAWN if not moved_on and task is not None:
            return [*_again(merge, task)]
        case _ if merge.state in merges.OPEN:
            return [*_onwards(view, merge)]
        case _:
            return []


def is_retried(view: QueueView, merge: Merge, task: Task | None, *, moved_on: bool) -> bool:
    """Say whether trying a merge again as it is would help."""
    if merge.state in (MergeState.REJECTED, MergeState.WITHDRAWN):
        return task is not None and not moved_on
    return view.broken is not None and merge.state in merges.OPEN and merge.state is not MergeState.REVIEW


def _again(merge: Merge, task: Task) -> Iterator[str]:
    """Yield what can be done with work that did not land."""
    if merge.run is not None:
        yield f"covey merge log {merge.id}   shows what the gate said"
    yield f"covey merge retry {merge.id}   tries it as it is"
    if merge.reverts is None and task.status is Status.BLOCKED:
        yield f"covey task edit {task.id} --status todo   lets it be worked on again"
    yield f"covey task show {task.id}   tells what its next author is told"
    yield f'covey task drop {task.id} "REASON"   ends it'


def _onwards(view: QueueView, merge: Merge) -> Iterator[str]:
    """Yield what brings a merge on that waits with the whole queue, or for main."""
    stop = view.standing
    if stop.halted and view.never_passed:
        yield "covey init --check   tries the gate, which has never passed: once it does, the queue goes on"
    elif stop.halted:
        yield "git revert COMMIT on main, or mend it there: the queue goes on by itself"
    if stop.paused or stop.halted:
        yield "covey merge resume" + ("   tries the same main again" if stop.halted else "")
    if view.broken:
        what = "that" if view.broken.is_machines_fault else "merge.check in covey.toml"
        yield f"mend {what}: the queue goes on by itself"
        yield f"covey merge retry {merge.id}   tries it again at once"
    if stop.frozen:
        yield "covey merge thaw"
    elif merge.state is MergeState.PASSED and merge.reason:
        yield "commit or put away (git stash) what is in the way: main follows by itself"
    if view.fleet_paused:
        yield "covey resume"
