"""Why a merge is where it is: its place in the train, what it waits for, and the evidence, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from covey.app.context import Call
from covey.app.merging.merge_lookup import failed_in, reverted_by
from covey.app.merging.queue_records import digest
from covey.app.shapes.merging.merges import MergeLine
from covey.core.board.tasks import Status, Task
from covey.core.merging import failures, gates, merges
from covey.core.merging.gates import Gate
from covey.core.merging.merges import Merge, MergeState, WholeQueue
from covey.core.merging.queue import train
from covey.core.merging.queue_view import (
    MAX_IN_A_SENTENCE,
    Breakage,
    QueueView,
    failed_tests,
    how_it_landed,
    last_passed,
    listed,
    needs_person,
    passed,
    queued,
    sentence,
    tested,
    waits,
)
from covey.core.people.alerts import Alert, AlertKind
from covey.store.engine.rows import decode_payload

MAX_GATES_SEEN = 50
"""Gates of a merge that are looked at."""
MAX_FLAKES_ASKED = 500
MAX_LANDINGS_BETWEEN = 20


def look(call: Call, also: Iterable[Merge] = ()) -> QueueView:
    """Look at the queue, and at the tasks of some other merges too."""
    tx = call.tx
    found = tx.open_merges()
    tasks = tx.tasks_named([merge.task for merge in (*found, *also)])
    line = {merge.id: _change(merge, tasks) for merge in found if merge.state is not MergeState.REVIEW}
    named = {name for merge in (*found, *also) for name in (*merge.needs, *merge.against)} - {each.id for each in found}
    return QueueView(
        places={each.id: place for place, each in enumerate(train.in_line(train.TrainState(changes=line)), 1)},
        open={merge.id: merge for merge in found},
        tasks=tasks,
        running=tx.running_gates(),
        standing=tx.standing(),
        fleet_paused=tx.fleet().paused,
        checked=bool(call.context.config.merge.check),
        broken=_broken(found),
        never_passed=bool(tx.standing().halted) and not tx.has_worked(digest(call.context.config)),
        stuck=_stuck(call) if found else None,
        named=tx.merges_named(named) if named else {},
    )


def _broken(found: Iterable[Merge]) -> Breakage | None:
    """Return why the gate cannot be run, as the merges say that wait for it."""
    causes = (WholeQueue.SETTINGS, WholeQueue.MACHINE)
    waiting = (merge for merge in found if merge.state is MergeState.QUEUED and merge.cause in causes)
    return next((Breakage(merge.reason or "", WholeQueue(merge.cause)) for merge in waiting), None)


def _stuck(call: Call) -> Alert | None:
    """Return the alert that the queue cannot go on, None if it has tested or landed something since."""
    told = call.tx.last_alert(AlertKind.QUEUE_STUCK)
    if told is None:
        return None
    tested = next((gate.ordinal for gate in call.tx.last_gates(MAX_GATES_SEEN) if gate.purpose != gates.TRY), 0)
    landed = next((landing.ordinal for landing in call.tx.last_landings(1)), 0)
    return told if max(tested, landed) <= told.ordinal else None


def _change(merge: Merge, tasks: dict[str, Task]) -> train.Change:
    task = tasks.get(merge.task)
    return train.Change(merge.id, merge.ordinal, merge.priority or (task.priority if task else 0), merge.needs)


def line_of(view: QueueView, merge: Merge) -> MergeLine:
    """Return a merge as it stands in the train."""
    gate, task, wait = view.gate_of(merge), view.tasks.get(merge.task), waits(view, merge)
    return MergeLine.of(
        merge,
        title="" if task is None else task.title,
        place=view.places.get(merge.id),
        gate=None if gate is None else gate.id,
        waits=None if wait is None else wait.text,
        waits_for=wait is not None and wait.is_thing,
        stuck=wait is not None and wait.is_stuck,
        person=needs_person(view, merge),
    )


# Sentences


def because(call: Call, view: QueueView, merge: Merge) -> list[str]:
    """Return why a merge is where it is, the most important first."""
    seen = call.tx.gates_of(merge.id, MAX_GATES_SEEN)
    match merge.state:
        case MergeState.REVIEW:
            return [_in_review(call, merge), *_story(call, view, merge, seen)]
        case MergeState.QUEUED:
            return [*queued(view, merge), *_story(call, view, merge, seen)]
        case MergeState.TESTING:
            return [*tested(view, merge, seen, call.tx.now), *_story(call, view, merge, seen)]
        case MergeState.PASSED:
            return passed(view, merge, seen)
        case MergeState.LANDED | MergeState.REVERTED:
            return _landed(call, merge, seen)
        case MergeState.REJECTED:
            return [*_rejected(call, merge, seen), *_author(call, merge)]
        case MergeState.WITHDRAWN:
            return [f"It left the queue: {sentence(merge.reason or 'nobody said why')}", *_author(call, merge)]


def _in_review(call: Call, merge: Merge) -> str:
    if merge.reason:
        return f"It waits for a person: {sentence(merge.reason)}"
    if not call.context.config.merge.check:
        return "It waits for a person: merge.check is not set, so nobody would test it."
    role = call.context.config.merge.review_role
    return "It waits for a review (merge.review is set)" + (f", by a person or by role {role}." if role else ".")


def _story(call: Call, view: QueueView, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    """Return what earlier gates said of a merge that is open still."""
    if view.standing.halted:
        failed = [gate.id for gate in seen if gate.state is gates.GateState.FAILED]
        return [f"What failed with it ({listed(failed)}) does not count while main itself is red."] if failed else []
    said: list[str] = []
    for gate in [gate for gate in reversed(seen) if gate.state is gates.GateState.FAILED][-3:]:
        others = [name for name in gate.merges if name != merge.id]
        if others:
            said.append(
                f"{gate.id} failed with it and {listed(others)}{failed_tests(gate)}: at least one of them is to blame."
            )
        else:
            said.append(f"{gate.id} failed with it alone{failed_tests(gate)}; a second failure would reject it.")
            said += failures.hints_in(gate.summary)
    return [*said, *_flakes(call, seen)]


def _flakes(call: Call, seen: Sequence[Gate]) -> list[str]:
    names = {test for gate in seen for test in gate.failures}
    found = call.tx.flaked(sorted(names)[:MAX_FLAKES_ASKED])[:MAX_IN_A_SENTENCE]
    return [f"{each.test} has flaked {_times(each.times)}, last in {failed_in(call, each)}." for each in found]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _landed(call: Call, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    landing = call.tx.landing(merge.landing)
    if landing is None:
        said = [f"It landed in {(merge.landed or '')[:12]}{', untested' if merge.untested else ''}."]
    else:
        said = how_it_landed(merge, landing, call.context.config.project.main)
    if merge.state is MergeState.REVERTED:
        by = reverted_by(call, merge)
        how = f" in {by.landed[:12]} by {by.id} ({by.task})" if by is not None and by.landed else ""
        said.append(f"It was taken out of {call.context.config.target} again{how}.")
    failed = sum(gate.state is gates.GateState.FAILED for gate in seen)
    if failed:
        said.append(f"Before that it was in {failed} {'gate' if failed == 1 else 'gates'} that failed.")
    return [*said, *_flakes(call, seen)]


def _rejected(call: Call, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    told = call.tx.last_event(merge.id, "merge.rejected")
    event = None if told is None else decode_payload(told.kind, told.data)
    said = [f"It was rejected: {sentence(merge.reason or 'nobody said why')}"]
    if told is not None and not merge.cause:
        said[0] = f"It was rejected by {told.actor}: {sentence(merge.reason or 'nobody said why')}"
    if not isinstance(event, merges.Rejected):
        return said
    if merge.cause == train.RejectCause.FAILS:
        said += _failed_alone(call, merge, event, seen)
    elif event.blame:
        said += _blamed(call, merge, event)
    return said


def _failed_alone(call: Call, merge: Merge, event: merges.Rejected, seen: Sequence[Gate]) -> list[str]:
    """Return in which gates a merge failed, and whether it was green before others landed."""
    known = {gate.id: gate for gate in seen}
    failed = [known[name] for name in event.gates if name in known]
    failed = failed or [
        gate for gate in reversed(seen) if gate.state is gates.GateState.FAILED and len(gate.merges) == 1
    ]
    said = [f"{gate.id} failed with it alone{failed_tests(gate)}." for gate in failed[-3:]]
    said += failures.hints_in(failed[-1].summary) if failed else []
    said += _was_green_before(call, last_passed(seen), failed[0]) if failed else []
    return [*said, *_flakes(call, failed)]


def _was_green_before(call: Call, green: Gate | None, failed: Gate) -> list[str]:
    """Return what landed between a gate that passed and one that failed: they do not go together."""
    if green is None or green.ordinal > failed.ordinal:
        return []
    between = call.tx.landings_between(green.ordinal, failed.ordinal, MAX_LANDINGS_BETWEEN)
    landed = [name for landing in between for name in landing.merges if name not in green.merges]
    if not landed:
        return []
    known = call.tx.merges_named(landed[: MAX_IN_A_SENTENCE + 1])
    named = listed(f"{name} ({known[name].task})" if name in known else name for name in landed)
    return [f"It was green in {green.id}, before {named} landed: they do not go together."]


def _blamed(call: Call, merge: Merge, event: merges.Rejected) -> list[str]:
    """Return with which merges it clashes, or which it needs that will not land."""
    said = []
    for name, other in call.tx.merges_named(event.blame).items():
        landing = call.tx.landing(other.landing)
        where = f", which landed in {(other.landed or '')[:12]}" if other.state is MergeState.LANDED else ""
        where += f" ({landing.id})" if landing is not None else ""
        if event.cause == train.RejectCause.NEEDS:
            said.append(f"It needs {name} ({other.task}), which was {other.state}.")
        else:
            shared = sorted(set(merge.paths) & set(other.paths))
            files = f" in {listed(shared)}" if shared else ""
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
    reason = f": {sentence(task.reason)}" if task.status is Status.BLOCKED and task.reason else "."
    return [f"{task.id} is {task.status}{reason}"]
