"""The inbox: all that waits for a person, from wherever it comes, in one list."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from covey.app import mail, proposals
from covey.app.reasons import Sight, last_alert, line_of, look, mending
from covey.app.shapes.forms import Nothing
from covey.app.shapes.proposals import ProposalRow, ProposedChange
from covey.app.verbs import Call, verb
from covey.app.waiting import Look
from covey.core import inbox
from covey.core.inbox import Item, Kind
from covey.core.judge import in_short, last_error
from covey.core.merges import State
from covey.core.rights import OWNER_ONLY, is_vouched_for
from covey.core.sessions import COVEY, OWNER, Session
from covey.core.sessions import State as SessionState
from covey.core.tasks import Status, Task
from covey.core.waiting import Cause
from covey.store import rows

MOST = 1000
"""Items of one kind that are listed."""
NOTHING = "(nothing)"
TEXT = 4000
"""Characters of a message that are shown in place."""


class InboxRow(Struct, frozen=True, kw_only=True):
    """One thing that waits for a person; what several ask alike is one, with all their `ids` and `sessions`.

    `ids` are what a decision is sent to: questions, a task, a merge, sessions, a message; none for the queue and the
    settings. `until` is when it is decided without a person. Items of one `kind` with the same `cause`, if it is not
    empty, are of one making and can be decided together; `parts` are those who ask the same, each answered alone.
    """

    key: str
    kind: Kind
    cause: str
    title: str
    text: str
    session: str | None
    task: str | None
    since: float
    until: float | None
    ids: tuple[str, ...]
    sessions: tuple[str, ...]
    tasks: tuple[str, ...]
    parts: tuple[inbox.Part, ...]
    tool: str
    about: str
    rule: str
    allows: str
    choices: tuple[str, ...]
    decisions: tuple[str, ...]


@verb("inbox.list", "GET /api/inbox", Nothing, list[InboxRow], may=OWNER_ONLY)
def list_inbox(call: Call, asked: Nothing) -> list[InboxRow]:
    """List what waits for a person, the oldest first: questions, blocked tasks, merges, stuck sessions and more."""
    return [InboxRow(**item.__dict__) for item in inbox.together(_items(call))]


def _items(call: Call) -> Iterator[Item]:
    questions = call.tx.open_questions()[:MOST]
    yield from map(inbox.of_question, questions)
    yield from _blocked(call)
    yield from _unvouched(call)
    sight = look(call)
    yield from _merges(sight)
    yield from _queue(call, sight)
    yield from _sessions(call, {question.session for question in questions})
    yield from _mail(call)
    yield from _proposals(call)
    yield from _waits(call)
    if call.house.complaint is not None:
        what, since = call.house.complaint
        title = "covey.toml makes no sense; the settings from before hold"
        yield Item(key="setting", kind=Kind.SETTING, title=title, text=what, since=since)


def _blocked(call: Call) -> Iterator[Item]:
    for task in call.tx.board(status=Status.BLOCKED, session=None, limit=MOST, after=None):
        yield Item(
            key=f"task:{task.id}",
            kind=Kind.BLOCKED,
            cause=inbox.cause_of(_trouble(task), task.id),
            title=task.title,
            text=task.reason or "",
            task=task.id,
            since=task.updated,
            ids=(task.id,),
            tasks=(task.id,),
            decisions=("reopen", "drop"),
        )


def _trouble(task: Task) -> str:
    """Return what blocks a task: the error of its last try if that is why, however often it was tried."""
    last = task.tries[-1] if task.tries else None
    tried = last is not None and last.has_failed and last.at == task.updated
    return (last_error(last.what) or in_short(last.what)) if last is not None and tried else task.reason or ""


def _unvouched(call: Call) -> Iterator[Item]:
    """Yield tasks that sessions wrote, where every agent runs a task's text as a script and so passes over them."""
    workers = call.tx.run_sessions()
    scripts = [session.name for session in workers if not mail.reads(call, session)]
    waiting = call.tx.board(status=Status.TODO, session=None, limit=MOST, after=None) if scripts else []
    for task in waiting if len(scripts) == len(workers) else ():
        if task.author in (OWNER, COVEY) or is_vouched_for(call.tx.words_of(task.id)):
            continue
        yield Item(
            key=f"task:{task.id}",
            kind=Kind.BLOCKED,
            cause=f"unvouched:{inbox.digest(task.author)}",
            title=task.title,
            text=f"{task.author} wrote it, so {scripts[0]} does not run its text as a script until you give it to "
            f"somebody: covey task edit {task.id} --assignee {scripts[0]}",
            task=task.id,
            since=task.updated,
            ids=(task.id,),
            tasks=(task.id,),
            decisions=("drop",),
        )


def _waits(call: Call) -> Iterator[Item]:
    """Yield what keeps tasks from being taken until a person changes it: each cause once, with all its tasks."""
    for wait in Look(call).lane_waits(MOST):
        if wait.person:
            yield Item(
                key=f"waits:{wait.cause}:{inbox.digest(*wait.lanes)}",
                kind=Kind.WAITS,
                title=wait.text.rstrip("."),
                text=wait.command,
                since=wait.since,
                ids=tuple(wait.sessions) if wait.cause is Cause.STOPPED else (),
                sessions=tuple(wait.sessions),
                tasks=tuple(wait.tasks),
                decisions=("start",) if wait.cause is Cause.STOPPED else (),
            )


