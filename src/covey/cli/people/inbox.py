"""covey inbox: what waits for a person."""

from __future__ import annotations

import shlex
import time
from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.cli.show import age, first_line, paint, plain, prose, reply, table
from covey.core.figures import one, span

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def _nothing(parser: Parser) -> None:
    pass


def inbox(args: Namespace, client: Client) -> None:
    """Show open questions, blocked tasks, merges that wait for a person, what stops the queue, and stuck sessions."""
    answer = client.ask("inbox.list")
    reply(args, answer, "" if args.json else "\n".join(_lines(answer.value)) or "Nothing waits for you.")


def _lines(found: list[dict[str, Any]]) -> Iterator[str]:
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
    "setting": "wrong setting", "blocked": "blocked task", "approve": "merge to approve", "landing": "merge to land",
    "queue": "stop of the queue", "session": "session in trouble", "proposal": "proposal", "mail": "urgent message",
}  # fmt: skip
SHOWN = 8
"""Tasks of one cause that are listed by their titles."""
WAYS = {"resume": "covey merge resume", "thaw": "covey merge thaw", "resume-fleet": "covey resume"}


def _rows(kind: str, found: list[dict[str, Any]]) -> list[str]:
    """Return items of one kind as lines: what each is about, since when, and what is to be decided."""
    if kind == "session":
        states = [(name, _state(row), age(row["since"]), _why(row)) for row in found for name in row["sessions"]]
        return table(states, words=1).split("\n")
    if kind in ("approve", "landing", "mail", "proposal"):
        columns = [(row["ids"][0], row["task"] or "", row["session"], age(row["since"]), _what(row)) for row in found]
        return table(columns).split("\n")
    if kind == "blocked":
        return [line for together in by_cause(found) for line in _blocked(together)]
    return [_what(row) + _way(row) for row in found]


def by_cause(found: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return items of one kind, those together that are of one making, each where the oldest of them stands."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        groups.setdefault(row["cause"] or row["key"], []).append(row)
    return list(groups.values())


def _blocked(together: list[dict[str, Any]]) -> Iterator[str]:
    """Yield tasks that the same blocks: the cause once, then each of them, and the command that is for all."""
    first = together[0]
    if len(together) == 1:
        yield f"{first['task']}  {plain(first['title'])}: {_why(first) or 'blocked'}"
        return
    yield f"{one(len(together), 'task')} blocked by the same: {_why(first) or 'blocked'}"
    yield from (f"  {row['task']}  {plain(row['title'])}" for row in together[:SHOWN])
    if len(together) > SHOWN:
        yield f"  and {len(together) - SHOWN} more"
    if all("reopen" in row["decisions"] for row in together):
        yield f"  covey task reopen {' '.join(row['task'] for row in together)}"


def _state(row: dict[str, Any]) -> str:
    return str(row["title"]).removeprefix("is ")


def _why(row: dict[str, Any]) -> str:
    return first_line(row["text"], 400)


def _what(row: dict[str, Any]) -> str:
    return f"{plain(row['title'])}: {_why(row)}" if row["text"] else plain(row["title"])


def _way(row: dict[str, Any]) -> str:
    """Return since when something stands still, and the command that lets it go on."""
    way = next((f" ({WAYS[each]})" for each in row["decisions"] if each in WAYS), "")
    return f" ({age(row['since'])}){way}"


def card(row: dict[str, Any]) -> list[str]:
    """Return questions that are the same as people see them: who asks what, until when, and how it is answered."""
    who = ", ".join(row["sessions"]) + (f" on {', '.join(row['tasks'])}" if row["tasks"] else "")
    until = "" if row["until"] is None else f", denied in {span(row['until'] - time.time())}"
    lines = [f"{', '.join(row['ids'])}  {who}, {age(row['since'])}{until}"]
    if "reply" in row["decisions"]:
        lines += ["  asks:", *_indented(row["text"]), *(f"    - {plain(choice)}" for choice in row["choices"])]
    else:
        lines += [f"  {plain(row['title'])}:", *_indented(row["about"] or row["text"])]
        if row["about"] and row["text"] and row["about"] not in row["text"]:
            lines += ["  because:", *_indented(row["text"])]
    wants = "answer" if "reply" in row["decisions"] else "permission"
    if row["rule"] and row["rule"] != row["about"]:
        lines += [f"  never asked again with: --always --about {shlex.quote(row['rule'])}", f"    {row['allows']}"]
    return [*lines, f"  {how({'id': row['ids'][0], 'wants': wants}, len(row['ids']))}"]


def how(question: dict[str, Any], many: int = 1) -> str:
    """Return the commands that answer a question, and all that ask the same if there are many."""
    every = "" if many == 1 else f" (with --all: all {many} of them)"
    if question["wants"] == "permission":
        return f"covey answer {question['id']} --allow | --always | --deny{every}"
    return f'covey answer {question["id"]} "..."{every}'


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in prose(text.rstrip()).split("\n")]


def waiting(questions: int, found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield how many questions wait, and how much else waits for a person, each in a line."""
    if questions:
        wait, what = ("waits", "it") if questions == 1 else ("wait", "them")
        yield f"{paint('needs-you')}: {one(questions, 'question')} {wait} for an answer; covey inbox shows {what}"
    counts = {word: sum(row["kind"] == kind for row in found) for kind, word in WORDS.items()}
    others = [one(count, word) for word, count in counts.items() if count]
    if others:
        yield f"{paint('needs-you')}: {', '.join(others)}; covey inbox shows more"


COMMAND = Command(
    "show what waits for you: questions of agents, blocked tasks, merges to look at, sessions that do not get on",
    _nothing,
    inbox,
    example="covey inbox\ncovey answer question-12 --allow",
    prints="the list of what waits, the oldest first, as GET /api/inbox answers it",
)
