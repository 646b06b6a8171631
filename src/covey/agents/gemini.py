"""Gemini CLI: `gemini --output-format stream-json`, one prompt for one task.

What the levels come to, with Gemini CLI 0.61:
- ask: it reads with its own tools. It cannot ask while nobody is there: what writes, and every command, is refused, and
  it is told so.
- edits: it edits files in the worktree, and runs commands that begin as allowed ones do; of a chain each one must.
  All else is refused, and it is told so. It has no sandbox: what an allowed command does is not looked at.
- full: nothing is refused.

It gives each command settings of git that come after ours and turn hooks off. `GIT_CONFIG_PARAMETERS` comes after
those, so ours are said there once more.
"""

from __future__ import annotations

import glob
import json
import os.path
import re
from collections.abc import Mapping
from typing import Any

from covey.agents import environment, streams
from covey.agents.agent import Assignment, HearsNothing, Terminal, Traits
from covey.agents.allowed_commands import PUSH_WITH_HOOK, allowed
from covey.agents.provider_errors import of_status, trouble
from covey.core.fleet import signals
from covey.core.fleet.launches import Launch
from covey.core.fleet.signals import Signal, Trouble
from covey.core.people.permits import SHELL, PermissionLevel
from covey.values import dataclass

TRAITS = Traits(
    speaks=True, resumes=True, env=("GEMINI_*", "GOOGLE_*", *environment.AUTHORITIES), gap=0.5, memory=400 * 1024 * 1024
)
MODES = {PermissionLevel.ASK: "default", PermissionLevel.EDITS: "auto_edit", PermissionLevel.FULL: "yolo"}
POLICY = "gemini-policy.toml"

_ATTEMPT = re.compile(r"\AAttempt \d+ failed(?: with status (\d{3}))?")
_RESUME = re.compile(r"\AError resuming session: ")
_NO_KEY = re.compile(
    r"set an Auth method|must specify the GEMINI_API_KEY|GEMINI_API_KEY environment|Invalid auth method selected"
    r"|\AError authenticating: |\AManual authorization is required|\AWhen using Vertex AI, you must specify"
)
_UNREACHED = re.compile(r"\bE(?:CONN\w+|NOTFOUND|AI_AGAIN|TIMEDOUT)\b|fetch failed|socket hang up")
"""Why a login could not be renewed, though it is in order."""
_TOOLS = {"run_shell_command": SHELL, "write_file": "edit", "replace": "edit"}
_ABOUT = ("command", "file_path", "path", "dir_path", "pattern", "query", "prompt", "url")
_OUTSIDE = (
    r"(?<![-=]|commit [^;|&]*[\x22\x27][^\s\x22\x27][^\x22\x27]*)>[>|&]*\s*[\x22\x27\x5c]*"
    r"(?!/dev/null[^\w./-]|/tmp/(?!\S*\.\.))(?:/|~|\$|\.\.|[\w.-]+/[\w./-]*\.\./)"
)
"""A redirection that leaves the worktree: at `auto_edit` redirections are let pass unseen.

It is looked for in JSON. Arrows are none, nor is what stands in the message of a commit. A group that is repeated would
not be taken: the program fears that it takes for ever.
"""


_UNASKED = r"git\b[^;|&]*(?:\bpush\b[^;|&]*--no-veri|core\.hooks[pP]ath|\bsend-pack\b)"
"""A push that passes by the hook in which covey is asked."""


@dataclass(frozen=True)
class Gemini(HearsNothing):
    """Google's Gemini CLI, headless."""

    name: str = "gemini"
    traits: Traits = TRAITS
    terminal: Terminal | None = None

    def launch(self, work: Assignment) -> Launch:
        """Return `gemini`, which reads the prompt from its standard input.

        What it says on standard error is not kept apart: only there it says that it tries again, which goes on for
        minutes. It writes whole lines from one thread, so that they do not get into each other.
        """
        conversation = streams.name(work.conversation)
        mode = MODES[work.permissions]
        argv = work.command("gemini", "--output-format", "stream-json", "--approval-mode", mode)
        argv += ["--resume", conversation] if conversation else []
        files: dict[str, str] = {}
        if work.permissions is PermissionLevel.EDITS and os.path.isabs(work.folder):
            path = os.path.join(streams.word(work.folder), POLICY)
            files[path] = _policy(work)
            argv += ["--policy", path]
        argv += [streams.word(word) for word in work.arguments]
        env = {**_said_last(work.env), **work.env}
        # Without it a folder that nobody has opened with it before counts as foreign, where it edits nothing.
        env.setdefault("GEMINI_CLI_TRUST_WORKSPACE", "true")
        ledger = f"{work.env.get('GEMINI_CLI_HOME') or work.env.get('HOME', '')}/.gemini"
        return Launch(argv=tuple(argv), cwd=work.worktree, env=env, stdin=work.prompt, files=files, ledger=ledger)

    def read(self, line: str) -> list[Signal]:
        """Return what one event of stream-json lets us know, or a complaint between them."""
        event = streams.record(line)
        if event is None:
            return _plain(line)
        match event.get("type"):
            case "init":
                session = streams.name(streams.text(event, "session_id"))
                return [signals.Conversation(session)] if session else []
            case "message" if event.get("role") == "user":
                return [signals.Waits()]
            case "message" if event.get("delta") is True:
                return [*streams.piece(event, "content")]
            case "message":
                return [*streams.said(streams.text(event, "content"))]
            case "tool_use":
                return [_calls(event)]
            case "tool_result":
                result = streams.mark([event.get("output"), event.get("error")])
                told = streams.output(event.get("output")) or streams.text(streams.inner(event, "error"), "message")
                failed = event.get("status") != "success"
                return [signals.Called(streams.text(event, "tool_id"), failed, result, told), signals.Waits()]
            case "error":
                return [*streams.said(streams.text(event, "message"))]
            case "result":
                return [*_totals(streams.inner(event, "stats", "models")), _ended(event)]
        return []

    def ledger(self, folder: str, conversation: str) -> tuple[str, ...]:
        """Return the record of its chat, and of those of its sub-agents: its output names what it used at its end."""
        name = streams.name(conversation)
        chats = f"{glob.escape(folder)}/tmp/*/chats"
        return (f"{chats}/session-*-{name[:8]}.jsonl", f"{chats}/{name}/*.jsonl") if name else ()

    def count(self, line: str) -> list[Signal]:
        """Return what one answer of the model used; older ones are those that are set again."""
        told = streams.record(line) if '"tokens"' in line else None
        name = "" if told is None else streams.text(told, "id")
        if told is None or told.get("type") != "gemini" or not name:
            return []
        return [signals.Spent(name, _usage(streams.inner(told, "tokens")), streams.text(told, "model") or None)]


