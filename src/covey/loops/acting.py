"""Acting: what the train wants is done. Tests begin and end, and merges land, go back, or wait for a red main."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from covey.app import sendback, train
from covey.app.changes import step
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core import failures, gate_trials, merges
from covey.core.merges import Merge, State
from covey.core.queue import standing
from covey.core.queue.train import Cancel, Halt, Land, Reason, Reject, Start, Test
from covey.core.sent_back import Clash as Conflict
from covey.core.sent_back import Since
from covey.core.sessions import COVEY
from covey.errors import CoveyError
from covey.git import meanwhile
from covey.git.chains import Placed
from covey.git.project import Project
from covey.loops import building, suspects
from covey.loops.building import Clash
from covey.loops.crew import Anew, Crew, Journey
from covey.store import rows

log = logging.getLogger("covey.queue")
TREES = 200
"""Trees beyond which those are forgotten that nobody needs."""


async def stop_unwanted(crew: Crew) -> None:
    """End the gates of tests that the train has given up."""
    running = crew.heard.train.running
    unwanted = [gate for gate, each in crew.testing.running.items() if each.gate.test not in {0, *running}]
    await crew.testing.stop(unwanted)


async def start_wanted(crew: Crew, journey: Journey) -> None:
    """Begin the tests that the train wants, as long as there is room."""
    for number in sorted(crew.wanted):
        # What landed since it was decided is no part of it any more.
        test = crew.heard.train.running.get(number)
        if test is None:
            crew.wanted.discard(number)
        elif crew.testing.has_room(crew.heard.train.slots):
            crew.wanted.discard(number)
            await _start(crew, journey, test)


async def _start(crew: Crew, journey: Journey, test: Test) -> None:
    """Build the tree of a test, and begin its gate."""
    if test.on < 0:  # main holds another part of it than its first
        await crew.testing.give_up(test, journey.base)
        return
    if test.on > journey.main:  # what it stands on is decided, and lands before it begins
        crew.wanted.add(test.id)
        return
    config, base = crew.config, journey.values[test.on]
    links, landed = await crew.desk.read(lambda call: building.look(call, test.changes))
    wanted = [links[each] for each in test.changes if each in links]
    group = f"{journey.number}.{test.id}"
    crew.busy_with = test.changes
    built = await crew.desk.beside(lambda: crew.builder.build(base, wanted, config, group, landed))
    crew.busy_with = ()
    if isinstance(built, Clash):
        await clashed(crew, journey, built)
        return
    if base == journey.values.get(0) != journey.head:
        built = replace(built, since=journey.head)  # what the remote has beyond main lands with it
    journey.trees[test.id] = built
    is_current = crew.heard.train.running.get(test.id) == test
    if not (is_current and await crew.testing.start(test, built)) and test.id in crew.heard.train.running:
        crew.wanted.add(test.id)  # something landed or left in this moment


async def clashed(crew: Crew, journey: Journey, clash: Clash) -> None:
    """Write what does not go together, so that the train knows."""
    journey.conflicts[clash.merge] = Conflict(clash.conflict.files, clash.conflict.message)

    def write(call: Call) -> None:
        now = call.tx.get(rows.MERGES, clash.merge)
        if now is not None and now.state in (State.QUEUED, State.TESTING):
            step(call, now, merges.Clashed(clash.against), COVEY)

    await crew.desk.write(write)


async def act(crew: Crew, journey: Journey, *, frozen: bool) -> None:
    """Do what the train decided, in this order."""
    while crew.todo and crew.journey is journey:
        take_wishes(crew)
        match crew.todo.popleft() if crew.todo else None:
            case Land() as action:
                await _land(crew, journey, action, frozen=frozen)
            case Reject() as action:
                await _reject(crew, journey, action)
            case Halt() as action:
                await _halt(crew, journey, action)
    await stop_unwanted(crew)
    _forget(crew, journey)


def take_wishes(crew: Crew) -> None:
    """Remember which tests shall begin or not, up to the first thing that is to be done."""
    while crew.todo and isinstance(crew.todo[0], Start | Cancel):
        match crew.todo.popleft():
            case Start(test):
                crew.wanted.add(test.id)
            case Cancel(number):
                crew.wanted.discard(number)


def _forget(crew: Crew, journey: Journey) -> None:
    """Forget the trees and gates of tests of which the train remembers nothing, and mains on which none is."""
    train = crew.heard.train
    if len(journey.trees) > TREES:
        known = {*train.running, *(result.test.id for result in train.results)}
        known |= {action.test for action in crew.todo if isinstance(action, Land)}
        journey.trees = {number: tree for number, tree in journey.trees.items() if number in known}
        known |= {number for action in crew.todo if isinstance(action, Reject | Halt) for number in action.tests}
        crew.gate_of = {number: gate for number, gate in crew.gate_of.items() if number in known}
    if len(journey.values) > TREES:
        used = {journey.main, *(test.on for test in train.running.values())}
        journey.values = {number: commit for number, commit in journey.values.items() if number in used}


async def _land(crew: Crew, journey: Journey, action: Land, *, frozen: bool) -> None:
    """Bring main to the tree of a test that passed, in one move."""
    links = journey.trees[action.test].links[-len(action.changes) :]
    if tuple(link.id for link in links) != action.changes or links[0].before != journey.base:
        raise Anew("a tree is not what the train takes it for")
    line = await crew.line.look()
    if line is None or line.head != journey.head:
        raise Anew(f"{journey.settings.target} was moved by somebody else")
    untested = not journey.settings.checks
    if not await crew.desk.write(lambda call: _pass(call, links, untested=untested)):
        raise Anew("something of a group left it while it was about to land")
    commit = links[-1].commit
    journey.main += 1
    journey.values[journey.main] = commit
    journey.head = commit
    crew.busy_with = action.changes
    is_there = await crew.line.land(line, commit, frozen=frozen)
    crew.busy_with = ()
    if not is_there:
        raise Anew("what had passed could not land")
    crew.told.clear()


async def _reject(crew: Crew, journey: Journey, action: Reject) -> None:
    """Send a merge back to its author, or let it wait for what it needs."""
    if action.reason is Reason.NEEDS:
        await crew.desk.write(lambda call: _wait_for_needs(call, action))
        return
    merge = await crew.desk.read(lambda call: call.tx.get(rows.MERGES, action.id))
    if merge is None or merge.commit is None:
        return
    since = await crew.desk.beside(lambda: _since(crew.desk.project, merge, journey.base))
    clash = journey.conflicts.get(action.id) if action.reason is Reason.TEXT else None
    gate_ids = tuple(crew.gate_of[number] for number in action.tests if number in crew.gate_of)
    cause = action.reason.value
    journey.conflicts.pop(action.id, None)
    await crew.desk.write(
        lambda call: sendback.rejected(call, merge, cause, gate_ids, action.blame, since=since, clash=clash)
    )


def _since(project: Project, merge: Merge, base: str) -> Since | None:
    """Return what main has that a merge has not; without it a story is shorter, and nothing else."""
    try:
        return None if merge.commit is None else meanwhile.since(project, merge.commit, base)
    except CoveyError as error:
        log.warning("what came since %s cannot be told: %s", merge.id, error)
        return None


async def _halt(crew: Crew, journey: Journey, action: Halt) -> None:
    """Stop landing, since main itself is red, and name whoever may know why."""
    target = journey.settings.target
    gate_ids = tuple(crew.gate_of[number] for number in action.tests if number in crew.gate_of)
    why, advice = await _red(crew, journey, gate_ids)

    def write(call: Call) -> None:
        train.put(call, standing.Halted(why, gate_ids))
        for merge in call.tx.open_merges():
            if merge.state in (State.QUEUED, State.TESTING):
                queued = step(call, merge, merges.Requeued(f"{target} is red"), COVEY)
                step(call, queued, merges.Waits(why), COVEY)
        message = f"{why} Nothing lands until that is mended; then the queue goes on by itself. {advice}"
        alert(call, "main_red", message, None, None)

    crew.desk.app.house.broken_gate = True
    crew.halted_under = crew.config.merge
    await crew.desk.write(write)


async def _red(crew: Crew, journey: Journey, gate_ids: tuple[str, ...]) -> tuple[str, str]:
    """Return why main does not pass, and what a person can do: a gate that never worked is no commit's fault."""
    base, checks = journey.base, journey.settings.checks
    last = await crew.desk.read(lambda call: call.tx.get(rows.GATES, gate_ids[-1]) if gate_ids else None)
    is_own = base == journey.head  # else it is the remote's commits that may be to blame
    if is_own and last is not None and not await crew.desk.read(lambda call: call.tx.has_worked(checks)):
        trial = gate_trials.judge(last)
        return gate_trials.never_passed(last), "" if trial is None else trial.advice
    greens = await crew.desk.read(lambda call: suspects.greens(call, checks))
    named = await crew.desk.beside(lambda: _named(crew.desk.project, greens, base))
    what = f"{journey.settings.target} {'itself' if is_own else 'with what the remote has beyond it'}"
    error = "" if last is None else failures.error_line(last.summary)
    why = f"{what} fails its gate at {base[:12]} ({', '.join(gate_ids)}){f', which said: {error}' if error else ''}."
    return f"{why} {named}", "To land a branch that mends it: covey merge queue BRANCH, then covey merge resume."


