"""Execution: what the train decided is done. Groups land, merges go back or wait, and a red main halts them all."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from covey.app.board.task_changes import step
from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.app.merging import queue_records, sendback
from covey.app.merging.sendback import RejectionCause
from covey.core.fleet.sessions import COVEY
from covey.core.merging import failures, gate_trials, gates, merges
from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.queue import queue_status
from covey.core.merging.queue.train import Land, Reject, RejectCause
from covey.core.merging.rejection import Since
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError
from covey.git.candidates import commits_since
from covey.git.candidates.candidate_chain import Placed
from covey.git.project import Project
from covey.loops.merge_queue.blame import Blame
from covey.loops.merge_queue.main_branch import MainBranch, MainPosition
from covey.loops.merge_queue.queue_state import Epoch, RestartQueue
from covey.loops.runtime import Runtime

MAX_LOOKED_AT = 50
"""Gates and landings among which a value of main is looked for that was green."""
MAX_COMMITS_NAMED = 5
"""Commits that are named."""

log = logging.getLogger("covey.queue")


# Landing, and going back


async def land(
    runtime: Runtime, main: MainBranch, blame: Blame, epoch: Epoch, action: Land, *, is_frozen: bool
) -> MainPosition:
    """Bring main to the tree of a test that passed, in one move; return where main is then."""
    links = epoch.trees[action.test].links[-len(action.changes) :]
    if tuple(link.id for link in links) != action.changes or links[0].before != epoch.base:
        raise RestartQueue("a tree is not what the train takes it for")
    at = await main.look()
    if at is None or at.head != epoch.head:
        raise RestartQueue(f"{epoch.settings.target} was moved by somebody else")
    is_untested = not epoch.settings.checks
    if not await runtime.write(lambda call: _pass(call, links, is_untested=is_untested)):
        raise RestartQueue("something of a group left it while it was about to land")
    commit = links[-1].commit
    epoch.advance(commit)
    with blame.handling(action.changes):
        landed = await main.land(at, commit, is_frozen=is_frozen)
    if landed is None:
        raise RestartQueue("what had passed could not land")
    blame.has_landed()
    return landed


def _pass(call: Call, links: Iterable[Placed], *, is_untested: bool) -> bool:
    """Write that merges may land now, if all of them still want to."""
    found = [(call.tx.get(merges.Merge, link.id), link) for link in links]
    if any(merge is None or merge.state not in queue_records.IN_TRAIN for merge, _ in found):
        return False
    for merge, link in found:
        if merge is not None:
            step(call, merge, merges.Passed(link.commit, untested=is_untested, onto=link.before), COVEY)
    return True


async def reject(runtime: Runtime, epoch: Epoch, action: Reject, gate_ids: tuple[str, ...]) -> None:
    """Send a merge back to its author, or let it wait for what it needs."""
    if action.reason is RejectCause.NEEDS:
        await runtime.write(lambda call: _wait_for_needs(call, action))
        return
    merge = await runtime.read(lambda call: call.tx.get(merges.Merge, action.id))
    if merge is None or merge.commit is None:
        return
    since = await runtime.in_git_thread(lambda: _since(runtime.project, merge, epoch.base))
    conflict = epoch.conflicts.pop(action.id, None)
    clash = conflict if action.reason is RejectCause.TEXT else None
    why = RejectionCause(action.reason.value, gate_ids, action.blame, since=since, clash=clash)
    await runtime.write(lambda call: sendback.rejected(call, merge, why))


def _since(project: Project, merge: Merge, base: str) -> Since | None:
    """Return what main has that a merge lacks; without it the story that its author reads is shorter."""
    try:
        return None if merge.commit is None else commits_since.since(project, merge.commit, base)
    except CoveyError as error:
        log.warning("what came since %s cannot be told: %s", merge.id, error)
        return None


def _wait_for_needs(call: Call, action: Reject) -> None:
    now = call.tx.get(merges.Merge, action.id)
    if now is None or now.state not in queue_records.IN_TRAIN:
        return
    needed = [merge.task for each in action.blame if (merge := call.tx.get(merges.Merge, each)) is not None]
    if now.state is MergeState.TESTING:
        now = step(call, now, merges.Requeued("what it needs did not land"), COVEY)
    step(call, now, merges.Waits(f"It needs {', '.join(needed)} on main first."), COVEY)


# Main itself is red


GOES_ON = "the queue goes on when main or covey.toml changes, when covey init --check passes, or by covey merge resume"
"""What ends a halt."""


async def halt(runtime: Runtime, epoch: Epoch, gate_ids: tuple[str, ...]) -> None:
    """Stop landing, since main itself is red, and name whoever may know why."""
    why, advice = await _explain(runtime, epoch, gate_ids)
    runtime.app.context.gate.is_broken = True
    await runtime.write(lambda call: _write_halt(call, epoch.settings.target, why, advice, gate_ids))


def _write_halt(call: Call, target: str, why: str, advice: str, gate_ids: tuple[str, ...]) -> None:
    queue_records.put(call, queue_status.Halted(why, gate_ids))
    for merge in call.tx.open_merges():
        if merge.state in queue_records.IN_TRAIN:
            queued = step(call, merge, merges.Requeued(f"{target} is red"), COVEY)
            step(call, queued, merges.Waits(why, cause=merges.WholeQueue.HALTED), COVEY)
    message = f"{why} Nothing lands until that is mended: {GOES_ON}. {advice}"
    alert(call, AlertKind.MAIN_RED, message, None, None)


async def _explain(runtime: Runtime, epoch: Epoch, gate_ids: tuple[str, ...]) -> tuple[str, str]:
    """Return why main does not pass, and what a person can do: no commit is to blame for a gate that never worked."""
    base, checks = epoch.base, epoch.settings.checks
    last = await runtime.read(lambda call: call.tx.get(gates.Gate, gate_ids[-1]) if gate_ids else None)
    is_own = base == epoch.head  # else it is the remote's commits that may be to blame
    if is_own and last is not None and not await runtime.read(lambda call: call.tx.has_worked(checks)):
        trial = gate_trials.judge(last)
        return gate_trials.never_passed(last), "" if trial is None else trial.advice
    landed = await runtime.read(lambda call: call.tx.last_landings(MAX_LOOKED_AT))
    tested = await runtime.read(lambda call: call.tx.last_gates(MAX_LOOKED_AT))
    passed = [gate.commit for gate in tested if gate.state is gates.GateState.PASSED and gate.checks == checks]
    greens = list(dict.fromkeys((*(landing.commit for landing in landed if not landing.untested), *passed)))
    named = await runtime.in_git_thread(lambda: _named(runtime.project, greens, base))
    what = f"{epoch.settings.target} {'itself' if is_own else 'with what the remote has beyond it'}"
    error = "" if last is None else failures.error_line(last.summary)
    why = f"{what} fails its gate at {base[:12]} ({', '.join(gate_ids)}){f', which said: {error}' if error else ''}."
    return f"{why} {named}", "To land a branch that mends it: covey merge queue BRANCH, then covey merge resume."


def _named(project: Project, greens: Sequence[str], base: str) -> str:
    """Return a sentence that names the commits since main was last known to be green, and their authors."""
    try:
        green = commits_since.first_held(project, greens, base)
        if green == base:
            return "The same commit has passed before: look at what else has changed."
        if green is None:
            return f"It was never seen to pass; its last commit is {commits_since.titles(project, base, None, 1)[0]}."
        found = commits_since.titles(project, base, green, MAX_COMMITS_NAMED + 1)
    except CoveyError as error:
        return f"Who may know why cannot be told: {error.message}"
    more = " and others" if len(found) > MAX_COMMITS_NAMED else ""
    return f"Since {green[:12]}, which passed, came {', '.join(found[:MAX_COMMITS_NAMED])}{more}."
