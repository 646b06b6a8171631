"""Taking work out of main again: a merge of its own, tested like every other."""

from __future__ import annotations

from covey.app.board.task_changes import change, step
from covey.app.board.task_verbs import add_task
from covey.app.board.tries import hand_in_change
from covey.app.context import Call, find
from covey.app.merging.merge_lookup import find_merge, is_live
from covey.app.shapes.board import AddTask
from covey.app.shapes.merging.merges import MergeRow, Revert
from covey.app.verbs import verb
from covey.core.board import tasks
from covey.core.board.tasks import ENDED, WAITING, Status
from covey.core.fleet.sessions import COVEY, OWNER
from covey.core.merging import merges
from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.queue_view import stands
from covey.core.people.rights import OWNER_ONLY
from covey.core.texts import line
from covey.errors import Refused
from covey.git.identity import task_branch
from covey.store.engine.rows import decode_payload

MAX_TITLE, MAX_NOTE = 500, 2000
"""Characters."""


@verb("merge.revert", "POST /api/merges/{id}/revert", Revert, MergeRow, may=OWNER_ONLY, status=201)
def revert(call: Call, asked: Revert, id: str) -> MergeRow:
    """Take landed work out of main again: as a task whose merge is built, tested and landed like every other."""
    merge = find_merge(call, id)
    task = find(call.tx, merge.task)
    if merge.state is not MergeState.LANDED:
        raise Refused(f"{merge.id} {stands(merge.state)}: only what has landed can be reverted.", hint=_instead(merge))
    if merge.landed == merge.onto:
        raise Refused(
            f"{merge.id} brought nothing: what {task.id} handed in was in {call.context.config.target} before.",
            hint="git revert takes out what somebody else committed; covey task add adds what is left to do.",
        )
    under_way = next((each for each in call.tx.reverts_of(merge.id) if is_live(each)), None)
    if under_way is not None:
        raise Refused(
            f"{merge.id} is being reverted already, by {under_way.id} ({under_way.task}).",
            hint=f"covey merge why {under_way.id} tells how far that is.",
        )
    _check_none_is_open(call, merge)
    reason = line(asked.reason, "The reason", MAX_NOTE) if asked.reason else ""
    body = _body(f"{task.id} ({merge.id}, commit {merge.landed})", call.context.config.target, reason)
    wish = AddTask(title=f"Revert {task.id}: {task.title}"[:MAX_TITLE], body=body, priority=task.priority)
    call.worker(OWNER)
    added = add_task(call.by_covey(), wish, ())  # its body is covey's, and no script
    new = change(call, added, tasks.claim(added, OWNER), OWNER)
    branch = task_branch(new.id)
    work = merges.Queued(task=new.id, session=OWNER, branch=branch, reverts=merge.id, reopen=asked.reopen, why=reason)
    return MergeRow.of(hand_in_change(call, new, work))


def _check_none_is_open(call: Call, merge: Merge) -> None:
    """Refuse a second revert while the task of the first, which did not land, may still be done."""
    for tried in call.tx.reverts_of(merge.id):
        task = find(call.tx, tried.task)
        if task.status not in ENDED:
            raise Refused(
                f"{merge.id} is being reverted already, by {task.id}, which is {task.status}: {tried.id} did not land.",
                hint=f"covey merge retry {tried.id} tries that again; covey task drop {task.id} REASON ends it.",
            )


def _instead(merge: Merge) -> str:
    if merge.state in merges.OPEN:
        return f"covey merge drop {merge.id} takes it out of the queue."
    return f"covey merge show {merge.id} tells what became of it."


def settle(call: Call, merge: Merge) -> None:
    """Once a merge has landed: if its task takes other work out of main, write that, and open that task if asked to.

    Done again it changes nothing.
    """
    first = call.tx.revert_for(merge.task)
    original = None if first is None else _reverted(call, first)
    if first is None or original is None or original.state is not MergeState.LANDED or merge.landed is None:
        return
    step(call, original, merges.Reverted(merge.landed), COVEY)
    _bring_back(call, original, merge)
    told = call.tx.last_event(first.id, "merge.queued")
    event = None if told is None else decode_payload(told.kind, told.data)
    task = call.tx.task(original.task)
    if isinstance(event, merges.Queued) and event.reopen and task is not None and task.status is Status.DONE:
        where, reason = call.context.config.target, f" Why: {event.why}" if event.why else ""
        note = f"Its work was taken out of {where} again by {merge.task} in {merge.landed[:12]}.{reason}"
        change(call, task, tasks.Edited(status=Status.TODO, note=note[:MAX_NOTE]), COVEY)


def _bring_back(call: Call, undone: Merge, by: Merge) -> None:
    """Where a revert was reverted, write that the work is on main again which that had taken out."""
    back = _reverted(call, undone)
    if back is None or back.state is not MergeState.REVERTED or back.landed is None or by.landed is None:
        return
    step(call, back, merges.Landed(back.landed, back.landing), COVEY)
    out = _reverted(call, back)
    if out is not None and out.state is MergeState.LANDED:  # what came back is itself a revert
        step(call, out, merges.Reverted(by.landed), COVEY)
        _bring_back(call, out, by)
    task, last = call.tx.task(back.task), call.tx.last_merge(back.task)
    if task is None or task.status in ENDED or last is None:
        return
    where = call.context.config.target
    note = f"Its work is on {where} again: {by.task} took back in {by.landed[:12]} that it was taken out."
    task = change(call, task, tasks.Edited(note=note), COVEY)
    if last.id == back.id and task.status in (*WAITING, Status.BLOCKED):
        change(call, task, tasks.Done("landed", back.landed), COVEY)


def _reverted(call: Call, merge: Merge) -> Merge | None:
    """Return the merge that the task of another takes out of main, None if it is not a revert."""
    first = call.tx.revert_for(merge.task)
    return None if first is None or first.reverts is None else call.tx.get(merges.Merge, first.reverts)


def _body(what: str, target: str, reason: str) -> str:
    """Return the text of the task that takes work out of main again."""
    return (
        f"Take the work of {what} out of {target} again."
        + (f"\nWhy: {reason}" if reason else "")
        + "\ncovey does this itself if git can. If it was sent back, something that landed since is built on that work:"
        " revert it by hand, and keep what came later working."
    )
