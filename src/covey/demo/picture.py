"""How the scene looks: a picture that is drawn over itself on a terminal, plain lines anywhere else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest

from covey.cli.show import paint
from covey.cli.trail import sentence
from covey.demo.board import WORKERS
from covey.demo.scene import Row, Scene

ORDER = ("todo", "doing", "review", "merging", "done", "blocked")
ENDED = ("merging", "review", "done", "dropped")
STATE = 8
NAME = max(map(len, WORKERS))
ROLE = max(len(role or "") for role in WORKERS.values())
_HIDE, _SHOW, _HOME, _REST, _BELOW = "\x1b[?25l", "\x1b[?25h", "\x1b[H", "\x1b[K", "\x1b[J"


class Screen:
    """Draws the whole picture again whenever something has changed."""

    def __init__(self) -> None:
        sys.stdout.write(f"\x1b[?1049h{_HIDE}")

    def show(self, scene: Scene, news: Sequence[Row]) -> None:
        """Draw the scene over what was there."""
        size = shutil.get_terminal_size((100, 30))
        lines = picture(scene, size.columns, size.lines)
        sys.stdout.write(_HOME + "".join(f"{line}{_REST}\n" for line in lines[:-1]) + lines[-1] + _REST + _BELOW)
        sys.stdout.flush()

    def close(self) -> None:
        """Leave the terminal as it was."""
        sys.stdout.write(f"{_SHOW}\x1b[?1049l")
        sys.stdout.flush()


class Lines:
    """Prints a line for each thing that happens."""

    def show(self, scene: Scene, news: Sequence[Row]) -> None:
        """Print what is new."""
        for event in news:
            print(f"{scene.seconds:5.1f} s  {_tell(scene, event)}")
        sys.stdout.flush()

    def close(self) -> None:
        """There is nothing to leave."""


def picture(scene: Scene, width: int, height: int) -> list[str]:
    """Return the scene as lines that fit; what there is no room for is left out, the story first."""
    head = [_fit(f"covey demo   {len(scene.tasks)} tasks, {len(WORKERS)} workers, {scene.seconds:.1f} s", width), ""]
    head += [*_workers(scene, width), "", _bar(scene, width), ""]
    board = _board(scene, width, max(0, height - len(head)))
    room = height - len(head) - len(board) - 2
    told = [f"{at:5.1f} s  {_tell(scene, event)}" for at, event in scene.story[-room:]] if room > 0 else []
    return [*head, *board, *(["", *(_fit(line, width) for line in told)] if told else [])][:height]


def _tell(scene: Scene, event: Row) -> str:
    """Return what happened in a sentence, a claim with the title of its task."""
    if event["kind"] == "task.claimed" and event["subject"] in scene.tasks:
        return f"{event['actor']} claimed {event['subject']}: {scene.tasks[event['subject']]['title']}"
    return sentence(event)


def _workers(scene: Scene, width: int) -> list[str]:
    holds = {task["session"]: task for task in scene.in_status("doing")}
    lines = []
    for name, role in WORKERS.items():
        task = holds.get(name)
        state = scene.sessions.get(name, {}).get("state", "starting")
        about = f"{task['id']:<{_id_width(scene)}}  {task['title']}" if task else ""
        who = f"{name:<{NAME}}  {role or '':<{ROLE}}  "
        lines.append(f"{who}{paint(state, STATE)}  {_fit(about, width - len(who) - STATE - 2)}".rstrip())
    return lines


def _id_width(scene: Scene) -> int:
    return max(map(len, scene.tasks), default=0)


def _bar(scene: Scene, width: int) -> str:
    """Return the counts by status, and how much of the board has ended as a bar."""
    counts = [(status, len(scene.in_status(status))) for status in ORDER]
    shown = [(status, number) for status, number in counts if number or status in ("todo", "doing", "done")]
    plain = "   ".join(f"{status} {number:>2}" for status, number in shown)
    text = "   ".join(f"{paint(status)} {number:>2}" for status, number in shown)
    text, plain = f"{text}   leases {scene.leases}", f"{plain}   leases {scene.leases}"
    length = min(30, width - len(plain) - 4)
    if length < 8:
        return text if len(plain) <= width else _fit(plain, width)
    ended = len(scene.in_status(*ENDED))
    filled = round(length * ended / max(1, len(scene.tasks)))
    return f"{text}   {_mark('█', '#') * filled}{_mark('░', '.') * (length - filled)}"


def _board(scene: Scene, width: int, height: int) -> list[str]:
    """Return the tasks, in two columns where there is room; those that have ended make way first."""
    columns = 2 if width >= 90 else 1
    tasks = list(scene.tasks.values())
    if len(tasks) > columns * height:
        tasks = sorted(tasks, key=lambda task: task["status"] in ENDED)[: columns * height]
    part = (width - 3 * (columns - 1)) // columns
    half = -(-len(tasks) // columns)
    rows = zip_longest(*(tasks[i * half : (i + 1) * half] for i in range(columns)))
    return ["   ".join(_card(task, part, _id_width(scene)) for task in row if task).rstrip() for row in rows]


def _card(task: Row, width: int, id_width: int) -> str:
    status = task["status"]
    word = "waits" if status == "todo" and not task["ready"] else status
    room = max(0, width - id_width - STATE - NAME - 4)
    who, title = task["session"] or "", _fit(task["title"], room)
    return f"{task['id']:<{id_width}}  {paint(word, STATE)} {who:<{NAME}} {title:<{room}}"


def _fit(text: str, width: int) -> str:
    """Return a text that is no longer than there is room for."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1)] + _mark("…", ".") if width > 0 else ""


def _mark(nice: str, plain: str) -> str:
    """Return a character that the terminal can show."""
    return nice if "utf" in (sys.stdout.encoding or "").lower() else plain
