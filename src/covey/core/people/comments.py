"""The life of a comment: written on a line of somebody's work, kept as a draft, and sent to whoever wrote that.

draft > sent        removed
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from covey.core import quotes
from covey.core.people.mail import MAX_MESSAGE_BYTES
from covey.core.texts import Text, harmless, redact
from covey.errors import Refused
from covey.values import dataclass

MAX_QUOTE_CHARS = 400
"""Characters of the line that a comment stands at."""
PROMPT_COMMENTS_BYTES = 10_000
"""Bytes of comments that a prompt carries; the rest is found by the command that it names."""
MESSAGE_COMMENTS_BYTES = MAX_MESSAGE_BYTES - 700
"""Bytes of comments in one message: an agent is told so much of it at once, each line behind a mark."""
MIN_FOUND_CHARS = 3
"""Characters below which a line is like too many others to be found elsewhere."""


class Side(StrEnum):
    """Which text a line belongs to: that before the change, or that after it."""

    OLD = "old"
    NEW = "new"


class Place(StrEnum):
    """Where the line of a comment is by now."""

    HERE = "here"
    MOVED = "moved"
    OUTDATED = "outdated"


@dataclass(frozen=True, kw_only=True)
class Written:
    """Somebody wrote a comment on a task's work; it is a draft."""

    task: str
    text: Text
    commit: str | None = None
    path: str | None = None
    side: Side = Side.NEW
    line: int | None = None
    lines: int = 1
    """How many lines it is about, beginning with `line`."""
    quote: str = ""
    """The first of them, as it was."""


@dataclass(frozen=True, kw_only=True)
class Comment(Written):
    """What somebody says of a task's work: of a line, of some lines, of a file, or of it all."""

    id: str
    ordinal: int
    author: str
    written: float = 0.0
    edited: float | None = None
    sent: float | None = None
    to: str | None = None
    message: str | None = None
    back: bool = False
    """The work went back to its author with it."""
    removed: float | None = None

    @property
    def is_draft(self) -> bool:
        """Say whether nobody but its author knows of it yet."""
        return self.sent is None and self.removed is None


@dataclass(frozen=True)
class Edited:
    """A draft says something else now."""

    text: Text


@dataclass(frozen=True)
class Removed:
    """A draft was thrown away."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A comment went to whoever wrote the work: in a message, and in the next prompt if the work went `back`."""

    to: str | None = None
    message: str | None = None
    back: bool = False


Event = Written | Edited | Removed | Sent


def change(comment: Comment, event: Edited | Removed | Sent) -> Edited | Removed | Sent:
    """Return the event if the comment is still a draft, or refuse it."""
    if not comment.is_draft:
        was = "removed" if comment.removed is not None else f"sent{f' to {comment.to}' if comment.to else ''}"
        raise Refused(f"{comment.id} was {was} already.", hint="Write another one.")
    return event


def apply(comment: Comment, event: Edited | Removed | Sent, at: float) -> Comment:
    """Return the comment as it is after `event`. Never refuses."""
    match event:
        case Edited(text):
            return replace(comment, text=text, edited=at)
        case Removed():
            return replace(comment, removed=at)
        case Sent(to=to, message=message, back=back):
            return replace(comment, sent=at, to=to, message=message, back=back)


def quoted(line: str) -> str:
    """Return a line as a comment keeps it: its begin, without secrets."""
    return redact(line.rstrip("\r")[:MAX_QUOTE_CHARS])


def place(lines: Sequence[str] | None, line: int, quote: str) -> tuple[Place, int | None]:
    """Return where a line is by now, of all the lines of its file; None: the file is gone."""
    if lines is None:
        return Place.OUTDATED, None
    if 0 < line <= len(lines) and quoted(lines[line - 1]) == quote:
        return Place.HERE, line
    if len(quote.strip()) < MIN_FOUND_CHARS:
        return Place.OUTDATED, None
    same = [number for number, text in enumerate(lines, 1) if text[:4] == quote[:4] and quoted(text) == quote]
    nearest = min(same, key=lambda number: abs(number - line), default=None)
    return (Place.OUTDATED, None) if nearest is None else (Place.MOVED, nearest)


@dataclass(frozen=True)
class Shift:
    """Lines of a text that others took the place of: `count` from `start` on, by `other`; a count of 0 is before it."""

    start: int
    count: int
    other: int


