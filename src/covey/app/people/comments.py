"""The verbs of comments on work: write, edit, remove and send them, and see whether they were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from covey.app.board.task_changes import change, step
from covey.app.context import Call, find
from covey.app.merging.review import locate, main_of, where_work_is
from covey.app.merging.sendback import free_if_author_gone
from covey.app.people.mail import why_it_waits
from covey.app.shapes.forms import Answered, Asked, Commit, Nothing, Path, TaskId, completed, fields_of
from covey.app.verbs import verb
from covey.core.board import tasks
from covey.core.board.tasks import Status, Task
from covey.core.fleet.sessions import OWNER, Goal, Session, SessionKind
from covey.core.merging import merges
from covey.core.nouns import missing
from covey.core.people import comments, mail
from covey.core.people.comments import Comment, OutgoingComment, Place, Side
from covey.core.people.rights import OWN, OWNER_ONLY
from covey.core.texts import redact
from covey.errors import Refused
from covey.values import dataclass

if TYPE_CHECKING:
    from covey.git.project import Project
    from covey.git.review import TaskWork

MAX_LISTED = 1000
"""Comments that are listed."""
REASON = 500
WAITS = (Status.REVIEW, Status.MERGING, Status.BLOCKED)
"""Where work stands that can be sent back."""

Found = tuple[Place, int | None]
Said = Annotated[str, Meta(min_length=1, max_length=16_384)]
Number = Annotated[int, Meta(ge=1, le=2**31)]
CommentId = Annotated[str, Meta(min_length=1, max_length=64)]


class ListComments(Asked, frozen=True, kw_only=True):
    """Those of one task, or all drafts; `tip` and `base`: where their lines are in these, not in its own work."""

    task: TaskId | None = None
    tip: Commit | None = None
    base: Commit | None = None


class WriteComment(Asked, frozen=True, kw_only=True):
    """A draft: on a line of a file as it is, or with `side` old was, in a commit; else on the file, or on it all.

    `quote` is the line, for one that is not committed yet. A line of a commit that is not the task's own, such as that
    of several tasks together, is carried to its work.
    """

    task: TaskId
    text: Said
    path: Path | None = None
    side: Side = Side.NEW
    line: Number | None = None
    lines: Annotated[int, Meta(ge=1, le=10_000)] = 1
    commit: Commit | None = None
    quote: Annotated[str, Meta(max_length=4096)] | None = None


class EditComment(Asked, frozen=True, kw_only=True):
    """What a draft says now."""

    text: Said


class SendComments(Asked, frozen=True, kw_only=True):
    """Which drafts on a task, else all of them, with some words; `back`: the work goes back to its author with them."""

    task: TaskId
    ids: Annotated[list[CommentId], Meta(max_length=1000)] | None = None
    text: Annotated[str, Meta(max_length=16_384)] = ""
    back: bool = False


@completed(fields_of(Comment, "ordinal", "removed", "text"))
class CommentRow(Answered, frozen=True, kw_only=True):
    """A comment, where its line is by now (`place`, `now`), and whether its reader has it (`state`)."""

    id: str
    text: str
    place: Place | None
    now: int | None
    state: str
    delivered: float | None
    read: float | None
    acked: float | None


class SentComments(Struct, frozen=True, kw_only=True):
    """What became of comments that were sent: to whom, in which messages, and why they wait, if they do."""

    task: str
    status: Status
    to: str | None
    messages: list[str]
    waits: str | None
    comments: list[CommentRow]


# Looking


def _look(call: Call, asked: ListComments) -> Callable[[], dict[str, Found]] | None:
    """Return the look at where the lines of comments are by now."""
    project, target = call.context.repository, call.context.config.target
    found = [each for each in _listed(call, asked.task) if each.path is not None and each.line is not None]
    if project is None or not found:
        return None
    known = call.tx.tasks_named({each.task for each in found})
    places = {task.id: where_work_is(call, task) for task in known.values()}

    def look() -> dict[str, Found]:
        main = main_of(project, target)
        works = {task: work for task, place in places.items() if (work := locate(project, main, place)) is not None}
        return _seen(project, asked, found, works)

    return look


def _seen(
    project: Project, asked: ListComments, found: Sequence[Comment], works: Mapping[str, TaskWork]
) -> dict[str, Found]:
    """Return where lines are in the works for their tasks, or in other commits if these are asked for."""
    from covey.git import review

    where = {
        each.id: (works[each.task].base if each.side is Side.OLD else works[each.task].tip, each.path)
        for each in found
        if each.task in works and each.path is not None
    }
    texts = review.lines(project, list(where.values()))
    shifts = cache(partial(review.shifts, project))  # many comments are on one file
    seen: dict[str, Found] = {}
    for each in found:
        if each.id not in where or each.line is None:
            continue
        commit, path = where[each.id]
        place, line = comments.place(texts[commit, path], each.line, each.quote)
        elsewhere = asked.base if each.side is Side.OLD else asked.tip
        if elsewhere is not None and elsewhere != commit and line is not None:
            moved = shifts(path, commit, elsewhere)
            line = None if moved is None else comments.carried(moved, line)
            place = Place.OUTDATED if line is None else place
        seen[each.id] = place, line
    return seen


def _listed(call: Call, task: str | None) -> list[Comment]:
    """Return the comments that are there to be seen: a session sees only what was sent."""
    if task is not None:
        return call.tx.comments_on(task, MAX_LISTED, sent=not call.who.is_owner)
    return call.tx.draft_comments(MAX_LISTED) if call.who.is_owner else []


@verb("comment.list", "GET /api/comments", ListComments, list[CommentRow], may=OWN, ahead=_look)
def list_comments(call: Call, asked: ListComments) -> list[CommentRow]:
    """List the comments on a task, or all drafts, with where their lines are by now and whether they were read."""
    if asked.task is not None:
        find(call.tx, asked.task)
    places: dict[str, Found] = call.seen or {}
    return [_row(call, each, places.get(each.id)) for each in _listed(call, asked.task)]


def _row(call: Call, comment: Comment, found: Found | None = None) -> CommentRow:
    reading = None
    if comment.message is not None and comment.to is not None:
        reading = call.tx.get(mail.Reading, comment.message, comment.to)
    place, now = found or (None, None)
    return CommentRow.of(
        comment,
        text=call.tx.text(comment.text),
        place=place,
        now=now,
        state=_state(comment, reading),
        delivered=None if reading is None else reading.delivered,
        read=None if reading is None else reading.read,
        acked=None if reading is None else reading.acked,
    )


def _state(comment: Comment, reading: mail.Reading | None) -> str:
    if comment.sent is None:
        return "draft"
    if reading is None:
        return "sent"
    return "acked" if reading.acked is not None else "delivered" if reading.delivered is not None else "read"


# Writing


@dataclass(frozen=True)
class _Line:
    """The lines that are commented on, as the work for the task has them; without a quote they are not there."""

    commit: str | None
    quote: str | None = None
    line: int | None = None
    lines: int = 1


def _look_at_line(call: Call, asked: WriteComment) -> Callable[[], _Line | None] | None:
    """Return the look at the line that is commented on."""
    task, project, target = call.tx.task(asked.task), call.context.repository, call.context.config.target
    if task is None or project is None:
        return None
    place = where_work_is(call, task)

    def look() -> _Line | None:
        from covey.git import review
        from covey.git.candidates.candidates import is_ancestor

        work = locate(project, main_of(project, target), place)
        if work is None:
            return None
        own = work.base if asked.side is Side.OLD else work.tip
        commit = asked.commit or own
        if asked.path is None or asked.line is None:
            return _Line(commit)
        text = review.lines(project, [(commit, asked.path)])[commit, asked.path]
        if text is None or asked.line + asked.lines - 1 > len(text):
            return _Line(commit)
        here = _Line(commit, text[asked.line - 1], asked.line, asked.lines)
        return (
            here if commit == own or is_ancestor(project, commit, work.tip) else _own_lines(project, asked, commit, own)
        )

    return look


def _own_lines(project: Project, asked: WriteComment, commit: str, own: str) -> _Line:
    """Return lines of a commit that others have a part in as the task's own work has them."""
    from covey.git import review

    path, line = asked.path or "", asked.line or 1
    shifts = review.shifts(project, path, commit, own)
    found = None if shifts is None else comments.carried_range(shifts, line, asked.lines)
    if found is None:
        return _Line(own)
    text = review.lines(project, [(own, path)])[own, path] or []
    return _Line(own, text[found[0] - 1], *found)


