"""covey inbox: what waits for a person."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from covey.cli.frame.client import Json
from covey.cli.frame.command import Command, asking
from covey.cli.frame.output import age, first_line, grouped, paint, plain, prose, table
from covey.core.figures import one, span


def _lines(found: list[Json]) -> Iterator[str]:
    of = {kind: [row for row in found if row["kind"] == kind] for kind in {row["kind"] for row in found}}
    questions = of.get("question", [])
    if questions:
        count = sum(len(row["ids"]) for row in questions)
        yield f"{one(count, 'question')} {'waits' if count == 1 else 'wait'} for you:"
    for row in questions:
        yield from ("", *card(row))
    begun = bool(questions)
    for kind, title, hint in PARTS:
        if kind in of:
            yield from [""] * begun
            yield from (f"{title}:", *(f"  {line}" for line in _rows(kind, of[kind])), f"  ({hint})")
            begun = True


PARTS = (
    ("setting", "The settings", "they are taken up as soon as they make sense"),
    ("blocked", "Blocked tasks", "covey task reopen ID lets one be tried again"),
    ("approve", "Merges that wait for you", "covey merge approve ID, covey merge reject ID"),
    ("landing", "Merges that passed, and that main cannot take", "covey merge why ID tells what you can do"),
    ("waits", "Tasks that nobody takes", "covey task list shows them"),
    ("queue", "The merge queue", "covey merge queue shows it"),
    ("session", "Sessions that do not get on", "covey session logs NAME shows what one printed"),
    ("proposal", "What sessions ask you to do for them", "covey proposal show ID, covey proposal accept ID"),
    ("mail", "Mail that wants to be acknowledged", "covey mail read ID, covey mail ack ID"),
)
WORDS = {
    "setting": ("wrong setting",), "blocked": ("blocked task",), "approve": ("merge to approve", "merges to approve"),
    "landing": ("merge to land", "merges to land"), "queue": ("notice about the queue", "notices about the queue"),
    "session": ("session in trouble", "sessions in trouble"), "proposal": ("proposal",), "mail": ("urgent message",),
}  # fmt: skip
MAX_TITLES_SHOWN = 8
"""Tasks of one cause that are listed by their titles."""
WAYS = {"resume": "covey merge resume", "thaw": "covey merge thaw", "resume-fleet": "covey resume"}


def _rows(kind: str, found: list[Json]) -> list[str]:
    """Return items of one kind as lines: what each is about, since when, and what is to be decided."""
    if kind == "session":
        states = [
            (name, row["title"].removeprefix("is "), age(row["since"]), _why(row))
            for row in found
            for name in row["sessions"]
        ]
        return table(states, words=1).split("\n")
    if kind in ("approve", "landing", "mail", "proposal"):
        columns = [(row["ids"][0], row["task"] or "", row["session"], age(row["since"]), _what(row)) for row in found]
        return table(columns).split("\n")
    if kind == "blocked":
        groups = grouped(found, lambda row: row["cause"] or row["key"])
        return [line for together in groups for line in _blocked(together)]
    return [_what(row) + _way(row) for row in found]


def _blocked(together: list[Json]) -> Iterator[str]:
    """Yield tasks that the same blocks: the cause once, then each of them, and the command that is for all."""
    first = together[0]
    if len(together) == 1:
        yield f"{first['task']}  {plain(first['title'])}: {_why(first) or 'blocked'}"
        return
    yield f"{one(len(together), 'task')} blocked by the same: {_why(first) or 'blocked'}"
    yield from (f"  {row['task']}  {plain(row['title'])}" for row in together[:MAX_TITLES_SHOWN])
    if len(together) > MAX_TITLES_SHOWN:
        yield f"  and {len(together) - MAX_TITLES_SHOWN} more"
    if all("reopen" in row["decisions"] for row in together):
        yield f"  covey task reopen {' '.join(row['task'] for row in together)}"


def _why(row: Json) -> str:
    return first_line(row["text"], 400)


def _what(row: Json) -> str:
    return f"{plain(row['title'])}: {_why(row)}" if row["text"] else plain(row["title"])


def _way(row: Json) -> str:
    """Return since when something stands still, and the command that lets it go on."""
    way = next((f" ({WAYS[each]})" for each in row["decisions"] if each in WAYS), "")
    return f" ({age(row['since'])}){way}"


def card(row: Json) -> list[str]:
    """Return questions that are the same as people see them: who asks what, until when, and how it is answered."""
    who = ", ".join(row["sessions"]) + (f" on {', '.join(row['tasks'])}" if row["tasks"] else "")
    until = "" if row["until"] is None else f", denied in {span(row['until'] - time.time())}"
    lines = [f"{', '.join(row['ids'])}  {who}, {age(row['since'])}{until}"]
    if "reply" in row["decisions"]:
        asked = _indented(row["text"])
        lines += ["  asks:", *asked, *(f"    - {plain(each)}" for each in row["choices"] if not _says(asked, each))]
    else:
        lines += [f"  {plain(row['title'])}:", *_indented(row["about"] or row["text"])]
        if row["about"] and row["text"] and row["about"] not in row["text"]:
            lines += ["  because:", *_indented(row["text"])]
    wants = "answer" if "reply" in row["decisions"] else "permission"
    if row["rule"] and row["rule"] != row["about"]:
        lines += [f"  never asked again with: --always --about {shlex.quote(row['rule'])}", f"    {row['allows']}"]
    return [*lines, f"  {how({'id': row['ids'][0], 'wants': wants}, len(row['ids']))}"]


def _says(lines: list[str], choice: str) -> bool:
    """Say whether a question names a choice itself, with a word on what it means."""
    return any(line.partition(": ")[0] == f"    - {plain(choice)}" for line in lines)


def how(question: Json, many: int = 1) -> str:
    """Return the commands that answer a question, and all that ask the same if there are many."""
    every = "" if many == 1 else f" (with --all: all {many} of them)"
    if question["wants"] == "permission":
        return f"covey answer {question['id']} --allow | --always | --deny{every}"
    return f'covey answer {question["id"]} "..."{every}'


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in prose(text.rstrip()).split("\n")]


def waiting(questions: int, found: list[Json]) -> Iterator[str]:
    """Yield how many questions wait, and how much else waits for a person, each in a line."""
    if questions:
        wait, what = ("waits", "it") if questions == 1 else ("wait", "them")
        yield f"{paint('needs-you')}: {one(questions, 'question')} {wait} for an answer; covey inbox shows {what}"
    counts = {words: sum(row["kind"] == kind for row in found) for kind, words in WORDS.items()}
    others = [one(count, *words) for words, count in counts.items() if count]
    if others:
        yield f"{paint('needs-you')}: {', '.join(others)}; covey inbox shows more"


COMMAND = Command(
    "show what waits for you: questions of agents, blocked tasks, merges to look at, sessions that do not get on",
    (),
    asking("inbox.list", show=lambda found, _: "\n".join(_lines(found)) or "Nothing waits for you."),
    example="covey inbox\ncovey answer question-12 --allow",
    prints="the list of what waits, the oldest first, as GET /api/inbox answers it",
)
