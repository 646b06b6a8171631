"""The queue at one moment, and what follows from that: what each merge waits for, why, and what brings it on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from covey.core.board.tasks import Status, Task
from covey.core.figures import some, span
from covey.core.merging import merges
from covey.core.merging.gates import Gate, GateState
from covey.core.merging.landings import Landing
from covey.core.merging.merges import Merge, MergeState, WholeQueue
from covey.core.merging.queue.queue_status import QueueStatus
from covey.core.people.alerts import Alert
from covey.values import dataclass

MAX_IN_A_SENTENCE = 5
"""Tests, files or names that a sentence names."""
ELSEWHERE = "start covey in a shell where that can be run (covey down && covey up)"
UNTESTED = "merge.check is not set, so nobody tests it"


@dataclass(frozen=True)
class MergeWait:
    """What a merge waits for (`is_thing`), or why it waits."""

    words: str
    is_thing: bool = True
    is_stuck: bool = False
    """It waits for nothing but a queue that cannot go on."""

    @property
    def text(self) -> str:
        """Return it in a few words."""
        return f"for {self.words}" if self.is_thing else self.words


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


@dataclass(frozen=True)
class QueueView:
    """The queue at one moment: all that is open, in its order, the gates that run, and how it stands."""

    places: dict[str, int]
    """Where in line each merge is that is in line, 1 for the first."""
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


def waits_with_all(view: QueueView, merge: Merge) -> bool:
    """Say whether a merge waits for what is told of the whole queue."""
    return bool(merge.cause) and (merge.cause != WholeQueue.HALTED or view.standing.halted is not None)


def waits(view: QueueView, merge: Merge) -> MergeWait | None:
    """Return what an open merge waits for, None if it is tested now or has ended."""
    if merge.state not in merges.OPEN or view.gate_of(merge) is not None:
        return None
    reason = MergeWait(merge.reason, is_thing=False) if merge.reason else None
    if merge.state is MergeState.REVIEW:
        return reason or MergeWait("a review")
    if needs_person(view, merge):
        return reason or MergeWait(f"your approval: {UNTESTED}")
    if merge.state is MergeState.PASSED:
        frozen = view.standing.frozen
        return MergeWait("main, which is frozen") if frozen else _stands_still(view) or MergeWait("main to take it")
    if reason and not waits_with_all(view, merge):
        return reason
    return _behind(view, merge) or _stands_still(view)


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
    place = view.places.get(merge.id, 0)
    return [name for name in merge.against if view.places.get(name, place) < place]


def _stands_still(view: QueueView) -> MergeWait | None:
    """Return what keeps the whole queue from testing."""
    if view.standing.halted:
        return MergeWait("the queue has halted", is_thing=False)
    if view.standing.paused:
        return MergeWait("the queue is paused", is_thing=False)
    if view.broken:
        return MergeWait("the gate, which cannot be run")
    if view.stuck:
        return MergeWait("the queue, which cannot go on", is_stuck=True)
    return MergeWait("the fleet is paused", is_thing=False) if view.fleet_paused else None


def next_steps(view: QueueView, merge: Merge, task: Task | None, *, moved_on: bool) -> list[str]:
    """Return the commands that bring a merge on, none if it gets on by itself."""
    match merge.state:
        case MergeState.REVIEW | MergeState.QUEUED if needs_person(view, merge):
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


# Why it is where it is, in sentences

_ENDED = {
    GateState.PASSED: "has passed",
    GateState.FAILED: "has failed",
    GateState.LOST: "was ended before it had a result",
}


def stands(state: str, *, whose: str = "a") -> str:
    """Return what is said of a merge in some state: that it waits for `whose` review, is queued, has passed."""
    said = {"review": f"waits for {whose} review", "testing": "is being tested", "passed": "has passed"}
    return said.get(state, f"is {state}")


def queued(view: QueueView, merge: Merge) -> list[str]:
    """Return why a merge that waits to be tested is where it is."""
    said: list[str] = []
    if needs_person(view, merge):
        said.append("It lands only when you approve it: merge.check is not set, so nobody tests it.")
    if merge.reason and not waits_with_all(view, merge):
        said.append(f"It waits: {sentence(merge.reason)}")
    said += whole_queue(view)
    needs = [name for name in merge.needs if has_not_landed(view, name)]
    if needs:
        have = "has" if len(needs) == 1 else "have"
        said.append(f"It needs {listed(_named(view, each) for each in needs)}, which {have} not landed.")
    for name in before(view, merge):
        other = view.open[name]
        shared = sorted(set(merge.paths) & set(other.paths))
        where = f" in {listed(shared)}" if shared else ""
        said.append(
            f"Git cannot merge it with {_named(view, name)}{where}, which is before it in the queue; "
            "it waits until that one has landed or left."
        )
    place = view.places.get(merge.id)
    if not said and place is not None:
        said.append(f"It is number {place} of {len(view.places)} in the queue; {_busy(view)}.")
    return said


def _busy(view: QueueView) -> str:
    if not view.running:
        return "no gate runs at this moment"
    names = ", ".join(gate.id for gate in view.running)
    return f"{names} {'runs' if len(view.running) == 1 else 'run'}, without it"


def tested(view: QueueView, merge: Merge, seen: Sequence[Gate], now: float) -> list[str]:
    """Return why a merge that is in a gate is where it is."""
    gate = view.gate_of(merge)
    if gate is None:
        last = next((each for each in seen if each.id == merge.run), None)
        before = "" if last is None else f"; {last.id}, the last one, {_ENDED.get(last.state, last.state)}"
        return [f"No gate tests it at this moment{before}.", *whole_queue(view)]
    others = [name for name in gate.merges if name != merge.id]
    company = f" together with {listed(others)}" if others else " alone"
    return [f"It is tested{company} in {gate.id} ({gate.purpose}) for {span(now - gate.started)}."]


def passed(view: QueueView, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    """Return why a merge that has passed is where it is."""
    passed = last_passed(seen)
    how = "was let pass without a test" if merge.untested else f"passed {passed.id if passed else 'the gate'} as it is"
    frozen = whole_queue(view) if view.standing.frozen else []
    if merge.reason:
        return [f"It {how}, and waits for main: {sentence(merge.reason)}", *frozen]
    return [f"It {how}, and main takes it {'when it is thawed' if frozen else 'next'}.", *frozen]


def how_it_landed(merge: Merge, landing: Landing, main: str) -> list[str]:
    """Return how a merge came to a branch, `main` or another."""
    if merge.landed is not None and merge.landed == merge.onto:
        return [f"What was handed in was in {landing.branch} before: it brought nothing of its own."]
    group = [name for name in landing.merges if name != merge.id]
    company = f" together with {listed(group)}" if group else ""
    tested = "untested" if landing.untested or landing.gate is None else f"after {landing.gate} had passed"
    on = "" if landing.branch == main else f" on {landing.branch}"
    said = [f"It landed{on} in {(merge.landed or landing.commit)[:12]} ({landing.id}){company}, {tested}."]
    return [*said, f"It was pushed to {landing.remote}."] if landing.remote else said


def last_passed(seen: Sequence[Gate]) -> Gate | None:
    """Return the newest gate that passed."""
    return next((gate for gate in seen if gate.state is GateState.PASSED), None)


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it has one."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def whole_queue(view: QueueView) -> list[str]:
    """Return what keeps the whole queue from testing or from moving main, in sentences."""
    standing, said = view.standing, []
    if standing.halted:
        said.append(f"The queue has halted: {sentence(standing.halted)}")
    if standing.paused:
        said.append(sentence(f"The queue is paused by {standing.paused_by}{_because(standing.paused_why)}"))
    if view.broken:
        said.append(f"{sentence(view.broken.why)} Nothing lands until that is mended.")
    if view.stuck:
        said.append(view.stuck.message)
    if view.fleet_paused:
        said.append("The whole fleet is paused.")
    if standing.frozen:
        said.append(sentence(f"Main is frozen by {standing.frozen_by}{_because(standing.frozen_why)}"))
    return said


def _because(why: str | None) -> str:
    return f": {why}" if why else ""


def failed_tests(gate: Gate) -> str:
    """Return what failed in a gate, in brackets."""
    if gate.failures:
        return f" ({listed(gate.failures)})"
    return f" ({gate.step})" if gate.step else ""


def listed(names: Iterable[str]) -> str:
    """Return some names, and how many there are more."""
    return some(list(names), MAX_IN_A_SENTENCE)


def _named(view: QueueView, merge: str) -> str:
    known = view.open.get(merge) or view.named.get(merge)
    return merge if known is None else f"{merge} ({known.task})"