@verb("comment.write", "POST /api/comments", WriteComment, CommentRow, may=OWNER_ONLY, status=201, ahead=_look_at_line)
def write(call: Call, asked: WriteComment) -> CommentRow:
    """Write a comment on the work for a task; it is a draft until it is sent."""
    task = find(call.tx, asked.task)
    if asked.line is not None and asked.path is None:
        raise Refused("A line is one of a file.", hint="Name its path too.")
    seen: _Line | None = call.seen
    if seen is None or seen.quote is None:
        commit = asked.commit if seen is None else seen.commit
        seen = _Line(commit, asked.quote, asked.line, asked.lines)
    if asked.line is not None and seen.quote is None:
        last = asked.line + asked.lines - 1
        lines = f"is no line {last}" if asked.lines == 1 else f"are no lines {asked.line}-{last}"
        hint = f"covey task diff {task.id} shows what there is."
        raise Refused(f"There {lines} in {asked.path} as {task.id} has it.", hint=hint)
    event = comments.Written(
        task=task.id,
        text=call.prose(asked.text, "The comment"),
        commit=seen.commit,
        path=asked.path,
        side=asked.side,
        line=seen.line,
        lines=seen.lines,
        quote=comments.quoted(seen.quote or ""),
    )
    comment = call.tx.begin(Comment, event, call.actor(None))
    return _row(call, comment, None if comment.line is None else (Place.HERE, comment.line))


