"""The inbox: all that waits for a person, from wherever it comes, in one list."""

from __future__ import annotations

from collections.abc import Iterator

from covey.app.board.waiting import Look
from covey.app.context import Call
from covey.app.merging.merge_reasons import line_of, look
from covey.app.people import proposals
from covey.app.people.proposals import ProposalRow, ProposedChange
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.core.board.tasks import Status, Task
from covey.core.board.waiting import Cause
from covey.core.fleet.outcomes import in_short, last_error
from covey.core.fleet.sessions import OWNER, SessionState
from covey.core.merging.merges import MergeState
from covey.core.merging.queue_view import UNTESTED, QueueView
from covey.core.people import inbox
from covey.core.people.alerts import AlertKind
from covey.core.people.inbox import InboxItem, InboxKind
from covey.core.people.proposals import Proposal
from covey.core.people.rights import OWNER_ONLY

MAX_PER_KIND = 1000
"""How many items of one kind are listed."""
NOTHING = "(nothing)"
TEXT = 4000
"""Characters of a message that are shown in place."""


@verb("inbox.list", "GET /api/inbox", Nothing, list[InboxItem], may=OWNER_ONLY)
def list_inbox(call: Call, asked: Nothing) -> list[InboxItem]:
    """List what waits for a person, the oldest first: questions, blocked tasks, merges, stuck sessions and more."""
    return inbox.together(_items(call))


def _items(call: Call) -> Iterator[InboxItem]:
    questions = call.tx.open_questions()[:MAX_PER_KIND]
    yield from map(inbox.of_question, questions)
    yield from _blocked(call)
    waiting = Look(call)
    yield from _no_scripts(call, waiting)
    view = look(call)
    yield from _merges(view)
    yield from _queue(call, view)
    yield from _sessions(call, {question.session for question in questions})
    yield from _mail(call)
    yield from _proposals(call)
    yield from _waits(waiting)
    if call.context.complaint is not None:
        what, since = call.context.complaint
        title = "covey.toml is not valid; the previous settings stay in force"
        yield InboxItem(key="setting", kind=InboxKind.SETTING, title=title, text=what, since=since)


def _blocked(call: Call) -> Iterator[InboxItem]:
    for task in call.tx.board(status=Status.BLOCKED, session=None, limit=MAX_PER_KIND, after=None):
        yield _of_task(task, inbox.cause_of(_trouble(task), task.id), task.reason or "", ("reopen", "drop"))


def _of_task(task: Task, cause: str, text: str, decisions: tuple[str, ...]) -> InboxItem:
    return InboxItem(
        key=f"task:{task.id}",
        kind=InboxKind.BLOCKED,
        cause=cause,
        title=task.title,
        text=text,
        task=task.id,
        since=task.updated,
        ids=(task.id,),
        tasks=(task.id,),
        decisions=decisions,
    )


def _trouble(task: Task) -> str:
    """Return what blocks a task: the error of its last try if that is why, however often it was tried."""
    last = task.tries[-1] if task.tries else None
    if last is None or not last.has_failed or last.at != task.updated:
        return task.reason or ""
    return last_error(last.what) or in_short(last.what)


def _no_scripts(call: Call, waiting: Look) -> Iterator[InboxItem]:
    """Yield tasks that are no scripts, where all who could take them run a task's text as one and so pass over them."""
    if not any(map(waiting.is_script, call.tx.run_sessions())):
        return
    for task in call.tx.board(status=Status.TODO, session=None, limit=MAX_PER_KIND, after=None):
        reason = waiting.no_script(task)
        if reason is None:
            continue
        text = _NO_SCRIPT[reason.cause].format(task=task.id, author=task.author, first=reason.sessions[0])
        yield _of_task(task, f"{reason.cause}:{inbox.digest(task.author)}", text, ("drop",))


_NO_SCRIPT = {
    Cause.PROSE: "It is written for somebody who reads; {first} would run it as a script: covey task claim {task} "
    "gives it to you, and covey session new --agent NAME --start adds an agent that reads",
    Cause.UNVOUCHED: "{author} wrote it, so {first} does not run its text as a script until you give it to somebody: "
    "covey task edit {task} --assignee {first}",
    Cause.NO_BODY: "{task} has no body, and {first} runs bodies: covey task edit {task} --body TEXT",
}


def _waits(waiting: Look) -> Iterator[InboxItem]:
    """Yield what keeps tasks from being taken until a person changes it: each cause once, with all its tasks."""
    for wait in waiting.lane_waits(MAX_PER_KIND):
        if wait.person:
            yield InboxItem(
                key=f"waits:{wait.cause}:{inbox.digest(*wait.lanes)}",
                kind=InboxKind.WAITS,
                title=wait.text.rstrip("."),
                text=wait.command,
                since=wait.since,
                ids=tuple(wait.sessions) if wait.cause is Cause.STOPPED else (),
                sessions=tuple(wait.sessions),
                tasks=tuple(wait.tasks),
                decisions=("start",) if wait.cause is Cause.STOPPED else (),
            )


