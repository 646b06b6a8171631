"""Codex: `codex exec --json`, one turn for one task, in a sandbox of its own.

What the levels come to, with Codex 0.166:
- ask: the sandbox is read-only, and it cannot ask while nobody is there: whatever writes fails, and it is told so.
- edits: every command runs, but in a sandbox that lets it write only to the worktree, to what a commit needs of the
  shared git folder (not its hooks, configuration, and covey's own files), to temporary folders and caches. The network
  is open, since covey itself is reached by it. What goes further fails, and it is told so; nothing asks.
- full: no sandbox.

Its sandbox keeps empty folders (.agents, .aws, .codex, .git) in all that may be written, and some stay when it is over.
They are nothing to git. They stay: another sandbox at work may hold the same folder, and would lose it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from covey.agents import environment, streams
from covey.agents.agent import Assignment, HearsNothing, Terminal, Traits
from covey.agents.codex.launch import command_of, home, hooks, journal, settings, spending, usage_of
from covey.agents.codex.terminal import CodexTerminal
from covey.agents.provider_errors import trouble
from covey.core.fleet import signals
from covey.core.fleet.launches import Launch
from covey.core.fleet.signals import Signal, Trouble
from covey.core.people.permits import SHELL
from covey.values import dataclass

TERMINAL = CodexTerminal()
TRAITS = Traits(
    speaks=True,
    resumes=True,
    hooks=True,
    env=("CODEX_*", "OPENAI_*", "AZURE_OPENAI_*", *environment.AUTHORITIES),
    gap=0.5,
    memory=200 * 1024 * 1024,
)

_AGAIN = re.compile(r"\AReconnecting\.\.\. (?:\d+/\d+|waiting for network) \((.*)\)\Z", re.DOTALL)
_AGAIN_IN = re.compile(r"try again in ([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(ms|s\b|sec|m\b|min|h\b|hour)")
_AGAIN_AT = re.compile(r"try again at (?:([A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th), (\d{4}) )?(\d{1,2}:\d{2} [AP]M)")
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0}


@dataclass(frozen=True)
class Codex(HearsNothing):
    """OpenAI's Codex, headless."""

    name: str = "codex"
    traits: Traits = TRAITS
    terminal: Terminal | None = TERMINAL
    clock: Callable[[], datetime] = field(default=datetime.now, compare=False)
    """It names the time of a reset without its day when that is today."""

    def launch(self, work: Assignment) -> Launch:
        """Return `codex exec`, which reads the prompt from its standard input."""
        conversation = streams.name(work.conversation)
        argv = [*work.command("codex", "exec", "--json"), *settings(work), *hooks(work, held=False)]
        argv += [streams.word(word) for word in work.arguments]
        argv += ["resume", conversation] if conversation else []
        return Launch(
            argv=(*argv, "-"),
            cwd=work.worktree,
            env=dict(work.env),
            stdin=work.prompt,
            apart=True,
            ledger=home(work),
        )

    def read(self, line: str) -> list[Signal]:
        """Return what one event of `--json` lets us know."""
        event = streams.record(line)
        if event is None:
            return _plain(line)
        match event.get("type"):
            case "thread.started":
                thread = streams.name(streams.text(event, "thread_id"))
                return [signals.Conversation(thread)] if thread else []
            case "turn.started":
                return [signals.Waits()]
            case "item.started":
                return _started(streams.inner(event, "item"))
            case "item.completed":
                return _completed(streams.inner(event, "item"))
            case "error":
                return _complained(streams.text(event, "message"))
            case "turn.completed":
                # The event has no words: what it said last stands.
                return [signals.Total(usage_of(streams.inner(event, "usage")), whole=True), signals.Result("")]
            case "turn.failed":
                return [self._failed(streams.text(streams.inner(event, "error"), "message"))]
        return []

    def ledger(self, folder: str, conversation: str) -> tuple[str, ...]:
        """Return the journal of its conversation: its output names what it used when the turn is over."""
        return journal(folder, conversation)

    def count(self, line: str) -> list[Signal]:
        """Return what one call used."""
        return spending(line)

    def edited(self, line: str) -> str | None:
        """Return what one edit changed: its output names the paths alone."""
        told = streams.record(line) if '"FileChange"' in line else None
        item = streams.inner(told or {}, "payload", "item")
        if item.get("type") != "FileChange":
            return None
        changes = streams.inner(item, "changes")
        found = [(path, _changed(streams.inner(changes, path))) for path in changes]
        if len(found) == 1:
            return found[0][1]
        return "\n".join(f"{streams.shown(path)}\n{lines}".rstrip() for path, lines in found)[: streams.MAX_EDIT_CHARS]

    def _failed(self, message: str) -> signals.Failed:
        what = streams.complaint(message) or "Codex says that the turn failed, and not why."
        kind = trouble(message)
        return signals.Failed(what, kind, self._reset(message) if kind is Trouble.LIMIT else None)

    def _reset(self, message: str) -> float | None:
        """Return when a limit ends, as it is named: in local time, without a day if that is today."""
        found = _AGAIN_AT.search(message)
        if found is None:
            return None
        day = f"{found[1]} {found[2]}" if found[1] else f"{self.clock():%b %d %Y}"
        try:
            return datetime.strptime(f"{day} {found[3]}", "%b %d %Y %I:%M %p").astimezone().timestamp()
        except (ValueError, OverflowError, OSError):
            return None