def carried(shifts: Sequence[Shift], line: int) -> int | None:
    """Return where a line of one text is in another; None if it was changed on the way. The shifts are in order."""
    moved = 0
    for shift in shifts:
        if line < shift.start:
            break
        if line < shift.start + shift.count:
            return None
        moved += shift.other - shift.count
    return line + moved


def carried_range(shifts: Sequence[Shift], line: int, lines: int) -> tuple[int, int] | None:
    """Return where a line and those after it are in another text: the first of them, and how many; None: nowhere."""
    found = [there for each in range(line, line + lines) if (there := carried(shifts, each)) is not None]
    return (found[0], found[-1] - found[0] + 1) if found else None


# What its reader is told


@dataclass(frozen=True)
class OutgoingComment:
    """A comment as it is sent, with its text."""

    comment: Comment
    text: str


def where(comment: Comment) -> str:
    """Return in a few words what a comment is about."""
    if comment.path is None:
        return "The work as a whole"
    path = quotes.named(comment.path)
    if comment.line is None:
        return path
    to = f"-{comment.line + comment.lines - 1}" if comment.lines > 1 else ""
    before = " (as it was before your change)" if comment.side is Side.OLD else ""
    return f"{path}:{comment.line}{to}{before}"


def entry(said: OutgoingComment) -> str:
    """Return one comment: where, the line that it stands at, and what is said of it."""
    quote = [f"    {harmless(said.comment.quote)}"] if said.comment.quote.strip() else []
    text = [f"  {line}".rstrip() for line in said.text.strip().splitlines()]
    return "\n".join([f"- {where(said.comment)}", *quote, *text])


def count(number: int) -> str:
    """Return a number of comments in words."""
    return "1 comment" if number == 1 else f"{number} comments"


def letters(task: str, words: str, said: Sequence[OutgoingComment]) -> list[tuple[tuple[str, ...], str]]:
    """Return comments as the messages that bring them, each with the comments in it: one, unless an agent would be
    told only a part of that.
    """
    head = f"{words.strip()}\n\n" if words.strip() else ""
    parts: list[tuple[list[str], list[str], int]] = [([], [], len(head.encode()))]
    for each in said:
        text = entry(each)
        size = len(text.encode()) + 3 * text.count("\n") + 5
        if parts[-1][0] and parts[-1][2] + size > MESSAGE_COMMENTS_BYTES:
            parts.append(([], [], 0))
        names, texts, before = parts[-1]
        names.append(each.comment.id)
        texts.append(text)
        parts[-1] = (names, texts, before + size)
    return [(tuple(names), _letter(task, head if not n else "", texts)) for n, (names, texts, _) in enumerate(parts)]


def _letter(task: str, head: str, texts: Sequence[str]) -> str:
    about = f"{count(len(texts))} on your work for {task}:\n\n" if texts else ""
    return f"{head}{about}" + "\n\n".join(texts)


def story(task: str, merge: str | None, words: str, said: Sequence[OutgoingComment]) -> str:
    """Return what the author of work is told when it comes back with comments."""
    what = merge or task
    with_them = f" with {count(len(said))}" if said else ""
    head = [f"The person in charge has looked at your work and sent {what} back{with_them}."]
    if words.strip():
        head += ["", words.strip()]
    kept, left = _fitting([entry(each) for each in said], PROMPT_COMMENTS_BYTES)
    more = ["", f"And {left} more: covey comment list {task}"] if left else []
    do = "Do what is said, or say why not: covey mail send owner ... When you end, everything must be committed."
    return "\n".join([*head, *(f"\n{text}" for text in kept), *more, "", do])


def notice(task: str, said: Sequence[OutgoingComment]) -> str:
    """Return the message that goes with work that comes back."""
    lines = [
        f"I looked at your work for {task} and sent it back to you" + (f" with {count(len(said))}:" if said else ".")
    ]
    lines += [f"- {where(each.comment)}" for each in said[:20]]
    lines += [f"- and {len(said) - 20} more"] if len(said) > 20 else []
    lines.append(f"You are told them when you go on with {task}; covey comment list {task} shows them too.")
    return "\n".join(lines)


def _fitting(texts: Iterable[str], room: int) -> tuple[list[str], int]:
    """Return the first texts that fit, at least one of them in part, and how many do not."""
    kept: list[str] = []
    left = 0
    for text in texts:
        size = len(text.encode())
        if not kept and size > room:
            text, size = text.encode()[:room].decode(errors="ignore") + " ...", room
        if left or size > room:
            left += 1
            continue
        room -= size
        kept.append(text)
    return kept, left
