"""What people see: aligned columns, times of here, and colour only where it means something."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence

from covey import plain as plainly
from covey.cli.frame.client import Answer, Json
from covey.cli.frame.command import width
from covey.core import figures
from covey.core.figures import money, one
from covey.core.figures import some as some
from covey.moments import calendar
from covey.plain import escaped as escaped

SLOW_S = 2.0
"""Seconds after which a person wants to know how far we are."""
SHOW_EVERY_S = 0.2
_COLOURS = {
    "doing": "36", "working": "36", "testing": "36", "merging": "36", "starting": "36", "compacting": "36",
    "running": "36",
    "review": "33", "needs-you": "33", "limited": "33", "paused": "33", "stalled": "33",
    "crossed": "33", "overlap": "33", "waiting": "33", "frozen": "33", "flaky": "33",
    "done": "32", "landed": "32", "live": "32", "passed": "32",
    "blocked": "31", "dead": "31", "rejected": "31", "failed": "31", "halted": "31",
    "lost": "90", "dropped": "90", "backlog": "90", "withdrawn": "90", "reverted": "90", "given": "90", "expired": "90",
}  # fmt: skip


def colourful() -> bool:
    """Say whether what we print may be coloured."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def paint(word: str, padding: int = 0) -> str:
    """Return a word of status in its colour, padded to a width."""
    padded = f"{word:<{padding}}"
    colour = _COLOURS.get(word)
    return f"\x1b[{colour}m{padded}\x1b[0m" if colour and colourful() else padded


def reply(args: Namespace, answer: Answer, text: str) -> None:
    """Print an answer: as it is, or as a text for people."""
    if args.json:
        as_json(answer)
    elif text:
        print(text)


def as_json(answer: Answer) -> None:
    """Print what was answered, and as an escape what a terminal would obey or hide."""
    if answer.body:
        print(escaped(answer.body.decode()))


def compact(value: object) -> str:
    """Return a value as JSON in one line, and as an escape what a terminal would obey or hide."""
    return escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def plain(text: str) -> str:
    """Return foreign words fit for a line; where a program reads them, no tag in them tells a model who speaks."""
    return _read(plainly.plain(text))


def first_line(text: str, limit: int = 100) -> str:
    """Return the beginning of foreign words, fit for a line."""
    return _read(plainly.first_line(text, limit))


def _read(text: str) -> str:
    return text if "<" not in text or sys.stdout.isatty() else plainly.defused(text)


def quoted(text: str, indent: str = "  ") -> list[str]:
    """Return the words of another, line by line, each behind a mark that nothing in them can undo."""
    return [f"{indent}> {line}".rstrip() for line in prose(text.rstrip()).split("\n")]


def table(rows: Iterable[Sequence[str]], *, words: int | None = None) -> str:
    """Return rows in aligned columns; the column `words` holds words of status."""
    lines = [[plain(cell) for cell in row] for row in rows]
    if not lines:
        return ""
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            paint(cell, size) if i == words else f"{cell:<{size}}"
            for i, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    )


def prose(text: str) -> str:
    """Return a text of many lines without what would move the cursor of a terminal."""
    return "\n".join(plain(line.replace("\t", "    ")) for line in text.split("\n"))


def clock(moment: float) -> str:
    """Return a time as the clock on the wall here shows it."""
    return calendar("%Y-%m-%d %H:%M:%S", moment)


def age(moment: float) -> str:
    """Return how long ago something was."""
    return figures.age(time.time() - moment)


def spent(used: Json) -> str:
    """Return what something cost in a few words, and nothing if it used nothing."""
    tokens, unpriced = used["tokens"], used["unpriced"]
    if not used["cost"]:
        without = " without a price" if unpriced == tokens else f", {unpriced:,} without a price" if unpriced else ""
        return f"{one(tokens, 'token')}{without}" if tokens else ""
    plus = f" plus {unpriced:,} without a price" if unpriced else ""
    return f"{money(used['cost'])} for {one(tokens - unpriced, 'token')}{plus}"


def title(text: str, beside: int) -> str:
    """Return a title fit for a line with `beside` other characters: cut where the terminal ends, or at 120."""
    return first_line(text, max(width() - beside, 20) if os.isatty(1) else 120)


def waiting(wait: Json) -> str:
    """Return why something waits, until when if that is known, and the command that changes it."""
    until = f" Until {clock(wait['until'])}." if wait["until"] else ""
    command = f" ({plain(wait['command'])})" if wait["command"] else ""
    return f"{plain(wait['text'])}{until}{command}"


