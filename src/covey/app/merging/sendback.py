"""Back to the author: rejected work becomes work again for the session that wrote it, or waits for a person."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from covey.app.board.task_changes import change, step
from covey.app.board.tries import block_if_tried_often, need_person
from covey.app.context import Call
from covey.core.board import tasks
from covey.core.board.tasks import Status, Task
from covey.core.fleet.sessions import COVEY, Goal, goes_on
from covey.core.merging import checks, merges, rejection
from covey.core.merging import gates as gate_life
from covey.core.merging.gates import Gate
from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.rejection import Clash, Commit, Other, RejectedWork, Since
from covey.store.engine import rows
from covey.values import dataclass

REBASES = ("rebase", "ff")
MAX_GATES, MAX_LANDINGS, MAX_MERGES = 50, 200, 300
"""How far back is looked for a test that the work passed, for what landed since then, and for whose a commit is."""


@dataclass(frozen=True)
class RejectionCause:
    """Why a merge does not land: the tests that it failed, whom it does not go together with, what git says."""

    cause: str = ""
    gates: Sequence[str] = ()
    blame: Sequence[str] = ()
    since: Since | None = None
    clash: Clash | None = None
    words: str = ""
    """What is wrong, if it is neither a failed gate nor a conflict."""
    advice: Sequence[str] = ()
    """What to do then."""


def rejected(call: Call, merge: Merge, why: RejectionCause) -> Merge | None:
    """Reject a merge, and give its task back to its author, first in line and with the whole story.

    Who fails in the same way again, hands in nothing new, or was tried too often, needs a person instead. None, and
    nothing has changed, if the merge has ended meanwhile.
    """
    now = call.tx.get(merges.Merge, merge.id)
    if now is None or now.state not in merges.OPEN:
        return None
    back = _back(call, now, why)
    reason, before = rejection.reason(back), call.tx.merge_before(now)
    event = merges.Rejected(reason, why.cause, rejection.fingerprint(back), tuple(why.gates), tuple(why.blame))
    after = step(call, now, event, COVEY)
    task = call.tx.task(now.task)
    if task is None or task.status not in (Status.MERGING, Status.REVIEW):
        return after
    anyone_works = any(each.goal is Goal.WORKING and not each.removed for each in call.tx.run_sessions())
    stuck = None
    if before is not None and rejection.is_retry(task, before):
        stuck = rejection.why_retry_is_vain(before, after)
    sent = free_if_author_gone(call, change(call, task, tasks.reject(task, now.session, rejection.story(back)), COVEY))
    if stuck is None and sent.front is None and not anyone_works:
        stuck = "No session is at work that could fix it"
    if stuck is not None:
        need_person(call, sent, f"{stuck}: {reason}")
    else:
        block_if_tried_often(call, sent, reason)
    return after


def stumbled(call: Call, merge_id: str, what: str, most: int) -> None:
    """Write that the queue failed on a merge, which waits for another try; after `most` of them it is given up.

    They are counted in the log, from the last approval on: a daemon that was restarted goes on counting.
    """
    now = call.tx.get(merges.Merge, merge_id)
    if now is None or now.state not in merges.OPEN:
        return
    approved = call.tx.last_event(merge_id, "merge.approved")
    told = call.tx.events(subject=merge_id, kind="merge.waits", after=0 if approved is None else approved.seq)
    payloads = (rows.decode_payload(each.kind, each.data) for each in told)
    times = 1 + sum(isinstance(each, merges.Waits) and each.failed > 0 for each in payloads)
    if times >= most:
        _give_up(call, now, f"The merge queue failed {times} times in a row on it, and goes on without it: {what}")
    elif now.state is not MergeState.REVIEW:
        why = f"The merge queue failed on it, and tries again ({times} of {most} times): {what}"
        step(call, now, merges.Waits(why, failed=times), COVEY)


def _give_up(call: Call, now: Merge, why: str) -> None:
    """Take a merge out of the queue with which nothing can be done, and block its task by name until a person looks."""
    reason = rejection.reason(RejectedWork(merge=now.id, cause="", main=call.context.config.target, words=why))
    step(call, now, merges.Rejected(reason), COVEY)
    task = call.tx.task(now.task)
    if task is not None and task.status in (Status.MERGING, Status.REVIEW):
        sent = change(call, task, tasks.reject(task, now.session, f"{reason} So {now.id} did not land."), COVEY)
        need_person(call, free_if_author_gone(call, sent), reason)


def free_if_author_gone(call: Call, task: Task) -> Task:
    """Let anyone mend rejected work whose author is gone or no longer works."""
    if task.front is None or goes_on(call.tx.session(task.front)):
        return task
    return change(call, task, tasks.Edited(cleared=("front",)), COVEY)


# What is told


def _back(call: Call, merge: Merge, why: RejectionCause) -> RejectedWork:
    """Gather what the store knows of a merge that does not land."""
    config = call.context.config
    failed = [gate for each in why.gates if (gate := call.tx.get(Gate, each)) is not None]
    passed = _passed(call, merge)
    suspects = [] if passed is None else _landed_since(call, passed)
    told = _ranked(call, merge, why, suspects, failed)
    return RejectedWork(
        merge=merge.id,
        cause=why.cause,
        main=config.target,
        check=config.merge.check,
        commands=tuple((each.name, each.run) for each in checks.checks_for(config.merge, None)),
        rebases=config.merge.policy in REBASES,
        gates=tuple(failed),
        passed=passed,
        suspects=tuple(each.task for each in suspects),
        clash=why.clash,
        met=_met(call, why),
        since=why.since,
        others=tuple(_other(call, each) for each in told[: rejection.MAX_OTHERS]),
        more=len(told[rejection.MAX_OTHERS :]),
        words=why.words,
        advice=tuple(why.advice),
    )


def _passed(call: Call, merge: Merge) -> Gate | None:
    """Return a test that the work passed, rather one in which it was alone."""
    found = [gate for gate in call.tx.gates_of(merge.id, MAX_GATES) if gate.state is gate_life.GateState.PASSED]
    return min(found, key=lambda gate: (len(gate.merges), -gate.ordinal), default=None)


def _landed_since(call: Call, passed: Gate) -> list[Merge]:
    """Return what landed after the value of main that a test was on, and was not part of it; nothing if unknown."""
    found: list[str] = []
    for landing in call.tx.last_landings(MAX_LANDINGS):
        if landing.commit == passed.base:
            break
        found += landing.merges
        if landing.before == passed.base:
            break
    else:
        return []
    ours = set(passed.merges)
    rows_of = (call.tx.get(merges.Merge, each) for each in found if each not in ours)
    return [merge for merge in rows_of if merge is not None]


@dataclass(frozen=True)
class _Landed:
    """A merge that landed meanwhile, or is to blame, with its commits on main and why it is told of."""

    merge: Merge
    commits: tuple[Commit, ...] = ()
    why: str = ""


def _landed(call: Call, since: Since | None) -> list[_Landed]:
    """Return the merges whose commits main has and the branch has not, the newest first."""
    if since is None:
        return []
    ended = {each.landed: each for each in call.tx.last_ended_merges(MAX_MERGES) if each.landed is not None}
    parts: dict[str, list[Commit]] = {}
    owner: Merge | None = None
    for commit in since.commits:
        if commit.hash in ended or (owner is not None and commit.hash == owner.onto):
            owner = ended.get(commit.hash)
        if owner is not None:
            parts.setdefault(owner.id, []).append(commit)
    by_id = {each.id: each for each in ended.values()}
    return [_Landed(by_id[each], tuple(commits)) for each, commits in parts.items()]


def _met(call: Call, why: RejectionCause) -> tuple[str, ...]:
    """Return who changed the files of a conflict on main meanwhile: tasks with their merges, or commits by hand."""
    if why.clash is None or why.since is None:
        return ()
    files = set(why.clash.files)
    owners = {commit.hash: each.merge for each in _landed(call, why.since) for commit in each.commits}
    found: dict[str, None] = {}
    for commit in why.since.commits:
        if rejection.shared_paths(commit.paths, files):
            owner = owners.get(commit.hash)
            found[f"commit {commit.hash[:12]}" if owner is None else f"{owner.task} ({owner.id})"] = None
    return tuple(found)


def _ranked(
    call: Call, merge: Merge, why: RejectionCause, suspects: Sequence[Merge], failed: Sequence[Gate]
) -> list[_Landed]:
    """Return who is to be told of: first whom it was blamed on, then whoever touched the same, then the rest."""
    landed = _landed(call, why.since)
    known = {each.merge.id: each.commits for each in landed}
    blamed = [found for each in why.blame if (found := call.tx.get(merges.Merge, each)) is not None]
    told = [_Landed(each, known.get(each.id, ()), "it does not go together with yours") for each in blamed]
    told += [_Landed(each, known.get(each.id, ()), "it landed after yours had passed") for each in suspects]
    ours = set(why.clash.files) if why.clash else set(why.since.paths) if why.since else set()
    output = "\n".join(text for gate in failed for text in (gate.summary, *gate.failures))
    touching = [replace(each, why=_touches(each, ours, output)) for each in landed]
    told += [*(each for each in touching if each.why), *landed]
    once = {each.merge.id: each for each in reversed(told)}  # of several reasons, the first counts
    return [each for each in told if each is once[each.merge.id] and each.merge.id != merge.id]


def _touches(landed: _Landed, ours: Set[str], output: str) -> str:
    """Say by which paths a merge has to do with the work that is sent back, if it has."""
    paths = sorted({path for commit in landed.commits for path in commit.paths})
    if shared := rejection.shared_paths(paths, ours):
        return f"it changed {', '.join(shared[:5])} too"
    named = [path for path in paths if path in output]
    return f"it changed {', '.join(named[:5])}, which the output names" if named else ""


def _other(call: Call, each: _Landed) -> Other:
    task = call.tx.task(each.merge.task)
    text = "" if task is None else call.tx.text(task.body)
    return Other(
        task=each.merge.task,
        title="" if task is None else task.title,
        text=text,
        session=each.merge.session,
        why=each.why,
        commits=each.commits,
    )