def _plain(line: str) -> list[Signal]:
    """Return what a line says that is not an event: what went wrong before the first one."""
    words = streams.shown(line[: streams.MAX_SHOWN_CHARS])
    if words.startswith("Error: thread/resume"):
        return [signals.Failed(words, Trouble.CORRUPT)]
    return [*streams.said(words)]


def _started(item: Mapping[str, Any]) -> list[Signal]:
    name = streams.text(item, "id")
    match item.get("type"):
        case "command_execution":
            return [signals.Calls(name, SHELL, streams.about(command_of(streams.text(item, "command"))))]
        case "file_change":
            return [signals.Calls(name, "edit", streams.about(", ".join(_paths(item))))]
        case "mcp_tool_call":
            tool = f"{streams.text(item, 'server')}.{streams.text(item, 'tool')}"
            return [signals.Calls(name, tool, streams.about(item.get("arguments")))]
        case "web_search":
            return [signals.Calls(name, "web_search", streams.about(streams.text(item, "query")))]
    return []


def _completed(item: Mapping[str, Any]) -> list[Signal]:
    match item.get("type"):
        case "agent_message":
            return [*streams.said(streams.text(item, "text"))]
        case "error":  # a warning: the turn goes on, or else turn.failed follows
            return [*streams.said(streams.text(item, "message"))]
        case "command_execution" | "file_change" | "mcp_tool_call" | "web_search":
            failed = item.get("status") not in ("completed", None) or item.get("exit_code") not in (0, None)
            return [signals.Called(streams.text(item, "id"), failed, _result(item), _output(item)), signals.Waits()]
    return []


def _output(item: Mapping[str, Any]) -> str:
    """Return what came of a tool, in words."""
    if item.get("type") == "mcp_tool_call":
        parts = [streams.text(part, "text") for part in streams.objects(streams.inner(item, "result"), "content")]
        return streams.output("\n".join(parts) or streams.text(streams.inner(item, "error"), "message"))
    return streams.output(item.get("aggregated_output"))


def _result(item: Mapping[str, Any]) -> str | None:
    """Return what came of a tool; of an edit only the paths are named, and one that went in changed them."""
    match item.get("type"):
        case "command_execution":
            return streams.mark([item.get("exit_code"), item.get("aggregated_output")])
        case "file_change" if item.get("status") == "completed":
            return streams.text(item, "id")
        case "mcp_tool_call":
            return streams.mark([item.get("result"), item.get("error")])
    return None


def _complained(message: str) -> list[Signal]:
    """Return what an error means: a try that is to be repeated; or words, after which turn.failed says the rest."""
    again = _AGAIN.match(message)
    if again is None:
        return [*streams.said(streams.complaint(message))]
    found = _AGAIN_IN.search(again[1])
    wait = float(found[1]) * _UNITS[found[2]] if found else None
    return [signals.Limited(trouble(again[1]), streams.complaint(message), again_in=wait)]


def _changed(change: Mapping[str, Any]) -> str:
    content = change.get("content")
    match change.get("type"):
        case "add" if isinstance(content, str):
            return streams.edit("", content)
        case "delete" if isinstance(content, str):
            return streams.edit(content, "")
    patch = change.get("unified_diff")
    return streams.diff(patch) if isinstance(patch, str) else ""


def _paths(item: Mapping[str, Any]) -> list[str]:
    return [path for change in streams.objects(item, "changes") if (path := streams.text(change, "path"))]


agent = Codex()
"""Joins by entry point, like anyone's."""