def standstills(lanes: list[Json], most: int) -> list[str]:
    """Return why tasks that are ready wait, each cause in a line, with the command that changes it."""
    told = [lane for lane in lanes if lane["cause"] not in ("next", "behind", "busy", "fleet-paused")]
    lines = [waiting(lane) for lane in told[:most]]
    more = f"... and {one(len(told) - most, 'reason')} more why tasks wait; covey task show ID tells that of a task"
    return [*lines, more] if len(told) > most else lines


def grouped(things: Iterable[Json], mark: Callable[[Json], str]) -> list[list[Json]]:
    """Return things, those together that bear the same mark, each where the first of them stands."""
    groups: dict[str, list[Json]] = {}
    for thing in things:
        groups.setdefault(mark(thing), []).append(thing)
    return list(groups.values())


def nested(tasks: list[Json], key: str) -> Iterator[tuple[Json, int]]:
    """Yield tasks, each with how deep it stands: children right below their parents, which are known by `key`."""
    known = {task[key] for task in tasks}
    children: dict[str | None, list[Json]] = {}
    for task in tasks:
        parent = task.get("parent")
        children.setdefault(parent if parent in known else None, []).append(task)
    stack = [(task, 0) for task in reversed(children.get(None, []))]
    while stack:
        task, depth = stack.pop()
        yield task, depth
        stack += [(child, depth + 1) for child in reversed(children.get(task[key], []))]


def _why(task: Json) -> str | None:
    """Return why a task waits, if whoever asked was told; the reason of a blocked one stands by itself."""
    waits = task.get("waits")
    return None if waits is None or waits["cause"] == "blocked" else waiting(waits)


def card(task: Json, order: Iterable[tuple[str, str | None]]) -> str:
    """Return a task whole, as its worker needs it, with what was asked for (`order`) in its place."""
    facts = [*_standing(task), *order, *_outcome(task)]
    lines = [f"{task['id']}  {plain(task['title'])}"]
    lines += [f"  {name:<13}{value}" for name, value in facts if value]
    lines += [f"  {'done when' if not i else '':<13}{plain(check)}" for i, check in enumerate(task["done_when"])]
    if task["body"]:
        ours = task["author"] in ("owner", "covey")
        lines += ["", *([] if ours else [f"What {task['author']} wrote:"])]
        lines += [f"  {line}" for line in prose(task["body"].rstrip()).split("\n")] if ours else quoted(task["body"])
    if task["result"]:
        lines += ["", f"Result, by {task['result_by'] or 'owner'}:", *quoted(task["result"])]
    return "\n".join(line.rstrip() for line in lines)


def _standing(task: Json) -> Iterator[tuple[str, str | None]]:
    """Yield how a task stands, who has it, and who wrote it."""
    waits = task["status"] in ("todo", "backlog") and not task["ready"]
    holds = "held by" if task["status"] == "doing" else "by"
    yield "status", paint(task["status"]) + (", waits" if waits else "")
    yield "why", _why(task)
    yield holds, f"{task['session']}, fence {task['fence']}" if task["session"] else None
    yield "until", f"{clock(task['until'])} unless renewed" if task["until"] else None
    yield "written by", task["author"] if task["author"] not in ("owner", "covey") else None


def _outcome(task: Json) -> Iterator[tuple[str, str | None]]:
    """Yield what came of it so far."""
    yield "cost", spent(task)
    yield "reason", task["reason"] and plain(task["reason"])
    yield "commit", task["commit"]
    yield "reverted", f"taken out of main again by {task['reverted']}" if task["reverted"] else None
    yield "key", task["key"] and plain(task["key"])


class ProgressLine:
    """Says now and then how far a work is that takes long, and clears its line away at the end."""

    def __enter__(self) -> ProgressLine:
        self._begun = self._said = time.monotonic()
        self._shown = False
        return self

    def __call__(self, what: str, done: int, of: int) -> None:
        """Take note of how far we are, and say so now and then."""
        now = time.monotonic()
        if now - self._begun > SLOW_S and now - self._said > SHOW_EVERY_S and sys.stderr.isatty():
            self._said, self._shown = now, True
            far = f" {done:,} of {of:,}" if of else ""
            print(f"\r\x1b[K{what}{far}", end="", file=sys.stderr, flush=True)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
