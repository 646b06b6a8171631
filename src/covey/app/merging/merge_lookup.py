"""Merges as verbs name them."""

from __future__ import annotations

from covey.app.context import Call
from covey.core import ids
from covey.core.merging import gates, merges
from covey.core.merging.gates import Flake, Gate
from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.test_counts import NO_TEST_STEP
from covey.core.nouns import missing
from covey.errors import NotFound

_LIST = "covey merge list --all lists the merges; a task stands for its newest one."

MAX_GATES_LOOKED_AT = 50
"""Gates of a merge among which one is looked for."""
MAX_UNWANTED = 50
"""How many of the last merges that did not land are searched for one that had passed."""


def find_merge(call: Call, merge_id: str) -> Merge:
    """Return a merge by its id, by the number of it, or by its task, which means the newest of that."""
    merge = call.tx.get(merges.Merge, f"merge-{merge_id}" if merge_id.isdecimal() else merge_id)
    if merge is None and ids.is_task_id(merge_id):
        merge = call.tx.last_merge(merge_id)
        if merge is None and call.tx.task(merge_id) is not None:
            raise NotFound(f"{merge_id} was not handed in yet, so it has no merge.", hint=_LIST)
    if merge is None:
        gate = merge_id.startswith("gate-")
        hint = f"covey merge log {merge_id[:80]} shows what a gate said." if gate else _LIST
        raise NotFound(missing("merge", merge_id).message, hint=hint)
    return merge


def approver(call: Call, merge: Merge) -> str | None:
    """Return who let a merge into the queue, None if nobody had to."""
    event = call.tx.last_event(merge.id, "merge.approved")
    return None if event is None else event.actor


def reverted_by(call: Call, merge: Merge) -> Merge | None:
    """Return the merge that took one out of main, or may do so: also one that an author had to make by hand."""
    for revert in call.tx.reverts_of(merge.id):
        last = call.tx.last_merge(revert.task)
        found = next((each for each in (revert, last) if each is not None and is_live(each)), None)
        if found is not None:
            return found
    return None


def built_of(call: Call, task: str) -> tuple[str, ...]:
    """Return what was built of a task's work, each time that it was handed in."""
    return tuple(merge.candidate for merge in call.tx.merges_of(task) if merge.candidate)


def was_run(gate: Gate) -> bool:
    """Say whether a gate tested something; without checks it lets everything pass."""
    return gate.state is not gates.GateState.PASSED or gate.code is not None


def may_run_no_test(call: Call, gate: Gate) -> bool:
    """Say whether all that a gate tests may land although no test is run: a person knows of it and wants it so."""
    found = [call.tx.get(merges.Merge, each) for each in gate.merges]
    return all(merge is not None and (merge.reverts or _was_approved_since(call, merge)) for merge in found)


def _was_approved_since(call: Call, merge: Merge) -> bool:
    """Say whether a person approved work that had not landed before because no test was run with it."""
    before = [each for each in call.tx.merges_of(merge.task) if each.ordinal < merge.ordinal] if merge.approved else []
    failed = ((each.id, gate) for each in before for gate in call.tx.gates_of(each.id, MAX_GATES_LOOKED_AT))
    # Alone: in a group it may have been another's work that had no test.
    return any(gate.step == NO_TEST_STEP and gate.merges == (each,) for each, gate in failed)


def failed_in(call: Call, flake: Flake) -> str:
    """Return the gate in which a test failed that is known as a flake by the gate that passed after it."""
    passed = call.tx.get(gates.Gate, flake.gate)
    failed = [] if passed is None else call.tx.failed_gates_before(passed, 20)
    return next((gate.id for gate in failed if flake.test in gate.failures), flake.gate)


def is_live(merge: Merge) -> bool:
    """Say whether a merge has landed or may still do so."""
    return merge.state in (*merges.OPEN, MergeState.LANDED)