@verb("comment.edit", "PATCH /api/comments/{id}", EditComment, CommentRow, may=OWNER_ONLY)
def edit(call: Call, asked: EditComment, id: str) -> CommentRow:
    """Say something else in a draft."""
    return _row(call, _put(call, _comment(call, id), comments.Edited(call.prose(asked.text, "The comment"))))


@verb("comment.remove", "POST /api/comments/{id}/remove", Nothing, CommentRow, may=OWNER_ONLY)
def remove(call: Call, asked: Nothing, id: str) -> CommentRow:
    """Throw a draft away."""
    return _row(call, _put(call, _comment(call, id), comments.Removed()))


def _comment(call: Call, comment_id: str) -> Comment:
    found = call.tx.get(comments.Comment, f"comment-{comment_id}" if comment_id.isdecimal() else comment_id)
    if found is None or found.removed is not None:
        raise missing("comment", comment_id)
    return found


def _put(call: Call, comment: Comment, event: comments.Edited | comments.Removed | comments.Sent) -> Comment:
    comments.change(comment, event)
    return call.tx.advance(comment, event, call.actor(None))


# Sending


@verb("comment.send", "POST /api/comments/send", SendComments, SentComments, may=OWNER_ONLY)
def send(call: Call, asked: SendComments) -> SentComments:
    """Send drafts on a task to who wrote its work, in one message; with `back`, let that come back to be mended."""
    task = find(call.tx, asked.task)
    chosen = _chosen(call, task, asked.ids)
    words = redact(asked.text.strip())
    if not chosen and not words:
        raise Refused(f"There is no comment on {task.id} to send.", hint="Write one first.")
    call.worker(OWNER)
    said = [OutgoingComment(each, call.tx.text(each.text)) for each in chosen]
    to, messages, waits = (_send_back if asked.back else _send_mail)(call, task, words, said)
    now = [call.tx.get(Comment, each.comment.id) for each in said]
    return SentComments(
        task=task.id,
        status=find(call.tx, task.id).status,
        to=to,
        messages=messages,
        waits=waits,
        comments=[_row(call, each) for each in now if each is not None],
    )


def _chosen(call: Call, task: Task, ids: Sequence[str] | None) -> list[Comment]:
    if ids is None:
        return [each for each in _listed(call, task.id) if each.is_draft]
    found = [_comment(call, each) for each in dict.fromkeys(ids)]
    for each in found:
        comments.change(each, comments.Sent())
        if each.task != task.id:
            raise Refused(f"{each.id} is about {each.task}, not about {task.id}.")
    return found


def _author(call: Call, task: Task) -> str | None:
    """Return who works on a task, else who did so last."""
    if task.session is not None:
        return task.session
    merge = call.tx.last_merge(task.id)
    if merge is not None:
        return merge.session
    return next((run.session for run in call.tx.last_runs(1, task=task.id)), None)


