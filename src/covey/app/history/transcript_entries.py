"""What a run said and did, as entries that a page can lay out: made from the same signals as its transcript."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from covey.agents.streams import ESCAPE_SEQUENCE
from covey.app.context import Call
from covey.app.fleet import fleet_verbs
from covey.app.history import transcripts
from covey.app.history.run_streams import Reader, WithEdits
from covey.app.shapes.forms import Asked
from covey.app.verbs import verb
from covey.core.fleet import runs
from covey.core.fleet.sessions import Session
from covey.core.fleet.signals import (
    Asks,
    Called,
    Calls,
    Compacts,
    Context,
    Conversation,
    Failed,
    Limited,
    Result,
    Said,
    Settled,
    Signal,
    Spent,
    Total,
    Usage,
    Waits,
    Works,
)
from covey.core.history.actions import USE_MARK
from covey.core.history.transcripts import ASKS, CAME, COMPACTS, ENDS, SAYS, TROUBLE, USES, Transcript
from covey.core.people.rights import OWN
from covey.core.texts import redact
from covey.values import dataclass

Kind = Literal["told", "said", "tool", "result", "asks", "note", "cost", "done", "printed"]

TEXT = 16 * 1024
"""Characters of one entry; whoever wants all of it reads the logs."""
ABOUT = 2000
PROMPT = "prompt.md"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MARKS: dict[str, Kind] = {
    SAYS: "said",
    USES: "tool",
    CAME: "note",
    ASKS: "asks",
    TROUBLE: "note",
    COMPACTS: "note",
    ENDS: "done",
}


class Entry(Struct, frozen=True, omit_defaults=True):
    """One thing that a run said or did; `place`: the byte at which the line begins that tells it.

    `call` joins a use of a tool (`tool`) with its end (`result`); `edit`: lines with - and + before them. A `cost` has
    the tokens of one call of a model, and dollars where the agent knows them.
    """

    place: int
    kind: Kind
    text: str = ""
    tool: str = ""
    about: str = ""
    call: str = ""
    edit: str = ""
    failed: bool = False
    model: str = ""
    tokens: int = 0
    cost: float | None = None


class Reading(Struct, frozen=True):
    """A part of what a run said and did, between two bytes, and whether it may still say more."""

    run: str
    entries: list[Entry]
    start: int
    next: int
    alive: bool


class ReadEntries(Asked, frozen=True, kw_only=True):
    """Which run (default: the last), from which byte on; a negative `since` counts from the end."""

    run: Annotated[str, Meta(pattern=r"^run-[0-9]+$", max_length=30)] | None = None
    since: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0


@verb("session.transcript", "GET /api/sessions/{name}/transcript", ReadEntries, Reading, may=OWN)
def read(call: Call, asked: ReadEntries, name: str) -> Reading:
    """Read what a run of a session said and did, from a byte on, as entries: messages, tools, edits, costs."""
    call.find(Session, name)
    run = fleet_verbs.run_of(call, name, asked.run)
    source = transcripts.source_of(call, run)
    since = source.place(asked.since)
    if source.output is None:
        text, since, following = transcripts.kept_of(call, run, asked.since)
        entries = from_lines(text, since) if source.reader is not None else _printed(text, since)
    elif source.reader is None:
        text, following = transcripts.raw(source.output, since, source.size, alive=source.alive)
        entries = from_plain(text, since, transcripts.words_of(call, run))
    else:
        part = transcripts.lines_from(source.output, since, source.size, alive=source.alive)
        since, following = part.start, part.following
        long = Entry(part.start, "note", "a line that is too long for anybody", failed=True)
        reader = source.reader
        reader = reader.beginning_at(source.output, part.start) if isinstance(reader, WithEdits) else reader
        entries = [long] if part.too_long else from_output(part.data, part.start, reader)
    if since == 0:
        entries = [*_told(call, run), *entries]
    return Reading(run.id, [_redacted(entry) for entry in entries], since, following, source.alive)


def _told(call: Call, run: runs.Run) -> Iterable[Entry]:
    """Yield what a run was told at its beginning, if that is still there."""
    if call.context.runs is not None:
        try:
            text = (call.context.runs / run.id / PROMPT).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        yield Entry(0, "told", _cut(text))


# From signals


@dataclass
class Telling:
    """Turns signals into entries; one that begins in the middle of a run tells all that it can."""

    entries: list[Entry] = field(default_factory=list)

    def take(self, place: int, signals: list[Signal]) -> None:
        """Take the signals of one line."""
        for i, signal in enumerate(signals):
            following = signals[i + 1] if i + 1 < len(signals) else None
            if isinstance(signal, Said) and isinstance(following, Calls) and signal.text.startswith(following.tool):
                continue  # the same again, in words
            entry = _entry(place, signal)
            if entry is not None and not self._joins(entry, signal):
                self.entries.append(entry)

    def _joins(self, entry: Entry, signal: Signal) -> bool:
        """Join an entry with the one before if they are one: pieces of a message, or a later word on the same cost."""
        last = self.entries[-1] if self.entries else None
        if isinstance(signal, Said) and signal.piece and last is not None and last.kind == "said":
            joined = Entry(last.place, "said", _cut(last.text + entry.text))
        elif entry.kind == "cost" and last is not None and last.kind == "cost" and entry.call == last.call:
            joined = entry
        else:
            return False
        self.entries[-1] = joined
        return True


def _entry(place: int, signal: Signal) -> Entry | None:
    match signal:
        case Said(text):
            return Entry(place, "said", _cut(text)) if text else None
        case Calls(name, tool, about, edit):
            return Entry(place, "tool", tool=tool, about=USE_MARK.sub("", about)[:ABOUT], call=name, edit=edit)
        case Called(name, failed, _, output):
            return Entry(place, "result", _cut(output), call=name, failed=failed)
        case Asks():
            return Entry(place, "asks", _question(signal), tool=signal.tool, about=signal.about[:ABOUT])
        case Result(text):
            return Entry(place, "done", _cut(text))
        case Spent(name, usage, model, cost):
            return _cost(place, usage, model, cost, name)
        case Total(usage, model, cost):
            return _cost(place, usage, model, cost, "total")
        case Limited() | Failed():
            return Entry(place, "note", _cut("\n".join(_words(signal))), failed=True)
        case Compacts():
            return Entry(place, "note", "\n".join(_words(signal)))
        case Settled() | Works() | Waits() | Conversation() | Context():
            return None


def _cost(place: int, usage: Usage, model: str | None, cost: float | None, call: str) -> Entry:
    return Entry(place, "cost", model=model or "", tokens=usage.tokens, cost=cost, call=call)


def _words(signal: Signal) -> list[str]:
    """Return what a transcript says of a signal, without its mark."""
    return [line[2:] for line in Transcript().take([signal])]


def _question(asks: Asks) -> str:
    return _cut("\n".join([asks.question, *(f"{i}. {choice}" for i, choice in enumerate(asks.choices, 1))]))


def from_output(data: bytes, start: int, reader: Reader) -> list[Entry]:
    """Return the entries that whole lines of output are worth."""
    telling, place = Telling(), start
    for line in data.split(b"\n"):
        if line:
            telling.take(place, reader(line.decode(errors="replace")))
        place += len(line) + 1
    return telling.entries


# From what was kept, or is not a stream


def from_lines(text: str, start: int) -> list[Entry]:
    """Return the entries of a transcript as it is kept: a line with a mark, and those that stand below it."""
    entries: list[Entry] = []
    place = start
    for line in text.splitlines(keepends=True):
        shown = line.rstrip("\n")
        kind = _MARKS.get(shown[:2])
        if kind is None and entries and (not shown or shown.startswith("  ") or entries[-1].kind == "printed"):
            entries[-1] = _longer(entries[-1], shown)
        else:
            entries.append(_marked(place, kind or "printed", shown if kind is None else shown[2:], shown[:2]))
        place += len(line.encode())
    return entries


def _longer(last: Entry, shown: str) -> Entry:
    """Return an entry with a line that stands below it: of a tool, what it changes, or what it printed."""
    more = _clean(shown if last.kind == "printed" else shown[2:])
    if last.kind == "tool" and not last.text and more[:1] in ("+", "-"):
        return replace(last, edit=_cut(f"{last.edit}\n{more}".lstrip("\n")))
    text = f"{last.text}\n{more}"
    return replace(last, text=_cut(text.lstrip("\n") if last.kind == "tool" else text))


def _marked(place: int, kind: Kind, text: str, mark: str) -> Entry:
    if kind == "tool":
        tool, _, about = text.partition(": ")
        return Entry(place, "tool", tool=tool, about=USE_MARK.sub("", about)[:ABOUT])
    return Entry(place, kind, _cut(_clean(text)), failed=mark == TROUBLE)


def from_plain(text: str, start: int, reader: Reader | None) -> list[Entry]:
    """Return the entries of plain lines, among which a program may say something in covey's own words."""
    telling, place, plain = Telling(), start, ""
    for line in text.splitlines(keepends=True):
        signals = reader(line) if reader is not None and line.startswith("{") else []
        if signals and not any(isinstance(signal, Said) for signal in signals):
            telling.entries += _printed(plain, place - len(plain.encode()))
            plain = ""
            telling.take(place, signals)
        else:
            plain += line
        place += len(line.encode())
    return telling.entries + _printed(plain, place - len(plain.encode()))


def _printed(text: str, place: int) -> list[Entry]:
    clean = _clean(text)
    return [Entry(place, "printed", clean)] if clean else []


def _clean(text: str) -> str:
    """Return what a program printed without what moves a cursor."""
    return _CONTROL.sub("", ESCAPE_SEQUENCE.sub("", text))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[: TEXT - 1]}…"


def _redacted(entry: Entry) -> Entry:
    texts = {name: redact(value) for name in ("text", "about", "edit") if (value := getattr(entry, name))}
    return replace(entry, **texts)