def _policy(work: Assignment) -> str:
    """Return which commands pass, and that none writes elsewhere by a redirection."""
    return f"""\
[[rule]]
toolName = "run_shell_command"
commandPrefix = {json.dumps(allowed(work.commands, work.gate), ensure_ascii=False)}
decision = "allow"
priority = 900

[[rule]]
toolName = "run_shell_command"
argsPattern = '{_OUTSIDE}'
decision = "deny"
priority = 950
denyMessage = "Write inside the worktree only."

[[rule]]
toolName = "run_shell_command"
argsPattern = '{_UNASKED}'
decision = "deny"
priority = 960
denyMessage = "{PUSH_WITH_HOOK}"
"""


def _said_last(env: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of git that an environment has, in the variable that git reads last."""
    count = env.get("GIT_CONFIG_COUNT", "")
    pairs = [
        (env.get(f"GIT_CONFIG_KEY_{number}"), env.get(f"GIT_CONFIG_VALUE_{number}"))
        for number in range(min(int(count), 1000) if count.isascii() and count.isdigit() else 0)
    ]
    quoted = [f"{_quoted(key)}={_quoted(value)}" for key, value in pairs if key is not None and value is not None]
    return {"GIT_CONFIG_PARAMETERS": " ".join(quoted)} if quoted else {}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''").replace("!", "'\\!'") + "'"


def _plain(line: str) -> list[Signal]:
    """Return what a complaint on standard error lets us know; most of them are noise."""
    words = streams.brief(line)
    attempt = _ATTEMPT.match(words)
    if attempt is not None:
        kind = of_status(int(attempt[1])) if attempt[1] else None
        return [signals.Limited(kind or trouble(words), streams.complaint(line))]
    if _RESUME.match(words):
        return [signals.Failed(words, Trouble.CORRUPT)]
    if _NO_KEY.search(words):
        return [signals.Failed(words, Trouble.CONNECTION if _UNREACHED.search(words) else Trouble.KEY)]
    return []


def _calls(event: Mapping[str, Any]) -> signals.Calls:
    tool, given = streams.text(event, "tool_name"), streams.inner(event, "parameters")
    named = next((given[key] for key in _ABOUT if isinstance(given.get(key), str)), given)
    call, kind = streams.text(event, "tool_id"), _TOOLS.get(tool, tool)
    if kind != "edit":
        return signals.Calls(call, kind, streams.about(named))
    # Two edits of one file are not the same call, so what is written counts.
    new = streams.words(given, "new_string") or streams.words(given, "content")
    return signals.Calls(call, kind, streams.exact(named, given), streams.edit(streams.words(given, "old_string"), new))


def _totals(models: Mapping[str, Any]) -> list[Signal]:
    """Return what each model cost since the program was started; thoughts are in the total only."""
    found: list[Signal] = []
    for model in models:
        stats = streams.inner(models, model)
        asked, cached = streams.count(stats, "input_tokens"), streams.count(stats, "cached")
        answered = max(streams.count(stats, "output_tokens"), streams.count(stats, "total_tokens") - asked)
        usage = signals.Usage(max(0, asked - cached), answered, cached)
        if usage.tokens:
            found.append(signals.Total(usage, streams.shown(model) or None))
    return found


def _usage(tokens: Mapping[str, Any]) -> signals.Usage:
    """Return what one answer used; what was read has the cached tokens in it, and thoughts are paid for as answers."""
    asked, cached = streams.count(tokens, "input"), streams.count(tokens, "cached")
    answered = streams.count(tokens, "output") + streams.count(tokens, "thoughts")
    return signals.Usage(max(0, asked - cached), max(answered, streams.count(tokens, "total") - asked), cached)


def _ended(event: Mapping[str, Any]) -> signals.Result | signals.Failed:
    """Return how it ended; it has no words for a success: what it said last stands."""
    if event.get("status") == "success":
        return signals.Result("")
    message = streams.text(streams.inner(event, "error"), "message") or "Gemini says that it failed, and not why."
    return signals.Failed(streams.complaint(message), _trouble(message))


def _trouble(message: str) -> Trouble:
    """Return what a complaint means; a quota of Google's is one of requests, and comes back."""
    return Trouble.LIMIT if "RESOURCE_EXHAUSTED" in message or re.search(r"\b429\b", message) else trouble(message)


agent = Gemini()
"""Joins by entry point, like anyone's."""
