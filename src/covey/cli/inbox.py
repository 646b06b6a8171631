"""covey inbox: what waits for a person."""

from __future__ import annotations

import json
import time
from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.cli.merge import rows as merge_rows
from covey.cli.show import age, one, paint, plain, prose, span, table
from covey.cli.train import is_asking, stops

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST = 1000
STUCK = ("stalled", "limited", "dead", "needs-you")


def _nothing(parser: Parser) -> None:
    pass


def inbox(args: Namespace, client: Client) -> None:
    """Show open questions, blocked tasks, merges that wait for a person, what stops the queue, and stuck sessions."""
    with client:
        found = {
            "questions": client.ask("question.list", fields={"state": "open", "limit": MOST}).value,
            "tasks": client.ask("task.list", fields={"status": "blocked", "limit": MOST}).value,
            "merges": [each for each in client.ask("merge.list", fields={"limit": MOST}).value if each["person"]],
            "queue": [*stops(client.ask("queue.show").value, word=str if args.json else paint)],
            "sessions": client.ask("session.list").value,
        }
    asking = {question["session"] for question in found["questions"]}
    found["sessions"] = [each for each in found["sessions"] if _is_stuck(each, asking)]
    if args.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        print("\n".join(_lines(found)) or "Nothing waits for you.")


def _is_stuck(session: dict[str, Any], asking: set[str]) -> bool:
    """Say whether a session that covey runs does not get on; one whose question is listed is no news."""
    at_work = session["kind"] == "run" and session["goal"] != "stopped" and session["state"] in STUCK
    return at_work and not (session["state"] == "needs-you" and session["name"] in asking)


def _lines(found: dict[str, list[Any]]) -> Iterator[str]:
    if found["questions"]:
        count = len(found["questions"])
        yield f"{one(count, 'question')} {'waits' if count == 1 else 'wait'} for you:"
    for question in found["questions"]:
        yield from ("", *card(question))
    parts = (
        ("Blocked tasks", _blocked(found["tasks"]), "covey task edit ID --status todo lets one be tried again"),
        (
            "Merges that wait for you",
            _split(merge_rows([each for each in found["merges"] if is_asking(each)])),
            "covey merge approve ID, covey merge reject ID",
        ),
        (
            "Merges that passed, and that main cannot take",
            _split(merge_rows([each for each in found["merges"] if not is_asking(each)])),
            "covey merge why ID tells what you can do",
        ),
        ("The merge queue", found["queue"], "covey merge queue shows it"),
        ("Sessions that do not get on", _stuck(found["sessions"]), "covey session logs NAME shows what one printed"),
    )
    begun = bool(found["questions"])
    for title, lines, hint in parts:
        if lines:
            yield from [""] * begun
            yield from (f"{title}:", *(f"  {line}" for line in lines), f"  ({hint})")
            begun = True


def card(question: dict[str, Any]) -> list[str]:
    """Return a question as people see it: who asks what, until when, and how it is answered."""
    task = f" on {question['task']}" if question["task"] else ""
    until = "" if question["until"] is None else f", denied in {span(question['until'] - time.time())}"
    lines = [f"{question['id']}  {question['session']}{task}, {age(question['asked'])}{until}"]
    if question["wants"] == "permission":
        tool = "run" if question["tool"] == "shell" else f"use {plain(question['tool'])}"
        lines += [f"  wants to {tool}:", *_indented(question["about"] or question["text"])]
        if question["about"] and question["text"] and question["about"] not in question["text"]:
            lines += ["  because:", *_indented(question["text"])]
    else:
        lines += ["  asks:", *_indented(question["text"])]
        lines += [f"    - {plain(choice)}" for choice in question["choices"]]
    return [*lines, f"  {how(question)}"]


def how(question: dict[str, Any]) -> str:
    """Return the commands that answer a question."""
    if question["wants"] == "permission":
        return f"covey answer {question['id']} --allow | --always | --deny"
    return f'covey answer {question["id"]} "..."'


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in prose(text.rstrip()).split("\n")]


def _split(text: str) -> list[str]:
    return text.split("\n") if text else []


def _blocked(tasks: list[dict[str, Any]]) -> list[str]:
    return [f"{task['id']}  {plain(task['title'])}: {plain(task['reason'] or 'blocked')}" for task in tasks]


def _stuck(sessions: list[dict[str, Any]]) -> list[str]:
    rows = ((each["name"], each["state"], age(each["updated"]), each["evidence"] or "") for each in sessions)
    return _split(table(rows, words=1))


def waiting(count: int) -> str:
    """Return how many questions wait, in one line."""
    wait, what = ("waits", "it") if count == 1 else ("wait", "them")
    return f"{paint('needs-you')}: {one(count, 'question')} {wait} for an answer; covey inbox shows {what}"


COMMAND = Command(
    "show what waits for you: questions of agents, blocked tasks, merges to look at, sessions that do not get on",
    _nothing,
    inbox,
    example="covey inbox\ncovey answer question-12 --allow",
    prints="one object: the lists questions, tasks, merges and sessions as REST answers them, and what stops the queue",
)