def _merges(sight: Sight) -> Iterator[Item]:
    for merge in sight.open.values():
        line = line_of(sight, merge)
        if not line.person:
            continue
        asks = merge.state in (State.REVIEW, State.QUEUED)
        yield Item(
            key=f"merge:{merge.id}",
            kind=Kind.APPROVE if asks else Kind.LANDING,
            title=line.title,
            text=line.waits or merge.reason or "",
            session=merge.session,
            task=merge.task,
            since=merge.queued,
            ids=(merge.id,),
            sessions=(merge.session,),
            tasks=(merge.task,),
            decisions=("approve", "reject") if asks else ("why", "drop"),
        )


def _queue(call: Call, sight: Sight) -> Iterator[Item]:
    """Yield what keeps the queue from testing, from moving main or from reaching the remote."""
    now, fleet = sight.standing, call.tx.fleet()
    if now.halted:
        told = last_alert(call, "main_red")
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
    if sight.broken:
        told = last_alert(call, "gate_broken")
        text = f"{sight.broken} Nothing lands until that is mended: {mending(sight.broken)}."
        yield _stop("gate", "The gate cannot be run", text, call.tx.now if told is None else told.raised, ("resume",))
    yield from _troubles(call, sight)


def _troubles(call: Call, sight: Sight) -> Iterator[Item]:
    """Yield what a person was told of the queue, and nothing since shows that it is over."""
    told = last_alert(call, "not_pushed") if call.house.config.merge.push else None
    if told is not None and not call.tx.find(rows.LANDINGS, "WHERE pushed > ? LIMIT 1", (told.raised,)):
        yield _stop("push", "What landed is not pushed", told.message, told.raised)
    if sight.stuck is not None:
        title = "The merge queue cannot go on"
        text = sight.stuck.message.removeprefix(f"{title}: ")
        yield _stop("stuck", title, text, sight.stuck.raised)


def _stop(name: str, title: str, text: str, since: float, decisions: tuple[str, ...] = ()) -> Item:
    return Item(key=f"queue:{name}", kind=Kind.QUEUE, title=title, text=text, since=since, decisions=decisions)


def _sessions(call: Call, asking: set[str]) -> Iterator[Item]:
    for session in call.tx.run_sessions():
        if inbox.is_stuck(session, asking):
            held = call.tx.held_by(session.name)
            yield inbox.of_session(session, held[0].id if held else None, _lasting_cause(call, session))


def _lasting_cause(call: Call, session: Session) -> str:
    """Return what keeps a session from starting if that stays the same while its words change."""
    _, wait = call.house.why(session.name)
    return str(wait.cause) if wait is not None and wait.about and session.state is SessionState.LIMITED else ""


def _proposals(call: Call) -> Iterator[Item]:
    """Yield what sessions ask a person to do, with what that would change."""
    for row in proposals.open_rows(call, MOST):
        task = None if row.target is None or call.tx.task(row.target) is None else row.target
        yield Item(
            key=f"proposal:{row.id}",
            kind=Kind.PROPOSAL,
            title=f"proposes to {row.what}",
            text=_proposed(row),
            session=row.session,
            task=task,
            since=row.made,
            ids=(row.id,),
            sessions=(row.session,),
            tasks=() if task is None else (task,),
            decisions=("accept-anyway" if row.stale else "accept", "decline"),
        )


def _proposed(row: ProposalRow) -> str:
    """Return what is proposed; of a text that is too long for its place, how much more there is and who shows it."""
    stale = [f"{row.target or 'What it is about'} has changed since."] if row.stale else []
    text = "\n".join([row.why, *stale, *(f"{each.field}: {_from(each)}{_inset(each.to)}" for each in row.changes)])
    if len(text) <= TEXT:
        return text
    return f"{text[:TEXT]}\n[{len(text) - TEXT:,} more characters: covey proposal show {row.id} shows all of it]"


def _from(change: ProposedChange) -> str:
    if not change.was and not change.now:
        return ""
    now = _inset(change.now)
    since = "" if change.was == change.now else f" (it was {_inset(change.was)} when that was proposed)"
    return f"{now}{since} \u2192 "


def _inset(text: str) -> str:
    """Return a value in which no line can pose as another field."""
    return "\n    ".join(text.splitlines()) or NOTHING


def _mail(call: Call) -> Iterator[Item]:
    acked = "SELECT 1 FROM readings WHERE message = messages.id AND reader = ? AND acked IS NOT NULL"
    where = f'WHERE "to" = ? AND wants_ack = 1 AND NOT EXISTS ({acked}) ORDER BY ordinal LIMIT ?'
    for message in call.tx.find(rows.MESSAGES, where, (OWNER, OWNER, MOST)):
        yield Item(
            key=f"mail:{message.id}",
            kind=Kind.MAIL,
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