Outcome = tuple[str | None, list[str], str | None]
"""To whom comments were sent, in which messages, and why they wait, if they do."""


def _send_mail(call: Call, task: Task, words: str, said: Sequence[OutgoingComment]) -> Outcome:
    author = _author(call, task)
    session = None if author is None else call.tx.session(author)
    if session is None or session.removed or session.name == OWNER:
        hint = "The comments stay here as drafts."
        if task.status in WAITS:
            hint = f"Send it back with them: whoever mends it is told. {hint}"
        raise Refused(_why_nobody(task, session, author), hint=hint)
    subject = f"Review of {task.id}: {comments.count(len(said))}" if said else f"Review of {task.id}"
    letters = comments.letters(task.id, words, said)
    by_id, messages = {each.comment.id: each.comment for each in said}, []
    for names, text in letters:
        event = mail.Sent(
            to=session.name, subject=subject, text=call.prose(text, "The message"), task=task.id, wake=True
        )
        message = call.tx.begin(mail.Message, event, call.actor(None))
        messages.append(message.id)
        for name in names:
            _put(call, by_id[name], comments.Sent(to=session.name, message=message.id))
    return session.name, messages, why_it_waits(call, session.name)


def _why_nobody(task: Task, session: Session | None, author: str | None) -> str:
    if author is None:
        return f"Nobody has worked on {task.id} yet, so there is nobody to read it."
    if session is not None and session.name == OWNER:
        return f"{task.id} is your own work."
    return f"{author}, who wrote the work for {task.id}, is gone and reads no mail."


def _send_back(call: Call, task: Task, words: str, said: Sequence[OutgoingComment]) -> Outcome:
    if task.status not in WAITS:
        raise Refused(
            f"{task.id} is {task.status}, so there is nothing to send back.",
            hint="Send the comments without that; they stay here as drafts.",
        )
    author = _author(call, task)
    merge = next(iter(call.tx.open_merges(task.id)), None)
    story = comments.story(task.id, None if merge is None else merge.id, words, said)
    back = free_if_author_gone(call, _rejected(call, task, merge, author, story, _reason(words, said)))
    to = back.front
    messages: list[str] = []
    if to is not None:
        text = call.prose(comments.notice(task.id, said), "The message")
        message = call.tx.begin(mail.Message, mail.Sent(to=to, text=text, task=task.id), call.actor(None))
        messages.append(message.id)
    for each in said:
        _put(call, each.comment, comments.Sent(to=to, message=messages[0] if messages else None, back=True))
    return to, messages, _why_back_waits(call, back, author)


def _rejected(call: Call, task: Task, merge: merges.Merge | None, author: str | None, story: str, reason: str) -> Task:
    """Write that a person sends work back; a person may do so as often as it takes."""
    actor = call.actor(None)
    if task.status is Status.BLOCKED:
        task = change(call, task, tasks.edit(task, tasks.Edited(status=Status.TODO)), actor)
        return change(call, task, tasks.Rejected(author or OWNER, story, wished=True), actor)
    if merge is not None:
        step(call, merge, merges.Rejected(reason), actor)
    return change(call, task, tasks.reject(task, author or OWNER, story, wished=True), actor)


def _reason(words: str, said: Sequence[OutgoingComment]) -> str:
    first = words.splitlines()[0] if words else said[0].text.strip().splitlines()[0] if said else ""
    with_them = f" with {comments.count(len(said))}" if said else ""
    return f"Sent back{with_them}: {first}"[:REASON]


def _why_back_waits(call: Call, task: Task, author: str | None) -> str | None:
    """Say why work that went back is not taken up at once, if that is so."""
    if task.front is None:
        gone = f"{author} does not work here any more" if author not in (None, OWNER) else "Nobody wrote it here"
        return f"{gone}: who takes {task.id} next is told the comments."
    session = call.tx.session(task.front)
    if session is not None and session.kind is not SessionKind.RUN:
        return f"covey does not run {task.front}: it finds {task.id} when it looks."
    if session is not None and session.goal is not Goal.WORKING:
        return f"{task.front} is {session.goal}: it goes on with {task.id} when it works again."
    return f"The fleet is paused: {task.id} waits until covey resume." if call.tx.fleet().paused else None
