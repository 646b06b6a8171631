"""Codex in a terminal: what its screen shows, and what it writes into the journal of a conversation.

Nobody can say beforehand how a conversation that begins there is called, so that only one is opened that has begun.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from covey.agents import streams
from covey.agents.agent import Assignment, Sight
from covey.agents.codex.launch import command_of, home, hooks, journal, settings, spending, usage_of
from covey.agents.provider_errors import trouble
from covey.agents.streams import inner, record, text
from covey.core.fleet import signals
from covey.core.fleet.launches import Launch, Screen
from covey.core.fleet.signals import Signal, Trouble
from covey.core.people.permits import SHELL, PermissionLevel
from covey.values import dataclass

_BUSY_TITLE = re.compile(r"[\u2801-\u28ff]")
_ASKS_TITLE = "Action Required"
_PROMPT = re.compile(r"› ?(.*)")
_EMPTY = "Ask Codex to do anything"
_MARGIN_COLUMNS = 2
"""Columns before what is written at the prompt."""
_FOOT = re.compile(r"\benter (?:to )?(?:confirm|continue|submit|select)\b|\besc (?:to )?(?:cancel|quit)\b")
_WORKING = re.compile(r"[•◦] .*\besc to interrupt\)")
_AGAIN = re.compile(r"[•◦] (Reconnecting\.\.\. \d+/\d+)")
_OPTION = re.compile(r"› \d+\. ")
_HEAD = re.compile(r"\A(?:(?:(?:Chunk ID|Wall time|Exit code|Process exited|Original token count)\b.*\n)*Output:\n)+")
"""What stands above a command's output, once more where a patch was applied by a command."""
_TIMES = re.compile(r"^(?:Chunk ID|Wall time): .*\n", re.MULTILINE)
"""What is never twice the same in the head of a command's output."""


@dataclass(frozen=True)
class CodexTerminal:
    """Codex as a person uses it, in a conversation that began without a terminal."""

    begins: bool = False

    def launch(self, work: Assignment) -> Launch:
        """Return its command line; with a person there, it asks for what its sandbox does not allow."""
        # Without the first two options it starts a server of its own that outlives it.
        argv = work.command("codex", "--no-daemon", "--disable", "daemon_auto_start")
        argv += settings(work, "never" if work.permissions is PermissionLevel.FULL else "on-request")
        argv += hooks(work, held=True)
        argv += [streams.word(word) for word in work.arguments]
        conversation = streams.name(work.conversation)
        argv += ["resume", conversation] if conversation else []
        return Launch(argv=tuple(argv), cwd=work.worktree, env=dict(work.env), terminal=True)

    def see(self, screen: Screen) -> Sight:
        """Return what its screen says of it; its title says most."""
        shown = [line for line in screen.lines if line.strip()]
        if _ASKS_TITLE in screen.title or any(_FOOT.search(line) for line in shown[-3:]):
            return Sight.ASKS
        if _BUSY_TITLE.match(screen.title) or any(_WORKING.match(line) for line in shown[-8:]):
            return Sight.BUSY
        if self._prompt(screen) is None:
            return Sight.STARTING if len(shown) < 3 else Sight.UNKNOWN
        return Sight.TYPED if self.typed(screen) else Sight.READY

    def _prompt(self, screen: Screen) -> int | None:
        """Return the number of the line with its prompt, None if there is none."""
        found = [number for number, line in enumerate(screen.lines) if _PROMPT.match(line)]
        return found[-1] if found and not _OPTION.match(screen.lines[found[-1]]) else None

    def typed(self, screen: Screen) -> str:
        """Return what is written at its prompt; what stands there with the cursor before it is only a hint."""
        prompt = self._prompt(screen)
        if prompt is None or (screen.row, screen.column) == (prompt, _MARGIN_COLUMNS):
            return ""
        lines = screen.lines[prompt : max(screen.row, prompt) + 1]
        written = "\n".join(line[_MARGIN_COLUMNS:].rstrip() for line in lines).strip()
        return "" if written == _EMPTY else written

    def asked(self, screen: Screen) -> str:
        """Return the dialog that is open, with what can be chosen in it; nothing if there is none."""
        if self.see(screen) is not Sight.ASKS:
            return ""
        lines = [line.strip() for line in screen.lines]
        options = [number for number, line in enumerate(screen.lines) if re.match(r"[› ] ?\s*\d+\. ", line)]
        first = options[0] if options else len(lines)
        above = [number for number, line in enumerate(lines[:first]) if "?" in line]
        begin = above[-1] if above else max(first - 4, 0)
        dialog = [line for line in lines[begin:] if line and not _FOOT.search(line)]
        return streams.brief("\n".join(dialog))

    def says(self, screen: Screen) -> signals.Limited | signals.Compacts | None:
        """Return that it was put off: it tries again, and says so above its prompt."""
        found = next((found for line in screen.lines if (found := _AGAIN.match(line))), None)
        return None if found is None else signals.Limited(Trouble.OVERLOAD, found[1])

    def journal(self, work: Assignment) -> str | None:
        """Return where it writes the conversation, None of one that begins."""
        return next(iter(journal(home(work), work.conversation)), None)

    def read(self, line: str) -> list[Signal]:
        """Return what a line of its journal lets us know."""
        told = record(line)
        if told is None:
            return []
        payload = inner(told, "payload")
        match told.get("type"):
            case "session_meta":
                name = streams.name(text(payload, "id"))
                return [signals.Conversation(name)] if name else []
            case "token_usage_record":
                return spending(line)
            case "event_msg":
                return _event(payload)
            case "response_item":
                return _item(payload)
        return []

    def leave(self) -> str:
        """Return its own command to end."""
        return "/exit"


