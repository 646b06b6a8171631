"""Why a merge is where it is: its place in the train, what it waits for, and the evidence, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from covey.app.queued import failed_in, reverted_by
from covey.app.shapes.merges import MergeLine
from covey.app.train import digest
from covey.app.verbs import Call
from covey.core import gates, hints, landings, merges
from covey.core.alerts import Alert
from covey.core.figures import span
from covey.core.gates import Gate
from covey.core.merges import Merge, State
from covey.core.queue import train
from covey.core.queue.standing import Standing
from covey.core.tasks import Status, Task
from covey.store import rows
from covey.store.rows import decode_payload
from covey.values import dataclass

SEEN = 50
"""Gates of a merge that are looked at."""
UNSTARTED = "The gate could not be started"
"""How it begins what is told of a gate that the machine, and not the settings, kept from running."""
FEW = 5
"""Tests, files or names of which a sentence tells."""


@dataclass(frozen=True)
class Sight:
    """The queue at one moment: all that is open, in its order, the gates that run, and how it stands."""

    places: dict[str, int]
    """Where in line each merge is that is in line, the first one first."""
    open: dict[str, Merge]
    tasks: dict[str, Task]
    running: list[Gate]
    standing: Standing
    fleet_paused: bool
    checked: bool
    broken: str | None = None
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


def look(call: Call, also: Iterable[Merge] = ()) -> Sight:
    """Look at the queue, and at the tasks of some other merges too."""
    tx = call.tx
    found = tx.open_merges()
    tasks = tx.tasks_named([merge.task for merge in (*found, *also)])
    line = {merge.id: _change(merge, tasks) for merge in found if merge.state is not State.REVIEW}
    named = {name for merge in (*found, *also) for name in (*merge.needs, *merge.against)}
    return Sight(
        places={each.id: place for place, each in enumerate(train.in_line(train.State(changes=line)), 1)},
        open={merge.id: merge for merge in found},
        tasks=tasks,
        running=tx.running_gates(),
        standing=tx.standing(),
        fleet_paused=tx.fleet().paused,
        checked=bool(call.house.config.merge.check),
        broken=_broken(call, found),
        never_passed=bool(tx.standing().halted) and not tx.has_worked(digest(call.house.config)),
        stuck=_stuck(call) if found else None,
        named=tx.merges_named(named - {merge.id for merge in found}),
    )


def mending(broken: str) -> str:
    """Return what a person can do so that a gate can be run again: it may be the machine, and not the settings."""
    if broken.startswith(UNSTARTED):
        return "it is tried again every minute"
    return "see merge.check in covey.toml"


def _broken(call: Call, found: Sequence[Merge]) -> str | None:
    """Return why the gate cannot be run, as the person was told of it and as the merges say that wait for it."""
    told = last_alert(call, "gate_broken")
    waiting = (merge.reason for merge in found if merge.state is State.QUEUED and merge.reason)
    return None if told is None else next((reason for reason in waiting if told.message.startswith(reason)), None)


def _stuck(call: Call) -> Alert | None:
    told = last_alert(call, "queue_stuck")
    tested = [gate for gate in call.tx.last_gates(SEEN) if gate.purpose != gates.TRY][:1]
    went_on = [gate.ordinal for gate in tested] + [each.ordinal for each in call.tx.last_landings(1)]
    return None if told is None or any(ordinal > told.ordinal for ordinal in went_on) else told


def last_alert(call: Call, type: str) -> Alert | None:
    """Return the newest alert of a type."""
    return next(iter(call.tx.find(rows.ALERTS, "WHERE type = ? ORDER BY ordinal DESC LIMIT 1", (type,))), None)


def _change(merge: Merge, tasks: dict[str, Task]) -> train.Change:
    task = tasks.get(merge.task)
    return train.Change(merge.id, merge.ordinal, merge.priority or (task.priority if task else 0), merge.needs)


def line_of(sight: Sight, merge: Merge) -> MergeLine:
    """Return a merge as it stands in the train."""
    gate, task = sight.gate_of(merge), sight.tasks.get(merge.task)
    return MergeLine.of(
        merge,
        title="" if task is None else task.title,
        place=sight.place(merge),
        gate=None if gate is None else gate.id,
        waits=waits(sight, merge),
        person=needs_person(sight, merge),
    )


def needs_person(sight: Sight, merge: Merge) -> bool:
    """Say whether a merge goes on only when a person has done something."""
    if merge.state is State.QUEUED:
        return not sight.checked and not merge.approved
    if merge.state is State.PASSED:
        return merge.reason is not None and not sight.standing.frozen  # what is frozen is told of the whole queue
    return merge.state is State.REVIEW


def waits(sight: Sight, merge: Merge) -> str | None:
    """Return in a few words what an open merge waits for, None if it is tested now or has ended."""
    if merge.state not in merges.OPEN or sight.gate_of(merge) is not None:
        return None
    if merge.state is State.REVIEW:
        return merge.reason or "for a review"
    if needs_person(sight, merge):
        return merge.reason or "for your approval: merge.check is not set, so nobody tests it"
    if merge.state is State.PASSED:
        return "for main, which is frozen" if sight.standing.frozen else _stands_still(sight) or "for main to take it"
    if merge.reason and merge.reason not in (sight.standing.halted, sight.broken):
        return merge.reason
    return _behind(sight, merge) or _stands_still(sight)


def _behind(sight: Sight, merge: Merge) -> str | None:
    """Return which other merges one waits for."""
    needs = [name for name in merge.needs if _has_not_landed(sight, name)]
    if needs:
        return f"for {', '.join(needs[:FEW])}, which it needs"
    clashes = before(sight, merge)
    return f"for {', '.join(clashes[:FEW])}: git cannot merge them" if clashes else None


def _has_not_landed(sight: Sight, name: str) -> bool:
    known = sight.open.get(name) or sight.named.get(name)
    return known is not None and known.state is not State.LANDED


def before(sight: Sight, merge: Merge) -> list[str]:
    """Return the merges with which git cannot merge one and that are before it in line."""
    place = sight.place(merge) or 0
    return [name for name in merge.against if sight.places.get(name, place) < place]


def _stands_still(sight: Sight) -> str | None:
    """Return what keeps the whole queue from testing."""
    if sight.standing.halted:
        return "the queue has halted"
    if sight.standing.paused:
        return "the queue is paused"
    if sight.broken:
        return "for the gate, which cannot be run"
    if sight.stuck:
        return "for the queue, which cannot go on"
    return "the fleet is paused" if sight.fleet_paused else None


# Sentences


def because(call: Call, sight: Sight, merge: Merge) -> list[str]:
    """Return why a merge is where it is, the most important first."""
    seen = call.tx.gates_of(merge.id, SEEN)
    match merge.state:
        case State.REVIEW:
            return [_in_review(call, merge), *_story(call, sight, merge, seen)]
        case State.QUEUED:
            return [*_queued(call, sight, merge), *_story(call, sight, merge, seen)]
        case State.TESTING:
            return [*_tested(sight, merge, seen, call.tx.now), *_story(call, sight, merge, seen)]
        case State.PASSED:
            return _passed(sight, merge, seen)
        case State.LANDED | State.REVERTED:
            return _landed(call, merge, seen)
        case State.REJECTED:
            return [*_rejected(call, merge, seen), *_author(call, merge)]
        case State.WITHDRAWN:
            return [f"It left the queue: {_sentence(merge.reason or 'nobody said why')}", *_author(call, merge)]


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _in_review(call: Call, merge: Merge) -> str:
    if merge.reason:
        return f"It waits for a person: {_sentence(merge.reason)}"
    if not call.house.config.merge.check:
        return "It waits for a person: merge.check is not set, so nobody would test it."
    role = call.house.config.merge.review_role
    return "It waits for a review (merge.review is set)" + (f", by a person or by role {role}." if role else ".")


def _queued(call: Call, sight: Sight, merge: Merge) -> list[str]:
    said: list[str] = []
    if needs_person(sight, merge):
        said.append("It lands only when you approve it: merge.check is not set, so nobody tests it.")
    if merge.reason and merge.reason not in (sight.standing.halted, sight.broken):
        said.append(f"It waits: {_sentence(merge.reason)}")
    said += whole_queue(sight)
    needs = [name for name in merge.needs if _has_not_landed(sight, name)]
    if needs:
        said.append(f"It needs {_names(sight, needs)}, which {_has_or_have(needs)} not landed.")
    for name in before(sight, merge):
        other = sight.open[name]
        shared = sorted(set(merge.paths) & set(other.paths))
        where = f" in {_list(shared)}" if shared else ""
        said.append(
            f"Git cannot merge it with {_name(sight, name)}{where}, which is before it in the queue; "
            "it waits until that one has landed or left."
        )
    place = sight.place(merge)
    if not said and place is not None:
        said.append(f"It is number {place} of {len(sight.places)} in the queue; {_busy(sight)}.")
    return said


def _busy(sight: Sight) -> str:
    if not sight.running:
        return "no gate runs at this moment"
    names = ", ".join(gate.id for gate in sight.running)
    return f"{names} {'runs' if len(sight.running) == 1 else 'run'}, without it"


def whole_queue(sight: Sight) -> list[str]:
    """Return what keeps the whole queue from testing or from moving main, in sentences."""
    standing, said = sight.standing, []
    if standing.halted:
        said.append(f"The queue has halted: {_sentence(standing.halted)}")
    if standing.paused:
        said.append(_sentence(f"The queue is paused by {standing.paused_by}{_because(standing.paused_why)}"))
    if sight.broken:
        said.append(f"{_sentence(sight.broken)} Nothing lands until that is mended.")
    if sight.stuck:
        said.append(sight.stuck.message)
    if sight.fleet_paused:
        said.append("The whole fleet is paused.")
    if standing.frozen:
        said.append(_sentence(f"Main is frozen by {standing.frozen_by}{_because(standing.frozen_why)}"))
    return said


def _because(why: str | None) -> str:
    return f": {why}" if why else ""


def _tested(sight: Sight, merge: Merge, seen: Sequence[Gate], now: float) -> list[str]:
    gate = sight.gate_of(merge)
    if gate is None:
        last = next((each for each in seen if each.id == merge.run), None)
        before = "" if last is None else f"; {last.id}, the last one, {_ENDED.get(last.state, last.state)}"
        return [f"No gate tests it at this moment{before}.", *whole_queue(sight)]
    others = [name for name in gate.merges if name != merge.id]
    company = f" together with {_list(others)}" if others else " alone"
    return [f"It is tested{company} in {gate.id} ({gate.purpose}) for {span(now - gate.started)}."]


_ENDED = {
    gates.State.PASSED: "has passed",
    gates.State.FAILED: "has failed",
    gates.State.LOST: "was ended before it had a result",
}


def _story(call: Call, sight: Sight, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    """Return what earlier gates said of a merge that is open still."""
    if sight.standing.halted:
        failed = [gate.id for gate in seen if gate.state is gates.State.FAILED]
        return [f"What failed with it ({_list(failed)}) does not count while main itself is red."] if failed else []
    said: list[str] = []
    for gate in [gate for gate in reversed(seen) if gate.state is gates.State.FAILED][-3:]:
        others = [name for name in gate.merges if name != merge.id]
        if others:
            said.append(
                f"{gate.id} failed with it and {_list(others)}{_tests(gate)}: at least one of them is to blame."
            )
        else:
            said.append(f"{gate.id} failed with it alone{_tests(gate)}; a second failure would reject it.")
            said += hints.given(gate.summary)
    return [*said, *_flakes(call, seen)]


def _tests(gate: Gate) -> str:
    if gate.failures:
        return f" ({_list(gate.failures)})"
    return f" ({gate.step})" if gate.step else ""


def _flakes(call: Call, seen: Sequence[Gate]) -> list[str]:
    names = {test for gate in seen for test in gate.failures}
    found = call.tx.flaked(sorted(names)[:500])[:FEW]
    return [f"{each.test} has flaked {_times(each.times)}, last in {failed_in(call, each)}." for each in found]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _passed(sight: Sight, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    passed = _last_passed(seen)
    how = "was let pass without a test" if merge.untested else f"passed {passed.id if passed else 'the gate'} as it is"
    frozen = whole_queue(sight) if sight.standing.frozen else []
    if merge.reason:
        return [f"It {how}, and waits for main: {_sentence(merge.reason)}", *frozen]
    return [f"It {how}, and main takes it {'when it is thawed' if frozen else 'next'}.", *frozen]


def _last_passed(seen: Sequence[Gate]) -> Gate | None:
    return next((gate for gate in seen if gate.state is gates.State.PASSED), None)


def _landed(call: Call, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    landing = None if merge.landing is None else call.tx.landing(merge.landing)
    said = []
    if landing is None:
        said.append(f"It landed in {(merge.landed or '')[:12]}{', untested' if merge.untested else ''}.")
    else:
        group = [name for name in landing.merges if name != merge.id]
        company = f" together with {_list(group)}" if group else ""
        tested = "untested" if landing.untested or landing.gate is None else f"after {landing.gate} had passed"
        on = "" if landing.branch == call.house.config.project.main else f" on {landing.branch}"
        said.append(f"It landed{on} in {(merge.landed or landing.commit)[:12]} ({landing.id}){company}, {tested}.")
        if landing.remote:
            said.append(f"It was pushed to {landing.remote}.")
    if merge.state is State.REVERTED:
        by = reverted_by(call, merge)
        how = f" in {by.landed[:12]} by {by.id} ({by.task})" if by is not None and by.landed else ""
        said.append(f"It was taken out of {call.house.config.target} again{how}.")
    failed = sum(gate.state is gates.State.FAILED for gate in seen)
    if failed:
        said.append(f"Before that it was in {failed} {'gate' if failed == 1 else 'gates'} that failed.")
    return [*said, *_flakes(call, seen)]


def _rejected(call: Call, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    told = call.tx.last_event(merge.id, "merge.rejected")
    event = None if told is None else decode_payload(told.kind, told.data)
    said = [f"It was rejected: {_sentence(merge.reason or 'nobody said why')}"]
    if told is not None and not merge.cause:
        said[0] = f"It was rejected by {told.actor}: {_sentence(merge.reason or 'nobody said why')}"
    if not isinstance(event, merges.Rejected):
        return said
    if merge.cause == train.Reason.FAILS:
        said += _failed_alone(call, merge, event, seen)
    elif event.blame:
        said += _blamed(call, merge, event)
    return said


def _failed_alone(call: Call, merge: Merge, event: merges.Rejected, seen: Sequence[Gate]) -> list[str]:
    """Return in which gates a merge failed, and whether it was green before others landed."""
    known = {gate.id: gate for gate in seen}
    failed = [known[name] for name in event.gates if name in known]
    failed = failed or [gate for gate in reversed(seen) if gate.state is gates.State.FAILED and len(gate.merges) == 1]
    said = [f"{gate.id} failed with it alone{_tests(gate)}." for gate in failed[-3:]]
    said += hints.given(failed[-1].summary) if failed else []
    green = _last_passed(seen)
    first = failed[0] if failed else None
    if green is not None and first is not None and green.ordinal < first.ordinal:
        between = call.tx.landings_between(green.ordinal, first.ordinal, 20)
        landed = [name for landing in between for name in landing.merges if name not in green.merges]
        if landed:
            said.append(
                f"It was green in {green.id}, before {_with_tasks(call, landed)} landed: they do not go together."
            )
    return [*said, *_flakes(call, failed)]


def _blamed(call: Call, merge: Merge, event: merges.Rejected) -> list[str]:
    """Return with which merges it clashes, or which it needs that will not land."""
    said = []
    for name, other in call.tx.merges_named(event.blame).items():
        landing: landings.Landing | None = None if other.landing is None else call.tx.landing(other.landing)
        where = f", which landed in {(other.landed or '')[:12]}" if other.state is State.LANDED else ""
        where += f" ({landing.id})" if landing is not None else ""
        if event.cause == train.Reason.NEEDS:
            said.append(f"It needs {name} ({other.task}), which was {other.state}.")
        else:
            shared = sorted(set(merge.paths) & set(other.paths))
            files = f" in {_list(shared)}" if shared else ""
            said.append(f"Git cannot merge it with {name} ({other.task}){files}{where}.")
    return said


def _author(call: Call, merge: Merge) -> list[str]:
    """Return what has become of the task since."""
    task = call.tx.task(merge.task)
    if task is None:
        return []
    later = call.tx.last_merge(merge.task)
    if later is not None and later.id != merge.id:
        return [f"{task.id} was handed in again since, as {later.id}."]
    if task.status is Status.DOING:
        return [f"{task.session} is at work on {task.id} again."]
    if task.status is Status.TODO and task.front:
        return [f"{task.id} is first in line for {task.front}, who wrote it."]
    reason = f": {_sentence(task.reason)}" if task.status is Status.BLOCKED and task.reason else "."
    return [f"{task.id} is {task.status}{reason}"]


def next_steps(sight: Sight, merge: Merge, task: Task | None, *, moved_on: bool) -> list[str]:
    """Return the commands that bring a merge on, none if it gets on by itself."""
    match merge.state:
        case State.REVIEW:
            return [f"covey merge approve {merge.id}", f'covey merge reject {merge.id} "REASON"']
        case State.QUEUED if needs_person(sight, merge):
            return [f"covey merge approve {merge.id}", f'covey merge reject {merge.id} "REASON"']
        case State.REJECTED | State.WITHDRAWN if not moved_on and task is not None:
            return [*_again(merge, task)]
        case _ if merge.state in merges.OPEN:
            return [*_onwards(sight, merge)]
        case _:
            return []


def _again(merge: Merge, task: Task) -> Iterator[str]:
    """Yield what can be done with work that did not land."""
    if merge.run is not None:
        yield f"covey merge log {merge.id}   shows what the gate said"
    yield f"covey merge retry {merge.id}   tries it as it is"
    if merge.reverts is None and task.status is Status.BLOCKED:
        yield f"covey task edit {task.id} --status todo   lets it be worked on again"
    yield f"covey task show {task.id}   tells what its next author is told"
    yield f'covey task drop {task.id} "REASON"   ends it'


def _onwards(sight: Sight, merge: Merge) -> Iterator[str]:
    """Yield what brings a merge on that waits with the whole queue, or for main."""
    stop = sight.standing
    if stop.halted and sight.never_passed:
        yield "covey init --check   tries the gate, which has never passed; covey.toml names another one"
    elif stop.halted:
        yield "git revert COMMIT on main, or mend it there: the queue goes on by itself"
    if stop.paused or stop.halted:
        yield "covey merge resume" + ("   tries the same main again" if stop.halted else "")
    if sight.broken:
        what = "that" if sight.broken.startswith(UNSTARTED) else "merge.check in covey.toml"
        yield f"mend {what}: the queue goes on by itself"
        yield f"covey merge retry {merge.id}   tries it again at once"
    if stop.frozen:
        yield "covey merge thaw"
    elif merge.state is State.PASSED and merge.reason:
        yield "commit or put away (git stash) what is in the way: main follows by itself"
    if sight.fleet_paused:
        yield "covey resume"


def _list(names: Iterable[str]) -> str:
    """Return some names, and how many there are more."""
    found = list(names)
    shown = ", ".join(found[:FEW])
    return f"{shown} and {len(found) - FEW} more" if len(found) > FEW else shown


def _has_or_have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _name(sight: Sight, name: str) -> str:
    known = sight.open.get(name) or sight.named.get(name)
    return name if known is None else f"{name} ({known.task})"


def _names(sight: Sight, names: Sequence[str]) -> str:
    return _list(_name(sight, name) for name in names)


def _with_tasks(call: Call, names: Sequence[str]) -> str:
    known = call.tx.merges_named(names[: FEW + 1])
    return _list(f"{name} ({known[name].task})" if name in known else name for name in names)