def _merges(view: QueueView) -> Iterator[InboxItem]:
    for merge in view.open.values():
        line = line_of(view, merge)
        if not line.person:
            continue
        asks = merge.state in (MergeState.REVIEW, MergeState.QUEUED)
        untested = merge.state is MergeState.QUEUED
        yield InboxItem(
            key=f"merge:{merge.id}",
            kind=InboxKind.APPROVE if asks else InboxKind.LANDING,
            title=line.title,
            text=line.waits or merge.reason or "",
            untested=untested,
            why=merge.reason or (f"{UNTESTED}." if untested else ""),
            session=merge.session,
            task=merge.task,
            since=merge.queued,
            ids=(merge.id,),
            sessions=(merge.session,),
            tasks=(merge.task,),
            decisions=("approve", "reject") if asks else ("why", "drop"),
        )


def _queue(call: Call, view: QueueView) -> Iterator[InboxItem]:
    """Yield what keeps the queue from testing, from moving main or from reaching the remote."""
    now, fleet = view.standing, call.tx.fleet()
    if now.halted:
        told = call.tx.last_alert(AlertKind.MAIN_RED)
        since = call.tx.now if told is None else told.raised
        yield _stop("halted", "The merge queue has halted", now.halted, since, ("resume",))
    if now.paused:
        title = f"The merge queue was paused by {now.paused_by or 'somebody'}"
        yield _stop("paused", title, now.paused_why or "", now.paused_since or call.tx.now, ("resume",))
    if now.frozen:
        title = f"Main was frozen by {now.frozen_by or 'somebody'}"
        yield _stop("frozen", title, now.frozen_why or "", now.frozen_since or call.tx.now, ("thaw",))
    if fleet.paused:
        title = f"The whole fleet was paused by {fleet.by or 'somebody'}"
        yield _stop("fleet", title, "", fleet.since or call.tx.now, ("resume-fleet",))
    if view.broken:
        told = call.tx.last_alert(AlertKind.GATE_BROKEN)
        yield _stop(
            "gate",
            "The gate cannot be run",
            view.broken.told,
            call.tx.now if told is None else told.raised,
            ("resume",),
        )
    yield from _troubles(call, view)


def _troubles(call: Call, view: QueueView) -> Iterator[InboxItem]:
    """Yield what a person was told of the queue, and nothing since shows that it is over."""
    told = call.tx.last_alert(AlertKind.NOT_PUSHED) if call.context.config.merge.push else None
    if told is not None and not call.tx.has_pushed_since(told.raised):
        yield _stop("push", "What landed is not pushed", told.message, told.raised)
    if view.stuck is not None:
        title = "The merge queue cannot go on"
        yield _stop("stuck", title, view.stuck.message.removeprefix(f"{title}: "), view.stuck.raised)


def _stop(name: str, title: str, text: str, since: float, decisions: tuple[str, ...] = ()) -> InboxItem:
    return InboxItem(
        key=f"queue:{name}", kind=InboxKind.QUEUE, title=title, text=text, since=since, decisions=decisions
    )


def _sessions(call: Call, asking: set[str]) -> Iterator[InboxItem]:
    for session in call.tx.run_sessions():
        if inbox.is_stuck(session, asking):
            held = call.tx.held_by(session.name)
            _, wait = call.context.fleet.why(session.name)
            lasts = wait is not None and wait.lasts and session.state is SessionState.LIMITED
            cause = str(wait.cause) if wait is not None and lasts else ""
            yield inbox.of_session(session, held[0].id if held else None, cause)


def _proposals(call: Call) -> Iterator[InboxItem]:
    """Yield what sessions ask a person to do, with what that would change."""
    for proposal in call.tx.open_proposals(limit=MAX_PER_KIND):
        row = proposals.row(call, proposal)
        task = None if proposal.target is None or call.tx.task(proposal.target) is None else proposal.target
        yield InboxItem(
            key=f"proposal:{proposal.id}",
            kind=InboxKind.PROPOSAL,
            title=f"proposes to {row.what}",
            text=_proposed(proposal, row),
            session=proposal.session,
            task=task,
            since=proposal.made,
            ids=(proposal.id,),
            sessions=(proposal.session,),
            tasks=() if task is None else (task,),
            decisions=("accept-anyway" if row.stale else "accept", "decline"),
        )


def _proposed(proposal: Proposal, row: ProposalRow) -> str:
    """Return what is proposed; of a text that is too long for its place, how much more there is and who shows it."""
    stale = [f"{proposal.target or 'What it is about'} has changed since."] if row.stale else []
    text = "\n".join([proposal.why, *stale, *(f"{each.field}: {_from(each)}{_inset(each.to)}" for each in row.changes)])
    if len(text) <= TEXT:
        return text
    return f"{text[:TEXT]}\n[{len(text) - TEXT:,} more characters: covey proposal show {proposal.id} shows all of it]"


def _from(change: ProposedChange) -> str:
    if not change.was and not change.now:
        return ""
    now = _inset(change.now)
    since = "" if change.was == change.now else f" (it was {_inset(change.was)} when that was proposed)"
    return f"{now}{since} \u2192 "


def _inset(text: str) -> str:
    """Return a value in which no line can pose as another field."""
    return "\n    ".join(text.splitlines()) or NOTHING


def _mail(call: Call) -> Iterator[InboxItem]:
    for message in call.tx.unacked_messages(OWNER, MAX_PER_KIND):
        yield InboxItem(
            key=f"mail:{message.id}",
            kind=InboxKind.MAIL,
            title=message.subject or "wants to know that you have read this",
            text=call.tx.text(message.text)[:TEXT],
            session=message.sender,
            task=message.task,
            since=message.sent,
            ids=(message.id,),
            sessions=(message.sender,),
            tasks=() if message.task is None else (message.task,),
            decisions=("ack", "reply"),
        )