def _event(told: Mapping[str, Any]) -> list[Signal]:
    match told.get("type"):
        case "task_started":
            return [signals.Waits()]
        case "item_completed":
            return _completed(inner(told, "item"))
        case "token_count":
            return _counted(inner(told, "info"))
        case "task_complete":
            return [signals.Result(streams.brief(text(told, "last_agent_message")))]
        case "turn_aborted":
            return [signals.Works()]
        case "error":
            what = text(told, "message")
            return [signals.Failed(streams.complaint(what) or "It ended with an error.", trouble(what))]
        case "context_compacted":
            return [signals.Compacts(on=False)]
    return []


def _completed(item: Mapping[str, Any]) -> list[Signal]:
    if item.get("type") != "AgentMessage":
        return []
    words = [text(part, "text") for part in streams.objects(item, "content")]
    return [*streams.said("\n\n".join(words))]


def _counted(info: Mapping[str, Any]) -> list[Signal]:
    """Return what the whole conversation has used, and how full the last call made its context."""
    total, last = inner(info, "total_token_usage"), inner(info, "last_token_usage")
    if not total:
        return []
    window = streams.count(info, "model_context_window")
    full: list[Signal] = [signals.Context(usage_of(last).tokens, window)] if window and last else []
    return [signals.Total(usage_of(total), whole=True), *full]


def _item(item: Mapping[str, Any]) -> list[Signal]:
    """Return which tool is used, or has ended."""
    name = text(item, "call_id")
    match item.get("type"):
        case "function_call":
            given = record(text(item, "arguments")) or {}
            command = text(given, "cmd") or text(given, "command")
            tool = SHELL if command else text(item, "name") or "tool"
            return [signals.Calls(name, tool, streams.about(command_of(command) if command else given))]
        case "custom_tool_call":
            patch = text(item, "input")
            if text(item, "name") == "apply_patch":
                exact = streams.exact(streams.patched(patch), {"patch": patch})
                return [signals.Calls(name, "edit", exact, streams.diff(patch))]
            return [signals.Calls(name, text(item, "name") or "tool", streams.about(patch))]
        case "function_call_output" | "custom_tool_call_output":
            output = item.get("output")
            return [signals.Called(name, result=streams.mark(_plain(output)), output=_printed(output)), signals.Waits()]
    return []


def _printed(output: object) -> str:
    """Return what a tool printed without what stands above that."""
    return streams.output(_HEAD.sub("", output) if isinstance(output, str) else output)


def _plain(output: object) -> object:
    """Return what a tool printed without what is different each time."""
    if not isinstance(output, str):
        return output
    head, output_mark, printed = output.partition("Output:\n")
    return f"{_TIMES.sub('', head)}{output_mark}{printed}"
