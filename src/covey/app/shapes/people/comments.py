"""What is asked and answered about comments on work."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from covey.app.shapes.forms import Answered, Asked, Commit, Path, TaskId
from covey.core.board import tasks
from covey.core.people import comments

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
    side: comments.Side = comments.Side.NEW
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


class CommentRow(Answered, frozen=True, kw_only=True):
    """A comment, where its line is by now (`place`, `now`), and whether its reader has it (`state`)."""

    id: str
    task: str
    author: str
    text: str
    commit: str | None
    path: str | None
    side: comments.Side
    line: int | None
    lines: int
    quote: str
    written: float
    edited: float | None
    sent: float | None
    to: str | None
    message: str | None
    back: bool
    place: comments.Place | None
    now: int | None
    state: str
    delivered: float | None
    read: float | None
    acked: float | None


class SentComments(Struct, frozen=True, kw_only=True):
    """What became of comments that were sent: to whom, in which messages, and why they wait, if they do."""

    task: str
    status: tasks.Status
    to: str | None
    messages: list[str]
    waits: str | None
    comments: list[CommentRow]