def _named(project: Project, greens: Sequence[str], base: str) -> str:
    try:
        return suspects.name(project, greens, base)
    except CoveyError as error:
        return f"Who may know why cannot be told: {error.message}"


async def put_away(crew: Crew) -> None:
    """Remove the pool's worktrees when nobody is left who could fill the queue soon."""
    is_busy = crew.testing.is_busy() or crew.wanted or crew.heard.train.changes
    if is_busy and not crew.is_ending:
        return
    if not await crew.desk.read(lambda call: bool(call.tx.run_sessions())):
        await crew.gates.put_away()


def _pass(call: Call, links: Iterable[Placed], *, untested: bool) -> bool:
    """Write that merges may land now, if all of them still want to."""
    found = [(call.tx.get(rows.MERGES, link.id), link) for link in links]
    if any(merge is None or merge.state not in (State.QUEUED, State.TESTING) for merge, _ in found):
        return False
    for merge, link in found:
        if merge is not None:
            step(call, merge, merges.Passed(link.commit, untested=untested, onto=link.before), COVEY)
    return True


def _wait_for_needs(call: Call, action: Reject) -> None:
    now = call.tx.get(rows.MERGES, action.id)
    if now is None or now.state not in (State.QUEUED, State.TESTING):
        return
    needed = [merge.task for each in action.blame if (merge := call.tx.get(rows.MERGES, each)) is not None]
    if now.state is State.TESTING:
        now = step(call, now, merges.Requeued("what it needs did not land"), COVEY)
    step(call, now, merges.Waits(f"It needs {', '.join(needed)} on main first."), COVEY)
