"""What a run does, in a few words: its last meaningful action, as a person reads it on a card."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from covey.core.fleet.signals import Asks, Wants
from covey.core.people.permits import SHELL
from covey.core.texts import redact
from covey.values import dataclass

if TYPE_CHECKING:  # it brings the reading of shell commands with it, which a claim does not need
    from covey.core.fleet.run_state import RunState

MAX_ACTION_CHARS = 120
"""Characters of an action."""
MAX_EXAMINED_CHARS = 2000
"""Characters of what a tool is used for that are looked at."""


@dataclass(frozen=True)
class Action:
    """What a run does or did last, and since when by the clock of whoever watches it."""

    text: str
    since: float | None = None


_TOOLS_BY_ACTION = {
    "editing": "edit write multiedit notebookedit patch apply_patch write_file replace str_replace create update",
    "reading": "read view read_file read_many_files notebookread open",
    "searching": "grep glob search search_file_content codesearch ls list list_directory find",
    "looking up": "webfetch web_fetch websearch web_search google_web_search fetch",
    "handing on": "task agent delegate",
    "planning": "todowrite todoread todo write_todos update_plan plan exitplanmode",
}
_DOES = {tool: doing for doing, tools in _TOOLS_BY_ACTION.items() for tool in tools.split()}
_DID = {
    "running": "ran",
    "editing": "edited",
    "reading": "read",
    "searching": "searched",
    "looking up": "looked up",
    "handing on": "handed on",
    "planning": "planned",
    "using": "used",
}
_PATH = re.compile(r'"(?:file_path|filePath|absolute_path|path|filename)"\s*:\s*"((?:[^"\\]|\\.)*)')
_SUBJECT_FIELD = re.compile(r'"(?:pattern|query|url|command|description|prompt)"\s*:\s*"((?:[^"\\]|\\.)*)')
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
USE_MARK = re.compile(r" #[0-9a-f]{10}\Z")
"""What makes two uses of a tool differ that read the same; of no use to a reader."""


def action_of(heard: RunState, root: str = "") -> Action | None:
    """Return what a run does, None if it has let nobody know; paths below `root` are told without it."""
    asks, calls = list(heard.asks.values()), list(heard.calls.values())  # whoever listens may change them meanwhile
    if asks:
        return Action(_line(asking(asks[-1])), heard.at)
    if heard.failed is not None:
        return Action(_line(f"gave up: {heard.failed}"), heard.at)
    if heard.result is not None:
        return Action(_line(f"done: {heard.result}" if heard.result.strip() else "done"), heard.at)
    if heard.limited is not None:
        return Action(_line(f"put off: {heard.limited.what}"), heard.put_off)
    if heard.compacts is not None:
        return Action("making its conversation shorter", heard.compacts)
    if calls:
        return Action(told(calls[-1].tool, calls[-1].about, root), calls[-1].since)
    if heard.last_call is not None:
        return Action(told(*heard.last_call, root, over=True), heard.called)
    if heard.waits is not None:
        return Action("thinking", heard.waits)
    return Action("at work", heard.at) if heard.last else None  # a program that tells nothing of a model


def asking(asks: Asks) -> str:
    """Return what a run asks for, in words."""
    if asks.wants is not Wants.PERMISSION:
        return f"asking: {asks.question}"
    return f"asking to {'run' if asks.tool == SHELL else 'use ' + asks.tool} {asks.about or asks.question}"


def told(tool: str, about: str, root: str = "", *, over: bool = False) -> str:
    """Return a use of a tool as a part of a sentence: one line, in which nothing is unseen; `over`: it has ended."""
    does = "running" if tool == SHELL else _DOES.get(tool.lower(), "using")
    said = f"{_DID[does] if over else does}"
    about = about[:MAX_EXAMINED_CHARS]
    if does == "planning":
        return said
    what = about if tool == SHELL else _named(about)
    if root:
        what = what.replace(f"{root.rstrip('/')}/", "")
    if does == "using":
        return _line(f"{said} {tool}: {what}" if what else f"{said} {tool}")
    return _line(f"{said} {what}")


def _named(about: str) -> str:
    """Return the path, or the words, that a tool is used for."""
    patched = _PATCHED.findall(about)
    if patched:
        return f"{patched[0]} and {len(patched) - 1} more" if len(patched) > 1 else str(patched[0])
    if about.lstrip().startswith("{"):
        found = _PATH.search(about) or _SUBJECT_FIELD.search(about)
        return found[1] if found else ""
    return USE_MARK.sub("", about)


def _line(text: str) -> str:
    """Return a text as one line without secrets and without what nobody sees, cut where it is too long."""
    clean = "".join(
        char if unicodedata.category(char)[0] not in "CZ" else " " for char in redact(text[:MAX_EXAMINED_CHARS])
    )
    line = " ".join(clean.split())
    return line if len(line) <= MAX_ACTION_CHARS else f"{line[: MAX_ACTION_CHARS - 1].rstrip()}…"
